/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_DEVICE_ZCOPY_H
#define LCOMM_ENGINE_DEVICE_ZCOPY_H

/* Payloads that stay on the device of their sender, for a peer of its node to read there. In
 * place of the payload goes a *memory handle*: a description of the memory, itself received
 * zero-copy (transport.h), so that the sender's message is over when the receiver releases
 * the memory handle, which it does when its device has read the payload. The header says
 * that a memory handle follows (lcomm_wire_set_handle).
 *
 * Only payloads that both have agreed on (peer_memory.h) stay: their memory is open. A lane of the
 * receiver fetches them into memory of its own, from where the progress of messages says: from the
 * peer's device, or from the host where the payload came by a message after all.
 *
 * A rank that has had its data on the device and has it on the host for this operation cannot
 * refuse any more: a thread of the program reads the payload, in a call that waits or tests.
 *
 * LCOMM_CUDA_IPC=off: nothing stays. */

#include "libcomm/engine/exec.h"

/* Longer than any message that a transport takes over at once. */
enum { LCOMM_MEMORY_HANDLE_SIZE = 4352 };

/* May a payload stay on devices between this rank and a peer, in either direction? Their devices
 * reach each other by the topology, and both are of one node. */
bool lcomm_device_may_stay(const lcomm_comm *comm, int peer);

/* Parts of making a run whose operations are played. Which slots peers may read, and room for their
 * memory handles: with the communicator's turn, and freed so. MEMORY. */
lcomm_status lcomm_device_zcopy_make(lcomm_run *run);
void lcomm_device_zcopy_free(lcomm_run *run);
/* What the memory handles say, once the memory is there. */
void lcomm_device_zcopy_describe(lcomm_run *run);
/* Its first part: which slots peers may read. */
void lcomm_device_zcopy_find_exported(lcomm_run *run);
/* Which slots lanes fetch; `late` steps may wait for a message of this rank to be over. */
void lcomm_device_zcopy_find_fetched(lcomm_run *run, const bool *late);

/* What travels behind the header of a slot whose payload stays: its memory handle. */
const void *lcomm_device_sent_bytes(const lcomm_run *run, uint32_t slot, size_t *size);

/* The receiver. Does this header, which is marked, announce a memory handle? Takes the mark
 * away. False when the sender is no rank whose payloads may stay: the header is malformed then. */
bool lcomm_device_is_zcopy(const lcomm_run *run, const lcomm_step *step, uint8_t *header);

/* The memory handle of a step's slot is there. *over: a lane will fetch the payload; else a thread
 * of the program reads it, and the slot is LOCAL then. WIRE with the sentence. */
lcomm_status lcomm_device_receive_handle(lcomm_run *run, uint32_t step, bool *over);

/* A thread of the program, in a call that waits or tests: read the payloads that wait for one.
 * TRANSPORT with the sentence. */
lcomm_status lcomm_device_read_awaited(lcomm_comm *comm);

#endif
