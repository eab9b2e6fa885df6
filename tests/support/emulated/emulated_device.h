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
 *   waits for no other and no other waits for it, as streams of the table do not. So is the
 *   default stream of each thread, which has CUDA's name, 2.
 * - What waits for a whole device (memory, pinned memory, streams and loaded kernels
 *   that come, memory that goes, memory of other processes) waits for all that is in
 *   all streams, and calls of other threads wait for it meanwhile. So does
 *   the first launch of a kernel that nobody has loaded. Where nothing moves for long, the
 *   process ends and says who waits for whom.
 * - What a stream captures has no effect before its graph is launched. Copies of memory that only
 *   the host knows are refused there, and so is to wait for a stream that is captured.
 * - A thread that is barred from devices ends the process when it calls one, for anything but a
 * text.
 * - Streams may share queues, as on a device with few of them: a stream that waits
 *   stops those that were given something later in its queue.
 * - Processes of a host share their devices' memory and events through
 *   /proc/PID/fd, as the shared-memory transport does. An event of processes is
 *   recorded in one stream at a time.
 *
 * A process forks before it begins, as threads do not survive a fork. */

#include "libcomm/device/device.h"

enum { EMULATED_DEVICES_MAX = 8, EMULATED_QUEUES_MAX = 32 };

typedef struct emulated_setup {
  int devices;                       /* 1..EMULATED_DEVICES_MAX */
  const lcomm_cuda_kernels *kernels; /* compiled for the emulation, or NULL */
  uint64_t seed;                     /* not 0: streams pause at random moments */
  uint32_t pause_us_max;             /* for how long at most; 0: 200 us */
  uint64_t memory_size;              /* of each device; 0: 1 GiB */
  bool without_waits, without_sharing, without_peers;
  bool apart; /* what waits for a whole device waits for the streams of that one, not of all */
  double patience_s; /* nothing moves, and somebody waits for a whole stream; 0: 240 s */
  int queues;        /* that streams share, those for work as many others; 0: each its own */
  uint64_t turns;    /* not 0: one task at a time, of streams drawn by chance */
  uint64_t churn;    /* not 0: memory, streams and kernels come and go at random meanwhile */
} emulated_setup;

/* The table of these devices; one set of them at a time. */
const lcomm_device_table *emulated_begin(const emulated_setup *setup);

/* The table of the devices that began last. */
const lcomm_device_table *emulated_table(void);

/* End them; what is left to do in streams is dropped. How many pieces of memory,
 * streams and events were still there: 0 where all was destroyed. One more where what came
 * and went at random was refused. */
int emulated_end(void);

/* Memory that the table cannot give, on the device in use; memory_free frees it.
 * From a pool: device memory that cannot be shared. NULL: there is no more. */
void *emulated_pool_get(size_t size);
void *emulated_managed_get(size_t size);

/* Bytes of malloc() in notes about device memory that was freed, which are kept to the end. */
size_t emulated_notes_size(void);

/* Bytes of a device's memory that are not in use, and all. */
void emulated_memory_info(int device, size_t *unused, size_t *all);

/* Graphs, as CUDA has them: from begin to end what is put into a stream, and into those that wait
 * for its events, is kept and not done; all of it has to come together again in that stream. Every
 * launch of an executable does it anew, after what was launched of that executable before. Streams
 * and executables are of the device in use. */
int emulated_capture_begin(void *stream);
int emulated_capture_end(void *stream, void **graph);
int emulated_graph_instantiate(void *graph, void **executable);
int emulated_graph_launch(void *executable, void *stream);
int emulated_graph_destroy(void *graph);
int emulated_executable_destroy(void *executable);

/* Streams take nothing up until they are let go: what a call costs the host, without what its
 * streams do on the same processors. */
void emulated_streams_stop(bool stopped);

/* Does a thread wait for the whole device now? */
bool emulated_device_is_waited_for(void);

/* ------------------------------------------------------------------- counting */

/* Functions of the table, and what kernels and launchers ask for. */
typedef enum emulated_call {
  EMULATED_CALL_COUNT_DEVICES,
  EMULATED_CALL_EXPLAIN,
  EMULATED_CALL_FACTS,
  EMULATED_CALL_VERSION,
  EMULATED_CALL_CURRENT,
  EMULATED_CALL_USE,
  EMULATED_CALL_LOAD,
  EMULATED_CALL_LOCATE,
  EMULATED_CALL_GET,
  EMULATED_CALL_FREE,
  EMULATED_CALL_MANAGED_GET,
  EMULATED_CALL_PINNED_GET,
  EMULATED_CALL_PINNED_FREE,
  EMULATED_CALL_PIN,
  EMULATED_CALL_UNPIN,
  EMULATED_CALL_STREAM_CREATE,
  EMULATED_CALL_STREAM_DESTROY,
  EMULATED_CALL_STREAM_FINISH,
  EMULATED_CALL_STREAM_CAPTURED,
  EMULATED_CALL_STREAM_RETAIN,
  EMULATED_CALL_STREAM_WAIT,
  EMULATED_CALL_STREAM_NUMBERS,
  EMULATED_CALL_STREAM_GATES,
  EMULATED_CALL_EVENT_CREATE,
  EMULATED_CALL_EVENT_DESTROY,
  EMULATED_CALL_EVENT_RECORD,
  EMULATED_CALL_EVENT_QUERY,
  EMULATED_CALL_IPC_GET,
  EMULATED_CALL_IPC_OPEN,
  EMULATED_CALL_IPC_CLOSE,
  EMULATED_CALL_EVENT_IPC_GET,
  EMULATED_CALL_EVENT_IPC_OPEN,
  EMULATED_CALL_PEER_ACCESS,
  EMULATED_CALL_COPY,
  EMULATED_CALL_SET,
  EMULATED_CALL_LAUNCH,
  EMULATED_CALL_GRAPH_LAUNCH,
  EMULATED_CALL_COUNT
} emulated_call;

/* Calls since emulated_begin, or the last reset; of those that put something into a stream. */
uint64_t emulated_calls(emulated_call call);
uint64_t emulated_calls_enqueuing(void);
void emulated_calls_reset(void);
const char *emulated_call_name(emulated_call call);

#endif
