/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "libcomm/tensor/saved_state_read.h"

#include <string.h>
#include <xxhash.h>

#include "libcomm/engine/engine.h"

typedef lcomm_state_loading loading;

static lcomm_status fail(loading *it, lcomm_status status, int rank, const char *phrase) {
  return lcomm_state_source_fail(&it->source, status, rank, (int)it->mine.ranks, phrase,
                                 &it->restore.why);
}

/* Was it saved where momentum travels (adam=)? A text that is no policy says no. */
static bool is_of_momentum(const lcomm_state_header *header) {
  lcomm_policy policy;
  lcomm_why why;
  return lcomm_policy_parse(header->policy, &policy, &why) == LCOMM_OK && policy.adam.onebit;
}

static lcomm_status check_header(loading *it, const lcomm_state_header *header, int rank) {
  bool of_momentum = is_of_momentum(header);
  if (header->rank != (uint32_t)rank || header->ranks != it->mine.ranks) {
    return fail(it, LCOMM_ERR_WIRE, rank, "it was saved by another rank than its name says");
  }
  if (of_momentum == it->comm->settings.policy.adam.onebit) {
    return LCOMM_OK;
  }
  return fail(it, LCOMM_ERR_ARGUMENT, rank,
              of_momentum
                  ? "it was saved with adam=, so it holds what is left of momentum, and the "
                    "policy here sends gradients; load it under a policy with adam="
                  : "it was saved without adam=, so it holds what is left of gradients, "
                    "and the policy here sends momentum; load it under one without adam=");
}

/* The caller releases the bytes with lcomm_state_source_done, on success only. */
static lcomm_status read_one(loading *it, int rank, const uint8_t **bytes,
                             lcomm_state_header *header, lcomm_state_reader *reader) {
  const char *phrase = "";
  size_t size = 0;
  lcomm_status status = lcomm_state_source_take(&it->source, rank, (int)it->mine.ranks, bytes,
                                                &size, &it->restore.why);
  if (status != LCOMM_OK) {
    return status;
  }
  status = lcomm_state_open(*bytes, size, header, reader, &phrase);
  if (status == LCOMM_OK && it->source.bring) { /* a block may be of a rank that has left */
    header->rank = (uint32_t)rank;
    header->ranks = it->mine.ranks;
  }
  if (status == LCOMM_OK) {
    status = check_header(it, header, rank);
  } else {
    fail(it, status, rank, phrase);
  }
  if (status != LCOMM_OK) {
    lcomm_state_source_done(&it->source, *bytes);
  }
  return status;
}

/* How many ranks saved. */
static lcomm_status find_set(loading *it) {
  int ranks = 0;
  lcomm_status status = lcomm_state_source_ranks(&it->source, &ranks, &it->restore.why);
  it->mine.ranks = (uint32_t)ranks;
  return status;
}

/* What is kept depends on the codecs that the guard has given to calls. Under another policy, or
 * without a guard, all begin with the codec of the policy. */
static lcomm_status take_guards(loading *it, const lcomm_state_header *header,
                                const lcomm_state_reader *reader) {
  const lcomm_comm *comm = it->comm;
  if (comm->settings.policy.guard.steps > 0 &&
      strcmp(header->policy, comm->settings.policy_text) == 0) {
    lcomm_restore_note_guards(&it->restore, *reader);
  }
  it->mine.guards = lcomm_saved_guards_hash(&it->restore);
  lcomm_saved_guards_soften(&it->restore);
  return lcomm_restore_make(&it->restore);
}

static void tell_header(loading *it, const lcomm_state_header *header) {
  it->mine.nodes = header->nodes;
  it->mine.sequence = header->sequence;
  it->mine.step = header->step;
}

lcomm_status lcomm_state_read_own(loading *it) {
  const lcomm_comm *comm = it->comm;
  lcomm_state_header header;
  lcomm_state_reader reader;
  const uint8_t *bytes = NULL;
  lcomm_status status = find_set(it);
  if (status != LCOMM_OK || it->mine.ranks != (uint32_t)comm->size) {
    return status;
  }
  status = read_one(it, comm->rank, &bytes, &header, &reader);
  if (status != LCOMM_OK) {
    return status;
  }
  tell_header(it, &header);
  bool fits = header.nodes == (uint32_t)comm->topo.nodes &&
              header.node == (uint32_t)comm->topo.node[comm->rank];
  status = take_guards(it, &header, &reader);
  if (status == LCOMM_OK) {
    status = lcomm_restore_copy(&it->restore, &reader, &fits);
  }
  it->mine.fits = fits;
  lcomm_state_source_done(&it->source, bytes);
  return status;
}

lcomm_status lcomm_state_read_guards(loading *it) {
  lcomm_state_header header;
  lcomm_state_reader reader;
  const uint8_t *bytes = NULL;
  lcomm_status status = read_one(it, 0, &bytes, &header, &reader);
  if (status != LCOMM_OK) {
    return status;
  }
  status = take_guards(it, &header, &reader);
  lcomm_state_source_done(&it->source, bytes);
  return status;
}

static lcomm_status add_file(loading *it, int rank) {
  lcomm_state_header header;
  lcomm_state_reader reader;
  const uint8_t *bytes = NULL;
  lcomm_status status = read_one(it, rank, &bytes, &header, &reader);
  if (status != LCOMM_OK) {
    return status;
  }
  if (rank == 0) {
    tell_header(it, &header);
  } else if (header.step != it->mine.step || header.nodes != it->mine.nodes ||
             (header.sequence != it->mine.sequence && !it->source.bring)) {
    status = fail(it, LCOMM_ERR_WIRE, rank, "it is not of the same save as that of rank 0");
  }
  if (status == LCOMM_OK) {
    it->mine.digest = XXH3_64bits_withSeed(bytes, (size_t)header.file_size, it->mine.digest);
    status = lcomm_reshard_add(&it->restore, &header, &reader);
  }
  lcomm_state_source_done(&it->source, bytes);
  return status;
}

lcomm_status lcomm_state_read_all(loading *it) {
  lcomm_status status = LCOMM_OK;
  for (int rank = 0; status == LCOMM_OK && rank < (int)it->mine.ranks; rank++) {
    status = add_file(it, rank);
  }
  if (status == LCOMM_OK) {
    lcomm_restore_finish(&it->restore);
  }
  return status;
}
