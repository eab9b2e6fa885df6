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

/* Computations that were put into the stream and are not over. */
enum { LCOMM_DEVICE_WORKS = 64 };

typedef struct lcomm_device_work {
  lcomm_computation computation;
  void *event;
} lcomm_device_work;

/* What the device has of a slot; where its payload is, says its state (payload.h). */
typedef struct lcomm_device_slot {
  uint8_t *payload;      /* memory for it on this device */
  const uint8_t *mapped; /* where kernels read it if not there: at its sender, in the vector */
  uint8_t *handle;       /* its memory handle, of slots that may be exported */
  const void *handle_of; /* the memory that `handle` describes if that stays as it is, or NULL */
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

typedef struct lcomm_run_device {
  const lcomm_device_table *table;
  int ordinal;
  bool can_gate;    /* its streams can wait for values, see stream_gate.h */
  bool is_tried;    /* an operation has ended: what it opens at peers is open */
  bool in_flight;   /* an operation goes step by step */
  bool was_barred;  /* before this round of it, see lcomm_device_bar() */
  bool can_share;   /* its memory can be read by other processes, see device_zcopy.h */
  void *stream;     /* what follows is put into it */
  void *own_stream; /* the same; NULL where that is a lane (lanes.h) */

  uint8_t *memory; /* of the device: all payloads, then scratch of the encoders */
  lcomm_device_slot *slots;
  uint8_t *handle_memory;  /* that peers can map */
  lcomm_cuda_topk **topk;  /* per step, NULL where the step is no top-k ENCODE */
  uint64_t *payload_sizes; /* pinned: what the encoders of top-k made, per slot */
  void *sparse_scratch[2]; /* of the device: for payloads of top-k that are read */
  lcomm_device_launch launch;
  lcomm_device_works works;

  bool is_closed;       /* nothing follows for this operation, and `end` is not over */
  void *begin, *end;    /* events: the caller's stream has come to the call; all is done */
  void *counted;        /* event: `squares` are what the run has counted */
  double *squares;      /* of the device, LCOMM_CUDA_SQUARES of them */
  uint64_t *found;      /* of the device: values that are not finite */
  uint64_t *found_here; /* pinned: the same */
} lcomm_run_device;

/* device_quiesce.c: wait until no stream of this process is held, and nothing is played on a device
 * of this communicator beside operations that go step by step. Let no stream be held until
 * lcomm_device_resume(), which follows even a failure: between the two, memory and
 * streams can be made and freed, without the communicator's turn (device_turn.h). The operations of
 * the communicator go on meanwhile. TIMEOUT, or what failed. */
bool lcomm_device_is_quiet(const lcomm_comm *comm);
lcomm_status lcomm_device_quiesce(lcomm_comm *comm);
void lcomm_device_resume(void);
/* The same where nothing of the communicator is held any more, and only for a while. */
void lcomm_device_quiesce_to_free(void);

/* A vector on device `ordinal`; NULL when memory is short. Freed while things are quiet (NULL ok).
 */
void *lcomm_device_vector(lcomm_comm *comm, int ordinal, size_t size);
void lcomm_device_vector_free(lcomm_comm *comm, void *memory);

/* Memory and events for a run on device `ordinal`, and a stream of its own; part of
 * lcomm_run_create, before the slots are made. The rest follows when they are.
 * MEMORY, SYSTEM with a sentence in lcomm_error_thread_text. */
lcomm_status lcomm_run_device_open(lcomm_run *run, int ordinal);
lcomm_status lcomm_run_device_make_stream(lcomm_run *run);
lcomm_status lcomm_run_device_make(lcomm_run *run);
void lcomm_run_device_free(lcomm_run *run);

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

/* Where the payload of a slot is, as this device sees it. */
static inline uint8_t *lcomm_device_payload(const lcomm_run *run, uint32_t slot) {
  const lcomm_run_device *device = run->device;
  const uint8_t *mapped = device->slots[slot].mapped;
  return mapped ? (uint8_t *)(uintptr_t)mapped : device->slots[slot].payload; /* only read */
}

#endif
