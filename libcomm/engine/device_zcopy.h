/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_DEVICE_ZCOPY_H
#define LCOMM_ENGINE_DEVICE_ZCOPY_H

/* Payloads that a peer reads where they are, on the device of their sender. In
 * place of the payload goes a *memory handle*: a description of the memory, itself received
 * zero-copy (transport.h), so that the sender's message is over when the receiver releases
 * the memory handle, which it does when it has read the payload. The header says
 * that a memory handle follows (lcomm_wire_set_handle).
 *
 * Ranks export to ranks of their node whose device can read theirs, by the topology.
 * LCOMM_CUDA_IPC=off: nobody exports. Memory of pools cannot be shared between
 * processes; a payload that would lie there is copied first. */

#include "libcomm/engine/exec.h"

/* Longer than any message that a transport takes over at once. */
enum { LCOMM_MEMORY_HANDLE_SIZE = 4352 };

/* May a payload stay on devices between this rank and a peer, in either direction? */
bool lcomm_device_may_stay(const lcomm_comm *comm, int peer);

/* Part of lcomm_run_device_make: which slots are exported, which are DIRECT, and room for memory
 * handles. */
lcomm_status lcomm_device_zcopy_make(lcomm_run *run);
void lcomm_device_zcopy_free(lcomm_run *run);

/* Slots that travel from and into memory of the device: where the payload is received; it has
 * been, there. */
void *lcomm_device_receive_place(const lcomm_run *run, uint32_t slot);
void lcomm_device_received(lcomm_run *run, uint32_t slot);

/* The sender exports a slot in this operation: its payload is at `payload` on
 * the device then. Writes the memory handle; false when the memory cannot be shared. */
bool lcomm_device_send_handle(lcomm_run *run, uint32_t slot, const void *payload);

/* What travels behind the header of a slot that is on the device alone: the payload, or its
 * memory handle. */
const void *lcomm_device_sent_bytes(const lcomm_run *run, uint32_t slot, size_t *size);

/* The receiver. Does this header, which is marked, announce a memory handle? Takes the mark
 * away. False when the sender is no rank that can export: the header is malformed then. */
bool lcomm_device_is_zcopy(const lcomm_run *run, const lcomm_step *step, uint8_t *header);

/* The memory handle of a step's slot is there: open the memory, and either leave the
 * payload there for the run's kernels to read or bring it here. TRANSPORT with the
 * sentence. */
lcomm_status lcomm_device_receive_handle(lcomm_run *run, uint32_t step);

#endif
