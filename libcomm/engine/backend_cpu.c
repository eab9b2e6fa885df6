/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Runs whose vector is in memory of the host. */

#include "libcomm/engine/exec_internal.h"

static lcomm_status make(lcomm_run *run, lcomm_status (*rest)(lcomm_run *run)) {
  return rest(run);
}

static uint8_t *slots_memory(lcomm_run *run, size_t size) {
  return lcomm_links_memory_get(&run->comm->links, size);
}

static bool get_memory(lcomm_run *run, size_t size, uint8_t **memory) {
  *memory = size > 0 ? slots_memory(run, size) : NULL;
  return *memory || size == 0;
}

static bool own_memory(lcomm_run *run) {
  return get_memory(run, lcomm_plan_vector_size(run->plan), &run->memory.own_vector) &&
         get_memory(run, lcomm_plan_input_size(run->plan), &run->memory.own_input);
}

static void free_memory(lcomm_run *run) {
  lcomm_links *links = &run->comm->links;
  lcomm_links_memory_free(links, run->memory.arena);
  lcomm_links_memory_free(links, run->memory.own_vector);
  lcomm_links_memory_free(links, run->memory.own_input);
}

const lcomm_backend lcomm_backend_cpu = {
    .name = "cpu",
    .is_host = true,
    .make = make,
    .slots_memory = slots_memory,
    .own_memory = own_memory,
    .free = free_memory,
    .payloads = &lcomm_backend_cpu_payloads,
    .vectors = &lcomm_backend_cpu_vectors,
    .lowrank = &lcomm_backend_cpu_lowrank,
};
