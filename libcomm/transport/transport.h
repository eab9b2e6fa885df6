/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_TRANSPORT_H
#define LCOMM_TRANSPORT_TRANSPORT_H

/* A transport moves bytes between ranks. It knows nothing of gradients,
 * codecs or schedules. Every transport is one const table; messages match by
 * (peer, tag) and those with equal peer and tag arrive in the order sent.
 * Which transport reaches which peer: links.h.
 *
 * Not thread-safe: one thread at a time drives a communicator.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/base/error.h"
#include "libcomm/include/libcomm.h"
#include "libcomm/topo/topo.h"

enum {
  LCOMM_TAG_CONTROL = 1 << 30, /* set in tags that are no part of a schedule */
  LCOMM_CONTROL_SIZE = 1152,   /* bytes of a control message, always */
  LCOMM_INTRODUCTION_MAX = 264,
  LCOMM_TRANSPORT_WHY_MAX = 320
};

typedef struct lcomm_transport lcomm_transport;

/* One message on its way. Lives with the caller at a fixed address. */
typedef struct lcomm_transfer {
  uint64_t opaque[4];
  /* Of completion.h; transports without watch() leave them as they are. */
  void *owner;                            /* whose it is; NULL: nobody watches it */
  lcomm_transport *transport;             /* on whose list it is, or can be */
  struct lcomm_transfer *next, *previous; /* on that list; next of itself: on none */
} lcomm_transfer;

/* What all ranks know after a transport was opened: it, or one that was there before, links every
 * two ranks of these, or nothing is known. */
typedef enum lcomm_transport_agreement {
  LCOMM_AGREED_NOTHING,
  LCOMM_AGREED_HOSTS, /* every two ranks of equal host_hash */
  LCOMM_AGREED_ALL
} lcomm_transport_agreement;

/* What a rank says of itself before it knows the others: file descriptors that it may open, and
 * that it still can, and what the transport that introduces itself says; plain bytes, no padding.
 */
typedef struct lcomm_transport_introduction {
  int32_t descriptors_limit, descriptors_left;
  unsigned char bytes[LCOMM_INTRODUCTION_MAX];
} lcomm_transport_introduction;

/* What a transport is opened with. Everything is a view. */
typedef struct lcomm_transport_setup {
  int rank, size;
  const lcomm_identity *identities; /* per rank; equal host_hash: the same machine */
  const lcomm_bootstrap *bootstrap; /* its allgather spans all ranks of the communicator */
  void *mpi;            /* MPI_Comm * of those ranks that is ours alone; NULL without MPI */
  const int *mpi_ranks; /* of each rank there; NULL: they are the same */
  double timeout_s;     /* no wait inside a call may be longer */

  /* Per rank: has another transport a link to it, so that none is needed? The same on both sides.
   * NULL: nobody has. */
  const bool *linked;

  /* Of each rank; NULL: who needs something of them exchanges it. */
  const lcomm_transport_introduction *introductions;
  lcomm_transport_agreement *agreed; /* written by open, the same on all ranks; may be NULL */
} lcomm_transport_setup;

/* Zero-copy receives: without a buffer. Once test() says that the message is over, its bytes
 * are read where the sender has them: mapped, or piece by piece. */
typedef struct lcomm_transport_zero_copy {
  /* `size` is known beforehand; a message of another size is an error of test(). The sender's
   * message is not over before release(). */
  lcomm_status (*receive)(lcomm_transport *transport, int peer, uint32_t tag, size_t size,
                          lcomm_transfer *transfer);
  /* Where the bytes are in this process; NULL: they are remote, and get() alone reads them. */
  const void *(*map)(lcomm_transport *transport, const lcomm_transfer *transfer);
  /* Copy a part. The end of the message is to be got last: only with that piece is it made
   * sure that all of them came from the sender. */
  lcomm_status (*get)(lcomm_transport *transport, const lcomm_transfer *transfer, size_t offset,
                      size_t size, void *bytes);
  void (*release)(lcomm_transport *transport, lcomm_transfer *transfer);
} lcomm_transport_zero_copy;

