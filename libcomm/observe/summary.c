/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Statistics by collective and by codec: counting, and when the table is written. The table
 * itself: summary_text.c. */

#include "libcomm/observe/summary.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/base/clock.h"
#include "libcomm/base/write_guard.h"

lcomm_status lcomm_summary_parse(const char *text, lcomm_summary_mode *mode, lcomm_why *why) {
  *mode = LCOMM_SUMMARY_NONE;
  if (!text || strcmp(text, "none") == 0) {
    return LCOMM_OK;
  }
  if (strcmp(text, "exit") == 0) {
    *mode = LCOMM_SUMMARY_FIRST;
    return LCOMM_OK;
  }
  if (strcmp(text, "exit:all") == 0) {
    *mode = LCOMM_SUMMARY_ALL;
    return LCOMM_OK;
  }
  return lcomm_why_set(
      why, LCOMM_ERR_ARGUMENT,
      "LCOMM_STATS=%.40s is none of none, exit (rank 0 shows its statistics at the end) and "
      "exit:all (every rank does)",
      text);
}

/* -------------------------------------------------------------- counting */

void lcomm_summary_begin(lcomm_summary *summary, double now_s) {
  if (summary->in_flight++ == 0) {
    summary->active_since_s = now_s;
  }
}

void lcomm_summary_drop(lcomm_summary *summary, double now_s) {
  if (summary->in_flight > 0 && --summary->in_flight == 0) {
    summary->active_s += now_s - summary->active_since_s;
  }
}

static void add_cost(lcomm_summary_cost *sum, const lcomm_summary_cost *cost) {
  sum->data_bytes += cost->data_bytes;
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    sum->sent_bytes[link] += cost->sent_bytes[link];
    sum->exact_bytes[link] += cost->exact_bytes[link];
  }
  sum->encode_s += cost->encode_s;
  sum->decode_s += cost->decode_s;
  sum->wire_s += cost->wire_s;
  sum->picked += cost->picked;
  sum->waited += cost->waited;
}

void lcomm_summary_add(lcomm_summary *summary, lcomm_summary_row *row,
                       const lcomm_summary_cost *cost, double begin_s, double now_s) {
  lcomm_summary_row *codec = &summary->codecs[cost->codec];
  lcomm_summary_drop(summary, now_s);
  row->operations++;
  row->total_s += now_s - begin_s;
  add_cost(&row->cost, cost);
  codec->operations++;
  codec->total_s += now_s - begin_s;
  add_cost(&codec->cost, cost);
}

void lcomm_summary_sum(const lcomm_summary *summary, lcomm_summary_row *sum) {
  memset(sum, 0, sizeof *sum);
  for (int i = 0; i < LCOMM_SUMMARY_ROWS; i++) {
    const lcomm_summary_row *row = &summary->rows[i];
    sum->operations += row->operations;
    sum->total_s += row->total_s;
    sum->wait_s += row->wait_s;
    add_cost(&sum->cost, &row->cost);
  }
}

/* --------------------------------------------------------------- the end */

/* One write, so that the tables of several ranks do not mix. */
static void write_table(const lcomm_summary *summary) {
  char text[LCOMM_SUMMARY_TEXT_MAX];
  size_t length = lcomm_summary_print(summary, lcomm_clock_s(), text, sizeof(text));
  length = length < sizeof(text) ? length : sizeof(text) - 1;
  lcomm_write_guard guard;
  lcomm_write_guard_begin(&guard);
  fflush(stderr);
  ssize_t written = write(STDERR_FILENO, text, length);
  lcomm_write_guard_end(&guard, written < 0 ? errno : 0); /* there is nobody to tell */
}

static void at_exit(lcomm_exit_hook *hook) {
  write_table((const lcomm_summary *)hook);
}

void lcomm_summary_open(lcomm_summary *summary, lcomm_summary_mode mode,
                        const lcomm_summary_about *about, pthread_mutex_t *guard) {
  if (mode == LCOMM_SUMMARY_NONE || (mode == LCOMM_SUMMARY_FIRST && about->rank != 0)) {
    return;
  }
  summary->about = *about;
  summary->hook.run = at_exit;
  summary->hook.guard = guard;
  lcomm_exit_hook_add(&summary->hook);
}

void lcomm_summary_guard(lcomm_summary *summary, pthread_mutex_t *guard) {
  summary->hook.guard = guard;
}

void lcomm_summary_hide(lcomm_summary *summary) {
  (void)lcomm_exit_hook_remove(&summary->hook);
}

void lcomm_summary_close(lcomm_summary *summary) {
  if (lcomm_exit_hook_remove(&summary->hook)) {
    write_table(summary);
  }
}
