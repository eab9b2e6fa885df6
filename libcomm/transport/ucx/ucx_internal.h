/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_UCX_UCX_INTERNAL_H
#define LCOMM_TRANSPORT_UCX_UCX_INTERNAL_H

/* The inside of the transport over UCX. It is one worker with at most one endpoint per
 * peer. A UCX tag is 64 bits: the sender's rank above the 32 bits of the
 * caller's tag, and one bit that sets our own messages apart.
 *
 * UCX trusts its peers: who can connect to the ports that it opens can end the
 * process. Who can: ucx_listeners.h.
 */

#include "libcomm/transport/transport.h"
#include "libcomm/transport/ucx/ucx_cards.h"
#include "libcomm/transport/ucx/ucx_worker.h"

/* Control messages on their way to a peer: ordinary ones, and in the last place an error. */
enum { LCOMM_UCX_CONTROL_MAX = 5, LCOMM_UCX_CONTROL_ERROR = LCOMM_UCX_CONTROL_MAX - 1 };

/* What our own messages are. */
typedef enum lcomm_ucx_kind {
  LCOMM_UCX_HANDSHAKE = 1, /* the first message of a link */
  LCOMM_UCX_SEEN = 2,      /* your hello has come */
  LCOMM_UCX_CONTROL = 3
} lcomm_ucx_kind;

#define LCOMM_UCX_TAG_ALL UINT64_MAX
#define LCOMM_UCX_TAG_OWN (UINT64_C(1) << 63)
#define LCOMM_UCX_TAG_OWN_ANY (LCOMM_UCX_TAG_OWN | UINT32_MAX) /* a mask: whoever sent it */

static inline ucp_tag_t lcomm_ucx_tag(int source, uint32_t tag) {
  return (uint64_t)source << 32 | tag;
}

static inline ucp_tag_t lcomm_ucx_tag_own(int source, lcomm_ucx_kind kind) {
  return LCOMM_UCX_TAG_OWN | lcomm_ucx_tag(source, (uint32_t)kind);
}

typedef struct lcomm_ucx_peer {
  ucp_ep_h endpoint;   /* NULL: none */
  void *address;       /* to connect to with the first message; NULL: done, or there is none */
  ucs_status_t failed; /* UCS_OK while the link works */
  bool reached;        /* both sides say so, or it has an address for later */
  bool elsewhere;      /* another transport has a link to it */
  bool proven;         /* a message has come or gone over the endpoint */
  uint32_t *alarms;    /* of the transport */
  void *telling[LCOMM_UCX_CONTROL_MAX];
  unsigned char *told; /* LCOMM_UCX_CONTROL_ERROR control messages, once one was sent */
  unsigned char error[LCOMM_CONTROL_SIZE]; /* that needs no memory when it is told */
  char host[LCOMM_HOST_MAX];
} lcomm_ucx_peer;

typedef struct lcomm_ucx_transport {
  lcomm_transport base;
  lcomm_ucx_place place; /* its worker is NULL once the transport had to be given up */
  int rank, size;
  int event_fd;
  int unproven;  /* links that were made later, and over which nothing has come or gone yet */
  bool given_up; /* in the middle of a message, which its receiver may go on reading */
  lcomm_ucx_peer *peers;
  lcomm_ucx_interfaces *interfaces; /* per rank; NULL: not known */
  void *listening; /* receives the next control message; NULL or an error: nothing does */
  unsigned char heard[LCOMM_CONTROL_SIZE];
  char devices[LCOMM_UCX_DEVICES_MAX]; /* that it was given, for people */
} lcomm_ucx_transport;

/* --------------------------------------------------- the beginning, ucx_open.c */

/* As in lcomm_transport_table. */
lcomm_status lcomm_ucx_open(const lcomm_transport_setup *setup, lcomm_transport **transport,
                            lcomm_why *why);

/* ------------------------------------------------- requests, ucx_request.c */

/* What became of what a call of UCX returned: UCS_INPROGRESS, UCS_OK, an error. */
ucs_status_t lcomm_ucx_state(void *request);

/* Give a request back in any state; what is in flight goes on unseen. */
void lcomm_ucx_release(void *request);

/* Bring in what has arrived. */
void lcomm_ucx_progress(lcomm_ucx_transport *t);

/* Make progress until the request is over or the time is; false then. */
bool lcomm_ucx_wait(lcomm_ucx_transport *t, void *request, double deadline_s);

/* Is the message here that a request has just been posted for? Else none will come, so the request
 * is cancelled and given back. */
bool lcomm_ucx_has_come(lcomm_ucx_transport *t, void *request, double deadline_s);

/* transfer: whose watcher is told once it is over; NULL: nobody's. */
void *lcomm_ucx_send(lcomm_ucx_transport *t, int peer, ucp_tag_t tag, const void *bytes,
                     size_t size, lcomm_transfer *transfer);

