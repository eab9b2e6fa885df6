/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_LINKS_CHECK_H
#define LCOMM_TRANSPORT_LINKS_CHECK_H

/* Has everybody a link to everybody? Inside of links.c. */

#include "libcomm/transport/links.h"

enum {
  LCOMM_LINKS_COMPLETE = -1,
  LCOMM_LINKS_WHY_MAX = 512 /* travels */
};

/* What a rank says after a transport was opened. */
typedef struct lcomm_links_answer {
  int32_t lonely; /* a peer without a link, or LCOMM_LINKS_COMPLETE */
  char why[LCOMM_LINKS_WHY_MAX];
} lcomm_links_answer;

/* The answers of all ranks, any bytes: the same verdict on all of them. TRANSPORT
 * when a pair has no link, WIRE for what is no answer; the sentence in `why`
 * names the lowest such rank. The hosts' names are texts. */
lcomm_status lcomm_links_check(const lcomm_links_answer *all, const lcomm_identity *identities,
                               int size, lcomm_why *why);

#endif
