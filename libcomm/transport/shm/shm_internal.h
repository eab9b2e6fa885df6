/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_SHM_SHM_INTERNAL_H
#define LCOMM_TRANSPORT_SHM_SHM_INTERNAL_H

/* What the files of the shared-memory transport offer to each other; README.md says what each is.
 */

#include "libcomm/transport/completion.h"
#include "libcomm/transport/shm/shm_file.h"
#include "libcomm/transport/shm/shm_heap.h"
#include "libcomm/transport/shm/shm_types.h"

static inline lcomm_shm *lcomm_shm_of(lcomm_transport *transport) {
  return (lcomm_shm *)transport;
}

/* The transfer's record; NULL when nothing is left to wait for. */
static inline lcomm_shm_record *lcomm_shm_record_of(const lcomm_transfer *transfer) {
  return (lcomm_shm_record *)(uintptr_t)transfer->opaque[0];
}

static inline void lcomm_shm_bind(lcomm_transfer *transfer, const lcomm_shm_record *record) {
  transfer->opaque[0] = (uintptr_t)record;
  transfer->opaque[1] = 0;
}

/* test() has something new to say of this record. */
static inline void lcomm_shm_tell(const lcomm_shm_record *record) {
  if (record->watched) {
    lcomm_completion_add(record->watched);
  }
}

extern const lcomm_transport_table lcomm_transport_shm;

/* Force ways, for tests; messages longer than a bounce can be are never copied. */
void lcomm_shm_set_ways(lcomm_transport *transport, const lcomm_shm_ways *ways);

/* Write a sentence into base.why; returns TRANSPORT. */
__attribute__((format(printf, 2, 3))) lcomm_status lcomm_shm_fail(lcomm_shm *t, const char *format,
                                                                  ...);
/* The sentence of a peer's fault; returns TRANSPORT, or MEMORY. */
lcomm_status lcomm_shm_blame(lcomm_shm *t, const lcomm_shm_peer *peer);

/* ---------------------------------------------------------- shm_record.c */

/* NULL without memory. */
lcomm_shm_record *lcomm_shm_record_get(lcomm_shm *t, lcomm_shm_peer *peer, lcomm_shm_kind kind);
void lcomm_shm_record_put(lcomm_shm *t, lcomm_shm_record *record);
/* A buffer for a short message, or for a long one. NULL without memory. */
lcomm_shm_buffer *lcomm_shm_short_get(lcomm_shm *t);
lcomm_shm_buffer *lcomm_shm_gather_get(lcomm_shm *t, size_t size);
/* A buffer without bytes. */
lcomm_shm_buffer *lcomm_shm_head_get(lcomm_shm *t);
void lcomm_shm_records_free(lcomm_shm *t);

void lcomm_shm_list_add(lcomm_shm_list *list, lcomm_shm_record *record);
void lcomm_shm_list_remove(lcomm_shm_list *list, lcomm_shm_record *record);
static inline lcomm_shm_list *lcomm_shm_bucket(lcomm_shm_list *buckets, uint32_t tag) {
  return &buckets[tag * UINT32_C(0x9e3779b1) >> 27];
}
/* The first one with this tag, or NULL. */
lcomm_shm_record *lcomm_shm_list_find(lcomm_shm_list *buckets, uint32_t tag);

/* ------------------------------------------------------------ shm_open.c */

lcomm_status lcomm_shm_open(const lcomm_transport_setup *setup, lcomm_transport **transport,
                            lcomm_why *why);
/* A bell and a pidfd for each local peer, and a few. */
int lcomm_shm_descriptors(const lcomm_transport_setup *setup);
int lcomm_shm_descriptors_most(int size);
/* Undo any part of open. */
void lcomm_shm_free(lcomm_shm *t);

/* ------------------------------------------------------------ shm_peer.c */

/* What a rank says of itself. No padding. */
typedef struct lcomm_shm_offer {
  unsigned char token[LCOMM_SHM_TOKEN];
  uint64_t token_address; /* of the same bytes in private memory */
  uint64_t segment_size;  /* 0: there is none */
  int32_t file, pipe;
} lcomm_shm_offer;

/* Open what a process offers; NULL, with a phrase in why and an errno or 0, when
 * it cannot be. */
