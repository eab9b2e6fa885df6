/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* lcomm_create_part: some ranks of a communicator, met by a bootstrap of the caller's. */

#include "libcomm/api/policy_query.h"
#include "libcomm/base/error.h"
#include "libcomm/comm/create.h"
#include "libcomm/comm/measure.h"
#include "libcomm/engine/engine.h"

static lcomm_config take_config(const lcomm_comm *base, const int *members, int count,
                                const lcomm_config *given) {
  lcomm_config config = lcomm_config_take(given);
  config.policy = config.policy ? config.policy : base->settings.policy_text;
  if (config.nodes == 0) {
    config.nodes = lcomm_policy_query_posed_nodes(base, members, count);
  }
  return config;
}

/* A part has no communicator of MPI that it knows to be its own; its base has, and outlives it. */
static void progress_base(lcomm_bootstrap_object *bootstrap) {
  lcomm_comm *base = bootstrap->context;
  base->bootstrap.progress(&base->bootstrap);
}

lcomm_status lcomm_create_part(const lcomm_comm *base, const int *members,
                               const lcomm_bootstrap *bootstrap, void *mpi,
                               const lcomm_config *config, lcomm_comm **part) {
  if (!base || !members || !bootstrap || !part) {
    return lcomm_refuse_null(base, "lcomm_create_part",
                             !members     ? "members"
                             : !bootstrap ? "bootstrap"
                                          : "part");
  }
  for (int i = 0; i < bootstrap->world_size; i++) {
    if (members[i] < 0 || members[i] >= base->size) {
      return lcomm_error_thread(LCOMM_ERR_ARGUMENT,
                                "lcomm_create_part: member %d is no rank of the communicator",
                                members[i]);
    }
  }
  lcomm_bootstrap_object object = {
      .base = *bootstrap, .mpi = mpi, .mpi_ranks = members, .context = (void *)base};
  object.progress = base->bootstrap.progress ? progress_base : NULL;
  lcomm_config taken = take_config(base, members, bootstrap->world_size, config);
  LCOMM_TRY(lcomm_comm_create(&object, &taken, part));
  lcomm_costs_inherit(*part, base);
  return LCOMM_OK;
}
