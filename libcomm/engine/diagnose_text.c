/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The sentence of a time-out. It takes no rank's view, so that it is the same whichever rank finds
 * the fault. */

#include <stdio.h>
#include <string.h>

#include "libcomm/engine/diagnose.h"

#define PATIENCE "LCOMM_TIMEOUT_S sets the patience."

enum {
  CALL_MAX = LCOMM_FINGERPRINT_TEXT_MAX + 24,
  WHO_MAX = 96,
  EVIDENCE_MAX = LCOMM_WHY_MAX + 32
};

/* "all-reduce #12 of 1,000 float32, step 3" */
static void name_call(const lcomm_wait_edge *edge, bool with_step, char *text) {
  char call[LCOMM_FINGERPRINT_TEXT_MAX];
  lcomm_fingerprint_text(&edge->fingerprint, call);
  char *root = strstr(call, " from rank ");
  if (root) { /* no rank is named but who is at fault */
    *root = '\0';
  }
  if (with_step) {
    snprintf(text, CALL_MAX, "%s, step %u", call, edge->step);
  } else {
    snprintf(text, CALL_MAX, "%s", call);
  }
}

/* What a transport sees of a rank's host: " (the network to it ...)", or "". */
static const char *evidence(lcomm_comm *comm, int rank, char *text) {
  lcomm_why why;
  int peer = lcomm_links_unreachable(&comm->links, &why);
  text[0] = '\0';
  if (peer >= 0 &&
      comm->identity.processes[peer].host_hash == comm->identity.processes[rank].host_hash) {
    snprintf(text, EVIDENCE_MAX, " (the network to it %s)", why.text);
  }
  return text;
}

static lcomm_status fail_host(lcomm_comm *comm, const lcomm_wait_edge *edge,
                              const lcomm_witnesses *witnesses) {
  char call[CALL_MAX], why[EVIDENCE_MAX];
  const char *ours = comm->topo.host[comm->rank], *theirs = comm->topo.host[edge->last];
  name_call(edge, false, call);
  evidence(comm, edge->last, why);
  if (witnesses->cut_off) {
    return lcomm_fail(comm, LCOMM_ERR_TIMEOUT,
                      "%s: host %s hears no other host%s: its network is down, or the ranks of all "
                      "others have been stopped or outside libcomm for %g s. " PATIENCE,
                      call, ours, why, comm->settings.timeout_s);
  }
  if (witnesses->only_remote_host) {
    bool rises = comm->rank < edge->last;
    return lcomm_fail(comm, LCOMM_ERR_TIMEOUT,
                      "%s: hosts %s and %s do not hear each other%s: one of them or the network "
                      "between them is down, or all ranks of one have been stopped or outside "
                      "libcomm for %g s. " PATIENCE,
                      call, rises ? ours : theirs, rises ? theirs : ours, why,
                      comm->settings.timeout_s);
  }
  return lcomm_fail_peer(comm, LCOMM_ERR_TIMEOUT, edge->last,
                         "%s: no rank of host %s answers%s: it or its network is down, or all its "
                         "ranks have been stopped or outside libcomm for %g s. " PATIENCE,
                         call, theirs, why, comm->settings.timeout_s);
}

static lcomm_status fail_silent(lcomm_comm *comm, const lcomm_wait_edge *edge,
                                const lcomm_witnesses *witnesses) {
  char call[CALL_MAX], who[WHO_MAX], why[EVIDENCE_MAX];
  if (witnesses->cut_off || witnesses->host_silent) {
    return fail_host(comm, edge, witnesses);
  }
  name_call(edge, true, call);
  return lcomm_fail_peer(
      comm, LCOMM_ERR_TIMEOUT, edge->last,
      "%s: %s does not answer%s%s. It is stopped or dead, or its program has "
      "been outside libcomm for %g s%s. " PATIENCE,
      call, lcomm_comm_who(comm, edge->last, who, sizeof(who)), evidence(comm, edge->last, why),
      witnesses->others_silent ? ", nor does any other rank" : "", comm->settings.timeout_s,
      witnesses->remote ? ", or the network of its host is down" : "");
}

static lcomm_status fail_link(lcomm_comm *comm, const lcomm_wait_edge *edge) {
  char call[CALL_MAX], lower[WHO_MAX], higher[WHO_MAX];
  bool rises = edge->waiter < edge->last;
  name_call(edge, false, call);
  lcomm_comm_who(comm, rises ? edge->waiter : edge->last, lower, sizeof(lower));
  lcomm_comm_who(comm, rises ? edge->last : edge->waiter, higher, sizeof(higher));
  return lcomm_fail(comm, LCOMM_ERR_TIMEOUT,
                    "%s: %s and %s do not hear each other, though both answer other ranks: the "
                    "link between them is broken. Look at the network between the two.",
                    call, lower, higher);
}

