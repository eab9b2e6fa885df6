/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_ENGINE_SUPPOSED_DEVICES_H
#define LCOMM_TESTS_ENGINE_SUPPOSED_DEVICES_H

/* Worlds of devices that are only supposed, and what operations cost their caller there. Included
 * by one program each. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda.h"
#include "libcomm/engine/tape_count.h"
#include "tests/support/unit_tests.h"

enum { RANKS_MAX = 64, EACH = 8, GPU_0 = 0x10 };

static inline lcomm_topo create(const lcomm_identity *identities, int ranks, int nodes) {
  lcomm_topo topo;
  lcomm_why why;
  if (lcomm_topo_create(identities, ranks, nodes, &topo, &why) != LCOMM_OK) {
    fail_msg("%s", why.text);
  }
  return topo;
}

/* Devices do not reach each other. */
static inline lcomm_topo suppose(int ranks, int nodes, bool devices) {
  static lcomm_identity identities[RANKS_MAX];
  for (int i = 0; i < ranks; i++) {
    snprintf(identities[i].host, sizeof(identities[i].host), "host");
    identities[i].pid = (uint64_t)i;
  }
  lcomm_topo topo = create(identities, ranks, nodes);
  topo.all_have_devices = devices;
  return topo;
}

static inline lcomm_pci pci_of(int gpu) {
  char text[16];
  return lcomm_pci_parse(text, (size_t)snprintf(text, sizeof(text), "0000:%02x:00.0", GPU_0 + gpu));
}

/* Each rank has a device, and NVLink joins those of a host. */
static inline lcomm_topo suppose_nvlink(int nodes, int each) {
  static lcomm_identity identities[RANKS_MAX];
  memset(identities, 0, sizeof(identities));
  for (int i = 0; i < nodes * each; i++) {
    lcomm_device_identity *device = &identities[i].device;
    snprintf(identities[i].host, sizeof(identities[i].host), "host%d", i / each);
    identities[i].host_hash = (uint64_t)(i / each) + 1;
    identities[i].pid = (uint64_t)i;
    device->pci = pci_of(i % each);
    device->switched = 18;
    for (int gpu = 0; gpu < each; gpu++) {
      if (gpu != i % each) {
        device->peer[device->peers++] = (lcomm_device_peer){.pci = pci_of(gpu), .p2p = 1};
      }
    }
  }
  lcomm_topo topo = create(identities, nodes * each, 0);
  assert_true(topo.all_have_devices && topo.nodes == nodes);
  assert_int_equal(lcomm_topo_link(&topo, 0, each - 1), LCOMM_LINK_NVLINK);
  return topo;
}

static inline lcomm_policy policy_of(const char *text) {
  lcomm_policy policy;
  lcomm_why why;
  if (lcomm_policy_parse(text, &policy, &why) != LCOMM_OK) {
    fail_msg("%s: %s", text, why.text);
  }
  return policy;
}

typedef lcomm_status (*counting)(const lcomm_tape_case *it, lcomm_tape_calls *calls);

static inline lcomm_tape_calls count_by(counting function, const lcomm_plan_request *request,
                                        const char *policy_text, const lcomm_topo *topo, int rank) {
  lcomm_policy policy = policy_of(policy_text);
  lcomm_tape_case it = {*request, &policy, topo, rank};
  lcomm_tape_calls calls;
  assert_int_equal(function(&it, &calls), LCOMM_OK);
  return calls;
}

static inline lcomm_tape_calls count(const lcomm_plan_request *request, const char *policy,
                                     const lcomm_topo *topo, int rank) {
  return count_by(lcomm_tape_count, request, policy, topo, rank);
}

static inline void require_most(const lcomm_tape_calls *calls, const char *what, int rank,
                                uint64_t most) {
  if (lcomm_tape_calls_all(calls) > most) {
    fail_msg("%s, rank %d: %llu launches, %llu copies, %llu of numbers, %llu of events", what, rank,
             (unsigned long long)calls->launches, (unsigned long long)calls->copies,
             (unsigned long long)calls->numbers, (unsigned long long)calls->events);
  }
}

/* 100 MB. */
static const lcomm_plan_request large_call = {.count = 25000000, .dtype = LCOMM_FLOAT32};

#endif
