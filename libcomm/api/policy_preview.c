/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the policy would say on some ranks of a communicator, before they are one. All that it
 * takes was exchanged when the communicator was made. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/api/policy_query.h"
#include "libcomm/engine/engine.h"
#include "libcomm/plan/policy_match.h"

struct lcomm_preview {
  int rank;
  lcomm_topo topo;
  lcomm_policy policy;
  char policy_text[LCOMM_POLICY_MAX];
  char name[LCOMM_COMM_NAME_MAX];
  uint64_t named;
};

static lcomm_status no_memory(void) {
  return lcomm_error_thread(LCOMM_ERR_MEMORY, "lcomm_preview_create: out of memory");
}

int lcomm_policy_query_posed_nodes(const lcomm_comm *comm, const int *members, int count) {
  int nodes = 0;
  for (int i = 0; comm->settings.poses && i < count; i++) {
    int before = 0;
    while (comm->topo.node[members[before]] != comm->topo.node[members[i]]) {
      before++;
    }
    nodes += before == i;
  }
  return nodes;
}

static bool all_have_devices(const lcomm_comm *comm, const int *members, int count) {
  bool all = true;
  for (int i = 0; i < count; i++) {
    all &= comm->topo.device[members[i]] >= 0;
  }
  return all;
}

/* Devices change the chunks, and nothing else between nodes. */
static lcomm_status make_topology(const lcomm_comm *comm, const int *members, int count,
                                  lcomm_topo *topo) {
  lcomm_why error = {""};
  lcomm_identity *identities = calloc((size_t)count, sizeof *identities);
  if (!identities) {
    return no_memory();
  }
  for (int i = 0; i < count; i++) {
    memcpy(identities[i].host, comm->topo.host[members[i]], sizeof(identities[i].host));
    identities[i].host_hash = comm->identity.processes[members[i]].host_hash;
    identities[i].pid = comm->identity.processes[members[i]].pid;
  }
  lcomm_status status = lcomm_topo_create(
      identities, count, lcomm_policy_query_posed_nodes(comm, members, count), topo, &error);
  free(identities);
  if (status != LCOMM_OK) {
    return lcomm_error_thread(status, "lcomm_preview_create: %s", error.text);
  }
  topo->all_have_devices = all_have_devices(comm, members, count);
  memcpy(topo->cost, comm->topo.cost, sizeof(topo->cost));
  memcpy(topo->codec_cost, comm->topo.codec_cost, sizeof(topo->codec_cost));
  return LCOMM_OK;
}

static int place_among(const lcomm_comm *comm, const int *members, int count) {
  int mine = -1;
  for (int i = 0; i < count; i++) {
    if (members[i] < 0 || members[i] >= comm->size) {
      return -1;
    }
    mine = members[i] == comm->rank ? i : mine;
  }
  return mine;
}

static lcomm_status fill(lcomm_preview *made, const lcomm_comm *comm, const int *members, int count,
                         const char *policy) {
  lcomm_why error;
  lcomm_status status =
      lcomm_policy_parse(policy ? policy : comm->settings.policy_text, &made->policy, &error);
  if (status != LCOMM_OK) {
    return lcomm_error_thread(status, "%s", error.text);
  }
  lcomm_policy_format(&made->policy, made->policy_text);
  made->named = lcomm_match_named(&made->policy, made->name);
  return make_topology(comm, members, count, &made->topo);
}

lcomm_status lcomm_preview_create(const lcomm_comm *comm, const int *members, int count,
                                  const char *policy, lcomm_preview **preview) {
  int mine = comm && members && preview ? place_among(comm, members, count) : -1;
  if (mine < 0) {
    return lcomm_error_thread(
        LCOMM_ERR_ARGUMENT, "lcomm_preview_create: a pointer is NULL, or the members are no ranks "
                            "of the communicator, this one among them");
  }
  lcomm_preview *made = calloc(1, sizeof *made);
  if (!made) {
    return no_memory();
  }
  made->rank = mine;
  lcomm_status status = fill(made, comm, members, count, policy);
  if (status != LCOMM_OK) {
    lcomm_preview_destroy(made);
    return status;
  }
  *preview = made;
  return LCOMM_OK;
}

void lcomm_preview_destroy(lcomm_preview *preview) {
  if (preview) {
    lcomm_topo_free(&preview->topo);
    free(preview);
  }
}

/* -------------------------------------------------------------- questions */

static lcomm_policy_scope place_of(const lcomm_preview *preview) {
  return (lcomm_policy_scope){.policy = &preview->policy,
                              .topo = &preview->topo,
                              .rank = preview->rank,
                              .name = preview->name,
                              .named = preview->named};
}

void lcomm_preview_name_set(lcomm_preview *preview, const char *name) {
  if (!preview || !name) {
    return;
  }
  size_t length = strnlen(name, sizeof(preview->name) - 1);
  memset(preview->name, 0, sizeof(preview->name));
  memcpy(preview->name, name, length);
  preview->named = lcomm_match_named(&preview->policy, preview->name);
}

lcomm_selection lcomm_preview_query(const lcomm_preview *preview, lcomm_call_kind kind,
                                    uint64_t count, lcomm_dtype dtype, lcomm_op op,
                                    const char **why) {
  if (!preview) {
    return lcomm_policy_query(NULL, kind, count, dtype, op, why);
  }
  lcomm_policy_scope place = place_of(preview);
  return lcomm_policy_query_in(&place, kind, count, dtype, op, why);
}

lcomm_status lcomm_preview_bytes(const lcomm_preview *preview, lcomm_call_kind kind, uint64_t count,
                                 lcomm_dtype dtype, lcomm_op op, int error_feedback,
                                 uint64_t *sent_bytes, uint64_t *exact_bytes) {
  lcomm_why error;
  if (!preview || !sent_bytes || !exact_bytes) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_preview_bytes: a pointer is NULL");
  }
  lcomm_policy_scope place = place_of(preview);
  lcomm_policy_query_call call = {kind, count, dtype, op, error_feedback};
  lcomm_status status = lcomm_policy_query_bytes(&place, &call, sent_bytes, exact_bytes, &error);
  if (status != LCOMM_OK) {
    return lcomm_error_thread(status, "%s", error.text);
  }
  return LCOMM_OK;
}

void lcomm_preview_facts(const lcomm_preview *preview, lcomm_policy_facts *facts) {
  if (preview && facts) {
    *facts = lcomm_policy_query_facts(&preview->policy);
  }
}

const char *lcomm_preview_policy(const lcomm_preview *preview) {
  return preview ? preview->policy_text : "";
}

int lcomm_preview_nodes(const lcomm_preview *preview) {
  return preview ? preview->topo.nodes : -1;
}
