/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_PIPE_H
#define LCOMM_PLAN_PIPE_H

/* By which format a message between two ranks travels (pipe=). Both sides of a message ask here, so
 * they expect the same. */

#include "libcomm/plan/policy.h"
#include "libcomm/topo/topo.h"

enum {
  LCOMM_PIPE_LEAST = 4096, /* bytes of the shortest message that is encoded */
  LCOMM_PIPE_TEXT_MAX = 128
};

/* A message of `count` elements between two ranks: the format of pipe= where the two are on
 * different nodes, the elements are float32, float16 or bfloat16, the message has min= bytes and
 * the format makes fewer of them. Else none, without the lossless stage: elements as they are. */
lcomm_format lcomm_pipe_format(const lcomm_policy *policy, const lcomm_topo *topo, int from, int to,
                               lcomm_dtype dtype, uint64_t count);

/* Are the bytes of a payload of the format those of the elements, before any lossless stage? */
bool lcomm_pipe_is_plain(const lcomm_format *format, lcomm_dtype dtype);

/* One line for people: what becomes of messages between two ranks; "" if the policy says nothing of
 * them. Returns text. */
const char *lcomm_pipe_describe(const lcomm_policy *policy, const lcomm_topo *topo, char *text,
                                size_t size);

#endif
