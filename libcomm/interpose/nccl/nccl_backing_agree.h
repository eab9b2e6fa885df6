/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_NCCL_BACKING_AGREE_H
#define LCOMM_INTERPOSE_NCCL_BACKING_AGREE_H

/* What ranks tell each other before a backing is made of a communicator of theirs. */

#include "libcomm/interpose/nccl/nccl_backing.h"

typedef struct lcomm_nccl_agreement {
  bool is_agreed; /* their settings are the same */
  int color;
  lcomm_nccl_manner manner;       /* of all colors */
  char name[LCOMM_NCCL_NAME_MAX]; /* where it is the same within the color; else "" */
} lcomm_nccl_agreement;

/* Collective over `from`, where a failure is sticky. */
lcomm_status lcomm_nccl_agree(lcomm_comm *from, const lcomm_nccl_origin *origin,
                              lcomm_nccl_agreement *agreement);

#endif
