/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_BOOTSTRAP_CREW_H
#define LCOMM_TESTS_BOOTSTRAP_CREW_H

/* Processes that play the ranks of a job: each runs one function and writes a
 * report into memory that the test sees. Included by one program each, after
 * cmocka.h. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcomm/base/clock.h"
#include "libcomm/base/error.h"
#include "libcomm/bootstrap/store/store_internal.h"

enum { CREW_MAX = 16 };

/* How the all-gathers of all crews run: through rank 0, unless a test says otherwise. */
static lcomm_store_shape crew_shape = {.star_most = CREW_MAX, .fan_out = 4};

typedef struct report {
  int status;
  int good; /* what the function has to say besides */
  double seconds;
  char sentence[LCOMM_ERROR_MAX];
} report;

typedef struct crew crew;
typedef void (*crew_part)(const crew *c, int member, report *mine);

struct crew {
  int size;
  crew_part part;
  lcomm_launcher_env place; /* of all; the rank is the member's number */
  double timeout_s;
  int delay_ms[CREW_MAX];
  report *reports;
  pid_t pids[CREW_MAX];
};

static inline void sleep_ms(int ms) {
  poll(NULL, 0, ms);
}

/* A port that nobody has just now. */
static inline int free_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  assert_true(fd >= 0);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

static inline crew new_crew(int size, crew_part part) {
  crew c = {.size = size,
            .part = part,
            .timeout_s = 20,
            .place = {.world_size = size,
                      .size_from = "WORLD_SIZE",
                      .one_host = true,
                      .address = "127.0.0.1",
                      .token = "one secret",
                      .token_from = "LCOMM_TOKEN"}};
  c.place.port = free_port();
  c.reports = mmap(NULL, CREW_MAX * sizeof(report), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(c.reports != MAP_FAILED);
  return c;
}

static inline void start_member(crew *c, int member) {
  fflush(NULL);
  c->pids[member] = fork();
  assert_true(c->pids[member] >= 0);
  if (c->pids[member] > 0) {
    return;
  }
  double begin_s = lcomm_clock_s();
  sleep_ms(c->delay_ms[member]);
  c->part(c, member, &c->reports[member]);
  c->reports[member].seconds = lcomm_clock_s() - begin_s;
  fflush(NULL);
  exit(0); /* so that a leak is found */
}

static inline void start_crew(crew *c) {
  for (int i = 0; i < c->size; i++) {
    start_member(c, i);
  }
}

/* Wait for all; those that a test killed are allowed to have died of it. */
static inline void end_crew(crew *c) {
  for (int i = 0; i < CREW_MAX; i++) {
    int code = 0;
    if (c->pids[i] > 0) {
      assert_int_equal(waitpid(c->pids[i], &code, 0), c->pids[i]);
      assert_true((WIFEXITED(code) && WEXITSTATUS(code) == 0) ||
                  (WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL));
    }
  }
}

static inline void dismiss(crew *c) {
  munmap(c->reports, CREW_MAX * sizeof(report));
}

static inline void run_crew(crew *c) {
  start_crew(c);
  end_crew(c);
}

/* Only two of its members come. */
static inline void run_pair(crew *c, int one, int other) {
  start_member(c, one);
  start_member(c, other);
  end_crew(c);
}

/* Everyone succeeded and saw what it should. */
static inline void expect_good(const crew *c) {
  for (int i = 0; i < c->size; i++) {
    if (!c->reports[i].good) {
      print_error("rank %d: %s\n", i, c->reports[i].sentence);
    }
    assert_int_equal(c->reports[i].status, LCOMM_OK);
    assert_true(c->reports[i].good);
  }
}

/* All members of a crew that did not start yet succeed; it is dismissed. */
static inline void run_well(crew *c) {
  run_crew(c);
  expect_good(c);
  dismiss(c);
}

/* A line of cmocka's table: the property is a crew_part that is good of all `members`. */
#define CREW_TEST(property, members)                                                               \
  {                                                                                                \
    .name = #property, .test_func = crew_test, .initial_state = &(crew_property) {                 \
      members, property                                                                            \
    }                                                                                              \
  }

typedef struct crew_property {
  int members;
  crew_part part;
} crew_property;

