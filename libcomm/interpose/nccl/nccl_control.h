/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_NCCL_CONTROL_H
#define LCOMM_INTERPOSE_NCCL_CONTROL_H

/* The control file, over NCCL and alone. Rank 0 of a communicator reads it at the first sum that is
 * long enough, and at every 16th after it; a group's sums are counted together when it ends. The
 * ranks get its words there, so all obey at the same sum. */

#include <stdint.h>

#include "libcomm/interpose/interpose_control.h"
#include "libcomm_interpose.h"

/* Of one communicator. Its owner obeys, and writes the last two. */
typedef struct lcomm_nccl_control {
  uint64_t candidates;                     /* sums so far that were long enough */
  uint64_t polls;                          /* how often the file was asked for */
  char words[LCOMM_INTERPOSE_CONTROL_MAX]; /* its last command; "": none yet */
  bool off;                                /* switched off */
  bool replaced;                           /* another policy is in force than LCOMM_POLICY */
} lcomm_nccl_control;

/* What new words ask for. */
typedef enum lcomm_nccl_order {
  LCOMM_NCCL_ORDER_NONE,    /* nothing; unknown words were logged */
  LCOMM_NCCL_ORDER_REPLACE, /* another policy */
  LCOMM_NCCL_ORDER_OFF,
  LCOMM_NCCL_ORDER_RESTORE, /* LCOMM_POLICY in place of another policy */
  LCOMM_NCCL_ORDER_ON       /* LCOMM_POLICY, which was switched off */
} lcomm_nccl_order;

/* Is the file due, by the sums so far? The same on all ranks. */
bool lcomm_nccl_control_is_due(const lcomm_nccl_control *control);

/* One rank's part in asking for the words, a broadcast on the host. All that a thread begins are
 * begun before one is ended, because it may have several ranks. */
typedef struct lcomm_nccl_poll {
  char words[LCOMM_INTERPOSE_CONTROL_MAX];
  lcomm_request request;
  lcomm_status status;
} lcomm_nccl_poll;
void lcomm_nccl_poll_begin(lcomm_nccl_poll *poll, lcomm_nccl_control *control, lcomm_comm *comm);

/* Waits for rank 0. *policy: with REPLACE what is asked for, valid until the next words. A failure
 * is the communicator's, and the sum behind it tells it. */
lcomm_nccl_order lcomm_nccl_poll_end(lcomm_nccl_poll *poll, lcomm_nccl_control *control,
                                     lcomm_comm *comm, const char **policy);

/* Rank 0 says what has become of the words. */
void lcomm_nccl_control_say(int rank, const char *what, const char *why);

#endif
