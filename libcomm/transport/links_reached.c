/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Who reaches whom: a table of P x P bytes, of which as a rule all are equal. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/transport/links.h"

static lcomm_links_uniform summarize(const unsigned char *mine, int width, int own) {
  lcomm_links_uniform it = {.uniform = 1};
  bool any = false;
  for (int i = 0; i < width; i++) {
    if (i != own) {
      it.uniform = !any || mine[i] == it.value ? it.uniform : 0;
      it.value = mine[i];
      any = true;
    }
  }
  return it;
}

/* Any bytes; all ranks have the same. */
static bool are_uniform(const lcomm_links_uniform *said, int size) {
  for (int rank = 0; rank < size; rank++) {
    if (said[rank].uniform != 1) {
      return false;
    }
  }
  return true;
}

bool lcomm_links_gather_reached(const lcomm_bootstrap *bootstrap, const unsigned char *mine,
                                int width, int own, unsigned char *all) {
  size_t size = (size_t)bootstrap->world_size;
  lcomm_links_uniform summary = summarize(mine, width, own);
  lcomm_links_uniform *said = calloc(size, sizeof *said);
  bool good =
      said && bootstrap->allgather(bootstrap->context, &summary, said, sizeof(summary)) == 0;
  if (good && are_uniform(said, bootstrap->world_size)) {
    for (size_t rank = 0; rank < size; rank++) {
      memset(all + rank * (size_t)width, said[rank].value, (size_t)width);
    }
  } else if (good) {
    good = bootstrap->allgather(bootstrap->context, mine, all, (size_t)width) == 0;
  }
  free(said);
  return good;
}
