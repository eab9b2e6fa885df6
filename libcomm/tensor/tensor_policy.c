/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the policy says of a tensor. */

#include "libcomm/tensor/bucket.h"

static lcomm_named_data ask(const lcomm_tensor *tensor, const lcomm_policy *policy,
                            uint64_t named) {
  lcomm_match_call call = {.kind = LCOMM_CALL_ALLREDUCE,
                           .count = tensor->count,
                           .dtype = tensor->dtype,
                           .op = tensor->op,
                           .ranks = tensor->comm->size,
                           .name = tensor->name,
                           .rows = tensor->rows,
                           .columns = tensor->columns};
  return lcomm_eligibility_of_name(policy, named, &call);
}

lcomm_named_data lcomm_tensor_policy(const lcomm_tensor *tensor) {
  const lcomm_comm *comm = tensor->comm;
  return ask(tensor, &comm->settings.policy, atomic_load(&comm->identity.named_rules));
}

lcomm_status lcomm_tensor_codec(lcomm_comm *comm, const lcomm_tensor *tensor, lcomm_link link,
                                char *text, size_t size) {
  LCOMM_TRY(lcomm_tensor_check(comm, tensor, "lcomm_tensor_codec"));
  if (!text || size == 0) {
    return lcomm_refuse_null(comm, "lcomm_tensor_codec", "text");
  }
  lcomm_named_data policy = lcomm_tensor_policy(tensor);
  lcomm_codec_spec exact = {.format = {.codec = &lcomm_codec_none}};
  const lcomm_codec_spec *codec = &comm->settings.policy.node;
  codec = link == LCOMM_LINK_NET ? &policy.net : codec;
  lcomm_codec_spec_format(policy.exact ? &exact : codec, text, size);
  return LCOMM_OK;
}