/* A request also when the message is there already, or a coded error. */
void *lcomm_ucx_receive(lcomm_ucx_transport *t, ucp_tag_t tag, ucp_tag_t mask, void *bytes,
                        size_t capacity, lcomm_transfer *transfer);

/* Write a phrase about a peer into base.why; TRANSPORT. */
lcomm_status lcomm_ucx_blame(lcomm_ucx_transport *t, int peer, const char *what);

/* The same where the link has failed, or a request of it with this status. */
lcomm_status lcomm_ucx_blame_link(lcomm_ucx_transport *t, int peer);
lcomm_status lcomm_ucx_blame_request(lcomm_ucx_transport *t, int peer, ucs_status_t status);

/* Can a message of this peer be started? Makes the endpoint if that is left to do. TRANSPORT, with
 * a phrase in base.why. */
lcomm_status lcomm_ucx_check_link(lcomm_ucx_transport *t, int peer);

/* ------------------------------------ file descriptors, ucx_descriptors.c */

/* As in lcomm_transport_table; 0 where there is no UCX. */
int lcomm_ucx_descriptors(const lcomm_transport_setup *setup);
int lcomm_ucx_descriptors_most(int size);

/* The longest address that travels behind its label; tests make it shorter, on all ranks. */
extern size_t lcomm_ucx_short_address;

/* ------------------------------------------- endpoints, ucx_endpoint.c */

/* Communicators of more ranks make most links with the first message; tests make it smaller, on all
 * ranks. */
extern int lcomm_ucx_at_once_max;

/* Is the link between two ranks made when the transport is opened? In large communicators each rank
 * has those whose rank is a power of two away, around the end too: over these links notices reach
 * all ranks, and short sums need no others. The same answer on both sides. */
bool lcomm_ucx_is_linked_at_once(int rank, int peer, int size);

/* How many such links a rank has; without those that other transports have. */
int lcomm_ucx_count_at_once(int rank, int size, const bool *linked);

/* Make an endpoint, or write into `failed` why there is none. The other side has to make progress
 * until messages can go. */
void lcomm_ucx_connect(lcomm_ucx_transport *t, int rank, const void *address);

/* Keep the address until it is needed; false without memory. */
bool lcomm_ucx_connect_later(lcomm_ucx_transport *t, int rank, const void *address, size_t size);

/* A message to or from this peer is about to be posted: make the endpoint if that is left to do. It
 * waits for nobody. TRANSPORT, with a phrase in base.why, when there are too few file descriptors.
 */
lcomm_status lcomm_ucx_link_now(lcomm_ucx_transport *t, int rank);

/* Treat the sockets of links that were made late as those of others. */
void lcomm_ucx_look_after_sockets(lcomm_ucx_transport *t);

/* A message has come or gone over this link. */
void lcomm_ucx_proven(lcomm_ucx_transport *t, int rank);

/* ---------------------------- links to the peers, ucx_link.c, ucx_wireup.c */

/* Exchange addresses, connect, and find out together which links work;
 * collective. The same number of allgathers whatever happens; t may be NULL
 * for a rank that cannot take part. reached, to be freed: of each rank a row, with 1 for each peer
 * that it has reached or need not reach, the same on all ranks; NULL when the bootstrap failed.
 * TRANSPORT when no peer is reached or the bootstrap failed, with a phrase in why; MEMORY. */
lcomm_status lcomm_ucx_link_all(lcomm_ucx_transport *t, const lcomm_transport_setup *setup,
                                unsigned char **reached, lcomm_why *why);

/* Meet all peers that have an endpoint: `reached` says who answered before the
 * deadline, `failed` why the others did not. */
void lcomm_ucx_meet(lcomm_ucx_transport *t, double deadline_s);

/* ------------------------------------------ vanished hosts, ucx_silence.c */

int lcomm_ucx_unreachable(lcomm_transport *transport, lcomm_why *why);

/* ------------------------------------------------ control messages, ucx_control.c */

void lcomm_ucx_listen(lcomm_ucx_transport *t);
void lcomm_ucx_control_send(lcomm_transport *transport, int peer, const void *message);
void lcomm_ucx_control_send_error(lcomm_transport *transport, int peer, const void *message);
bool lcomm_ucx_control_receive(lcomm_transport *transport, void *message);

/* Free the control messages on their way to a peer; their bytes must be unused by then. */
void lcomm_ucx_control_free(lcomm_ucx_peer *peer);

/* ------------------------------------------------------ the end, ucx_close.c */

/* Close at once, whatever is in flight: from here on UCX neither reads nor
 * writes any memory of ours. Everything that is asked later fails. */
void lcomm_ucx_give_up(lcomm_ucx_transport *t);

/* Close the endpoint of one peer, and make none later; UCX ends what is in flight on it. */
void lcomm_ucx_unlink(lcomm_ucx_transport *t, int peer, double deadline_s);

bool lcomm_ucx_close(lcomm_transport *transport, bool orderly);

/* The transport. */
extern const lcomm_transport_table lcomm_transport_ucx;

#endif
