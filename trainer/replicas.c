/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/replicas.h"

#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

int replicas_describe(const uint64_t *hashes, int size, char *text, size_t text_size) {
  int differing = 0;
  size_t used = 0;
  text[0] = '\0';
  for (int rank = 1; rank < size; rank++) {
    if (hashes[rank] == hashes[0]) {
      continue;
    }
    differing++;
    if (used >= text_size) {
      continue;
    }
    int length = snprintf(text + used, text_size - used, "%srank %d has 0x%016" PRIx64,
                          differing > 1 ? ", " : "", rank, hashes[rank]);
    used += length > 0 ? (size_t)length : 0;
  }
  return differing;
}

int replicas_compare(peers *ranks, const model *net, int epoch, uint64_t *hash, failure *why) {
  uint64_t mine = XXH3_64bits(net->weights, net->weight_count * sizeof(float));
  const uint64_t *hashes = peers_gather(ranks, &mine, 1, why);
  if (!hashes) {
    return -1;
  }
  char text[512];
  int differing = replicas_describe(hashes, ranks->size, text, sizeof text);
  *hash = mine;
  if (differing == 0) {
    return 0;
  }
  return failure_set(why, EXIT_TRAINING,
                     "the weights of %d of %d ranks differ from rank 0 after epoch %d (rank 0 has "
                     "0x%016" PRIx64 ", %s); the run is worthless, please report it with the "
                     "policy and the number of ranks and nodes",
                     differing, ranks->size, epoch, hashes[0], text);
}
