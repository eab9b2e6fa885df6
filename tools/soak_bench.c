/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Random operations for a long time, on ranks that meet by lcomm_create_env(): are the
 * results right and alike everywhere, and what do processes hold at the end? Or until
 * something fails: who is named, and when? */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/tool_options.h"
#include "tools/soak/soak_run.h"

enum { EXIT_WRONG = 1, EXIT_TROUBLE = 2, COMPARE_EVERY = 16 };

static const char usage[] =
    "usage: RANK=R WORLD_SIZE=N MASTER_ADDR=HOST MASTER_PORT=PORT soak_bench [OPTIONS]\n"
    "Make random collective calls on 2 to 16 ranks and look at all results.\n"
    "  --operations N           so many (default 200000); 0: until one fails\n"
    "  --seed N                 of what is random, the same on all ranks (default 1)\n"
    "  --transport NAMES        as in LCOMM_TRANSPORT (default auto)\n"
    "  --progress calls|thread  (default thread)\n"
    "  --version\n"
    "  --help\n"
    "Every rank prints `ready` and its process when it begins; rank 0 at the end: operations;\n"
    "wrong, those with a wrong result; drifted, comparisons in which ranks differed; memory_kib\n"
    "and descriptors, of the rank that has most, in the middle and at the end. A rank whose\n"
    "operation fails prints `failed`, seconds since 1970, the status and its sentence.\n"
    "Exit status: 1 something was wrong, 2 bad usage or an operation failed.\n";

typedef struct soak_options {
  uint64_t operations, seed;
  const char *transport;
  lcomm_progress_mode progress;
} soak_options;

static bool read_progress(tool_command_line *line, const char *value) {
  soak_options *o = line->options;
  o->progress = strcmp(value, "calls") == 0 ? LCOMM_PROGRESS_CALLS : LCOMM_PROGRESS_THREAD;
  return o->progress == LCOMM_PROGRESS_CALLS || strcmp(value, "thread") == 0;
}

static tool_parse read_options(int argc, char **argv, soak_options *o, char *error) {
  static const tool_option known[] = {
      TOOL_WHOLE(0, "operations", offsetof(soak_options, operations), 0, INT64_MAX),
      TOOL_WHOLE(0, "seed", offsetof(soak_options, seed), 0, UINT64_MAX),
      TOOL_TEXT(0, "transport", offsetof(soak_options, transport)),
      TOOL_READ(0, "progress", read_progress),
      {0}};
  tool_command_line line = {.argc = argc, .argv = argv, .options = o, .error = error};
  *o = (soak_options){200000, 1, "auto", LCOMM_PROGRESS_THREAD};
  return tool_options_parse_alone(&line, known);
}

static void help(void) {
  fputs(usage, stdout);
}

/* ------------------------------------------------------- what a process has */

enum { HELD_MEMORY_KIB, HELD_DESCRIPTORS, HELD_COUNT };

/* Of memory that several processes map, each has its part. */
static void look(int64_t *held) {
  char line[128];
  long long kib = 0;
  FILE *file = fopen("/proc/self/smaps_rollup", "r");
  while (file && fgets(line, sizeof line, file) && sscanf(line, "Pss: %lld", &kib) != 1) {
  }
  if (file) {
    fclose(file);
  }
  held[HELD_MEMORY_KIB] = kib;
  held[HELD_DESCRIPTORS] = 0;
  DIR *entries = opendir("/proc/self/fd");
  while (entries && readdir(entries)) {
    held[HELD_DESCRIPTORS]++;
  }
  if (entries) {
    closedir(entries);
  }
}

/* ------------------------------------------------------------------ the run */

static lcomm_status work(soak *run, const soak_options *o, int64_t *middle, int64_t *end) {
  lcomm_status status = LCOMM_OK;
  for (uint64_t i = 0; status == LCOMM_OK && (o->operations == 0 || i < o->operations); i++) {
    status = soak_step(run);
    if (status == LCOMM_OK && i % COMPARE_EVERY == COMPARE_EVERY - 1) {
      status = soak_compare(run);
    }
    if (i == o->operations / 2) {
      look(middle);
    }
  }
  look(end);
  if (status == LCOMM_OK) {
    status = soak_share_largest(run, middle, HELD_COUNT);
  }
  return status == LCOMM_OK ? soak_share_largest(run, end, HELD_COUNT) : status;
}

static void say_failure(const soak *run, lcomm_status status) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  printf("failed %lld.%06ld %s %s\n", (long long)now.tv_sec, now.tv_nsec / 1000,
         lcomm_status_name(status), soak_sentence(run));
  fflush(stdout);
}

static int report(soak *run, const soak_options *o, const int64_t *middle, const int64_t *end) {
  int64_t counts[2] = {(int64_t)run->wrong, (int64_t)run->drifted};
  if (soak_share_largest(run, counts, 2) != LCOMM_OK) {
    return EXIT_TROUBLE;
  }
  if (run->rank == 0) {
    printf(
        "operations %llu\nwrong %lld\ndrifted %lld\nmemory_kib %lld %lld\ndescriptors %lld %lld\n",
        (unsigned long long)o->operations, (long long)counts[0], (long long)counts[1],
        (long long)middle[HELD_MEMORY_KIB], (long long)end[HELD_MEMORY_KIB],
        (long long)middle[HELD_DESCRIPTORS], (long long)end[HELD_DESCRIPTORS]);
  }
  return counts[0] + counts[1] > 0 ? EXIT_WRONG : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
  char error[TOOL_ERROR_MAX];
  soak_options options;
  soak run;
  int64_t middle[HELD_COUNT] = {0}, end[HELD_COUNT] = {0};
  tool_parse parse = read_options(argc, argv, &options, error);
  if (parse != TOOL_RUN) {
    return tool_answer("soak_bench", parse, help, error);
  }
  lcomm_status status = soak_begin(&run, options.seed, options.transport, options.progress);
  if (status == LCOMM_OK) {
    printf("ready %ld\n", (long)getpid());
    fflush(stdout);
    status = work(&run, &options, middle, end);
  }
  int result = EXIT_TROUBLE;
  if (status == LCOMM_OK) {
    result = report(&run, &options, middle, end);
  } else {
    say_failure(&run, status);
  }
  soak_end(&run);
  return result;
}