/* What arm() may answer besides a file descriptor. */
enum { LCOMM_ARM_NEVER = -1, LCOMM_ARM_BUSY = -2 };

/* Before sleeping: arm gives a file descriptor that becomes readable when something arrives or
 * a send is over; ARM_BUSY: something has just come, do not sleep; ARM_NEVER: cannot tell.
 * disarm after waking, in any case. */
typedef struct lcomm_transport_wakeup {
  int (*arm)(lcomm_transport *transport);
  void (*disarm)(lcomm_transport *transport);
} lcomm_transport_wakeup;

/* Control messages: LCOMM_CONTROL_SIZE bytes to one peer, outside all ordering. At most a few are
 * on their way to a peer; one that finds no room is dropped. */
typedef struct lcomm_transport_control {
  void (*send)(lcomm_transport *transport, int peer, const void *message);
  /* The same for an error. Each pair of ranks has a place for one that other control messages
   * cannot take, so the first one is never dropped; later ones may be. */
  void (*send_error)(lcomm_transport *transport, int peer, const void *message);
  /* Copies one that has arrived and returns true; that of an error before others of the same
   * peer where it can. */
  bool (*receive)(lcomm_transport *transport, void *message);

  /* NULL where they are not needed. Before an orderly close where a late control message would
   * reach what is opened next. part: this rank has sent the peer its last control message; later
   * ones are dropped. unparted: one of those peers that has not said the same, so that something
   * it sent may still be on its way; -1 when there is none. */
  void (*part)(lcomm_transport *transport, int peer);
  int (*unparted)(const lcomm_transport *transport);
} lcomm_transport_control;

