/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Calls counted by classes. */

#include "libcomm/interpose/mpi/report.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "libcomm/interpose/mpi/report_class.h"

bool lcomm_interpose_noting;

static struct {
  pthread_mutex_t lock; /* guards all */
  lcomm_interpose_class classes[LCOMM_INTERPOSE_CLASSES_MAX];
  unsigned count;
  lcomm_interpose_class others[2]; /* for which no class was left: MPI's, libcomm's */
  lcomm_interpose_policies policies;
} report = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What waits for a pattern is MPI's like all that is left. */
static bool is_chosen(const lcomm_interpose_note *note) {
  return note->choice != LCOMM_SELECT_NONE && !note->exact_now;
}

static bool is_same_text(const char *one, const char *other) {
  return one == other || strcmp(one, other) == 0;
}

static bool is_same_name(const char *kept, const char *name) {
  return strncmp(kept, name, LCOMM_INTERPOSE_NAME_MAX - 1) == 0;
}

/* 0 is the one of the start. With the lock. */
static unsigned policy_of(const lcomm_interpose_note *note) {
  lcomm_interpose_policies *all = &report.policies;
  if (!note->policy || !is_chosen(note)) {
    return 0;
  }
  unsigned i = 0;
  while (i < all->count && strncmp(all->text[i], note->policy, sizeof(all->text[i]) - 1) != 0) {
    i++;
  }
  if (i == all->count && i < LCOMM_INTERPOSE_POLICIES_MAX) {
    snprintf(all->text[all->count++], sizeof(all->text[0]), "%s", note->policy);
  }
  return i < LCOMM_INTERPOSE_POLICIES_MAX ? i : LCOMM_INTERPOSE_POLICIES_MAX - 1;
}

/* The same class, if it were not for the count? */
static bool is_like(const lcomm_interpose_class *class, const lcomm_interpose_note *note) {
  return class->choice == note->choice && class->chosen == is_chosen(note) &&
         is_same_text(class->function, note->function) && is_same_text(class->op, note->op) &&
         is_same_text(class->why, note->why) && is_same_name(class->type, note->type) &&
         is_same_name(class->comm, note->comm) &&
         is_same_name(class->members, note->members ? note->members : "") &&
         class->policy == policy_of(note);
}

static lcomm_interpose_class *find(const lcomm_interpose_note *note) {
  for (unsigned i = 0; i < report.count; i++) {
    lcomm_interpose_class *class = &report.classes[i];
    if ((!class->chosen || class->count_min == note->count) && is_like(class, note)) {
      return class;
    }
  }
  return NULL;
}

/* ------------------------------------------------------------------ counting */

static lcomm_interpose_class *add_class(const lcomm_interpose_note *note) {
  if (report.count == LCOMM_INTERPOSE_CLASSES_MAX) {
    return &report.others[is_chosen(note)];
  }
  lcomm_interpose_class *class = &report.classes[report.count++];
  class->function = note->function;
  class->op = note->op;
  class->why = note->why;
  snprintf(class->type, sizeof(class->type), "%s", note->type);
  snprintf(class->comm, sizeof(class->comm), "%s", note->comm);
  snprintf(class->members, sizeof(class->members), "%s", note->members ? note->members : "");
  class->policy = policy_of(note);
  return class;
}

static void count(lcomm_interpose_class *class, const lcomm_interpose_note *note) {
  if (class->calls == 0) {
    class->choice = note->choice;
    class->chosen = is_chosen(note);
    class->ranks = note->ranks;
    class->nodes = note->nodes;
    class->count_min = class->count_max = note->count;
    class->call_sent_bytes = note->sent_bytes;
    class->call_exact_bytes = note->exact_bytes;
  }
  class->ranks = class->ranks == note->ranks ? note->ranks : 0;
  class->nodes = class->nodes == note->nodes ? note->nodes : 0;
  class->count_min = class->count_min < note->count ? class->count_min : note->count;
  class->count_max = class->count_max > note->count ? class->count_max : note->count;
  class->calls++;
  class->size_bytes += note->size_bytes;
  class->sent_bytes += note->sent_bytes;
  class->exact_bytes += note->exact_bytes;
}

void lcomm_interpose_report_note(const lcomm_interpose_note *note) {
  pthread_mutex_lock(&report.lock);
  lcomm_interpose_class *class = find(note);
  count(class ? class : add_class(note), note);
  pthread_mutex_unlock(&report.lock);
}

/* When there is no class left, bytes in proportion to those of a like class will do. */
static const lcomm_interpose_class *find_like(const lcomm_interpose_note *note) {
  for (unsigned i = 0; report.count == LCOMM_INTERPOSE_CLASSES_MAX && i < report.count; i++) {
    if (report.classes[i].count_min > 0 && is_like(&report.classes[i], note)) {
      return &report.classes[i];
    }
  }
  return NULL;
}

static uint64_t scaled(uint64_t bytes, double factor) {
  return factor == 1 ? bytes : (uint64_t)((double)bytes * factor);
}

bool lcomm_interpose_report_known(lcomm_interpose_note *note) {
  pthread_mutex_lock(&report.lock);
  const lcomm_interpose_class *class = find(note);
  double factor = 1;
  if (!class && (class = find_like(note))) {
    factor = (double)note->count / (double)class->count_min;
  }
  if (class) {
    note->sent_bytes = scaled(class->call_sent_bytes, factor);
    note->exact_bytes = scaled(class->call_exact_bytes, factor);
  }
  pthread_mutex_unlock(&report.lock);
  return class != NULL;
}

/* How many from the first on have the same distance, which is written. */
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

/* ------------------------------------------------------------------ the table */

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
