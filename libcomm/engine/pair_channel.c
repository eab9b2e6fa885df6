/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Channels: what was not sent of their messages. */

#include <stdlib.h>

#include "libcomm/engine/handles.h"
#include "libcomm/engine/pair_internal.h"

static void free_parts(lcomm_channel *channel) {
  free(channel->residual);
  free(channel);
}

lcomm_channel *lcomm_pair_channel_make(lcomm_comm *comm, int peer, uint64_t count) {
  lcomm_channel *made = lcomm_pairs_make(comm) == LCOMM_OK ? calloc(1, sizeof *made) : NULL;
  if (!made) {
    return NULL;
  }
  *made =
      (lcomm_channel){.comm = comm, .peer = peer, .count = count, .next = comm->pairs->channels};
  made->residual = calloc(count > 0 ? (size_t)count : 1, sizeof *made->residual);
  if (!made->residual || !lcomm_handle_add(made, comm)) {
    free_parts(made);
    return NULL;
  }
  if (made->next) {
    made->next->previous = made;
  }
  comm->pairs->channels = made;
  return made;
}

void lcomm_pair_channel_free(lcomm_channel *channel) {
  struct lcomm_pairs *pairs = channel->comm->pairs;
  *(channel->previous ? &channel->previous->next : &pairs->channels) = channel->next;
  if (channel->next) {
    channel->next->previous = channel->previous;
  }
  lcomm_handle_remove(channel);
  free_parts(channel);
}

void lcomm_pair_channels_free(lcomm_comm *comm) {
  while (comm->pairs->channels) {
    lcomm_pair_channel_free(comm->pairs->channels);
  }
}
