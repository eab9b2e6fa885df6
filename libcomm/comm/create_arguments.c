/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <string.h>

#include "libcomm/comm/create.h"
#include "libcomm/engine/engine.h"

lcomm_status lcomm_bootstrap_check(const lcomm_bootstrap *base, lcomm_comm *const *comm) {
  if (!base || !comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_create: a pointer is NULL");
  }
  if (base->world_size < 1 || base->rank < 0 || base->rank >= base->world_size ||
      !base->allgather) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT,
                              "lcomm_create: rank %d of %d ranks is no place, or there is no "
                              "allgather function",
                              base->rank, base->world_size);
  }
  return LCOMM_OK;
}

lcomm_config lcomm_config_take(const lcomm_config *given) {
  lcomm_config taken = LCOMM_CONFIG_INIT;
  if (given && given->struct_size > 0 && given->struct_size <= sizeof(taken)) {
    memcpy(&taken, given, given->struct_size);
  } else if (given) {
    taken.struct_size = 0;
  }
  return taken;
}
