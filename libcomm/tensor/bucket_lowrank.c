/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Buckets of matrices that travel by low rank, or may. */

#include <stdlib.h>

#include "libcomm/base/writer.h"
#include "libcomm/tensor/bucket.h"

/* Without links between nodes there is nothing for it to act on, and the guard may have chosen a
 * milder codec. */
static bool may_act(const lcomm_bucket *bucket) {
  const lcomm_ef *ef = &bucket->ef;
  return !ef->exact && ef->request.net.rank > 0 && bucket->rungs == 0 &&
         bucket->comm->topo.nodes > 1;
}

/* ------------------------------------------------------------- the choice */

bool lcomm_bucket_may_choose_lowrank(const lcomm_bucket *bucket) {
  return may_act(bucket) && bucket->ef.request.net.automatic != LCOMM_AUTO_NONE;
}

lcomm_lowrank_sizes lcomm_bucket_lowrank_sizes(const lcomm_bucket *bucket) {
  lcomm_lowrank_sizes sizes = {0};
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    lcomm_lowrank_sizes_add(&sizes, bucket->tensors[i]->rows, bucket->tensors[i]->columns);
  }
  return sizes;
}

static lcomm_status rate(const lcomm_bucket *bucket, lcomm_lowrank_rating *rating, lcomm_why *why) {
  const lcomm_comm *comm = bucket->comm;
  lcomm_lowrank_sizes sizes = lcomm_bucket_lowrank_sizes(bucket);
  return lcomm_lowrank_rate(&bucket->ef.request, &comm->settings.policy, &comm->topo, &sizes,
                            rating, why);
}

lcomm_status lcomm_bucket_rate_lowrank(const lcomm_bucket *bucket, lcomm_lowrank_rating *rating) {
  lcomm_why why;
  lcomm_status status = rate(bucket, rating, &why);
  return status == LCOMM_OK
             ? LCOMM_OK
             : lcomm_fail(bucket->comm, status, "a plan for %s: %s", bucket->name, why.text);
}

static void write_choice(lcomm_writer *w, const lcomm_bucket *bucket,
                         const lcomm_lowrank_rating *rating) {
  char text[LCOMM_LOWRANK_RATING_TEXT_MAX];
  lcomm_write(w, "%s: %s", bucket->name, lcomm_lowrank_rating_format(rating, text));
}

static void tell(const lcomm_bucket *bucket, const lcomm_lowrank_rating *rating) {
  char text[LCOMM_LOWRANK_RATING_TEXT_MAX + LCOMM_TRACE_NAME_MAX + 32];
  lcomm_writer w = lcomm_writer_begin(text, sizeof text);
  if (bucket->comm->rank == 0) {
    lcomm_write(&w, "net=auto: ");
    write_choice(&w, bucket, rating);
    lcomm_log_info(text);
  }
}

lcomm_status lcomm_buckets_describe_lowrank(const lcomm_comm *comm, lcomm_writer *w,
                                            lcomm_why *why) {
  for (size_t i = 0; i < comm->tensors->bucket_count; i++) {
    const lcomm_bucket *bucket = &comm->tensors->buckets[i];
    lcomm_lowrank_rating rating;
    if (lcomm_bucket_may_choose_lowrank(bucket)) {
      LCOMM_TRY(rate(bucket, &rating, why));
      lcomm_write(w, "  %-12s", "matrices");
      write_choice(w, bucket, &rating);
      lcomm_write(w, "\n");
    }
  }
  return LCOMM_OK;
}

/* ------------------------------------------------------------------ making */

/* By what its factors travel; of rank 0 where it goes another way. */
static lcomm_status choose(const lcomm_bucket *bucket, lcomm_codec_spec *by) {
  lcomm_lowrank_rating rating;
  *by = (lcomm_codec_spec){.rank = 0};
  if (!may_act(bucket)) {
    return LCOMM_OK;
  }
  *by = bucket->ef.request.net;
  if (lcomm_bucket_may_choose_lowrank(bucket)) {
    LCOMM_TRY(lcomm_bucket_rate_lowrank(bucket, &rating));
    tell(bucket, &rating);
    *by = lcomm_auto_candidate(rating.taken ? LCOMM_AUTO_LOWRANK : LCOMM_AUTO_NONE);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_bucket_make_lowrank(lcomm_bucket *bucket) {
  lcomm_codec_spec by;
  LCOMM_TRY(choose(bucket, &by));
  if (by.rank == 0) {
    return LCOMM_OK;
  }
  lcomm_ef_matrix *matrices = calloc(bucket->tensor_count, sizeof *matrices);
  if (!matrices) {
    return LCOMM_ERR_MEMORY;
  }
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    const lcomm_tensor *tensor = bucket->tensors[i];
    matrices[i] =
        (lcomm_ef_matrix){.rows = tensor->rows, .columns = tensor->columns, .at = tensor->offset};
  }
  return lcomm_ef_lowrank_make(&bucket->ef, &by, matrices, bucket->tensor_count);
}
