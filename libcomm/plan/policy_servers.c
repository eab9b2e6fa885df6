/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The word servers= of a policy, which goes with algo=servers. */

#include "libcomm/plan/policy_internal.h"

enum { NUMBER_MOST = 1 << 20, SHARE_MOST = 1000 };

static const char prefix[] = "nodes:";

/* One NUMBER[@SHARE]. */
static lcomm_status read_one(lcomm_policy_reader *r, lcomm_span piece, uint32_t *number,
                             uint32_t *share) {
  uint64_t read = 0, part = 1;
  lcomm_span digits = lcomm_span_before(piece, "@");
  if (!lcomm_policy_read_whole(digits, NUMBER_MOST, &read)) {
    return lcomm_policy_refuse(r, "", digits,
                               " is no number of a rank or node; expected R[@SHARE],... or "
                               "nodes:N[@SHARE],...");
  }
  if (digits.length < piece.length) {
    lcomm_span rest = lcomm_span_after(piece, digits.length + 1);
    if (!lcomm_policy_read_whole(rest, SHARE_MOST, &part) || part == 0) {
      return lcomm_policy_refuse(r, "", rest, " is no share; expected digits, from 1 to 1000");
    }
  }
  *number = (uint32_t)read;
  *share = (uint32_t)part;
  return LCOMM_OK;
}

/* In ascending order. False: the number is there already. */
static bool insert(lcomm_servers_policy *servers, uint32_t number, uint32_t share) {
  unsigned at = servers->count;
  for (; at > 0 && servers->number[at - 1] >= number; at--) {
    if (servers->number[at - 1] == number) {
      return false;
    }
  }
  for (unsigned i = servers->count; i > at; i--) {
    servers->number[i] = servers->number[i - 1];
    servers->share[i] = servers->share[i - 1];
  }
  servers->number[at] = number;
  servers->share[at] = share;
  servers->count++;
  return true;
}

lcomm_status lcomm_policy_read_servers(lcomm_policy_reader *r, lcomm_span value,
                                       lcomm_servers_policy *servers) {
  servers->are_nodes = lcomm_span_begins(value, prefix);
  lcomm_span list = servers->are_nodes ? lcomm_span_after(value, sizeof prefix - 1) : value;
  for (lcomm_span piece; lcomm_span_next(&list, ",", &piece);) {
    uint32_t number = 0, share = 1;
    LCOMM_TRY(
        lcomm_policy_check_room(r, piece, "servers", servers->count, LCOMM_POLICY_SERVERS_MAX));
    LCOMM_TRY(read_one(r, piece, &number, &share));
    if (!insert(servers, number, share)) {
      return lcomm_policy_refuse(r, "", piece, " is a server already; expected each once");
    }
  }
  return LCOMM_OK;
}

void lcomm_policy_write_servers(lcomm_writer *w, const lcomm_servers_policy *servers) {
  for (unsigned i = 0; i < servers->count && i < LCOMM_POLICY_SERVERS_MAX; i++) {
    const char *first = servers->are_nodes ? " servers=nodes:" : " servers=";
    lcomm_write(w, "%s%u", i == 0 ? first : ",", servers->number[i]);
    if (servers->share[i] != 1) {
      lcomm_write(w, "@%u", servers->share[i]);
    }
  }
}

const char *lcomm_policy_servers_conflict(const lcomm_policy *policy, const char **key) {
  bool asked = policy->algorithm == LCOMM_ALGO_SERVERS;
  bool named = lcomm_policy_has_servers(policy);
  *key = named ? "servers" : "algo";
  if (asked && !named) {
    return "algo=servers does not say which ranks they are; expected servers=R,R or "
           "servers=nodes:N, too";
  }
  if (named && !asked) {
    return "servers says which ranks own all pieces with algo=servers; expected that, too";
  }
  return NULL;
}
