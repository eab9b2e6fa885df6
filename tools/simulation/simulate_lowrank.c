/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_lowrank.h"

#include <stdio.h>
#include <string.h>

/* --------------------------------------------------------------- splitting */

/* By what its factors travel; of rank 0 where it is summed as it is. false: no plan. */
static bool choose(const simulate_world_request *request, const simulate_bucket *bucket,
                   lcomm_codec_spec *by, char *why) {
  lcomm_plan_request whole = simulate_bucket_request(request, bucket);
  lcomm_lowrank_rating rating;
  lcomm_why reason;
  *by = lcomm_auto_candidate(LCOMM_AUTO_NONE);
  if (request->calls || bucket->exact || bucket->net.rank == 0 || request->topo->nodes < 2) {
    return true;
  }
  *by = bucket->net;
  if (bucket->net.automatic == LCOMM_AUTO_NONE) {
    return true;
  }
  if (lcomm_lowrank_rate(&whole, request->policy, request->topo, &bucket->matrices, &rating,
                         &reason) != LCOMM_OK) {
    snprintf(why, SIMULATE_WHY_MAX, "no plan: %.480s", reason.text);
    return false;
  }
  *by = lcomm_auto_candidate(rating.taken ? LCOMM_AUTO_LOWRANK : LCOMM_AUTO_NONE);
  return true;
}

static void split(simulate_bucket *buckets, uint32_t index, uint32_t count,
                  const lcomm_codec_spec *by) {
  simulate_bucket *first = &buckets[index];
  memmove(first + 2, first + 1, (count - index - 1) * sizeof *first);
  first->sum = SIMULATE_SUM_FIRST;
  first->net = *by;
  first[1] = *first;
  first[1].sum = SIMULATE_SUM_SECOND;
  first[1].segment_ends = NULL; /* those of the first */
  first[1].segments = 0;
}

bool simulate_lowrank_split(const simulate_world_request *request, simulate_bucket *buckets,
                            uint32_t *count, char *why) {
  for (uint32_t i = 0; i < *count; i++) {
    lcomm_codec_spec by;
    if (!choose(request, &buckets[i], &by, why)) {
      return false;
    }
    if (by.rank > 0) {
      split(buckets, i++, (*count)++, &by);
    }
  }
  return true;
}

lcomm_plan_request simulate_lowrank_request(const lcomm_plan_request *vector,
                                            const simulate_bucket *bucket) {
  bool first = bucket->sum == SIMULATE_SUM_FIRST;
  uint64_t length = first ? bucket->matrices.rows : bucket->matrices.columns;
  return lcomm_lowrank_request(vector, &bucket->net, bucket->net.rank * length);
}

/* --------------------------------------------------------------- programs */

static simulate_time over(const simulate_bucket *bucket, double gb_s) {
  return simulate_speeds_time((double)bucket->count, gb_s);
}

static void add(simulate_pass *pass, const simulate_bucket *bucket, double memory_gb_s,
                double cache_gb_s) {
  pass->memory += over(bucket, memory_gb_s);
  pass->cache += over(bucket, cache_gb_s);
}

/* Products take longer as ranks grow; those below 4 are as many passes over the matrix. */
static double slower(double gb_s, unsigned rank) {
  return rank > LCOMM_AUTO_RANK ? gb_s * LCOMM_AUTO_RANK / rank : gb_s;
}

static void add_product(simulate_pass *pass, const simulate_bucket *bucket, double memory_gb_s,
                        double cache_gb_s) {
  add(pass, bucket, slower(memory_gb_s, bucket->net.rank), slower(cache_gb_s, bucket->net.rank));
}

/* A tensor alone is its bucket's vector; else they are copied there and back. */
static void add_copy(simulate_pass *pass, const simulate_bucket *bucket,
                     const simulate_speeds *speeds, const simulate_speeds *cached) {
  if (bucket->matrices.matrices > 1) {
    add(pass, bucket, speeds->copy_gb_s, cached->copy_gb_s);
  }
}

/* Steps touch the factor, which is a part of what the bucket does. */
static void shrink_touched(const simulate_bucket *bucket, simulate_program *program) {
  float share = (float)((double)program->data_size / ((double)bucket->count * sizeof(float)));
  for (uint32_t i = 0; i < program->step_count; i++) {
    program->steps[i].vector *= share;
    program->steps[i].residual = 0;
  }
}

static void describe(const simulate_bucket *bucket, simulate_program *program) {
  char reason[sizeof program->reason];
  snprintf(reason, sizeof reason, "%s of two sums of factors: %.460s",
           bucket->sum == SIMULATE_SUM_FIRST ? "first" : "second", program->reason);
  memcpy(program->reason, reason, sizeof reason);
  lcomm_codec_spec_format(&bucket->net, program->codec, sizeof program->codec);
}

void simulate_lowrank_dress(const simulate_world_request *request, const simulate_bucket *bucket,
                            simulate_program *program) {
  const simulate_speeds *speeds = request->speeds;
  const simulate_speeds *cached = request->cached ? request->cached : speeds;
  const simulate_lowrank_speed *in_memory = &speeds->lowrank, *in_cache = &cached->lowrank;
  uint64_t size = bucket->count * sizeof(float);
  shrink_touched(bucket, program);
  program->memory_size += program->data_size; /* the factor */
  program->data_size = size;
  program->stage_in = program->stage_out = program->fill = (simulate_pass){0};
  if (bucket->sum == SIMULATE_SUM_FIRST) {
    program->memory_size += size * (1 + (bucket->matrices.matrices > 1)); /* residual, vector */
    add(&program->fill, bucket, speeds->copy_gb_s, cached->copy_gb_s);
    add_copy(&program->stage_in, bucket, speeds, cached);
    add_product(&program->stage_in, bucket, in_memory->project_gb_s, in_cache->project_gb_s);
    add_product(&program->stage_out, bucket, in_memory->turn_gb_s, in_cache->turn_gb_s);
  } else {
    add_product(&program->stage_out, bucket, in_memory->expand_gb_s, in_cache->expand_gb_s);
    add(&program->stage_out, bucket, 2 * speeds->copy_gb_s, 2 * cached->copy_gb_s); /* counted */
    add_copy(&program->stage_out, bucket, speeds, cached);
  }
  describe(bucket, program);
}

simulate_speed simulate_lowrank_speed_of(const simulate_speeds *speeds) {
  const simulate_lowrank_speed *it = &speeds->lowrank;
  return (simulate_speed){.encode_gb_s = it->project_gb_s,
                          .decode_gb_s = 1 / (1 / it->turn_gb_s + 1 / it->expand_gb_s),
                          .add_gb_s = speeds->sum_gb_s,
                          .assumed = true};
}