lcomm_shm_peer *lcomm_shm_peer_meet(lcomm_shm *t, int rank, uint64_t pid,
                                    const lcomm_shm_offer *theirs, lcomm_why *why);
void lcomm_shm_peer_free(const lcomm_shm *t, lcomm_shm_peer *peer);
/* Write into why, unless there is something already: the first trouble counts. */
__attribute__((format(printf, 2, 3))) void lcomm_shm_note(lcomm_why *why, const char *format, ...);
/* Does it look at messages? Not after its end, and not after a failure. */
bool lcomm_shm_peer_reads(const lcomm_shm_peer *peer);
/* Be woken when peer number `index` ends. */
void lcomm_shm_watch_peer(lcomm_shm *t, const lcomm_shm_peer *peer, int index);
/* Wake up now and then, because there is a peer without a pidfd. */
void lcomm_shm_watch_by_time(lcomm_shm *t);

/* ----------------------------------------------------------- shm_pidfd.c */

/* A descriptor that is readable once the process has ended; all communicators
 * of this process share it. -1 with errno. Any thread. */
int lcomm_shm_pidfd_get(pid_t pid);
void lcomm_shm_pidfd_put(int pidfd);

/* ---------------------------------------------------------- shm_bounce.c */

/* A copy of these bytes that another send, which is not over, uses already: one more user.
 * Else NULL. */
lcomm_shm_buffer *lcomm_shm_bounce_find(const lcomm_shm *t, const unsigned char *bytes,
                                        size_t size);
/* Memory for a copy that peers can see, with one user; NULL when there is no room. */
lcomm_shm_buffer *lcomm_shm_bounce_get(lcomm_shm *t, size_t size);
/* It holds a copy of these bytes now, which stay as they are while it has users. */
void lcomm_shm_bounce_offer(lcomm_shm *t, lcomm_shm_buffer *bounce, const unsigned char *bytes,
                            size_t size);
/* One user less. */
void lcomm_shm_bounce_put(lcomm_shm *t, lcomm_shm_buffer *bounce);
void lcomm_shm_bounces_free(lcomm_shm *t);

/* ------------------------------------------------------------- shm_map.c */

/* Look at the place that `there` names; NULL with errno. Give it back. */
lcomm_shm_mapping *lcomm_shm_map(lcomm_shm *t, lcomm_shm_peer *peer, const lcomm_shm_long *there);
void lcomm_shm_unmap(lcomm_shm *t, lcomm_shm_mapping *mapping);
void lcomm_shm_maps_free(lcomm_shm *t, lcomm_shm_peer *peer);
/* Read private memory of the peer: 0, or an errno. The number of a process that has ended
 * may be another one's, so what was read counts when lcomm_shm_is_alive says yes after it. */
int lcomm_shm_read(const lcomm_shm_peer *peer, uint64_t address, void *bytes, size_t size);

/* ------------------------------------------------------------ shm_send.c */

lcomm_status lcomm_shm_send(lcomm_transport *transport, int peer, uint32_t tag, const void *bytes,
                            size_t size, lcomm_transfer *transfer);
lcomm_status lcomm_shm_test_send(lcomm_shm *t, lcomm_shm_record *record, bool *over);
void lcomm_shm_cancel_send(lcomm_shm *t, lcomm_shm_record *record);
/* Publish what was queued. True if anything was. */
bool lcomm_shm_flush(lcomm_shm *t, lcomm_shm_peer *peer);
/* A long send is over: free its slot, its copy, and its record if that is detached. */
void lcomm_shm_end_send(lcomm_shm *t, lcomm_shm_record *record);

/* ---------------------------------------------------------- shm_answer.c */

/* Answer a message that has been received. */
void lcomm_shm_answer(const lcomm_shm_record *record, uint32_t answer);
/* Has the peer answered this send, and is it over so? */
bool lcomm_shm_is_answered(const lcomm_shm_record *record);
/* Take in the answers that the peer has given: sends are over, or are to be streamed. True if
 * there were new ones. */
bool lcomm_shm_take_answers(lcomm_shm *t, lcomm_shm_peer *peer);

/* ---------------------------------------------------------- shm_stream.c */

