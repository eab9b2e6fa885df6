/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The error-feedback state of tensors between two groupings: taken out of the old buckets,
 * put into the new ones.
 *
 * Where every rank keeps the elements of a tensor that it kept before, its residual and
 * momentum stay bit for bit. Otherwise they are summed over the ranks, in float64, and each
 * of those that keep an element now takes its share; what nobody keeps any more is carried to
 * the next result, as lcomm_state_load does it.
 */

#include <stdlib.h>
#include <string.h>

#include "libcomm/call/call.h"
#include "libcomm/feedback/ef_memory.h"
#include "libcomm/tensor/bucket.h"

/* ---------------------------------------------------------------- taking */

static const float *at(const float *values, uint64_t offset) {
  return values ? values + offset : NULL;
}

lcomm_status lcomm_tensor_state_take(lcomm_tensor *tensor) {
  const lcomm_bucket *bucket = tensor->bucket;
  const lcomm_feedback_state *feedback = bucket->ef.state.feedback;
  lcomm_ef_shard kept = lcomm_tensor_shard(tensor, feedback);
  lcomm_ef_parked *state = &tensor->state;
  lcomm_memory_location location = bucket->comm->tensors->location;
  state->first = kept.first;
  state->count = kept.n;
  bool whole =
      lcomm_ef_memory_copy(bucket->comm, location,
                           feedback ? feedback->residual.now + kept.at : NULL, kept.n,
                           &state->residual) &&
      lcomm_ef_memory_copy(bucket->comm, location,
                           feedback ? at(feedback->momentum.now, kept.at) : NULL, kept.n,
                           &state->momentum) &&
      lcomm_ef_memory_copy(bucket->comm, location,
                           at(bucket->ef.state.velocity.now, tensor->offset), tensor->count,
                           &state->velocity) &&
      lcomm_ef_memory_copy(bucket->comm, location, at(bucket->ef.state.carried, tensor->offset),
                           tensor->count, &state->carried);
  state->rank = bucket->ef.lowrank.rank;
  uint64_t basis = lcomm_ef_lowrank_basis(&bucket->ef, tensor->offset, &state->basis_count);
  whole =
      whole && lcomm_ef_memory_copy(bucket->comm, location, at(bucket->ef.state.basis.now, basis),
                                    state->basis_count, &state->basis);
  return whole ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

void lcomm_tensor_state_free(lcomm_tensor *tensor) {
  lcomm_ef_parked_free(tensor->comm, tensor->comm->tensors->location, &tensor->state);
}

/* --------------------------------------------------------------- placing */

/* What some rank says of a tensor; the ranks take the largest of each. */
typedef struct facts {
  int32_t has;   /* it has a residual */
  int32_t moves; /* it keeps other elements now */
  int32_t keeps; /* it keeps some now */
} facts;

enum { FACTS = sizeof(facts) / sizeof(int32_t), CHUNK = 1 << 17 };

typedef struct placing {
  lcomm_comm *comm;
  facts *tensors;                 /* bucket after bucket; those in old buckets stay zero */
  lcomm_feedback_state *feedback; /* of the bucket that is worked on, NULL: this rank keeps none */
  int holders;                    /* of each of its elements */
  double *sums;                   /* CHUNK of them */
} placing;

static lcomm_status out_of_memory(lcomm_comm *comm) {
  return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for the state of %zu tensors",
                    comm->tensors->count);
}

static facts *facts_of(const placing *it, const lcomm_bucket *bucket, size_t index) {
  size_t before = 0;
  for (const lcomm_bucket *other = it->comm->tensors->buckets; other < bucket; other++) {
    before += other->tensor_count;
  }
  return &it->tensors[before + index];
}

/* The range that this rank will keep of each tensor, by an empty state. */
static lcomm_status look(placing *it, lcomm_bucket *bucket) {
  lcomm_feedback_state *feedback = NULL;
  lcomm_status status = lcomm_ef_feedback(&bucket->ef, &feedback);
  for (size_t i = 0; status == LCOMM_OK && i < bucket->tensor_count; i++) {
    const lcomm_ef_parked *state = &bucket->tensors[i]->state;
    lcomm_ef_shard kept = lcomm_tensor_shard(bucket->tensors[i], feedback);
    *facts_of(it, bucket, i) =
        (facts){.has = state->residual != NULL,
                .moves = kept.n != state->count || (kept.n > 0 && kept.first != state->first),
                .keeps = kept.n > 0};
  }
  bucket->ef.state.feedback = feedback; /* for now */
  return status;
}

static lcomm_status agree(placing *it) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, it->tensors, it->tensors,
                                  it->comm->tensors->count * FACTS, LCOMM_INT32, LCOMM_MAX);
  call.op_kind = LCOMM_OP_KIND_TENSORS;
  return lcomm_tensors_call(it->comm, &call);
}