static lcomm_status fail_last(lcomm_comm *comm, const lcomm_wait_edge *edge) {
  char call[CALL_MAX], who[WHO_MAX], waiter[WHO_MAX];
  name_call(edge, true, call);
  lcomm_comm_who(comm, edge->last, who, sizeof(who));
  lcomm_comm_who(comm, edge->waiter, waiter, sizeof(waiter));
  switch (edge->end) {
  case LCOMM_END_PASSED:
    return lcomm_fail(comm, LCOMM_ERR_TIMEOUT,
                      "%s: %s is through with this call, but a message between it and %s has not "
                      "come through for %g s. Look at the network between the two. " PATIENCE,
                      call, who, waiter, comm->settings.timeout_s);
  case LCOMM_END_DEVICE:
    return lcomm_fail_peer(comm, LCOMM_ERR_TIMEOUT, edge->last,
                           "%s: %s answers, but its device has not come to the call, or has been "
                           "at work for it, for %g s. " PATIENCE,
                           call, who, comm->settings.timeout_s);
  case LCOMM_END_WORKS:
    return lcomm_fail_peer(comm, LCOMM_ERR_TIMEOUT, edge->last,
                           "%s: %s answers, but has sent nothing to %s for %g s. " PATIENCE, call,
                           who, waiter, comm->settings.timeout_s);
  default:
    return lcomm_fail_peer(
        comm, LCOMM_ERR_TIMEOUT, edge->last,
        "%s: %s answers, but its program has not made this call for %g s. It may "
        "be computing, in another call, or have one call fewer. " PATIENCE,
        call, who, comm->settings.timeout_s);
  }
}

/* The rank that is awaited is no fault: its program waits in another communicator. */
static lcomm_status fail_elsewhere(lcomm_comm *comm, const lcomm_wait_edge *edge) {
  char call[CALL_MAX], who[WHO_MAX];
  int fault = lcomm_diagnose_other_wait(comm, edge);
  name_call(edge, true, call);
  if (fault < 0) {
    return lcomm_fail(comm, LCOMM_ERR_TIMEOUT,
                      "%s: not all ranks have made this call for %g s: a program waits in another "
                      "communicator, for a process that is not in this one. Look at what failed "
                      "there. " PATIENCE,
                      call, comm->settings.timeout_s);
  }
  return lcomm_fail_peer(
      comm, LCOMM_ERR_TIMEOUT, fault,
      "%s: %s is awaited in another communicator by a program that has not made "
      "this call for %g s. It is stopped or dead, or its program computes, or is "
      "in another call. " PATIENCE,
      call, lcomm_comm_who(comm, fault, who, sizeof(who)), comm->settings.timeout_s);
}

/* What a rank of a cycle says of itself: its own operation is known here. */
static lcomm_wait_edge call_of(const lcomm_comm *comm, int rank) {
  lcomm_wait_state mine = lcomm_probe_state(comm, comm->operations.first);
  const lcomm_wait_state *said =
      rank == comm->rank ? &mine : &comm->errors.probes.contacts[rank].state;
  return (lcomm_wait_edge){
      .collective = said->collective, .sequence = said->sequence, .fingerprint = said->fingerprint};
}

static lcomm_status fail_cycle(lcomm_comm *comm, const lcomm_wait_edge *edge) {
  char waiter_call[CALL_MAX], last_call[CALL_MAX], waiter[WHO_MAX], last[WHO_MAX];
  lcomm_wait_edge theirs = call_of(comm, edge->last);
  name_call(edge, false, waiter_call);
  name_call(&theirs, false, last_call);
  lcomm_comm_who(comm, edge->waiter, waiter, sizeof(waiter));
  lcomm_comm_who(comm, edge->last, last, sizeof(last));
  bool rises = edge->waiter < edge->last;
  bool same_space =
      edge->sequence % LCOMM_SEQUENCE_SPACE_COUNT == theirs.sequence % LCOMM_SEQUENCE_SPACE_COUNT;
  if (same_space && (edge->sequence != theirs.sequence || edge->collective == theirs.collective)) {
    return lcomm_fail(
        comm, LCOMM_ERR_TIMEOUT,
        "%s: %s waits for %s, which answers, but whose message has not come for %g s: "
        "it is lost, or the link between the two is slow. " PATIENCE,
        waiter_call, waiter, last, comm->settings.timeout_s);
  }
  return lcomm_fail(comm, LCOMM_ERR_MISMATCH,
                    "ranks are in different calls: %s is in %s, %s in %s. All ranks must make the "
                    "same calls in the same order.",
                    rises ? waiter : last, rises ? waiter_call : last_call, rises ? last : waiter,
                    rises ? last_call : waiter_call);
}

lcomm_status lcomm_diagnose_fail(lcomm_comm *comm, const lcomm_wait_edge *edge,
                                 const lcomm_witnesses *witnesses) {
  switch (edge->end) {
  case LCOMM_END_ASKED:
  case LCOMM_END_SILENT:
    return fail_silent(comm, edge, witnesses);
  case LCOMM_END_LINK:
    return fail_link(comm, edge);
  case LCOMM_END_CYCLE:
    return fail_cycle(comm, edge);
  case LCOMM_END_ELSEWHERE:
    return fail_elsewhere(comm, edge);
  default:
    return fail_last(comm, edge);
  }
}
