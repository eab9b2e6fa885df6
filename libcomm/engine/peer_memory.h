/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_PEER_MEMORY_H
#define LCOMM_ENGINE_PEER_MEMORY_H

/* Memory of runs on devices that peers of the node read. Opening it is a call of CUDA that may wait
 * for whatever is in streams, so nobody but a call of the program does it, and no message waits for
 * that; and only one of the first LCOMM_OPENING_OPERATIONS of a run, as it is made: a stream may
 * wait later for what the caller does next. The owner of a run offers its memory, with an
 * operation; the peer opens it in its next call that puts work on a device, and says with the
 * operation after that which messages it will read there: it takes them. Until then, and where a
 * peer has its data on the host, payloads go through the host; of a run whose peer has heard of the
 * memory too late always. Both are control messages, which may be lost: offers are repeated until
 * they are answered, with each of the first operations, when it begins and when it is over. */

#include "libcomm/device/device.h"
#include "libcomm/engine/exec.h"

enum {
  LCOMM_OFFERS_MAX = 1024, /* of a communicator: more are not looked at */
  LCOMM_OPENING_OPERATIONS = 8
};

/* An allocation of a peer. */
typedef struct lcomm_peer_memory {
  int peer;
  lcomm_device_ipc memory;
  uint64_t plan;   /* the hash of the plan whose payloads lie there */
  bool is_decided; /* a call has opened it, or could not, */
  int ordinal;     /* on this device; */
  uint8_t *base;   /* it is open there, or NULL */
  bool is_mine;    /* of this process: there is nothing to close */
  bool is_asked;   /* it was offered since it was last taken */
  struct lcomm_peer_memory *next;
} lcomm_peer_memory;

/* What a peer has said of a message. */
typedef enum lcomm_share_answer {
  LCOMM_SHARE_UNANSWERED,
  LCOMM_SHARE_TAKEN,
  LCOMM_SHARE_REFUSED
} lcomm_share_answer;

/* Of a run: its own memory, for peers. */
typedef struct lcomm_run_share {
  lcomm_run *run; /* NULL: nothing can be shared */
  lcomm_device_ipc memory;
  uint8_t *answers;  /* per step, of SENDs: lcomm_share_answer */
  bool *stays;       /* per slot: in this operation its payload stays on the device */
  uint32_t begun;    /* operations that have begun */
  uint32_t offers;   /* how often it was offered, */
  uint32_t *offered; /* and in which of them each peer was last */
  struct lcomm_run_share *next;
} lcomm_run_share;

/* Part of making and freeing a run whose operations are played. The second one has the
 * communicator's turn. MEMORY. */
lcomm_status lcomm_share_make(lcomm_run *run);
void lcomm_share_list(lcomm_run *run);
void lcomm_share_free(lcomm_run *run);

/* An operation of the run begins: what stays on the device is fixed; offers, and answers to those
 * of peers, leave. */
void lcomm_share_begin(lcomm_run *run);

/* Of a recording, whose ranks agree by gates (gates.h): what they said of a SEND; then, what stays
 * follows from that. */
void lcomm_share_set_answer(lcomm_run *run, uint32_t step, bool taken);
void lcomm_share_fix(lcomm_run *run);

/* Control messages, which may hold any bytes. */
void lcomm_peer_memory_offered(lcomm_comm *comm, const void *message);
void lcomm_peer_memory_taken(lcomm_comm *comm, const void *message);

/* An operation of the run is over: what is to be offered again is. */
void lcomm_share_end(lcomm_run *run);

/* A call of the program, in the device's turn, before an operation of this run: where it is one of
 * the first, open on its device what was offered for its plan, and nothing that others may be ahead
 * with. */
void lcomm_peer_memory_open(const lcomm_run *run);

/* Where memory that a handle of a peer describes is, NULL unless it is open: and on which device.
 */
const uint8_t *lcomm_peer_memory_at(const lcomm_comm *comm, int peer,
                                    const lcomm_device_ipc *memory, int *ordinal);

/* Nothing of a peer's memory is read any more, as the program has its data elsewhere now. */
void lcomm_peer_memory_refuse(lcomm_comm *comm, int peer, const lcomm_device_ipc *memory);

/* Close all of a communicator; part of lcomm_comm_free. */
void lcomm_peer_memory_free(lcomm_comm *comm);

#endif
