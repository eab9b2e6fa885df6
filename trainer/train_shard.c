/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_shard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/train_gradients.h"

/* -------------------------------------------------------------------- memory */

static bool is_short(const shard *self) {
  return self->net->precision != PRECISION_FP32;
}

/* Which of the places a bucket has. */
static int place_of(const shard *self, int number) {
  return number == self->plan.bucket_count - 1 ? SHARD_PLACES - 1 : number % (SHARD_PLACES - 1);
}

static size_t largest_of_place(const shard *self, int place) {
  size_t largest = 0;
  for (int i = 0; i < self->plan.bucket_count; i++) {
    size_t count = self->plan.buckets[i].count;
    largest = place_of(self, i) == place && count > largest ? count : largest;
  }
  return largest;
}

/* Memory that ranks of a host read where it is. */
static void *room(size_t size) {
  void *made = NULL;
  return lcomm_memory_alloc(size, &made) == LCOMM_OK ? made : NULL;
}

static bool make_wire(shard *self) {
  bool turns = self->kind == SHARD_GRADIENTS, made = true;
  for (int i = 0; i < (turns ? SHARD_PLACES : 1); i++) {
    size_t count = turns ? largest_of_place(self, i) : self->net->weight_count;
    self->wire[i] = room(count * sizeof(uint16_t));
    made = made && self->wire[i];
  }
  self->received = malloc(self->plan.count * sizeof(uint16_t) + 1);
  return made && self->received;
}

static void set_place(shard *self, int number) {
  const shard_bucket *at = &self->plan.buckets[number];
  model_gradients_at(self->net, at->first, at->parameters, self->places[place_of(self, number)]);
}

static bool make_places(shard *self) {
  bool made = true;
  for (int i = 0; i < SHARD_PLACES; i++) {
    self->places[i] = room(largest_of_place(self, i) * sizeof(float));
    made = made && self->places[i];
  }
  model_gradients_elsewhere(self->net);
  for (int i = 0; made && i < self->plan.bucket_count; i++) {
    set_place(self, i);
  }
  return made;
}

int shard_create(shard *made, shard_kind kind, lcomm_comm *comm, model *net) {
  memset(made, 0, sizeof *made);
  made->kind = kind;
  made->comm = comm;
  made->net = net;
  if (shard_plan_make(net, lcomm_size(comm), lcomm_rank(comm), &made->plan)) {
    return -1;
  }
  made->gradients = malloc(made->plan.count * sizeof(float) + 1);
  made->bucket = malloc(made->plan.largest * sizeof(float));
  bool good = made->gradients && made->bucket && (!is_short(made) || make_wire(made)) &&
              (kind != SHARD_GRADIENTS || make_places(made));
  return good ? 0 : -1;
}

void shard_destroy(shard *self) {
  for (int i = 0; i < SHARD_PLACES; i++) {
    lcomm_memory_free(self->places[i]);
    lcomm_memory_free(self->wire[i]);
  }
  free(self->received);
  free(self->gradients);
  free(self->bucket);
  shard_plan_free(&self->plan);
  memset(self, 0, sizeof *self);
}

size_t shard_gradient_bytes(const shard *self) {
  size_t count = self->plan.count, codes = is_short(self) ? self->plan.count : 0;
  if (self->kind == SHARD_OPTIMIZER) {
    count += self->net->weight_count;
    codes += is_short(self) ? self->net->weight_count : 0;
  }
  for (int i = 0; self->kind == SHARD_GRADIENTS && i < SHARD_PLACES; i++) {
    count += largest_of_place(self, i);
    codes += is_short(self) ? largest_of_place(self, i) : 0;
  }
  return count * sizeof(float) + codes * sizeof(uint16_t);
}

int shard_register(shard *self, bool compresses, failure *why) {
  for (int i = 0; compresses && i < self->plan.bucket_count; i++) {
    char name[2 * MODEL_NAME_SIZE];
    const shard_bucket *at = &self->plan.buckets[i];
    shard_bucket_name(at, self->net, name, sizeof name);
    lcomm_status status =
        lcomm_residual_create_scatter(self->comm, name, at->counts, LCOMM_AVG, &self->residuals[i]);
    if (peers_check(self->comm, status, name, why)) {
      lcomm_abort(self->comm, why->text);
      return -1;
    }
  }
  return 0;
}

/* ------------------------------------------------- gradients: reduce-scatters */

static void note(shard *self, lcomm_status status) {
  self->status = first_error(self->status, status);
}

void shard_begin(shard *self, float scale) {
  self->scale = scale;
  self->sent = 0;
  self->status = LCOMM_OK;
}

static float *gradients_of(const shard *self, int number) {
  const shard_bucket *at = &self->plan.buckets[number];
  return self->kind == SHARD_GRADIENTS ? self->places[place_of(self, number)]
                                       : self->net->gradients + at->offset;
}

static uint16_t *wire_of(const shard *self, int number) {
  const shard_bucket *at = &self->plan.buckets[number];
  return self->kind == SHARD_GRADIENTS ? self->wire[place_of(self, number)]
                                       : self->wire[0] + at->offset;
}

