/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_DEVICE_H
#define LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_DEVICE_H

/* Devices for tests where there are none. Their memory is memory of the host, each
 * stream is a thread that does what it is given in order and in its own time, and
 * kernels run on the thread of their stream (emulated_blocks.h). What a device would refuse
 * is refused; what would be wrong only now and then should be wrong here, too:
 *
 * - Fresh memory holds bytes 0xff, which are NaN. What was freed cannot be read or
 *   written until the end, also not by a stream that has not come to it: freeing
 *   waits for nothing. AddressSanitizer knows the end of each piece of memory.
 * - A copy reads and writes pinned memory when its stream comes to it. Other memory
 *   of the host it reads at once, or waits until it is written.
 * - Nothing but streams and events orders what streams do, so ThreadSanitizer sees
 *   where the order of two accesses is left to chance.
 * - NULL, the legacy default stream, is one more stream of the device in use. It
 *   waits for no other and no other waits for it, as streams of the table do not.
 * - What waits for a whole device while a stream of it waits for a value ends the
 *   process: on a device both may wait for ever. So does the first launch of a kernel
 *   that nobody has loaded.
 * - Processes of a host share their devices' memory and events through
 *   /proc/PID/fd, as the shared-memory transport does. An event of processes is
 *   recorded in one stream at a time.
 *
 * A process forks before it begins, as threads do not survive a fork. */

#include "libcomm/device/device.h"

enum { EMULATED_DEVICES_MAX = 4 };

typedef struct emulated_setup {
  int devices;                       /* 1..EMULATED_DEVICES_MAX */
  const lcomm_cuda_kernels *kernels; /* compiled for the emulation, or NULL */
  uint64_t seed;                     /* not 0: streams pause at random moments */
  uint32_t pause_us_max;             /* for how long at most; 0: 200 us */
  uint64_t memory_size;              /* of each device; 0: 1 GiB */
  bool without_wait_value, without_sharing, without_peers;
} emulated_setup;

/* The table of these devices; one set of them at a time. */
const lcomm_device_table *emulated_begin(const emulated_setup *setup);

/* End them; what is left to do in streams is dropped. How many pieces of memory,
 * streams and events were still there: 0 where all was destroyed. */
int emulated_end(void);

/* Memory that the table cannot give, on the device in use; memory_free frees it.
 * From a pool: device memory that cannot be shared. NULL: there is no more. */
void *emulated_pool_get(size_t size);
void *emulated_managed_get(size_t size);

/* A program begins, or ends, to capture what is put into a stream. */
void emulated_capture(void *stream, bool begins);

#endif
