/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Calls, counted by class. */

#include "libcomm/interpose/interpose_report.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool lcomm_interpose_recording;

static struct {
  pthread_mutex_t lock; /* guards all */
  lcomm_interpose_class classes[LCOMM_INTERPOSE_CLASSES_MAX];
  unsigned count;
  lcomm_interpose_class others[2]; /* further classes: left, libcomm's */
  lcomm_interpose_policies policies;
} report = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A call that waits for a pattern counts as left. */
static bool is_chosen(const lcomm_interpose_record *record) {
  return record->choice != LCOMM_SELECT_NONE && !record->exact_now;
}

static bool is_same_text(const char *one, const char *other) {
  return one == other || strcmp(one, other) == 0;
}

static bool is_same_name(const char *kept, const char *name) {
  return strncmp(kept, name, LCOMM_INTERPOSE_NAME_MAX - 1) == 0;
}

/* 0: the policy of the start. Needs the lock. */
static unsigned policy_of(const lcomm_interpose_record *record) {
  lcomm_interpose_policies *all = &report.policies;
  if (!record->policy || !is_chosen(record)) {
    return 0;
  }
  unsigned i = 0;
  while (i < all->count && strncmp(all->text[i], record->policy, sizeof(all->text[i]) - 1) != 0) {
    i++;
  }
  if (i == all->count && i < LCOMM_INTERPOSE_POLICIES_MAX) {
    snprintf(all->text[all->count++], sizeof(all->text[0]), "%s", record->policy);
  }
  return i < LCOMM_INTERPOSE_POLICIES_MAX ? i : LCOMM_INTERPOSE_POLICIES_MAX - 1;
}

/* The same class, apart from the count. */
static bool is_like(const lcomm_interpose_class *class, const lcomm_interpose_record *record) {
  return class->choice == record->choice && class->chosen == is_chosen(record) &&
         is_same_text(class->function, record->function) && is_same_text(class->op, record->op) &&
         is_same_text(class->why, record->why) && is_same_name(class->type, record->type) &&
         is_same_name(class->comm, record->comm) &&
         is_same_name(class->members, record->members ? record->members : "") &&
         class->policy == policy_of(record);
}

static lcomm_interpose_class *find(const lcomm_interpose_record *record) {
  for (unsigned i = 0; i < report.count; i++) {
    lcomm_interpose_class *class = &report.classes[i];
    if ((!class->chosen || class->count_min == record->count) && is_like(class, record)) {
      return class;
    }
  }
  return NULL;
}

/* ------------------------------------------------------------------ counting */

static lcomm_interpose_class *add_class(const lcomm_interpose_record *record) {
  if (report.count == LCOMM_INTERPOSE_CLASSES_MAX) {
    return &report.others[is_chosen(record)];
  }
  lcomm_interpose_class *class = &report.classes[report.count++];
  class->function = record->function;
  class->op = record->op;
  class->why = record->why;
  snprintf(class->type, sizeof(class->type), "%s", record->type);
  snprintf(class->comm, sizeof(class->comm), "%s", record->comm);
  snprintf(class->members, sizeof(class->members), "%s", record->members ? record->members : "");
  class->policy = policy_of(record);
  class->no_bytes = record->no_bytes;
  return class;
}

static void count(lcomm_interpose_class *class, const lcomm_interpose_record *record) {
  if (class->calls == 0) {
    class->choice = record->choice;
    class->chosen = is_chosen(record);
    class->ranks = record->ranks;
    class->nodes = record->nodes;
    class->count_min = class->count_max = record->count;
    class->call_sent_bytes = record->sent_bytes;
    class->call_exact_bytes = record->exact_bytes;
  }
  class->ranks = class->ranks == record->ranks ? record->ranks : 0;
  class->nodes = class->nodes == record->nodes ? record->nodes : 0;
  class->count_min = class->count_min < record->count ? class->count_min : record->count;
  class->count_max = class->count_max > record->count ? class->count_max : record->count;
  class->calls++;
  class->size_bytes += record->size_bytes;
  class->sent_bytes += record->sent_bytes;
  class->exact_bytes += record->exact_bytes;
}

void lcomm_interpose_report_add(const lcomm_interpose_record *record) {
  pthread_mutex_lock(&report.lock);
  lcomm_interpose_class *class = find(record);
  count(class ? class : add_class(record), record);
  pthread_mutex_unlock(&report.lock);
}

