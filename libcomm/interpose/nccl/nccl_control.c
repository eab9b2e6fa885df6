/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/nccl/nccl_control.h"

#include <string.h>

#include "libcomm/interpose/nccl/nccl_calls.h"

enum { SUMS_BETWEEN_READS = 16 };

bool lcomm_nccl_control_is_due(const lcomm_nccl_control *control) {
  return lcomm_interpose_control_wanted() &&
         control->candidates > SUMS_BETWEEN_READS * control->polls;
}

void lcomm_nccl_control_say(int rank, const char *what, const char *why) {
  if (rank == 0) {
    lcomm_interpose_control_say(lcomm_nccl_log, what, why);
  }
}

/* ------------------------------------------------------------------- asking */

void lcomm_nccl_poll_begin(lcomm_nccl_poll *it, lcomm_nccl_control *control, lcomm_comm *comm) {
  control->polls = (control->candidates + SUMS_BETWEEN_READS - 1) / SUMS_BETWEEN_READS;
  if (lcomm_rank(comm) == 0) {
    lcomm_interpose_control_read(it->words);
  }
  it->status = lcomm_ibroadcast(comm, it->words, sizeof(it->words), LCOMM_UINT8, 0, &it->request);
}

static lcomm_nccl_order order_of(const lcomm_nccl_control *control, int rank, const char **policy) {
  switch (lcomm_interpose_control_parse(control->words, policy)) {
  case LCOMM_INTERPOSE_CONTROL_POLICY:
    return LCOMM_NCCL_ORDER_REPLACE;
  case LCOMM_INTERPOSE_CONTROL_OFF:
    return LCOMM_NCCL_ORDER_OFF;
  case LCOMM_INTERPOSE_CONTROL_ON:
    return control->replaced ? LCOMM_NCCL_ORDER_RESTORE
           : control->off    ? LCOMM_NCCL_ORDER_ON
                             : LCOMM_NCCL_ORDER_NONE;
  default:
    lcomm_nccl_control_say(rank, "neither on, off nor policy WORDS, ignored: ", control->words);
    return LCOMM_NCCL_ORDER_NONE;
  }
}

lcomm_nccl_order lcomm_nccl_poll_end(lcomm_nccl_poll *it, lcomm_nccl_control *control,
                                     lcomm_comm *comm, const char **policy) {
  if (it->status == LCOMM_OK) {
    it->status = lcomm_wait(comm, &it->request);
  }
  lcomm_interpose_text_sanitize(it->words, sizeof(it->words));
  const char *last = control->words[0] ? control->words : "on";
  if (it->status != LCOMM_OK || strcmp(it->words, last) == 0) {
    return LCOMM_NCCL_ORDER_NONE;
  }
  memcpy(control->words, it->words, sizeof(control->words));
  return order_of(control, lcomm_rank(comm), policy);
}
