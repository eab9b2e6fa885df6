/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/progress.h"

#include <stdio.h>
#include <time.h>

#include "trainer/terminal.h"

enum { BAR_WIDTH = 24 };
#define LIVE_PERIOD_S 0.1
#define PLAIN_PERIOD_S 10.0
#define LOSS_MEMORY 0.95

double progress_now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

progress progress_begin(int rank, int epoch, int epochs, uint64_t steps, int images_per_step) {
  progress made = {0};
  made.talks = rank == 0;
  made.live = made.talks && terminal_is_live();
  made.epoch = epoch;
  made.epochs = epochs;
  made.steps = steps;
  made.images_per_step = images_per_step;
  made.began_s = progress_now_s();
  made.shown_s = made.began_s;
  return made;
}

static void show_bar(const progress *self, uint64_t step, double samples_per_s, double left_s) {
  int full = (int)(step * BAR_WIDTH / self->steps);
  printf("\r  epoch %d/%d [", self->epoch, self->epochs);
  for (int i = 0; i < BAR_WIDTH; i++) {
    putchar(i < full ? '#' : '-');
  }
  printf("] %3d %%  loss %.3f  %.0f samples/s  %.0f s left\x1b[K", (int)(step * 100 / self->steps),
         self->loss, samples_per_s, left_s);
}

static void show_line(const progress *self, uint64_t step, double samples_per_s, double left_s) {
  printf("  epoch %d of %d: step %llu of %llu, loss %.3f, %.0f samples/s, %.0f s left\n",
         self->epoch, self->epochs, (unsigned long long)step, (unsigned long long)self->steps,
         self->loss, samples_per_s, left_s);
}

void progress_show(progress *self, uint64_t step, double loss) {
  if (!self->talks) {
    return;
  }
  self->loss = step <= 1 ? loss : LOSS_MEMORY * self->loss + (1.0 - LOSS_MEMORY) * loss;
  double now_s = progress_now_s();
  if (now_s - self->shown_s < (self->live ? LIVE_PERIOD_S : PLAIN_PERIOD_S)) {
    return;
  }
  self->shown_s = now_s;
  double per_step_s = (now_s - self->began_s) / (double)step;
  double left_s = per_step_s * (double)(self->steps - step);
  if (self->live) {
    show_bar(self, step, self->images_per_step / per_step_s, left_s);
  } else {
    show_line(self, step, self->images_per_step / per_step_s, left_s);
  }
  fflush(stdout);
}

void progress_end(progress *self) {
  if (self->live) {
    printf("\r\x1b[K");
  }
}
