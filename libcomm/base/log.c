/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libcomm/base/env.h"
#include "libcomm/base/write_guard.h"

enum { LINE_MAX_BYTES = 4096, PATH_MAX_BYTES = 1024, UNKNOWN = -1 };

static const char *const names[] = {
    [LCOMM_LOG_NONE] = "none", [LCOMM_LOG_ERROR] = "error", [LCOMM_LOG_WARN] = "warn",
    [LCOMM_LOG_INFO] = "info", [LCOMM_LOG_DEBUG] = "debug", [LCOMM_LOG_TRACE] = "trace"};

/* Bits of the levels that are wanted, by the variable and by the program. */
static atomic_int by_variable = UNKNOWN, by_program;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest */
static lcomm_log_function function;
static void *function_context;
static bool opened;
static int file = -1, file_rank;

/* ---------------------------------------------------------------- levels */

static int up_to(int level) {
  return (2 << level) - 2;
}

/* Without the variable warnings are said, but no errors: calls return them. */
static bool read_levels(int *levels) {
  const char *text = lcomm_env_get(LCOMM_ENV_LOG);
  *levels = 1 << LCOMM_LOG_WARN;
  if (text && strcmp(text, "warning") == 0) {
    text = names[LCOMM_LOG_WARN]; /* its older name */
  }
  for (int level = LCOMM_LOG_NONE; text && level <= LCOMM_LOG_TRACE; level++) {
    if (strcmp(text, names[level]) == 0) {
      *levels = up_to(level);
      return true;
    }
  }
  return !text;
}

bool lcomm_log_wants(lcomm_log_level level) {
  int levels = atomic_load_explicit(&by_variable, memory_order_relaxed);
  if (levels == UNKNOWN) {
    read_levels(&levels);
    atomic_store(&by_variable, levels);
  }
  levels |= atomic_load_explicit(&by_program, memory_order_relaxed);
  return (levels >> level & 1) != 0;
}

lcomm_status lcomm_log_set(lcomm_log_level level, lcomm_log_function called, void *context) {
  if ((unsigned)level > LCOMM_LOG_TRACE) {
    return LCOMM_ERR_ARGUMENT;
  }
  pthread_mutex_lock(&lock);
  function = called;
  function_context = context;
  atomic_store(&by_program, called ? up_to((int)level) : 0);
  pthread_mutex_unlock(&lock);
  return LCOMM_OK;
}

/* --------------------------------------------------------------- writing */

static int print_time(char *text, size_t size) {
  struct timespec now;
  struct tm parts;
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &parts);
  size_t used = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &parts);
  return (int)used + snprintf(text + used, size - used, ".%03dZ", (int)(now.tv_nsec / 1000000));
}

/* One write, so that lines of several processes do not mix. */
static void write_line(int to, int rank, lcomm_log_level level, const char *sentence) {
  char line[LINE_MAX_BYTES], when[64] = "";
  lcomm_write_guard guard;
  int used = 0;
  if (to != STDERR_FILENO) {
    print_time(when, sizeof(when));
    used = snprintf(line, sizeof(line), "%s rank %d, process %ld, %s: ", when, rank, (long)getpid(),
                    names[level]);
  } else {
    used = snprintf(line, sizeof(line), "libcomm: ");
  }
  used += snprintf(line + used, sizeof(line) - (size_t)used, "%s\n", sentence);
  if (used >= (int)sizeof(line)) {
    used = (int)sizeof(line) - 1;
    line[used - 1] = '\n';
  }
  lcomm_write_guard_begin(&guard);
  ssize_t written = write(to, line, (size_t)used);
  lcomm_write_guard_end(&guard, written < 0 ? errno : 0);
}

void lcomm_log(lcomm_log_level level, const char *sentence) {
  if (!lcomm_log_wants(level)) {
    return;
  }
  int before = errno;
  pthread_mutex_lock(&lock);
  lcomm_log_function called = atomic_load(&by_program) >> level & 1 ? function : NULL;
  bool replaced = function != NULL;
  void *context = function_context;
  int to = file >= 0 ? file : STDERR_FILENO, rank = file_rank;
  pthread_mutex_unlock(&lock);
  if (called) {
    called(context, level, sentence);
  } else if (!replaced) {
    write_line(to, rank, level, sentence);
  }
  errno = before;
}

/* ------------------------------------------------------------------ file */

bool lcomm_log_path(const char *pattern, int rank, const char *host, char *path, size_t size) {
  size_t used = 0;
  for (const char *at = pattern; *at; at++) {
    char number[24] = {*at, '\0'};
    const char *words = number;
    if (*at == '%' && (at[1] == 'r' || at[1] == 'p')) {
      snprintf(number, sizeof(number), "%ld", at[1] == 'r' ? (long)rank : (long)getpid());
    } else if (*at == '%' && at[1] == 'h') {
      words = host;
    } else if (*at == '%' && at[1] != '%') {
      return false;
    }
    at += *at == '%';
    used += (size_t)snprintf(path + used, size - used, "%s", words);
    if (used >= size) {
      return false;
    }
  }
  return true;
}

static void open_file(const char *path, int rank, const char *host) {
  char sentence[PATH_MAX_BYTES + 256];
  file_rank = rank;
  file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) {
    snprintf(sentence, sizeof(sentence),
             "rank %d (host %.63s): LCOMM_LOG_FILE: the file %s cannot be opened: %s. What is said "
             "goes to standard error",
             rank, host, path, strerror(errno));
    write_line(STDERR_FILENO, rank, LCOMM_LOG_WARN, sentence);
  }
}

lcomm_status lcomm_log_begin(int rank, const char *host, lcomm_why *why) {
  const char *pattern = lcomm_env_get(LCOMM_ENV_LOG_FILE);
  char path[PATH_MAX_BYTES];
  int levels = 0;
  bool known = read_levels(&levels);
  atomic_store(&by_variable, levels);
  if (!known) {
    return lcomm_why_set(why, LCOMM_ERR_ARGUMENT,
                         "LCOMM_LOG=%.40s is none of none, error, warn, info, debug and trace",
                         lcomm_env_get(LCOMM_ENV_LOG));
  }
  if (pattern && !lcomm_log_path(pattern, rank, host, path, sizeof(path))) {
    return lcomm_why_set(
        why, LCOMM_ERR_ARGUMENT,
        "LCOMM_LOG_FILE=%.80s is no pattern of a file's name: %%r is the rank, %%h the host, "
        "%%p the process, %%%% a %%; for example libcomm-%%r.log",
        pattern);
  }
  pthread_mutex_lock(&lock);
  if (pattern && !opened) {
    open_file(path, rank, host);
    opened = true;
  }
  pthread_mutex_unlock(&lock);
  return LCOMM_OK;
}