/* Begin a stream, if the answer to this send asks for it. True if it does. */
bool lcomm_shm_begin_stream(lcomm_shm_record *record);
/* Send pieces while there is room. True if one was sent. */
bool lcomm_shm_pump(lcomm_shm *t, lcomm_shm_peer *peer);
/* Ask for the bytes of a message in pieces. */
void lcomm_shm_ask(lcomm_shm *t, lcomm_shm_record *record);
/* A piece has come. */
void lcomm_shm_arrive_piece(lcomm_shm *t, lcomm_shm_peer *peer, uint32_t slot, uint32_t generation,
                            const unsigned char *data, size_t size);

/* --------------------------------------------------------- shm_receive.c */

lcomm_status lcomm_shm_receive(lcomm_transport *transport, int peer, uint32_t tag, void *bytes,
                               size_t capacity, lcomm_transfer *transfer);
lcomm_status lcomm_shm_zcopy_receive(lcomm_transport *transport, int peer, uint32_t tag,
                                     size_t size, lcomm_transfer *transfer);
void lcomm_shm_arrive_short(lcomm_shm *t, lcomm_shm_peer *peer, uint32_t tag,
                            const unsigned char *data, size_t size);
void lcomm_shm_arrive_long(lcomm_shm *t, lcomm_shm_peer *peer, uint32_t tag, uint32_t way,
                           uint32_t generation, const lcomm_shm_long *there);
lcomm_status lcomm_shm_test_receive(lcomm_shm *t, lcomm_shm_record *record, bool *over,
                                    size_t *size);
/* Let go of a message and its record, and tell the sender. */
void lcomm_shm_release(lcomm_shm *t, lcomm_shm_record *record);
void lcomm_shm_cancel_receive(lcomm_shm *t, lcomm_shm_record *record);

/* ------------------------------------------------------------ shm_copy.c */

/* Find out how to get at the bytes of a long message. */
void lcomm_shm_reach_for(lcomm_shm *t, lcomm_shm_record *record);
/* Copy a share of a message to where it is received. */
lcomm_status lcomm_shm_copy_some(lcomm_shm *t, lcomm_shm_record *record);
const void *lcomm_shm_zcopy_map(lcomm_transport *transport, const lcomm_transfer *transfer);
lcomm_status lcomm_shm_zcopy_get(lcomm_transport *transport, const lcomm_transfer *transfer,
                                 size_t offset, size_t size, void *bytes);

/* -------------------------------------------------------- shm_progress.c */

void lcomm_shm_progress(lcomm_transport *transport);
/* Take in all entries that are there. */
void lcomm_shm_drain(lcomm_shm *t, lcomm_shm_peer *peer);
bool lcomm_shm_peek(lcomm_transport *transport, int peer, uint32_t tag, const void **bytes,
                    size_t *size);
void lcomm_shm_drop(lcomm_transport *transport, int peer);

/* --------------------------------------------------------- shm_control.c */

void lcomm_shm_control_send(lcomm_transport *transport, int peer, const void *message);
void lcomm_shm_control_send_error(lcomm_transport *transport, int peer, const void *message);
bool lcomm_shm_control_receive(lcomm_transport *transport, void *message);
/* A control message is in the ring. */
void lcomm_shm_arrive_control(lcomm_shm_peer *peer, const unsigned char *data);
/* Send the control message that waits. True if it could be. */
bool lcomm_shm_control_resend(lcomm_shm_peer *peer);
/* Is there an error that hear has not looked for? Sequentially consistent, for arm. */
bool lcomm_shm_has_error(const lcomm_shm *t);

/* ---------------------------------------------------------- shm_wakeup.c */

void lcomm_shm_write_wakeup(lcomm_shm_peer *peer);
/* After any sequentially consistent store that the peer may wait for. */
static inline void lcomm_shm_wake(lcomm_shm_peer *peer) {
  if (atomic_load_explicit(peer->sleeping, memory_order_seq_cst) != 0) {
    lcomm_shm_write_wakeup(peer);
  }
}
int lcomm_shm_arm(lcomm_transport *transport);
void lcomm_shm_disarm(lcomm_transport *transport);
bool lcomm_shm_is_alive(const lcomm_shm_peer *peer);
/* See who has ended or closed. */
void lcomm_shm_check_peers(lcomm_shm *t);
/* Nothing more is sent to or taken from this peer. */
void lcomm_shm_give_up(lcomm_shm *t, lcomm_shm_peer *peer, lcomm_shm_fault fault);

#endif
