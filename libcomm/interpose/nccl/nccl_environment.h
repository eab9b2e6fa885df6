/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_NCCL_ENVIRONMENT_H
#define LCOMM_INTERPOSE_NCCL_ENVIRONMENT_H

/* What LCOMM_INTERPOSE and LCOMM_STATS ask for, and the table at the end: over NCCL and alone. */

#include <stdint.h>

#include "libcomm/interpose/interpose_control.h"
#include "libcomm/interpose/interpose_report.h"
#include "libcomm/interpose/nccl/nccl_abi.h"

typedef struct lcomm_nccl_environment {
  lcomm_interpose_mode mode; /* as asked for; OFF where `trouble` is set */
  const char *trouble;       /* what is wrong with it, a sentence without its end; NULL: nothing */
  bool is_required;
  bool has_policy;
} lcomm_nccl_environment;

/* Read once, with the first call of the process. Any thread. */
const lcomm_nccl_environment *lcomm_nccl_environment_get(void);

/* Record sums from here on, if a table of them is asked for. Before the first call. */
void lcomm_nccl_table_begin(void);

/* The process has made a communicator; the first one names this rank in the table at the end.
 * policy  of the communicator, or that it would have
 * other   whose calls are taken, a constant: "NCCL"; NULL alone */
void lcomm_nccl_table_first(const lcomm_comm *comm, const char *policy, const char *other);

/* One number of this process, drawn by lot. */
uint64_t lcomm_nccl_process_number(void);

/* The record of a sum, as far as the call says it. `parts` times `count` elements are summed. */
lcomm_interpose_record lcomm_nccl_record_of(const char *function, ncclDataType_t type,
                                            ncclRedOp_t op, uint64_t count, int parts);

#endif