static inline void crew_test(void **state) {
  const crew_property *property = *state;
  crew c = new_crew(property->members, property->part);
  run_well(&c);
}

static inline void expect_failure(const report *r, lcomm_status status, const char *words) {
  if (r->status != status || !strstr(r->sentence, words)) {
    print_error("status %d (%s), not %d, or not '%s' in: %s\n", r->status,
                lcomm_status_name((lcomm_status)r->status), status, words, r->sentence);
  }
  assert_int_equal(r->status, status);
  assert_non_null(strstr(r->sentence, words));
}

/* All members of a crew that did not start yet fail like this, but the one that is lost (-1: none
 * is); it is dismissed. */
static inline void run_ill(crew *c, int lost, lcomm_status status, const char *words) {
  run_crew(c);
  for (int i = 0; i < c->size; i++) {
    if (i != lost) {
      expect_failure(&c->reports[i], status, words);
    }
  }
  dismiss(c);
}

/* --- what a member does --- */

static inline lcomm_launcher_env place_of(const crew *c, int rank) {
  lcomm_launcher_env place = c->place;
  place.rank = rank;
  return place;
}

/* NULL with a report when it did not work. */
static inline lcomm_store *meet(const crew *c, int rank, report *mine) {
  lcomm_store *store = NULL;
  lcomm_launcher_env place = place_of(c, rank);
  mine->status = lcomm_store_meet_as(&place, c->timeout_s, crew_shape, &store);
  if (mine->status != LCOMM_OK) {
    snprintf(mine->sentence, sizeof(mine->sentence), "%s", lcomm_error_thread_text());
    return NULL;
  }
  return store;
}

static inline uint8_t byte_of(int rank, size_t i) {
  return (uint8_t)((size_t)rank * 37 + i * 11 + (i >> 8));
}

/* One allgather of `size` bytes; is everything where it belongs? */
static inline bool gather_once(lcomm_store *store, size_t size, report *mine) {
  uint8_t *send = malloc(size + 1), *all = calloc(size * (size_t)store->size + 1, 1);
  bool good = send && all;
  for (size_t i = 0; good && i < size; i++) {
    send[i] = byte_of(store->rank, i);
  }
  if (good && lcomm_store_allgather(store, send, all, size) != 0) {
    const char *sentence = "";
    mine->status = lcomm_store_failure(store, &sentence);
    snprintf(mine->sentence, sizeof(mine->sentence), "%s", sentence);
    good = false;
  }
  for (int rank = 0; good && rank < store->size; rank++) {
    for (size_t i = 0; good && i < size; i++) {
      good = all[(size_t)rank * size + i] == byte_of(rank, i);
    }
  }
  free(send);
  free(all);
  return good;
}

/* Each time for one such allgather. */
static inline void meet_again_and_again(const crew *c, int rank, size_t size, report *mine) {
  mine->good = true;
  for (int i = 0; i < 20 && mine->good; i++) {
    lcomm_store *store = meet(c, rank, mine);
    mine->good = store && gather_once(store, size, mine);
    lcomm_store_close(store);
  }
}

static inline void meet_and_gather(const crew *c, int rank, report *mine) {
  static const size_t sizes[] = {1, 0, 8, 5000, 3, 70000};
  lcomm_store *store = meet(c, rank, mine);
  mine->good = store != NULL;
  for (size_t i = 0; mine->good && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    mine->good = gather_once(store, sizes[i], mine);
  }
  lcomm_store_close(store);
}

/* --- strangers --- */

/* A connection to the meeting, or -1 while nobody listens. */
static inline int call_in(const crew *c) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)c->place.port),
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

static inline int call_until_heard(const crew *c) {
  int fd = -1;
  for (int i = 0; i < 500 && fd < 0; i++) {
    fd = call_in(c);
    if (fd < 0) {
      sleep_ms(10);
    }
  }
  assert_true(fd >= 0);
  return fd;
}

/* What is said before the other side hangs up. */
static inline size_t listen_to_end(int fd, uint8_t *bytes, size_t room) {
  size_t got = 0;
  for (ssize_t n = 1; n > 0 && got < room;) {
    n = recv(fd, bytes + got, room - got, 0);
    got += n > 0 ? (size_t)n : 0;
  }
  return got;
}

#endif
