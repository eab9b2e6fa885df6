/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Who waits for streams, and what is said when nothing moves any more. */

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libcomm/base/clock.h"
#include "tests/support/emulated/emulated_stream.h"

static emulated_watch *watches;
static uint64_t moves;

void emulated_watch_moved(void) {
  moves++;
}

void emulated_watch_begin(emulated_watch *watch, const char *what, const char *whom) {
  watch->what = what;
  watch->whom = whom;
  watch->thread = (int)syscall(SYS_gettid);
  watch->moves = moves;
  watch->since_s = lcomm_clock_s();
  watch->next = watches;
  watches = watch;
}

void emulated_watch_end(emulated_watch *watch) {
  emulated_watch **at = &watches;
  while (*at != watch) {
    at = &(*at)->next;
  }
  *at = watch->next;
}

/* ------------------------------------------------------------------- saying */

static void print_stream(const emulated_stream *s) {
  char text[EMULATED_TEXT_MAX] = "has something to do";
  const emulated_stream *before = emulated_turn_before(s);
  if (s->is_busy) {
    snprintf(text, sizeof(text), "is at work");
  } else if (before) {
    snprintf(text, sizeof(text), "stands in queue %d behind stream %llu", s->queue,
             (unsigned long long)before->number);
  } else if (s->first->describe) {
    s->first->describe(s->first, text);
  }
  fprintf(stderr, "  stream %llu of device %d%s %s, %llu tasks behind that\n",
          (unsigned long long)s->number, s->device, s->is_work ? " (for work)" : "", text,
          (unsigned long long)(s->put - s->done - 1));
}

static void end_process(void) {
  fprintf(stderr, "emulated device: nothing has moved for %g s\n", emulated.setup.patience_s);
  for (const emulated_watch *watch = watches; watch; watch = watch->next) {
    fprintf(stderr, "  thread %d in %s waits for %s\n", watch->thread, watch->what, watch->whom);
  }
  for (const emulated_stream *s = emulated_streams; s; s = s->next) {
    if (s->first) {
      print_stream(s);
    }
  }
  abort();
}

void emulated_watch_step(emulated_watch *watch) {
  static const double LOOK_S = 0.5;
  double patience_s = emulated.setup.patience_s;
  emulated_wait_for(&emulated.changed, patience_s < LOOK_S ? patience_s : LOOK_S);
  double now_s = lcomm_clock_s();
  if (watch->moves != moves) {
    watch->moves = moves;
    watch->since_s = now_s;
  } else if (now_s - watch->since_s > patience_s) {
    end_process();
  }
}
