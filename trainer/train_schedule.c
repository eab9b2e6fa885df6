/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_schedule.h"

#include "trainer/train_name.h"

static const char *const names[] = {
    [SCHEDULE_COSINE] = "cosine", [SCHEDULE_STEP] = "step", [SCHEDULE_CONSTANT] = "constant"};

const char *schedule_name(schedule_kind kind) {
  return names[kind];
}

schedule_kind schedule_find(const char *name) {
  return (schedule_kind)name_find(names, SCHEDULE_COUNT, name);
}

/* 3t^2 - 2t^3 differs from a half cosine by a hundredth at most. */
static float cosine_rate(const schedule *self, uint64_t step, uint64_t warmup) {
  if (step >= self->steps) {
    return 0.0f;
  }
  double t = (double)(step - warmup) / (double)(self->steps - warmup);
  return self->peak * (float)(1.0 - t * t * (3.0 - 2.0 * t));
}

static float step_rate(const schedule *self, uint64_t step) {
  if (step >= self->steps) {
    return 0.0f;
  }
  if (step >= self->steps - self->steps / 4) {
    return self->peak * 0.01f;
  }
  return step >= self->steps / 2 ? self->peak * 0.1f : self->peak;
}

float schedule_rate(const schedule *self, uint64_t step) {
  uint64_t warmup = (uint64_t)((double)self->warmup * (double)self->steps);
  if (step < warmup) {
    return self->peak * (float)((double)(step + 1) / (double)(warmup + 1));
  }
  switch (self->kind) {
  case SCHEDULE_COSINE:
    return cosine_rate(self, step, warmup);
  case SCHEDULE_STEP:
    return step_rate(self, step);
  default:
    return self->peak;
  }
}

float optimizer_rate(float peak, uint64_t step, uint64_t steps) {
  schedule made = {SCHEDULE_COSINE, peak, 0.05f, steps};
  return schedule_rate(&made, step);
}
