/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_REPLICAS_H
#define TRAINER_REPLICAS_H

#include <stddef.h>
#include <stdint.h>

#include "trainer/model.h"
#include "trainer/peers.h"

/* After every step all ranks must hold the same weights, to the bit. */

/* Name the ranks whose hash differs from that of rank 0 in a sentence.
 * Returns how many there are; the text is cut if it does not fit. */
int replicas_describe(const uint64_t *hashes, int size, char *text, size_t text_size);

/* Compare the weights of all ranks. Collective. Returns 0 and the hash, or -1
 * on every rank if they differ. */
int replicas_compare(peers *ranks, const model *net, int epoch, uint64_t *hash, failure *why);

#endif
