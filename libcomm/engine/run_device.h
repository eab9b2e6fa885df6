/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_RUN_DEVICE_H
#define LCOMM_ENGINE_RUN_DEVICE_H

/* A run whose vector is in the memory of a device. Its payloads are made and read
 * there; what crosses to the host and back are encoded bytes alone, through slots
 * in pinned memory, which messages leave from and arrive in as ever. So a schedule
 * does not know of devices, and a rank with its data on a device may meet one with
 * its data on the host.
 *
 * Computations are put into a stream of the run, in the order in which the
 * schedule allows them, each followed by an event; a step is over when its event
 * is. Nobody ever waits for the device but with the rest of the operations. */

#include "libcomm/device/device.h"
#include "libcomm/engine/exec.h"
#include "libcomm/engine/peer_memory.h"
#include "libcomm/sched/lane.h"

enum {
  LCOMM_DEVICE_WORKS = 64, /* computations that were put into the stream and are not over */
  LCOMM_DEVICE_ALIGN = 256
};

typedef struct lcomm_device_work {
  lcomm_computation computation;
  void *event;
} lcomm_device_work;

/* What the device has of a slot; where its payload is, says its state (payload.h). */
typedef struct lcomm_device_slot {
  uint8_t *payload;     /* memory for it on this device */
  uint8_t *handle;      /* its memory handle, of slots that may be exported */
  const uint8_t *there; /* ON_PEER_DEVICE: where it is at its sender */
} lcomm_device_slot;

/* Scratch of one launch: as many entries as a step has slots. */
typedef struct lcomm_device_launch {
  lcomm_cuda_code *codes;
  const void **addresses;
  uint8_t **outputs;
} lcomm_device_launch;

/* What is in the stream, as a ring, the oldest first. */
typedef struct lcomm_device_works {
  lcomm_device_work ring[LCOMM_DEVICE_WORKS];
  unsigned first, count;
} lcomm_device_works;

/* Memory of the device for payloads of top-k that are read. */
typedef struct lcomm_sparse_scratch {
  void *alone[LCOMM_LANE_COUNT]; /* in each lane one at a time, */
  void *applied;                 /* in that of results another one, */
  /* and those that a tape reads together: so many pieces of so many bytes in each lane. */
  void *together[LCOMM_LANE_COUNT];
  uint32_t count;
  size_t size;
  /* Positions of those that are applied, in the lane of results: so many pieces of so many bytes.
   */
  uint8_t *positions;
  uint32_t commits;
  size_t positions_size;
} lcomm_sparse_scratch;

typedef struct lcomm_run_device {
  const lcomm_device_table *table;
  int ordinal;
  bool can_share;   /* its memory can be read by other processes, see device_zcopy.h */
  void *stream;     /* what follows is put into it, */
  lcomm_lane lane;  /* which is this one of a tape's, else the first */
  void *own_stream; /* the same; NULL where that is a lane (lanes.h) */

  uint8_t *memory; /* of the device: all payloads, then scratch of the encoders */
  lcomm_device_slot *slots;
  uint8_t *handle_memory;  /* that peers can map; NULL where no slot is exported */
  lcomm_run_share share;   /* of `memory` */
  lcomm_cuda_topk **topk;  /* per step, NULL where the step is no top-k ENCODE */
  uint64_t *payload_sizes; /* pinned: what the encoders of top-k made, per slot */
  lcomm_sparse_scratch sparse;
  lcomm_device_launch launch;
  struct lcomm_device_batch *batch; /* of a run that plays tapes */
  const uint64_t *more_seed; /* of the device: of a recording that rounds by chance, or NULL */
  lcomm_device_works works;

  bool is_closed;       /* nothing follows for this operation, and `end` is not over */
  void *begin, *end;    /* events: the caller's stream has come to the call; all is done */
  void *counted;        /* event: `squares` are what the run has counted */
  double *squares;      /* of the device, LCOMM_CUDA_SQUARES of them */
  uint64_t *found;      /* of the device: values that are not finite */
  uint64_t *found_here; /* pinned: the same */
} lcomm_run_device;

/* A vector on device `ordinal`; NULL when memory is short. free: NULL ok. */
void *lcomm_device_vector(lcomm_comm *comm, int ordinal, size_t size);
void lcomm_device_vector_free(lcomm_comm *comm, void *memory);

/* Memory and events for a run on device `ordinal`, and a stream of its own; part of
 * lcomm_run_create, before the slots are made. The rest follows when they are.
 * MEMORY, SYSTEM with a sentence in lcomm_error_thread_text. */
lcomm_status lcomm_run_device_open(lcomm_run *run, int ordinal);
lcomm_status lcomm_run_device_make_stream(lcomm_run *run);
lcomm_status lcomm_run_device_make(lcomm_run *run);
void lcomm_run_device_free(lcomm_run *run);

/* run_device_topk.c: bytes that the encoders of top-k need, or, with memory, the encoders, whose
 * tables are copied there; bytes of scratch for reading any payload of top-k. MEMORY. */
lcomm_status lcomm_run_device_topk_make(lcomm_run *run, uint8_t *memory, size_t *size);
size_t lcomm_run_device_topk_scratch(const lcomm_run *run);

/* How many payloads of top-k a tape may read together, and bytes of scratch for each; of how many
 * that it reads it asks what was applied, and bytes for the positions of one. */
uint32_t lcomm_run_device_topk_together(const lcomm_run *run, size_t *size);
uint32_t lcomm_run_device_topk_commits(const lcomm_run *run, size_t *size);

/* Pieces of a run's memory there begin at multiples of LCOMM_DEVICE_ALIGN. */
static inline size_t lcomm_run_device_aligned(size_t size) {
  return (size + LCOMM_DEVICE_ALIGN - 1) / LCOMM_DEVICE_ALIGN * LCOMM_DEVICE_ALIGN;
}

/* Launches want the run's device in use, and the program has its own: enter tells
 * which one that was, for leave. */
int lcomm_run_device_enter(const lcomm_run *run);
void lcomm_run_device_leave(const lcomm_run *run, int before);

/* Operations of the queues of runs on devices (backend.h). */
void lcomm_run_device_start(lcomm_run *run);
lcomm_status lcomm_run_device_follow(lcomm_run *run, void *stream);
lcomm_status lcomm_run_device_follow_event(lcomm_run *run, void *event);

/* OK where `error`, of a call of the table, is 0; else the communicator has failed: SYSTEM. */
lcomm_status lcomm_run_device_check(lcomm_run *run, const char *what, int error);

/* Entries that a payload of top-k has at most. Each takes a byte and more. */
static inline uint64_t lcomm_run_device_entries(const lcomm_run *run, uint32_t slot) {
  uint64_t count = run->plan->schedule.slots[slot].count, bound = run->plan->slot_sizes[slot].bound;
  return count < bound ? count : bound;
}

/* Where the payload of a slot is on this device. */
static inline uint8_t *lcomm_device_payload(const lcomm_run *run, uint32_t slot) {
  return run->device->slots[slot].payload;
}

#endif
