/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* lcomm_split(): which ranks belong together, and making their communicator. */

#include "libcomm/comm/split.h"
#include "libcomm/comm/create.h"
#include "libcomm/comm/measure.h"
#include "libcomm/transport/mpi/mpi_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/api/policy_query.h"
#include "libcomm/base/verdict.h"
#include "libcomm/engine/entry.h"

typedef lcomm_split_color_key color_key;

/* ----------------------------------------------------------- who is a member */

static lcomm_status take_members(lcomm_split_rendezvous *m, const color_key *all) {
  const lcomm_comm *parent = m->parent;
  size_t size = (size_t)parent->size;
  m->members = calloc(size, sizeof *m->members);
  if (m->members) {
    m->count = lcomm_split_members(all, parent->size, parent->rank, m->members, &m->me);
  }
  if (m->count == 0) {
    return lcomm_fail(m->parent, LCOMM_ERR_MEMORY, "lcomm_split: out of memory");
  }
  return LCOMM_OK;
}

/* -------------------------------------------------------------- the part */

/* What the caller does not say is as in the parent. */
static lcomm_config take_config(const lcomm_split_rendezvous *m, const lcomm_config *given) {
  const lcomm_comm *parent = m->parent;
  lcomm_config config = lcomm_config_take(given);
  config.policy = config.policy ? config.policy : parent->settings.policy_text;
  config.transport = config.transport ? config.transport : parent->settings.transport;
  bool says_timeout = config.timeout_s < 0 || config.timeout_s > 0 || isnan(config.timeout_s);
  if (!says_timeout) {
    config.timeout_s = parent->settings.timeout_s;
  }
  if (config.progress == LCOMM_PROGRESS_DEFAULT) {
    config.progress = parent->settings.progress;
  }
  if (config.nodes == 0) {
    config.nodes = lcomm_policy_query_posed_nodes(parent, m->members, m->count);
  }
  return config;
}

/* All members have it, or none keeps it. The tag tells colors apart. */
static lcomm_status take_mpi(lcomm_split_rendezvous *m, lcomm_bootstrap_object *bootstrap) {
  if (!m->parent->bootstrap.mpi || m->count == 1) {
    return LCOMM_OK;
  }
  char who[96];
  lcomm_verdict verdict;
  lcomm_status mine = lcomm_bootstrap_mpi_part(m->parent->bootstrap.mpi, m->members, m->count,
                                               m->members[0], bootstrap);
  lcomm_status status = lcomm_verdict_gather(&bootstrap->base, mine, &verdict);
  if (status == LCOMM_ERR_MEMORY) {
    return lcomm_fail(m->parent, status, "lcomm_split: out of memory");
  }
  LCOMM_TRY(status);
  if (verdict.status != LCOMM_OK && mine == LCOMM_OK) {
    lcomm_error_thread(verdict.status, "%s got no communicator from MPI: %s",
                       lcomm_comm_who(m->parent, m->members[verdict.rank], who, sizeof(who)),
                       verdict.text);
  }
  return verdict.status;
}

/* The sentence of a failure is the parent's own, if it was the parent that
 * failed; else it came from the making of the part. */
static lcomm_status report(lcomm_comm *parent, lcomm_status status) {
  char text[LCOMM_ERROR_MAX - 128];
  lcomm_status sticky = (lcomm_status)atomic_load(&parent->errors.status);
  if (sticky != LCOMM_OK) {
    return sticky;
  }
  size_t length = strnlen(lcomm_error_thread_text(), sizeof(text) - 1);
  memcpy(text, lcomm_error_thread_text(), length);
  text[length] = '\0';
  if (status == LCOMM_ERR_MEMORY) { /* other members may wait for this rank */
    return lcomm_fail(parent, status, "lcomm_split: %s", text);
  }
  return lcomm_refuse(parent, status, "lcomm_split: %s", text);
}

static lcomm_status make_part(lcomm_split_rendezvous *m, const lcomm_config *given,
                              lcomm_comm **part) {
  lcomm_config config = take_config(m, given);
  lcomm_bootstrap_object bootstrap = {.base = {.rank = m->me,
                                               .world_size = m->count,
                                               .context = m,
                                               .allgather = lcomm_split_gather},
                                      .inside = m->parent};
  lcomm_status status = take_mpi(m, &bootstrap);
  if (status == LCOMM_OK) {
    status = lcomm_comm_create(&bootstrap, &config, part);
  }
  if (status == LCOMM_OK) {
    lcomm_costs_inherit(*part, m->parent);
  }
  if (status != LCOMM_OK && bootstrap.release) {
    bootstrap.release(&bootstrap, atomic_load(&m->parent->errors.status) == LCOMM_OK);
  }
  if (status != LCOMM_OK) {
    return report(m->parent, status);
  }
  return LCOMM_OK;
}

static lcomm_status split_by(lcomm_comm *comm, color_key mine, color_key *all,
                             const lcomm_config *config, lcomm_comm **part) {
  lcomm_split_rendezvous m = {.parent = comm};
  lcomm_comm *made = NULL;
  comm->operations.inside = LCOMM_OP_KIND_SPLIT;
  lcomm_status status = lcomm_allgather(comm, &mine, all, 2, LCOMM_INT32);
  comm->operations.inside = LCOMM_OP_KIND_CALL;
  if (status == LCOMM_OK && mine.color >= 0) {
    status = take_members(&m, all);
    if (status == LCOMM_OK) {
      status = make_part(&m, config, &made);
    }
  }
  if (status == LCOMM_OK) {
    *part = made;
  }
  free(m.members);
  return status;
}

static lcomm_status split(lcomm_comm *comm, color_key mine, const lcomm_config *config,
                          lcomm_comm **part) {
  if (!part) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "lcomm_split: there is no place for the part");
  }
  color_key *all = calloc((size_t)comm->size, sizeof *all);
  if (!all) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "lcomm_split: out of memory");
  }
  lcomm_status status = split_by(comm, mine, all, config, part);
  free(all);
  return status;
}

lcomm_status lcomm_split(lcomm_comm *comm, int color, int key, const lcomm_config *config,
                         lcomm_comm **part) {
  LCOMM_TRY(lcomm_enter_given(comm, "lcomm_split"));
  lcomm_status status = split(comm, (color_key){.color = color, .key = key}, config, part);
  lcomm_exit(comm);
  return status;
}