/* The part of first .. first+n that lies in begin .. begin+count, as an index from first. */
static uint64_t overlap(uint64_t first, uint64_t n, uint64_t begin, uint64_t count,
                        uint64_t *length) {
  uint64_t low = first > begin ? first : begin;
  uint64_t high = first + n < begin + count ? first + n : begin + count;
  *length = low < high ? high - low : 0;
  return low - first;
}

/* Sum `values`, which this rank has of elements `begin`.. `begin+count` of a tensor, over
 * the ranks, for elements first .. first+n. */
static lcomm_status sum(placing *it, const lcomm_ef_parked *state, const float *values,
                        uint64_t first, uint64_t n) {
  uint64_t length = 0, from = overlap(first, n, state->first, state->count, &length);
  memset(it->sums, 0, n * sizeof *it->sums);
  for (uint64_t i = from; values && i < from + length; i++) {
    it->sums[i] = (double)values[first + i - state->first];
  }
  /* float64 is exact by any policy */
  lcomm_call call =
      lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, it->sums, it->sums, n, LCOMM_FLOAT64, LCOMM_SUM);
  call.op_kind = LCOMM_OP_KIND_TENSORS;
  return lcomm_tensors_call(it->comm, &call);
}

/* Where a sum goes: to those that keep the element, or to what the bucket has of the
 * results: `kept` and `carried` are residual and carried, or momentum and velocity. */
static lcomm_status hand_out(placing *it, const lcomm_tensor *tensor, const float *values,
                             float *kept_values, float *carried) {
  double share = 1.0 / (double)it->holders;
  double result = tensor->op == LCOMM_AVG ? 1.0 / (double)it->comm->size : 1.0;
  lcomm_ef_shard kept = lcomm_tensor_shard(tensor, it->feedback);
  for (uint64_t first = 0; first < tensor->count; first += CHUNK) {
    uint64_t n = tensor->count - first < CHUNK ? tensor->count - first : CHUNK;
    LCOMM_TRY(sum(it, &tensor->state, values, first, n));
    uint64_t length = 0, from = overlap(first, n, kept.first, kept.n, &length);
    for (uint64_t i = from; kept_values && i < from + length; i++) {
      kept_values[kept.at + first + i - kept.first] = (float)(share * it->sums[i]);
    }
    for (uint64_t i = 0; carried && i < n; i++) {
      carried[tensor->offset + first + i] += (float)(result * it->sums[i]);
    }
  }
  return LCOMM_OK;
}

static bool vector_for(const lcomm_bucket *bucket, float **vector) {
  if (!*vector) {
    *vector = lcomm_ef_memory_get(bucket->comm, bucket->comm->tensors->location, bucket->count);
  }
  return *vector != NULL;
}

/* Nobody keeps the tensor's residual any more. */
static lcomm_status carry(placing *it, lcomm_bucket *bucket, const lcomm_tensor *tensor) {
  bool momentum = it->comm->settings.policy.momentum > 0;
  if (!vector_for(bucket, &bucket->ef.state.carried) ||
      (momentum && !vector_for(bucket, &bucket->ef.state.velocity.now))) {
    return out_of_memory(it->comm);
  }
  LCOMM_TRY(hand_out(it, tensor, tensor->state.residual, NULL, bucket->ef.state.carried));
  if (momentum) {
    LCOMM_TRY(hand_out(it, tensor, tensor->state.momentum, NULL, bucket->ef.state.velocity.now));
  }
  return LCOMM_OK;
}

static lcomm_status move(placing *it, const lcomm_tensor *tensor) {
  lcomm_feedback_state *feedback = it->feedback;
  LCOMM_TRY(
      hand_out(it, tensor, tensor->state.residual, feedback ? feedback->residual.now : NULL, NULL));
  if (it->comm->settings.policy.momentum > 0) {
    LCOMM_TRY(hand_out(it, tensor, tensor->state.momentum, feedback ? feedback->momentum.now : NULL,
                       NULL));
  }
  return LCOMM_OK;
}

static void copy_kept(placing *it, const lcomm_tensor *tensor) {
  lcomm_ef_shard kept = lcomm_tensor_shard(tensor, it->feedback);
  size_t size = kept.n * sizeof(float);
  if (kept.n > 0 && tensor->state.residual) {
    memcpy(it->feedback->residual.now + kept.at, tensor->state.residual, size);
  }
  if (kept.n > 0 && tensor->state.momentum && it->feedback->momentum.now) {
    memcpy(it->feedback->momentum.now + kept.at, tensor->state.momentum, size);
  }
}

static lcomm_status place_residual(placing *it, lcomm_bucket *bucket, size_t index) {
  const lcomm_tensor *tensor = bucket->tensors[index];
  const facts *known = facts_of(it, bucket, index);
  if (!known->has) {
    return LCOMM_OK;
  }
  if (!known->keeps) {
    return carry(it, bucket, tensor);
  }
  if (known->moves) {
    return move(it, tensor);
  }
  copy_kept(it, tensor);
  return LCOMM_OK;
}

