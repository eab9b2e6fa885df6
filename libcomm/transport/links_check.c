/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/links.h"

#include <stdio.h>
#include <string.h>

#include "libcomm/base/text.h"

static lcomm_status complain(const lcomm_links_answer *it, int rank,
                             const lcomm_identity *identities, int size, lcomm_why *why) {
  if (it->lonely < 0 || it->lonely >= size || it->lonely == rank) {
    return lcomm_why_set(
        why, LCOMM_ERR_WIRE,
        "rank %d (host %.63s) answers that it has no link to rank %d, which is no peer of its; "
        "install the same libcomm on all hosts, and check the network",
        rank, identities[rank].host, (int)it->lonely);
  }
  char text[LCOMM_LINKS_WHY_MAX];
  memcpy(text, it->why, sizeof(text));
  lcomm_text_sanitize(text, sizeof(text));
  return lcomm_why_set(why, LCOMM_ERR_TRANSPORT,
                       "rank %d (host %.63s) has no link to rank %d (host %.63s): %.300s", rank,
                       identities[rank].host, (int)it->lonely, identities[it->lonely].host, text);
}

lcomm_status lcomm_links_check(const lcomm_links_answer *all, const lcomm_identity *identities,
                               int size, lcomm_why *why) {
  for (int i = 0; i < size; i++) {
    if (all[i].lonely != LCOMM_LINKS_COMPLETE) {
      return complain(&all[i], i, identities, size, why);
    }
  }
  return LCOMM_OK;
}
