/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* libcomm-nccl.so over another NCCL: what reaches that, and what comes back. Each property runs in
 * a process of its own, which opens the library anew. */

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libcomm/interpose/nccl/nccl_abi.h"
#include "libcomm/interpose/nccl/nccl_functions.h"
#include "tests/interpose/nccl/stand_in_nccl.h"
#include "tests/support/forked.h"
#include "tests/support/unit_tests.h"

/* All functions, as the library exports them. */
typedef struct functions {
#define MEMBER(name, kind, n, ...)                                                                 \
  LCOMM_NCCL_RETURNS(kind)(*name) LCOMM_NCCL_PARAMETERS(n, __VA_ARGS__);
  LCOMM_NCCL_LIST(MEMBER)
} functions;

/* A file of the build folder, by the folder of this program: BUILD/tests/interpose/nccl. */
static void built(const char *name, char *path, size_t size) {
  char program[2048];
  ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
  program[length > 0 ? length : 0] = '\0';
  *strrchr(program, '/') = '\0';
  snprintf(path, size, "%s/%s", program, name);
}

static void *open_built(forked *self, const char *name) {
  char path[4096];
  built(name, path, sizeof(path));
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  forked_require(self, handle != NULL, "%s", handle ? "" : dlerror());
  return handle;
}

/* libcomm-nccl.so, over the library `below`, by the names that begin with `prefix`. */
static functions open_over(forked *self, const char *below, const char *prefix) {
  functions all;
  char path[4096], name[80];
  void *found;
  built(below, path, sizeof(path));
  setenv("LCOMM_NCCL_LIBRARY", path, 1);
  void *handle = open_built(self, "../../../libcomm-nccl.so");
#define FIND(function, kind, n, ...)                                                               \
  snprintf(name, sizeof(name), "%s%s", prefix, #function);                                         \
  found = dlsym(handle, name);                                                                     \
  forked_require(self, found != NULL, "there is no %s", name);                                     \
  memcpy(&all.function, &found, sizeof found);
  LCOMM_NCCL_LIST(FIND)
  return all;
}

/* ------------------------------------------------------- arguments and results */

/* The bytes of the argument with this name. A version is written, so its address is one. */
static void *bytes_of(const char *name, size_t size) {
  static _Alignas(16) unsigned char slots[2 * STAND_IN_PARAMETERS][STAND_IN_BYTES];
  static int next, version;
  static int *const address = &version;
  unsigned char *slot = slots[next++ % (2 * STAND_IN_PARAMETERS)];
  for (size_t i = 0; i < size; i++) {
    slot[i] = (unsigned char)(stand_in_outcome(name) + 7 * (int)i);
  }
  if (strcmp(name, "version") == 0) {
    memcpy(slot, &address, sizeof address);
  }
  return slot;
}

#define VALUE(type, name) *(type *)bytes_of(#name, sizeof(type))
#define VALUE_NONE
#define NAME(type, name) #name
#define NAME_NONE NULL
#define SIZE(type, name) sizeof(type)
#define SIZE_NONE 0

static void require_noted(forked *self, const stand_in_call *last, const char *function, int count,
                          const char *const *names, const size_t *sizes) {
  forked_require(self, strcmp(last->name, function) == 0, "%s became %s", function, last->name);
  forked_require(self, last->count == count, "%s has %d parameters", function, last->count);
  for (int i = 0; i < count; i++) {
    forked_require(self,
                   last->sizes[i] == sizes[i] &&
                       memcmp(last->bytes[i], bytes_of(names[i], sizes[i]), sizes[i]) == 0,
                   "%s: `%s` is not what was given", function, names[i]);
  }
}

#define RETURNED_result(name, call)                                                                \
  forked_require(self, (call) == (ncclResult_t)(stand_in_outcome(name) % 9), "result of %s", name)
#define RETURNED_text(name, call) forked_require(self, strcmp(call, name) == 0, "text of %s", name)
#define RETURNED_number(name, call)                                                                \
  forked_require(self, (call) == stand_in_outcome(name), "number of %s", name)
#define RETURNED_nothing(name, call) call
#define RETURNED_team(name, call)                                                                  \
  ncclTeam_t team = call;                                                                          \
  forked_require(self,                                                                             \
                 team.nRanks == stand_in_outcome(name) && team.rank == 2 && team.stride == 3,      \
                 "team of %s", name)

#define CALL(name, kind, n, ...)                                                                   \
  static void call_##name(forked *self, const functions *all, const stand_in_call *last) {         \
    RETURNED_##kind(#name, all->name(LCOMM_NCCL_EACH_##n(VALUE, __VA_ARGS__)));                    \
    require_noted(self, last, #name, n, (const char *[]){LCOMM_NCCL_EACH_##n(NAME, __VA_ARGS__)},  \
                  (const size_t[]){LCOMM_NCCL_EACH_##n(SIZE, __VA_ARGS__)});                       \
  }
LCOMM_NCCL_LIST(CALL)

static void call_all(forked *self, const char *prefix) {
  functions all = open_over(self, "stand_in_nccl.so", prefix);
  const stand_in_call *last = dlsym(open_built(self, "stand_in_nccl.so"), "stand_in_last");
#define CALL_ONE(name, kind, n, ...) call_##name(self, &all, last);
  LCOMM_NCCL_LIST(CALL_ONE)
}

static void every_call_arrives_with_its_arguments_and_returns_the_result(forked *self) {
  call_all(self, "nccl");
}

static void so_do_the_names_with_p(forked *self) {
  call_all(self, "pnccl");
}

/* ------------------------------------------------------------- another NCCL */

static void what_the_other_one_lacks_is_refused_with_a_sentence(forked *self) {
  functions all = open_over(self, "stand_in_nccl_old.so", "nccl");
  ncclComm_t comm = (ncclComm_t)&all;
  int version = 0, count = 7;
  all.GetVersion(&version);
  forked_require(self, version == 21805, "version %d", version);
  forked_require(self, all.CommCount(comm, &count) == ncclSuccess && count == 1, "count %d", count);
  forked_require(self, all.CommShrink(comm, NULL, 0, NULL, NULL, 0) == ncclInvalidUsage, "shrink");
  const char *sentence = all.GetLastError(comm);
  forked_require(self,
                 strstr(sentence, "ncclCommShrink: ") && strstr(sentence, "NCCL 2.18.5 (") &&
                     strstr(sentence, "stand_in_nccl_old.so"),
                 "the sentence is: %s", sentence);
  sentence = all.GetLastError(comm);
  forked_require(self, strcmp(sentence, "the old one's sentence") == 0, "then: %s", sentence);
  forked_require(self, all.TeamRankToWorld(comm, (ncclTeam_t){1, 0, 1}, 0) == -1, "a number");
  forked_require(self, all.TeamWorld(comm).nRanks == 0, "a team");
  all.ParamDumpAll();
  sentence = all.GetErrorString(ncclInProgress);
  forked_require(self, sentence && sentence[0], "it has no texts, and this library's are empty");
}

/* The sentence names the trouble; nothing crashes, and nothing else is called instead. */
static void require_refused(forked *self, const char *below, const char *trouble) {
  functions all = open_over(self, below, "nccl");
  int version = 7;
  forked_require(self, all.GetVersion(&version) == ncclInvalidUsage && version == 7, "%d", version);
  const char *sentence = all.GetLastError(NULL);
  forked_require(self, strstr(sentence, trouble) != NULL, "the sentence is: %s", sentence);
  forked_require(self, all.GetLastError(NULL)[0] == '\0', "it is told twice");
  forked_require(self, strcmp(all.GetErrorString(ncclSuccess), "no error") == 0, "no text");
  forked_require(self, all.GetErrorString((ncclResult_t)99) != NULL, "no text for 99");
}

static void a_file_that_is_not_there_is_named(forked *self) {
  require_refused(self, "no_such_nccl.so", "no_such_nccl.so");
}

static void a_library_without_nccl_is_named(forked *self) {
  require_refused(self, "../../../libcomm.so", "libcomm.so is no NCCL");
}

static void the_library_is_not_its_own_below(forked *self) {
  require_refused(self, "../../../libcomm-nccl.so", "itself");
}

/* ---------------------------------------------------------------- versions */

static int told(forked *self, const char *setting) {
  int version = 0;
  setenv("LCOMM_NCCL_VERSION", setting, 1);
  functions all = open_over(self, "stand_in_nccl.so", "nccl");
  all.GetVersion(&version);
  return version;
}

static void the_version_is_as_set(forked *self) {
  forked_require(self, told(self, "2.21.5") == 22105, "2.21.5");
}

static void the_version_may_be_a_code(forked *self) {
  forked_require(self, told(self, "22809") == 22809, "22809");
}

static void a_version_that_is_none_leaves_that_below(forked *self) {
  forked_require(self, told(self, "2.28.9x") == STAND_IN_VERSION, "2.28.9x");
}

/* ------------------------------------------------------------ threads, time */

enum { THREADS = 8 };

static functions shared;
static atomic_int right;

static void *first_call(void *unused) {
  int version = 0;
  shared.GetVersion(&version);
  atomic_fetch_add(&right, version == 21805);
  return unused;
}

static void first_calls_of_many_threads_all_arrive(forked *self) {
  pthread_t threads[THREADS];
  shared = open_over(self, "stand_in_nccl_old.so", "nccl");
  for (int i = 0; i < THREADS; i++) {
    pthread_create(&threads[i], NULL, first_call, NULL);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  forked_require(self, atomic_load(&right) == THREADS, "%d are right", atomic_load(&right));
}

static double ns_per_call(ncclResult_t (*count)(const ncclComm_t, int *), ncclComm_t comm) {
  enum { CALLS = 1000000, ROUNDS = 5 };
  double least = 1e30;
  for (int round = 0; round < ROUNDS; round++) {
    struct timespec begin, end;
    int ranks;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < CALLS; i++) {
      count(comm, &ranks);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
    least = ns / CALLS < least ? ns / CALLS : least;
  }
  return least;
}

/* Nothing is asserted: the figure is for people. */
static void the_time_of_a_forwarded_call_is_printed(forked *self) {
  functions all = open_over(self, "stand_in_nccl_old.so", "nccl"), direct = all;
  void *function = dlsym(open_built(self, "stand_in_nccl_old.so"), "ncclCommCount");
  memcpy(&direct.CommCount, &function, sizeof function);
  double without = ns_per_call(direct.CommCount, (ncclComm_t)self);
  double through = ns_per_call(all.CommCount, (ncclComm_t)self);
  printf("# ncclCommCount: %.2f ns through the library, %.2f ns without it\n", through, without);
  fflush(stdout);
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(every_call_arrives_with_its_arguments_and_returns_the_result, 1),
    FORKED_TEST(so_do_the_names_with_p, 1),
    FORKED_TEST(what_the_other_one_lacks_is_refused_with_a_sentence, 1),
    FORKED_TEST(a_file_that_is_not_there_is_named, 1),
    FORKED_TEST(a_library_without_nccl_is_named, 1),
    FORKED_TEST(the_library_is_not_its_own_below, 1),
    FORKED_TEST(the_version_is_as_set, 1),
    FORKED_TEST(the_version_may_be_a_code, 1),
    FORKED_TEST(a_version_that_is_none_leaves_that_below, 1),
    FORKED_TEST(first_calls_of_many_threads_all_arrive, 1),
    FORKED_TEST(the_time_of_a_forwarded_call_is_printed, 1),
};

RUN_TESTS(tests)