/* Of another rank, Q is started anew. */
static lcomm_status place_basis(lcomm_bucket *bucket, const lcomm_tensor *tensor) {
  const lcomm_ef_parked *state = &tensor->state;
  uint64_t count = 0, basis = lcomm_ef_lowrank_basis(&bucket->ef, tensor->offset, &count);
  if (!state->basis || state->rank != bucket->ef.lowrank.rank || state->basis_count != count) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_ef_lowrank_make_basis(&bucket->ef, &bucket->ef.state));
  memcpy(bucket->ef.state.basis.now + basis, state->basis, count * sizeof(float));
  return LCOMM_OK;
}

/* What is the same on all ranks. */
static lcomm_status place_results(lcomm_bucket *bucket, const lcomm_tensor *tensor) {
  const lcomm_ef_parked *state = &tensor->state;
  float *to = NULL;
  if (state->velocity && (bucket->ef.momentum > 0 || bucket->ef.beta1 > 0)) {
    if (!vector_for(bucket, &bucket->ef.state.velocity.now)) {
      return out_of_memory(bucket->comm);
    }
    to = bucket->ef.state.velocity.now + tensor->offset;
    memcpy(to, state->velocity, tensor->count * sizeof(float));
  }
  if (state->carried) {
    if (!vector_for(bucket, &bucket->ef.state.carried)) {
      return out_of_memory(bucket->comm);
    }
    to = bucket->ef.state.carried + tensor->offset;
    memcpy(to, state->carried, tensor->count * sizeof(float));
  }
  return place_basis(bucket, tensor);
}

/* A bucket that keeps a residual has its momentum beside it. */
static void take_over(const placing *it, lcomm_bucket *bucket) {
  float units = bucket->op == LCOMM_AVG ? (float)it->comm->size : 1.0f;
  lcomm_feedback_state *feedback = it->feedback;
  for (uint64_t i = 0; feedback && feedback->momentum.now && i < feedback->count; i++) {
    feedback->momentum.now[i] +=
        units / (float)it->holders * bucket->ef.state.velocity.now[feedback->first + i];
  }
  lcomm_ef_array_free(it->comm, it->comm->tensors->location, &bucket->ef.state.velocity);
}

/* The first lossy step makes the feedback of a bucket, unless it has something to keep. */
static lcomm_status place_bucket(placing *it, lcomm_bucket *bucket) {
  bool has = false, keeps = false;
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    has |= facts_of(it, bucket, i)->has;
    keeps |= facts_of(it, bucket, i)->keeps;
  }
  lcomm_status status = has ? lcomm_ef_holders(&bucket->ef, &it->holders) : LCOMM_OK;
  it->feedback = bucket->ef.state.feedback;
  for (size_t i = 0; status == LCOMM_OK && i < bucket->tensor_count; i++) {
    status = place_results(bucket, bucket->tensors[i]);
    if (status == LCOMM_OK) {
      status = place_residual(it, bucket, i);
    }
  }
  if (status == LCOMM_OK && has && keeps && bucket->ef.momentum > 0 &&
      bucket->ef.state.velocity.now) {
    take_over(it, bucket);
  }
  if (!has || !keeps) {
    lcomm_feedback_free(bucket->comm, bucket->ef.state.feedback);
    bucket->ef.state.feedback = NULL;
  }
  return status;
}

static lcomm_status place_all(placing *it, const bool *is_new) {
  lcomm_comm *comm = it->comm;
  for (size_t i = 0; i < comm->tensors->bucket_count; i++) {
    LCOMM_TRY(is_new[i] ? look(it, &comm->tensors->buckets[i]) : LCOMM_OK);
  }
  LCOMM_TRY(agree(it));
  for (size_t i = 0; i < comm->tensors->bucket_count; i++) {
    LCOMM_TRY(is_new[i] ? place_bucket(it, &comm->tensors->buckets[i]) : LCOMM_OK);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_tensor_states_restore(lcomm_comm *comm, const bool *is_new) {
  placing it = {.comm = comm,
                .tensors = calloc(comm->tensors->count + 1, sizeof *it.tensors),
                .sums = malloc(CHUNK * sizeof *it.sums)};
  uint32_t environment = lcomm_fp_enter();
  lcomm_status status = it.tensors && it.sums ? place_all(&it, is_new) : out_of_memory(comm);
  lcomm_fp_leave(environment);
  for (size_t i = 0; i < comm->tensors->count; i++) {
    if (comm->tensors->list[i]->bucket) {
      lcomm_tensor_state_free(comm->tensors->list[i]);
    }
  }
  free(it.tensors);
  free(it.sums);
  return status;
}