typedef struct lcomm_transport_table {
  const char *name;
  const char *summary; /* one line for people */

  /* Collective over all ranks. A rank on which something fails makes as many
   * allgathers as all others, so that nobody waits for it. Failing is an
   * answer: another transport is then asked; `why` says in a phrase what is
   * missing. UNSUPPORTED, TRANSPORT, MEMORY. */
  lcomm_status (*open)(const lcomm_transport_setup *setup, lcomm_transport **transport,
                       lcomm_why *why);

  /* How many file descriptors this rank needs at most to open and use the
   * transport, 0 where it will not be opened anyway. NULL: a few. */
  int (*descriptors)(const lcomm_transport_setup *setup);

  /* As many are enough for every rank in a world of `size`, on any machine; NULL: not known. */
  int (*descriptors_most)(int size);

  /* What a rank says of itself in lcomm_transport_introduction.bytes, zeros before; NULL for all
   * transports but one. */
  void (*introduce)(unsigned char *bytes);

  /* For people: which network cards these ranks would use, as this one sees it. Each line begins
   * with '#'. Returns the length needed without the terminator and writes at most `room` bytes.
   * NULL where there is nothing to say. */
  size_t (*rails_print)(const lcomm_transport_introduction *all, int size, int rank, char *text,
                        size_t room);

  /* Free everything. orderly: no transfer is in flight anywhere; otherwise
   * nothing collective may be done and peers may never answer. False: somebody may still read what
   * cancelled messages were to send, so that memory must stay as it is, and the transport is kept
   * for release(). */
  bool (*close)(lcomm_transport *transport, bool orderly);

  /* Of a transport whose close() was false: true, and the transport is freed, once nobody reads
   * that memory any more. Any thread. NULL: it stays to the end of the process. */
  bool (*release)(lcomm_transport *transport);

  /* Can messages go to this peer? The same answer on both sides; of no meaning for those that
   * another transport has linked. */
  bool (*reaches)(const lcomm_transport *transport, int peer);

  /* Start a message. The bytes must stay as they are until it is over. */
  lcomm_status (*send)(lcomm_transport *transport, int peer, uint32_t tag, const void *bytes,
                       size_t size, lcomm_transfer *transfer);
  lcomm_status (*receive)(lcomm_transport *transport, int peer, uint32_t tag, void *bytes,
                          size_t capacity, lcomm_transfer *transfer);

  /* Bring in what has arrived. Called once before a round of tests, which may
   * then be mere looks. NULL: not needed. */
  void (*progress)(lcomm_transport *transport);

  /* *over = true once the message is over, and *size (may be NULL) the bytes
   * received. Must not be asked again after that. A message that was sent and is
   * over reaches the peer without another call on this side. TRANSPORT once the
   * peer is known to be gone, or sent more than the capacity. */
  lcomm_status (*test)(lcomm_transport *transport, lcomm_transfer *transfer, bool *over,
                       size_t *size);

  /* Forget a message that is not over: no byte is received after this. What a
   * forgotten one was to send may be read until close() or release() is true. */
  void (*cancel)(lcomm_transport *transport, lcomm_transfer *transfer);

  lcomm_transport_control control;

  /* --- what not every transport can; NULL where it cannot --- */

  /* Watch a transfer that has just been started: from now on it is put on the transport's
   * completion list (completion.h) when test() has something new to say, so that its owner
   * need not ask before. What has happened up to now may be on no list, so ask once. */
  void (*watch)(lcomm_transport *transport, lcomm_transfer *transfer, void *owner);

  const lcomm_transport_zero_copy *zero_copy;
  const lcomm_transport_wakeup *wakeup;

  /* Memory that peers can map when it is sent from. NULL when there is none
   * left: then any memory will do. Aligned to a page, zeroed. It outlives the transport. */
  void *(*memory_get)(lcomm_transport *transport, size_t size);
  void (*memory_free)(void *memory);

  /* This rank has cancelled all its messages after a failure, and starts none: peers need not keep
   * for it what they have sent. NULL where they learn of that otherwise, or read nothing here. */
  void (*stop_reading)(lcomm_transport *transport);

  /* The first message from `peer` with `tag` that nobody has asked for, if it is short and
   * the next to come, or progress() has taken it in: *bytes stays valid until drop takes it
   * away, or progress(). False when nothing has come, or something else comes first;
   * progress() and receive() then find all. */
  bool (*peek)(lcomm_transport *transport, int peer, uint32_t tag, const void **bytes,
               size_t *size);
  void (*drop)(lcomm_transport *transport, int peer);

  /* Is there a connection to a peer that it reaches? Where it makes them when the first message to
   * or from a peer, or a control message to it, is started. NULL: all are there from the beginning.
   */
  bool (*linked)(const lcomm_transport *transport, int peer);

  /* Somebody waits for seconds: the first peer whose host has not answered the
   * network for many seconds, as if it were off or cut off, or -1. A peer that is
   * busy or stopped is none. `why` is then the rest of a sentence that begins with
   * "the network to rank 3". Takes about as long as
   * reading a file of a line per peer. */
  int (*unreachable)(lcomm_transport *transport, lcomm_why *why);

  /* The network devices that it sends over, for people; "" when they are not known. */
  const char *(*interface)(const lcomm_transport *transport);
} lcomm_transport_table;

/* Every transport begins with this. */
struct lcomm_transport {
  const lcomm_transport_table *table;
  lcomm_transfer *listed, *listed_last; /* the completion list */
  uint32_t alarms;                      /* grows when messages of a peer fail: ask about all */
  char why[LCOMM_TRANSPORT_WHY_MAX];    /* what the last failure was, for people */
};

/* The version of UCX that was loaded, such as "1.13.1"; NULL without one. */
const char *lcomm_ucx_version(void);

/* All transports of this build, the cheapest first, ended by NULL. */
extern const lcomm_transport_table *const lcomm_transport_list[];

#endif
