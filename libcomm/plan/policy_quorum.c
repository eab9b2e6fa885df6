/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The words quorum=K, quorum=N%, stale=N[:drop] and late=MS of a policy. */

#include "libcomm/plan/policy_internal.h"

enum { RANKS_MOST = 1 << 20, LATE_MOST_MS = 3600 * 1000, STALE_MOST = 7 };

int lcomm_policy_quorum(const lcomm_quorum_policy *quorum, int ranks) {
  if (quorum->stale > 0) {
    return ranks;
  }
  if (quorum->percent == 0) {
    return quorum->ranks > 0 ? (int)quorum->ranks : ranks;
  }
  return (int)(((uint64_t)ranks * quorum->percent + 99) / 100);
}

lcomm_status lcomm_policy_read_quorum(lcomm_policy_reader *r, lcomm_span value,
                                      lcomm_quorum_policy *quorum) {
  bool in_percent = value.length > 0 && value.text[value.length - 1] == '%';
  uint64_t most = in_percent ? 100 : RANKS_MOST, number = 0;
  lcomm_span digits = {value.text, value.length - in_percent};
  if (!lcomm_policy_read_whole(digits, most, &number) || number == 0) {
    return lcomm_policy_refuse(r, "", value,
                               " is no quorum; expected a number of ranks from 1 on, or a share of "
                               "them from 1% to 100%");
  }
  quorum->ranks = in_percent ? 0 : (uint32_t)number;
  quorum->percent = in_percent ? (uint32_t)number : 0;
  return LCOMM_OK;
}

lcomm_status lcomm_policy_read_stale(lcomm_policy_reader *r, lcomm_span value,
                                     lcomm_quorum_policy *quorum) {
  uint64_t number = 0;
  lcomm_span digits = lcomm_span_before(value, ":");
  bool drops = digits.length < value.length;
  bool is_known = !drops || lcomm_span_is(lcomm_span_after(value, digits.length + 1), "drop");
  if (!is_known || !lcomm_policy_read_whole(digits, STALE_MOST, &number) || number == 0) {
    return lcomm_policy_refuse(r, "", value,
                               " is no bound of steps; expected a number of them from 1 to 7, with "
                               "or without :drop");
  }
  quorum->stale = (uint32_t)number;
  quorum->drops = drops;
  return LCOMM_OK;
}

lcomm_status lcomm_policy_read_late(lcomm_policy_reader *r, lcomm_span value,
                                    lcomm_quorum_policy *quorum) {
  uint64_t number = 0;
  if (!lcomm_policy_read_whole(value, LATE_MOST_MS, &number)) {
    return lcomm_policy_refuse(r, "", value,
                               " is no time in milliseconds; expected digits, up to 3600000");
  }
  quorum->late_ms = (uint32_t)number;
  return LCOMM_OK;
}

void lcomm_policy_write_quorum(lcomm_writer *w, const lcomm_quorum_policy *quorum) {
  if (quorum->percent > 0) {
    lcomm_write(w, " quorum=%u%%", quorum->percent);
  } else if (quorum->ranks > 0) {
    lcomm_write(w, " quorum=%u", quorum->ranks);
  }
  if (quorum->stale > 0) {
    lcomm_write(w, " stale=%u%s", quorum->stale, quorum->drops ? ":drop" : "");
  }
  if (quorum->late_ms != lcomm_policy_default.quorum.late_ms) {
    lcomm_write(w, " late=%u", quorum->late_ms);
  }
}

/* The word that asks for owners. */
const char *lcomm_policy_owners_key(const lcomm_policy *policy) {
  if (policy->quorum.stale > 0) {
    return "stale";
  }
  return lcomm_policy_has_quorum(policy) ? "quorum" : "servers";
}

static const char *codec_conflict(const lcomm_policy *policy) {
  for (unsigned i = 0; i < lcomm_policy_net_count(policy); i++) {
    const lcomm_codec_spec *it = lcomm_policy_net_codec(policy, i);
    if (it->automatic || it->rank > 0 || it->format.zstd) {
      return "the owner of a piece sums what some ranks sent; expected codecs of net other than "
             "auto and lowrank, without +zstd";
    }
  }
  return NULL;
}

const char *lcomm_policy_quorum_conflict(const lcomm_policy *policy) {
  if (!lcomm_policy_has_owners(policy)) {
    return NULL;
  }
  if (policy->quorum.stale > 0 && lcomm_policy_has_quorum(policy)) {
    return "stale= waits for all ranks, some steps later, and quorum= for some of them at once; "
           "expected one of the two";
  }
  if (policy->momentum > 0 || policy->adam.onebit) {
    return "a rank whose gradient comes late has not moved its momentum as the others have; "
           "expected "
           "no momentum= and no adam=";
  }
  if (policy->undo || policy->guard.steps > 0) {
    return "ranks come to a step at different times, so they cannot undo it or check it together; "
           "expected no undo=on, nonfinite=discard and guard=";
  }
  if (policy->warmup_steps > 0 || policy->ramp.count > 0) {
    return "the codec is the same in all steps; expected no warmup= and no ramp=";
  }
  if (!lcomm_codec_spec_is_exact(&policy->node) || policy->node.format.zstd) {
    return "what comes from the owner's node is exact; expected node=none";
  }
  if (!lcomm_codec_spec_is_exact(&policy->rack) || policy->rack.format.zstd) {
    return "ranks send to the owners of pieces themselves, so racks do not count; expected "
           "rack=none";
  }
  return codec_conflict(policy);
}
