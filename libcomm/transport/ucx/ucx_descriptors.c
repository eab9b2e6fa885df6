/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How many file descriptors UCX opens. It ends the process when it finds none. */

#include "libcomm/base/descriptors.h"
#include "libcomm/transport/ucx/ucx_internal.h"

/* Measured with tcp over two interfaces: 8, and up to two connections with each
 * peer, where both begin one at once. Links that are made later look for themselves, but who
 * lets peers in cannot: there have to be some for many that come at the same time. */
enum {
  OWN = 16,
  OF_AN_INTERFACE = 3,
  OF_A_VERBS_DEVICE = 12,
  DEVICES_MAX = 16,
  OF_A_LINK = 2,
  LATER_MAX = 32
};

/* At most DEVICES_MAX: hosts of containers have hundreds, most without a use. */
static int count_devices(const char *folder) {
  int count = lcomm_ucx_count_entries(folder);
  return count < DEVICES_MAX ? count : DEVICES_MAX;
}

static int of_links(int rank, int size, const bool *linked) {
  int at_once = lcomm_ucx_count_at_once(rank, size, linked);
  int later = size > lcomm_ucx_at_once_max ? size - 1 - at_once : 0;
  return OF_A_LINK * (at_once + (later < LATER_MAX ? later : LATER_MAX));
}

int lcomm_ucx_descriptors(const lcomm_transport_setup *setup) {
  lcomm_why why;
  /* Looking for UCX takes some, too. */
  if (lcomm_descriptors_free() >= OWN && lcomm_ucx_load(&why) != LCOMM_OK) {
    return 0;
  }
  return OWN + OF_AN_INTERFACE * count_devices("/sys/class/net") +
         OF_A_VERBS_DEVICE * count_devices(LCOMM_UCX_RDMA_DEVICES) +
         of_links(setup->rank, setup->size, setup->linked);
}

int lcomm_ucx_descriptors_most(int size) {
  return OWN + (OF_AN_INTERFACE + OF_A_VERBS_DEVICE) * DEVICES_MAX + of_links(0, size, NULL);
}
