/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <inttypes.h>
#include <stdio.h>

#include "trainer/train_clock.h"
#include "trainer/train_report.h"
#include "trainer/train_screen.h"

/* How far an epoch is. */

enum { BAR_WIDTH = 12, SHARE_SIZE = 64 };
#define LIVE_PERIOD_S 0.1
#define PLAIN_PERIOD_S 10.0
#define LOSS_MEMORY 0.95

progress progress_begin(const training *of) {
  double begun_s = now_s();
  return (progress){
      of, of->ranks.rank == 0 && screen_is_live(), begun_s, of->step_of_epoch, begun_s, 0.0};
}

/* What an epoch has come to so far, of this rank where ranks may differ. */
typedef struct state {
  uint64_t step;
  double speed, left_s; /* images or bytes of text each second, of all ranks */
  char communication[SHARE_SIZE];
} state;

static uint64_t sent_bytes(const lcomm_comm *comm) {
  lcomm_stats stats = {0};
  uint64_t sent = 0;
  lcomm_stats_get(comm, &stats);
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    sent += link == LCOMM_LINK_SELF ? 0 : stats.sent_bytes[link];
  }
  return sent;
}

/* ", 80 % hidden, 12.3 MB" */
static void describe_communication(const training *of, char text[SHARE_SIZE]) {
  const overlap *seen = &of->overlap;
  lcomm_comm *all[TRAINING_COMMS];
  int count = training_comms(of, all);
  uint64_t sent = 0;
  text[0] = '\0';
  for (int i = 0; i < count; i++) {
    sent += sent_bytes(all[i]);
  }
  if (of->ranks.size == 1) {
    return;
  }
  snprintf(text, SHARE_SIZE, ", %.0f %% hidden, %.1f MB",
           100.0 * overlap_hidden(seen->communication_s, seen->exposed_s),
           (double)sent / SCREEN_MEGA);
}

static const char *unit_of(const training *of) {
  return task_is_text(&of->task) ? "bytes" : "samples";
}

static void show_bar(const progress *self, const state *now) {
  uint64_t steps = self->of->steps_per_epoch;
  int full = (int)(now->step * BAR_WIDTH / steps);
  printf("\r  epoch %d/%d [", self->of->epoch, self->of->chosen->epochs);
  for (int i = 0; i < BAR_WIDTH; i++) {
    putchar(i < full ? '#' : '-');
  }
  printf("] %3d %%, loss %.3f, %.0f %s/s%s, %.0f s left\x1b[K", (int)(now->step * 100 / steps),
         self->loss, now->speed, unit_of(self->of), now->communication, now->left_s);
}

static void show_line(const progress *self, const state *now) {
  printf("  epoch %d of %d: step %" PRIu64 " of %" PRIu64 ", loss %.3f, %.0f %s/s%s, %.0f s left\n",
         self->of->epoch, self->of->chosen->epochs, now->step, self->of->steps_per_epoch,
         self->loss, now->speed, unit_of(self->of), now->communication, now->left_s);
}

double progress_speed(const progress *self, uint64_t step) {
  double seconds = now_s() - self->began_s;
  return (double)(step - self->first) * samples_per_step(self->of) / seconds;
}

void progress_show(progress *self, uint64_t step, double loss) {
  if (self->of->ranks.rank != 0) {
    return;
  }
  self->loss =
      step == self->first + 1 ? loss : LOSS_MEMORY * self->loss + (1.0 - LOSS_MEMORY) * loss;
  double shown_s = now_s();
  if (shown_s - self->shown_s < (self->live ? LIVE_PERIOD_S : PLAIN_PERIOD_S)) {
    return;
  }
  self->shown_s = shown_s;
  double per_step_s = (shown_s - self->began_s) / (double)(step - self->first);
  state now = {.step = step,
               .speed = samples_per_step(self->of) / per_step_s,
               .left_s = per_step_s * (double)(self->of->steps_per_epoch - step)};
  now.speed *= task_is_text(&self->of->task) ? self->of->task.labels : 1;
  describe_communication(self->of, now.communication);
  if (self->live) {
    show_bar(self, &now);
  } else {
    show_line(self, &now);
  }
  fflush(stdout);
}

void progress_end(progress *self) {
  if (self->live) {
    printf("\r\x1b[K");
  }
}
