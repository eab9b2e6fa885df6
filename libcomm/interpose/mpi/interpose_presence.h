/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_PRESENCE_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_PRESENCE_H

/* The agreement of all ranks in MPI_Init: are all present, with the same version and settings?
 *
 * A rank that runs without this library or without a policy is in its program already. Nothing may
 * be sent to it over MPI: a message could match one of its receives, a collective call would hang
 * or match one of its own. So the ranks find each other in the launcher's name service
 * (MPI_Publish_name) first. Collective calls follow when all are present.
 */

#include "libcomm/interpose/mpi/interpose_handshake.h"

typedef enum lcomm_interpose_agreement {
  LCOMM_INTERPOSE_AGREED,
  LCOMM_INTERPOSE_REFUSED, /* rank 0 has told all ranks why */
  LCOMM_INTERPOSE_UNHEARD  /* rank 0 does not answer */
} lcomm_interpose_agreement;

/* Compare the handshakes of all ranks of the world. Every rank with a policy calls this in
 * MPI_Init. AGREED on all ranks or on none, however late a rank is. Otherwise `sentence`
 * (LCOMM_INTERPOSE_SENTENCE_MAX bytes) says what is wrong: after 1.5 s on an idle machine when a
 * rank is missing. Without a name service all ranks wait for each other, and the job ends with a
 * sentence when some do not come. */
lcomm_interpose_agreement lcomm_interpose_agree(const lcomm_interpose_handshake *mine,
                                                char *sentence);

#endif
