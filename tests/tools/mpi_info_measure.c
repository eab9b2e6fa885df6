/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* libcomm-info --measure between ranks of one emulated device, and with peers that
 * do not do their part. Values are not judged, only where they come from. */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/device/device.h"
#include "tests/support/emulated/emulated_device.h"
#include "tests/support/mpi_property.h"
#include "tools/info/info_measure.h"
#include "tools/info/info_measure_device.h"

static const lcomm_device_table *device;
static info_link links[LCOMM_LINK_COUNT];

static lcomm_comm *make(double timeout_s) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.timeout_s = timeout_s;
  config.progress = LCOMM_PROGRESS_CALLS;
  lcomm_comm *comm = make_comm_if_possible(&config);
  return comm;
}

/* All ranks measure; rank 0 looks for a text in what was remarked of the device. */
static void measure_and_find(const char *text) {
  lcomm_comm *comm = make(60);
  const info_link *link = &links[LCOMM_LINK_SAME_DEVICE];
  lcomm_status status = info_measure(comm, links);
  require(status == LCOMM_OK, "%s", lcomm_last_error(comm));
  require(link->first == 0 && link->second == 1, "ranks %d and %d", link->first, link->second);
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    require(i == LCOMM_LINK_SAME_DEVICE || links[i].first < 0, "link %d does not occur", i);
  }
  if (mpi_rank == 0) {
    require(strstr(link->remark, text), "the remark is: %s", link->remark);
    require(!link->cost.assumed && link->cost.latency_us > 0 && link->cost.bandwidth_gb_s > 0 &&
                isfinite(link->cost.latency_us) && isfinite(link->cost.bandwidth_gb_s),
            "%g us, %g GB/s", link->cost.latency_us, link->cost.bandwidth_gb_s);
  }
  require(lcomm_destroy(comm) == LCOMM_OK, "the ranks do not end together");
}

static void bandwidth_between_devices_is_that_of_a_copy(void) {
  measure_and_find("copy from device to device");
}

static void lender_that_does_not_share_is_named(void) {
  if (mpi_rank == 1) {
    setenv("LCOMM_CUDA_IPC", "off", 1);
  }
  measure_and_find("through host memory, because rank 1 has LCOMM_CUDA_IPC=off");
  unsetenv("LCOMM_CUDA_IPC");
}

static void taker_that_does_not_share_is_named(void) {
  if (mpi_rank == 0) {
    setenv("LCOMM_CUDA_IPC", "off", 1);
  }
  measure_and_find("through host memory, because rank 0 has LCOMM_CUDA_IPC=off");
  unsetenv("LCOMM_CUDA_IPC");
}

static int refuse_to_open(const lcomm_device_ipc *ipc, void **allocation) {
  (void)ipc;
  (void)allocation;
  return 1;
}

/* With a device that differs from the real one. */
static void measure_with(const lcomm_device_table *other, const char *remark) {
  lcomm_device_replace(other);
  measure_and_find(remark);
  lcomm_device_replace(device);
}

static void memory_that_cannot_be_opened_leaves_the_figure_of_the_host(void) {
  lcomm_device_table other = *device;
  other.ipc.open = refuse_to_open;
  measure_with(&other, "because the device of rank 0 cannot open its peer's memory: ");
}

static int lie_about_the_size(const void *pointer, lcomm_device_ipc *ipc) {
  int error = device->ipc.get(pointer, ipc);
  ipc->offset = UINT64_MAX - 4096; /* would wrap around to the memory before it */
  return error;
}

static void memory_that_is_too_small_is_not_read(void) {
  lcomm_device_table other = *device;
  other.ipc.get = lie_about_the_size;
  measure_with(&other, "because the memory that is lent is too small");
}

static void text_of_peers_stays_on_one_line(void) {
  char text[8] = "a\nb\x1b\xff";
  text[5] = text[6] = text[7] = 'c';
  info_make_visible(text, sizeof(text));
  require(strcmp(text, "a?b??cc") == 0, "'%s'", text);
}

static void nothing_is_left_on_the_device(void) {
  int left = emulated_end();
  require(left == 0, "%d pieces of memory, streams and events are left", left);
  lcomm_device_replace(NULL);
}

/* Rank 1 never measures. Nobody waits for it longer than the time-out, and those that
 * wait for the two hear of it. */
static void peer_that_does_not_answer_is_named(void) {
  lcomm_comm *comm = make(2);
  if (mpi_rank != 1) {
    lcomm_status status = info_measure(comm, links);
    require(status == LCOMM_ERR_TIMEOUT, "%s", lcomm_status_string(status));
    require(strstr(lcomm_last_error(comm), "measuring the link to rank 1"), "%s",
            lcomm_last_error(comm));
    require(strstr(lcomm_last_error(comm), "LCOMM_TIMEOUT_S"), "%s", lcomm_last_error(comm));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  (void)lcomm_destroy(comm);
}

/* Rank 1 sends less than belongs there. */
static void short_answer_is_refused(void) {
  lcomm_comm *comm = make(60);
  info_room room = {.comm = comm};
  if (mpi_rank == 1) {
    require(info_room_open(comm, &room) == LCOMM_OK, "no memory");
    (void)info_send(&room, 0, 3);
  } else {
    lcomm_status status = info_measure(comm, links);
    require(status == LCOMM_ERR_WIRE, "%s", lcomm_status_string(status));
    require(strstr(lcomm_last_error(comm), "3 bytes where 8 belong"), "%s", lcomm_last_error(comm));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  (void)lcomm_destroy(comm);
}

static const mpi_property properties[] = {
    PROPERTY(bandwidth_between_devices_is_that_of_a_copy),
    PROPERTY(lender_that_does_not_share_is_named),
    PROPERTY(taker_that_does_not_share_is_named),
    PROPERTY(memory_that_cannot_be_opened_leaves_the_figure_of_the_host),
    PROPERTY(memory_that_is_too_small_is_not_read),
    PROPERTY(text_of_peers_stays_on_one_line),
    PROPERTY(nothing_is_left_on_the_device),
    PROPERTY(peer_that_does_not_answer_is_named),
    PROPERTY(short_answer_is_refused),
};

int main(int argc, char **argv) {
  emulated_setup setup = {
      .devices = 1, .kernels = &lcomm_cuda_kernels_table, .seed = 5, .pause_us_max = 50};
  device = emulated_begin(&setup);
  lcomm_device_replace(device);
  return mpi_property_main_threads(&argc, &argv, WITH_COUNT(properties));
}
