/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_GATES_H
#define LCOMM_ENGINE_GATES_H

/* Gates: numbers by which lanes of ranks of one node wait for each other. A payload that stays on
 * the device of its sender (device_zcopy.h) has one: the sender's lane writes it behind the ENCODE,
 * the receiver's lane awaits it before it fetches the payload, and no message is waited for in
 * between. Gates are in memory files that the ranks share, and that both have registered with their
 * devices.
 *
 * Recordings have them: all ranks make one at a time, so each knows whose run is at the other end,
 * and where in its memory payloads are. The number of a gate is that of the replay, which only
 * grows: it is read in pinned memory, where the progress of messages counts it, and a graph holds
 * no number. Messages with their headers and memory handles go as ever, behind the lanes: they are
 * checked, counted and watched, and say when a payload was read. Whoever gives up lets lanes pass
 * without a gate, for good, and they fetch memory of their own.
 *
 * Each rank has a file with an entry for each message between it and each rank of its node:
 *
 *   1. it writes where the payloads are that it may leave on its device, then tells of its file
 *   2. it opens files and memory of the others and writes which of their payloads it takes
 *   3. it reads which of its payloads are taken and writes which of them stay
 *   4. it reads which of the others' stay
 *
 * Between the steps ranks wait for each other. What cannot be opened goes through the host. */

#include "libcomm/device/device.h"
#include "libcomm/engine/exec.h"

/* What a rank tells of its file. */
typedef struct lcomm_gate_card {
  uint32_t messages; /* entries for each rank; 0: there is no file */
  int32_t file;      /* in its process */
  lcomm_device_ipc memory;
} lcomm_gate_card;

typedef struct lcomm_gates lcomm_gates;

/* The steps of all that is above, for a run whose slots are made; `cards` has one of each rank. The
 * first two are calls of CUDA, between lcomm_run_enter and lcomm_run_leave. MEMORY. */
lcomm_status lcomm_gates_make(lcomm_run *run, lcomm_gates **gates, lcomm_gate_card *card);
void lcomm_gates_open(lcomm_run *run, lcomm_gates *gates, const lcomm_gate_card *cards);
void lcomm_gates_commit(lcomm_run *run, lcomm_gates *gates);
void lcomm_gates_join(lcomm_run *run, lcomm_gates *gates);

/* NULL ok. Uses the device; its run may be gone. */
void lcomm_gates_free(lcomm_gates *gates);

/* ------------------------------------------------------------------- playing */

/* The gate of a SEND or RECV; NULL: the payload waits for its message. */
uint32_t *lcomm_gate_of(const lcomm_gates *gates, uint32_t step);

/* Have all messages that a computation waits for gates? */
bool lcomm_gates_are_all(const lcomm_gates *gates, uint32_t step);

/* What a lane does with a gate. */
lcomm_device_gate lcomm_gate_task(const lcomm_gates *gates, lcomm_device_number_task task,
                                  uint32_t step);

/* A number of the recording is written, as gates are. */
lcomm_device_gate lcomm_gate_number(const lcomm_gates *gates, uint32_t *place);

/* ------------------------------------------------------------------ replaying */

/* Where a payload with a gate is at its sender; NULL for other slots. */
const uint8_t *lcomm_gates_from(const lcomm_gates *gates, uint32_t slot);

/* Where memory that a memory handle of a peer describes is; NULL: it is not open. */
const uint8_t *lcomm_gates_at(const lcomm_gates *gates, const lcomm_comm *comm, int peer,
                              const lcomm_device_ipc *memory);

/* The next replay has this number; no lane is in one. */
void lcomm_gates_count(lcomm_gates *gates, uint32_t replay);

/* Lanes wait for no gate from here on. */
void lcomm_gates_pass(const lcomm_run *run, lcomm_gates *gates);

/* Messages that have a gate, for tests. */
uint32_t lcomm_gates_all(const lcomm_gates *gates);

#endif
