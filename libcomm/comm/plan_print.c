/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The plan of a call, and what is known of tensors and messages beside it, in words. */

#include "libcomm/call/call_watch.h"
#include "libcomm/engine/entry.h"
#include "libcomm/plan/pipe.h"
#include "libcomm/tensor/bucket.h"

/* A line about messages between two ranks where the policy has one. */
static void describe_messages(const lcomm_comm *comm, const lcomm_topo *topo, lcomm_writer *w) {
  char messages[LCOMM_PIPE_TEXT_MAX];
  lcomm_pipe_describe(&comm->settings.policy, topo, messages, sizeof messages);
  if (messages[0]) {
    lcomm_write(w, "  %-12s%s\n", "messages", messages);
  }
}

/* How matrices travel that are there, where net=auto decides. */
static lcomm_status describe_matrices(lcomm_comm *comm, lcomm_writer *w, lcomm_why *why) {
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = lcomm_buckets_describe_lowrank(comm, w, why);
  lcomm_exit(comm);
  return status;
}

static lcomm_status print(lcomm_comm *comm, const lcomm_plan_request *request, char *text,
                          size_t size, lcomm_why *why) {
  lcomm_plan *plan = NULL;
  bool of_tensors = request->error_feedback;
  const lcomm_topo *topo = of_tensors ? &comm->topo : lcomm_topo_of_calls(comm);
  LCOMM_TRY(lcomm_plan_create(request, &comm->settings.policy, topo, comm->rank, &plan, why));
  lcomm_writer w = lcomm_writer_begin(text, size);
  w.length = lcomm_plan_describe(plan, topo, text, size);
  lcomm_plan_destroy(plan);
  describe_messages(comm, topo, &w);
  return of_tensors ? describe_matrices(comm, &w, why) : LCOMM_OK;
}

lcomm_status lcomm_plan_print(lcomm_comm *comm, uint64_t count, lcomm_dtype dtype, int tensor,
                              char *text, size_t size) {
  lcomm_why why;
  if (!comm || (!text && size > 0)) {
    return lcomm_refuse_null(comm, "lcomm_plan_print", "text");
  }
  LCOMM_TRY(lcomm_check_process(comm));
  if (lcomm_dtype_size(dtype) == 0) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "lcomm_plan_print: %d is no data type",
                        (int)dtype);
  }
  lcomm_plan_request request = {.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                                .count = count,
                                .dtype = dtype,
                                .name = comm->identity.name,
                                .error_feedback = tensor != 0};
  lcomm_status status = print(comm, &request, text, size, &why);
  return status == LCOMM_OK ? LCOMM_OK
                            : lcomm_refuse(comm, status, "no plan can be made: %s", why.text);
}