/* When no class is left, a similar class gives the bytes in proportion. */
static const lcomm_interpose_class *find_like(const lcomm_interpose_record *record) {
  for (unsigned i = 0; report.count == LCOMM_INTERPOSE_CLASSES_MAX && i < report.count; i++) {
    if (report.classes[i].count_min > 0 && is_like(&report.classes[i], record)) {
      return &report.classes[i];
    }
  }
  return NULL;
}

static uint64_t scaled(uint64_t bytes, double factor) {
  return factor == 1 ? bytes : (uint64_t)((double)bytes * factor);
}

bool lcomm_interpose_report_lookup(lcomm_interpose_record *record) {
  pthread_mutex_lock(&report.lock);
  const lcomm_interpose_class *class = find(record);
  double factor = 1;
  if (!class && (class = find_like(record))) {
    factor = (double)record->count / (double)class->count_min;
  }
  if (class) {
    record->sent_bytes = scaled(class->call_sent_bytes, factor);
    record->exact_bytes = scaled(class->call_exact_bytes, factor);
  }
  pthread_mutex_unlock(&report.lock);
  return class != NULL;
}

/* How many members from the first on are at the same distance, *step. */
static int run_length(const int *members, int count, int *step) {
  int length = count < 2 ? count : 2;
  *step = count < 2 ? 1 : members[1] - members[0];
  while (length < count && members[length] - members[length - 1] == *step) {
    length++;
  }
  return *step > 0 && length > 2 ? length : 1;
}

const char *lcomm_interpose_members_text(const int *members, int count, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0, step = 1; i < count && used < size - 1;) {
    int length = run_length(members + i, count - i, &step), last = members[i + length - 1];
    const char *comma = i > 0 ? "," : "";
    int put = length == 1 ? snprintf(text + used, size - used, "%s%d", comma, members[i])
              : step == 1
                  ? snprintf(text + used, size - used, "%s%d-%d", comma, members[i], last)
                  : snprintf(text + used, size - used, "%s%d-%d:%d", comma, members[i], last, step);
    used += put > 0 ? (size_t)put : 0;
    i += length;
  }
  return text;
}

/* ------------------------------------------------------------------- printing */

size_t lcomm_interpose_report_print(const lcomm_interpose_report_about *about, char *text,
                                    size_t size) {
  lcomm_interpose_class *classes[LCOMM_INTERPOSE_CLASSES_MAX + 2];
  unsigned used = 0;
  pthread_mutex_lock(&report.lock);
  for (unsigned i = 0; i < report.count; i++) {
    classes[used++] = &report.classes[i];
  }
  for (unsigned i = 0; i < 2; i++) {
    if (report.others[i].calls > 0) {
      classes[used++] = &report.others[i];
    }
  }
  size_t length = lcomm_interpose_report_format(about, &report.policies, classes, used, text, size);
  pthread_mutex_unlock(&report.lock);
  return length;
}

void lcomm_interpose_report_show(lcomm_interpose_report_about about) {
  enum { TABLE_MAX_BYTES = 65536 };
  char host[256] = "", *text = malloc(TABLE_MAX_BYTES);
  if (!text) {
    return;
  }
  gethostname(host, sizeof(host) - 1);
  about.host = host;
  size_t length = lcomm_interpose_report_print(&about, text, TABLE_MAX_BYTES);
  length = length < TABLE_MAX_BYTES ? length : TABLE_MAX_BYTES - 1;
  ssize_t written = write(STDERR_FILENO, text, length);
  (void)written;
  free(text);
}

void lcomm_interpose_report_begin(const char *policy) {
  pthread_mutex_lock(&report.lock);
  report.policies.count = 1;
  snprintf(report.policies.text[0], sizeof(report.policies.text[0]), "%s", policy);
  pthread_mutex_unlock(&report.lock);
}

void lcomm_interpose_report_clear(void) {
  pthread_mutex_lock(&report.lock);
  report.count = 0;
  memset(report.classes, 0, sizeof(report.classes));
  memset(report.others, 0, sizeof(report.others));
  memset(&report.policies, 0, sizeof(report.policies));
  pthread_mutex_unlock(&report.lock);
}