/* Error feedback remembers float32, of gradients that no scale has multiplied. */
static void send_compressed(shard *self, int number) {
  const shard_bucket *at = &self->plan.buckets[number];
  float *values = gradients_of(self, number), by = 1.0f / self->scale;
  precision_round(self->net->precision, values, at->count);
  for (size_t i = 0; self->scale != 1.0f && i < at->count; i++) {
    values[i] *= by;
  }
  note(self, lcomm_ireduce_scatter_ef(self->residuals[number], values, self->gradients + at->at,
                                      &self->requests[number]));
}

static void send_exact(shard *self, int number) {
  const shard_bucket *at = &self->plan.buckets[number];
  const void *values = gradients_of(self, number);
  void *result = self->gradients + at->at;
  if (is_short(self)) {
    precision_encode(self->net->precision, values, 1.0f, wire_of(self, number), at->count);
    values = wire_of(self, number);
    result = self->received + at->at;
  }
  note(self, lcomm_ireduce_scatterv(self->comm, values, result, at->counts,
                                    precision_dtype(self->net->precision), LCOMM_AVG,
                                    &self->requests[number]));
}

static void wait_for(shard *self, int number) {
  if (self->status == LCOMM_OK) {
    note(self, lcomm_wait(self->comm, &self->requests[number]));
  }
}

/* The bucket after the next one has its place; of the last one this is no question. */
static void leave_place(shard *self, int number) {
  if (number > 0) {
    wait_for(self, number - 1);
  }
}

void shard_ready(void *context, int first, int count) {
  shard *self = context;
  const shard_plan *plan = &self->plan;
  while (self->sent < plan->bucket_count && self->status == LCOMM_OK) {
    const shard_bucket *next = &plan->buckets[self->sent];
    if (next->first + next->parameters > first + count) {
      break;
    }
    if (self->residuals[self->sent]) {
      send_compressed(self, self->sent);
    } else {
      send_exact(self, self->sent);
    }
    if (self->kind == SHARD_GRADIENTS) {
      leave_place(self, self->sent);
    }
    self->sent++;
  }
  note(self, lcomm_progress(self->comm));
}

/* Averages that came as 16 bits; each rank looks at its own part. */
static bool take_averages(shard *self) {
  bool whole = true;
  size_t count = self->plan.count;
  if (is_short(self) && !self->residuals[0]) {
    precision_decode(self->net->precision, self->received, 1.0f / self->scale, self->gradients,
                     count);
  }
  for (size_t i = 0; i < count; i++) {
    whole &= isfinite(self->gradients[i]) != 0;
  }
  return whole;
}

lcomm_status shard_wait(shard *self, bool discards, bool *spoilt) {
  for (int i = 0; i < self->plan.bucket_count; i++) {
    wait_for(self, i);
  }
  int32_t mine = self->status == LCOMM_OK && !take_averages(self), any = 0;
  if (self->status == LCOMM_OK) {
    note(self, lcomm_allreduce(self->comm, &mine, &any, 1, LCOMM_INT32, LCOMM_MAX));
  }
  *spoilt = any != 0;
  for (int i = 0; any && discards && i < self->plan.bucket_count; i++) {
    if (self->status == LCOMM_OK && self->residuals[i]) {
      note(self, lcomm_residual_discard(self->residuals[i]));
    }
  }
  return self->status;
}

/* ------------------------------------------------------- weights: all-gathers */

static void begin_gather(shard *self, int number, const float *own) {
  const shard_bucket *at = &self->plan.buckets[number];
  float *weights = self->net->weights;
  void *all = weights + at->offset, *mine = weights + at->own_offset;
  if (is_short(self)) {
    uint16_t *codes = wire_of(self, number), *own_codes = codes + (at->own_offset - at->offset);
    precision_encode(self->net->precision, own + at->at, 1.0f, own_codes, at->own_count);
    all = codes;
    mine = own_codes;
  } else {
    memcpy(mine, own + at->at, at->own_count * sizeof(float));
  }
  note(self, lcomm_iallgatherv(self->comm, mine, all, at->counts,
                               precision_dtype(self->net->precision), &self->requests[number]));
}

static void end_gather(shard *self, int number) {
  const shard_bucket *at = &self->plan.buckets[number];
  wait_for(self, number);
  if (is_short(self)) {
    precision_decode(self->net->precision, wire_of(self, number), 1.0f,
                     self->net->weights + at->offset, at->count);
  }
}

/* Two at once: buckets may have their places in turn. */
lcomm_status shard_gather(shard *self, const float *own) {
  self->status = LCOMM_OK;
  int count = self->plan.bucket_count;
  for (int i = 0; i <= count && self->status == LCOMM_OK; i++) {
    if (i < count) {
      begin_gather(self, i, own);
    }
    if (i > 0) {
      end_gather(self, i - 1);
    }
  }
  return self->status;
}

lcomm_status shard_gather_values(shard *self, int number, const float *own) {
  const shard_bucket *at = &self->plan.buckets[number];
  return lcomm_allgatherv(self->comm, own + at->at, self->bucket, at->counts, LCOMM_FLOAT32);
}

void shard_take_values(const shard *self, int number, float *own) {
  const shard_bucket *at = &self->plan.buckets[number];
  memcpy(own + at->at, self->bucket + (at->own_offset - at->offset), at->own_count * sizeof(float));
}

/* A sum of one number and zeros is exact, and float64 is never compressed. */
void shard_share_sums(void *context, double *sums, size_t count) {
  shard *self = context;
  note(self, lcomm_allreduce(self->comm, sums, sums, count, LCOMM_FLOAT64, LCOMM_SUM));
}
