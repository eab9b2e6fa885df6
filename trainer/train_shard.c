/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_shard.h"

#include <string.h>

#include "trainer/train_gradients.h"
#include "trainer/train_shard_calls.h"

/* -------------------------------------------------------------------- memory */

static bool is_short(const shard *self) {
  return self->net->precision != PRECISION_FP32;
}

/* The weights in use are float32 that were rounded to 16 bits. */
static bool is_rounded(const shard *self) {
  return is_short(self) && self->on->stored == PRECISION_FP32;
}

/* Which of the places a bucket has. */
static int place_of(const shard *self, int number) {
  return number == self->plan.bucket_count - 1 ? SHARD_TURN : number % SHARD_TURN;
}

static size_t largest_of_place(const shard *self, int place) {
  size_t largest = 0;
  for (int i = 0; i < self->plan.bucket_count; i++) {
    size_t count = self->plan.buckets[i].count;
    largest = place_of(self, i) == place && count > largest ? count : largest;
  }
  return largest;
}

static bool make_wire(shard *self) {
  bool turns = self->kind == SHARD_GRADIENTS, made = true;
  for (int i = 0; i < (turns ? SHARD_PLACES : 1); i++) {
    size_t count = turns ? largest_of_place(self, i) : self->net->weight_count;
    self->wire[i] = self->on->get_sent(count * sizeof(uint16_t) + 1);
    made = made && self->wire[i];
  }
  self->received = self->on->get(self->plan.count * sizeof(uint16_t) + 1);
  return made && self->received;
}

static void set_place(shard *self, int number) {
  const shard_bucket *at = &self->plan.buckets[number];
  model_gradients_at(self->net, at->first, at->parameters, self->places[place_of(self, number)]);
}

static bool make_places(shard *self) {
  bool made = true;
  for (int i = 0; i < SHARD_PLACES; i++) {
    self->places[i] = self->on->get_sent(largest_of_place(self, i) * sizeof(float) + 1);
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
  made->on = net->on;
  made->streams = shard_calls_in_stream(made);
  if (shard_plan_make(net, lcomm_size(comm), lcomm_rank(comm), &made->plan)) {
    return -1;
  }
  made->gradients = made->on->get(made->plan.count * sizeof(float) + 1);
  made->bucket = made->on->get(made->plan.largest * sizeof(float));
  bool good = made->gradients && made->bucket && (!is_short(made) || make_wire(made)) &&
              (kind != SHARD_GRADIENTS || make_places(made));
  return good ? 0 : -1;
}

void shard_destroy(shard *self) {
  const backend *on = self->on;
  if (!on) {
    return;
  }
  for (int i = 0; i < SHARD_PLACES; i++) {
    on->free_sent(self->places[i]);
    on->free_sent(self->wire[i]);
  }
  on->free(self->received);
  on->free(self->gradients);
  on->free(self->bucket);
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
  self->left = 0;
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
  self->on->round(self->net->precision, values, at->count);
  self->on->scale(values, by, at->count);
  note(self, shard_calls_average_ef(self, number, values, self->gradients + at->at));
}

static void send_exact(shard *self, int number) {
  const shard_bucket *at = &self->plan.buckets[number];
  const void *values = gradients_of(self, number);
  void *result = self->gradients + at->at;
  if (is_short(self)) {
    self->on->encode(self->net->precision, values, 1.0f, wire_of(self, number), at->count);
    values = wire_of(self, number);
    result = self->received + at->at;
  }
  note(self, shard_calls_average(self, number, values, result));
}

static void wait_for(shard *self, int number) {
  if (self->status == LCOMM_OK) {
    note(self, shard_calls_wait(self, number));
  }
}

/* The next layer writes its weight and its bias, which are of the next bucket that will be sent and
 * the one behind it: those that had their places have left. */
static void clear_places(shard *self) {
  int keep = SHARD_TURN - 2;
  for (int i = self->left; i < self->sent - keep; i++) {
    wait_for(self, i);
  }
  self->left = self->sent > keep ? self->sent - keep : 0;
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
    self->sent++;
  }
  if (self->kind == SHARD_GRADIENTS) {
    clear_places(self);
  }
  note(self, lcomm_progress(self->comm));
}

/* Averages that came as 16 bits; each rank looks at its own part. */
static bool take_averages(shard *self) {
  if (is_short(self) && !self->residuals[0]) {
    self->on->decode(self->net->precision, self->received, 1.0f / self->scale, self->gradients,
                     self->plan.count);
  }
  return self->on->finite(self->gradients, self->plan.count);
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
  const element *weights = self->net->weights;
  void *all = element_at(self->on, weights, at->offset);
  void *mine = element_at(self->on, weights, at->own_offset);
  if (is_rounded(self)) {
    uint16_t *codes = wire_of(self, number);
    all = codes;
    mine = codes + (at->own_offset - at->offset);
  }
  if (is_short(self)) {
    self->on->encode(self->net->precision, own + at->at, 1.0f, mine, at->own_count);
  } else {
    self->on->copy(mine, own + at->at, at->own_count * sizeof(float));
  }
  note(self, shard_calls_gather(self, number, mine, all));
}

static void end_gather(shard *self, int number) {
  const shard_bucket *at = &self->plan.buckets[number];
  wait_for(self, number);
  if (is_rounded(self)) {
    self->on->decode(self->net->precision, wire_of(self, number), 1.0f,
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
  self->on->finish();
  return lcomm_allgatherv(self->comm, own + at->at, self->bucket, at->counts, LCOMM_FLOAT32);
}

void shard_take_values(const shard *self, int number, float *own) {
  const shard_bucket *at = &self->plan.buckets[number];
  self->on->copy(own + at->at, self->bucket + (at->own_offset - at->offset),
                 at->own_count * sizeof(float));
}

/* A sum of one number and zeros is exact, and float64 is never compressed. */
void shard_share_sums(void *context, double *sums, size_t count) {
  shard *self = context;
  note(self, lcomm_allreduce(self->comm, sums, sums, count, LCOMM_FLOAT64, LCOMM_SUM));
}
