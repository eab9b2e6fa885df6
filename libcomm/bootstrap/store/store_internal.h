/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BOOTSTRAP_STORE_STORE_INTERNAL_H
#define LCOMM_BOOTSTRAP_STORE_STORE_INTERNAL_H

/* The inside of a store, shared by store*.c and by the meetings of survivors (../elastic/). */

#include <poll.h>

#include "libcomm/bootstrap/store/store.h"
#include "libcomm/bootstrap/store/store_socket.h"
#include "libcomm/bootstrap/store/store_wire.h"

/* The frame that is being received from somebody. */
typedef struct lcomm_store_inbox {
  size_t received; /* of it, header included */
  lcomm_store_frame frame;
  uint8_t header[LCOMM_STORE_HEADER_SIZE];
} lcomm_store_inbox;

/* What rank 0 knows of another rank, and a parent of its child. */
typedef struct lcomm_store_peer {
  int fd;        /* -1: not here */
  bool was_here; /* and has gone */
  bool told;     /* why there is no meeting */
  uint64_t process;
  uint32_t attempt; /* of its greeting */
  uint32_t port;    /* where it takes its children */
  char host[LCOMM_HOST_MAX];
  lcomm_store_inbox inbox;
  uint8_t note[LCOMM_STORE_NOTE_SIZE]; /* of a frame in the inbox */
  bool answered;                       /* LINKED or ALONE */
  bool entered, passed;                /* in this allgather */
  size_t received, sent; /* of the frame of bytes in each direction, header included */
} lcomm_store_peer;

enum { LCOMM_STORE_FAN_OUT_MAX = 8 };

/* How all-gathers run: in a world of at most star_most ranks through rank 0, in larger ones along
 * a tree, each rank with at most fan_out children. The same on all ranks. */
typedef struct lcomm_store_shape {
  int star_most, fan_out;
} lcomm_store_shape;

/* A rank in the tree: it and those below it are ranks one after the other. */
typedef struct lcomm_store_branch {
  int parent; /* -1 at rank 0 */
  int end;    /* behind the last rank below it */
  int child_count;
  int child[LCOMM_STORE_FAN_OUT_MAX + 1]; /* the last one is `end` */
} lcomm_store_branch;

/* The next rank up the tree. */
typedef struct lcomm_store_parent {
  int fd;         /* -1: the parent is rank 0, or there is none */
  bool is_linked; /* it has let us in */
  lcomm_store_place place;
} lcomm_store_parent;

struct lcomm_store {
  const lcomm_launcher_env *launcher; /* while meeting */
  int rank, size;
  double timeout_s;
  char host[LCOMM_HOST_MAX];
  char where[LCOMM_ADDRESS_MAX + 32]; /* "node1 port 29600", for people */

  uint64_t process;    /* drawn by lot */
  lcomm_status status; /* sticky */
  char sentence[LCOMM_ERROR_MAX];

  int fd;                  /* to rank 0; -1 there */
  lcomm_store_peer *peers; /* at rank 0 and where there may be children, one per rank; else NULL */
  struct pollfd *polls;    /* likewise, LCOMM_STORE_POLLS(size) */
  double next_wait_s;      /* at rank 0: when to say WAIT again */

  lcomm_store_shape shape;
  lcomm_store_branch branch;
  bool may_be_tree;   /* by the shape */
  bool tree;          /* all are linked: all-gathers run along it */
  bool done;          /* rank 0 has left */
  bool doomed;        /* rank 0 has stopped the next all-gather, for `reason` */
  bool accused;       /* a neighbour, in this all-gather */
  int listener, port; /* for children; -1 */
  lcomm_store_parent parent;
  lcomm_store_inbox from_root;
  uint8_t reason[LCOMM_STORE_REASON_MAX]; /* of a frame in it */
};

/* At once; who has not greeted makes room for newcomers. */
enum { LCOMM_STORE_VISITORS_MAX = 256 };
#define LCOMM_STORE_POLLS(size)                                                                    \
  ((size_t)(size) + LCOMM_LISTEN_MAX + LCOMM_STORE_VISITORS_MAX + LCOMM_STORE_BESIDE)
enum { LCOMM_STORE_BESIDE = 2 }; /* a rank below 0 looks at rank 0 and at its parent, too */

/* A store that has met nobody yet. MEMORY. */
lcomm_status lcomm_store_begin(const lcomm_launcher_env *launcher, double timeout_s,
                               lcomm_store_shape shape, lcomm_store **store);

/* A store over connections that are there: fds[rank] of each other rank at rank 0, fds[0] to rank 0
 * elsewhere. They are the store's then; left alone on failure: MEMORY. */
lcomm_status lcomm_store_star(int rank, int size, const int *fds, double timeout_s,
                              lcomm_store **store);

/* As lcomm_store_meet, in another shape; the same on all ranks. */
lcomm_status lcomm_store_meet_as(const lcomm_launcher_env *launcher, double timeout_s,
                                 lcomm_store_shape shape, lcomm_store **store);

/* The first failure counts. The sentence is prefixed with who we are. Returns
 * the status in force. */
__attribute__((format(printf, 3, 4))) lcomm_status
lcomm_store_fail(lcomm_store *store, lcomm_status status, const char *format, ...);

/* Names of ranks for people. */
const char *lcomm_store_who(const lcomm_store *store, int rank, char *text, size_t size);

/* --- the tree (store_shape.c, store_inbox.c) --- */

void lcomm_store_branch_find(int size, int fan_out, int rank, lcomm_store_branch *branch);

/* Is `rank` a child of the branch, and how many ranks are it and those below it? 0: it is none. */
int lcomm_store_branch_below(const lcomm_store_branch *branch, int rank);

typedef enum lcomm_store_heard {
  LCOMM_STORE_HEARD_NOTHING, /* nothing whole yet */
  LCOMM_STORE_HEARD_FRAME,
  LCOMM_STORE_HEARD_STRANGE, /* no frame, or one that is too long */
  LCOMM_STORE_HEARD_END      /* the connection has ended */
} lcomm_store_heard;

/* Where the bytes of frames go: those of DATA, which must be so many, and those of all others. */
typedef struct lcomm_store_room {
  uint8_t *data;
  size_t data_size;
  bool takes_data;
  uint8_t *other;
  size_t other_size;
} lcomm_store_room;

/* Read until a frame is whole. */
lcomm_store_heard lcomm_store_hear(int fd, lcomm_store_inbox *inbox, const lcomm_store_room *room);

/* --- meeting at rank 0, and of children at their parent (store_rendezvous.c, store_visitor.c) ---
 */

/* Somebody who came to the meeting and is no member yet. */
typedef struct lcomm_store_visitor {
  int fd; /* -1: to be forgotten */
  bool leaving;
  double until_s;
  size_t received;
  uint8_t handshake[LCOMM_STORE_HANDSHAKE_SIZE];
} lcomm_store_visitor;

typedef struct lcomm_store_door lcomm_store_door; /* store_door.h */

typedef struct lcomm_store_rendezvous {
  lcomm_store *store;
  lcomm_store_door *door; /* NULL: a meeting of ranks; else newcomers come, and they alone */
  bool any_world;         /* whatever size of the world a rank names */
  int listeners[LCOMM_LISTEN_MAX], listener_count;
  lcomm_store_visitor *visitors;
  int visitor_count;
  int missing; /* ranks */
  double until_s, accept_from_s;
  bool starved; /* somebody could not be taken in for lack of file descriptors */
  int refused;
  char refusal[160];                            /* the last one */
  int beside[LCOMM_STORE_BESIDE], beside_count; /* sockets that are looked at elsewhere */
} lcomm_store_rendezvous;

/* Wait until something comes or the time is up, and look at whoever came and whoever is here. */
lcomm_status lcomm_store_round(lcomm_store_rendezvous *m, double until_s);

/* Hang up on all who are no members, and listen no more. */
void lcomm_store_end_meeting(lcomm_store_rendezvous *m);

/* Something can be read from it; its time may be up; it goes. */
void lcomm_store_visitor_receive(lcomm_store_rendezvous *m, lcomm_store_visitor *it);
void lcomm_store_visitor_mind_time(lcomm_store_rendezvous *m, lcomm_store_visitor *it);
void lcomm_store_visitor_part(lcomm_store_visitor *it);

/* A member loses its place; so does, after a check, one that has gone or does not
 * wait in silence. */
void lcomm_store_member_lose(lcomm_store_rendezvous *m, int rank);
void lcomm_store_member_check(lcomm_store_rendezvous *m, int rank);

/* May this rank come here? */
bool lcomm_store_expects(const lcomm_store *store, uint32_t rank);

/* Until all are here; in a large world then until the tree stands. After a failure: tells it to
 * all who come. */
lcomm_status lcomm_store_open(lcomm_store *store);

/* --- rank 0 afterwards (store_serve.c) --- */

/* Say a frame without bytes, or one with a reason, REFUSED or FAILED. They go through at once or
 * never, which is noticed when the socket is looked at. */
bool lcomm_store_say(int fd, lcomm_store_kind kind);
bool lcomm_store_say_bytes(int fd, const uint8_t *bytes, size_t size);
void lcomm_store_say_reason(int fd, lcomm_store_kind kind, lcomm_status status, const char *text);

/* The connection of a rank has ended. */
void lcomm_store_lose(lcomm_store_peer *peer);

/* Tell all that are here, and be done with them. Returns the status in force. */
lcomm_status lcomm_store_fail_all(lcomm_store *store);

/* Tell the patient ones now and then that we are here. */
void lcomm_store_say_wait(lcomm_store *store);

lcomm_status lcomm_store_serve(lcomm_store *store, const void *send, void *receive, size_t size);

/* A rank has gone, or is silent for too long: the failure of all. */
lcomm_status lcomm_store_miss(lcomm_store *store, int rank);
lcomm_status lcomm_store_fail_late(lcomm_store *store, int rank);

/* Give all that there is to those that rank 0, or a parent, gives it to. Who cannot be reached is
 * lost. */
void lcomm_store_spread(lcomm_store *store, const uint8_t *all, size_t size);

/* --- rank 0 of a tree (store_root.c) --- */

/* All ranks say whether they are linked: then the tree is used, or the star. */
lcomm_status lcomm_store_root_link(lcomm_store *store);
/* Tell those that are no children that the whole comes to them from their parents: what stops the
 * next allgather may overtake it. */
void lcomm_store_root_promise(const lcomm_store *store);
lcomm_status lcomm_store_root_gather(lcomm_store *store, uint8_t *all, size_t size);

/* --- the others (store_join.c) --- */

lcomm_status lcomm_store_join(lcomm_store *store);

/* LCOMM_STORE_HANDSHAKE_SIZE bytes: who this rank is. */
void lcomm_store_greet(const lcomm_store *store, unsigned attempt, uint8_t *bytes);
lcomm_status lcomm_store_exchange(lcomm_store *store, const void *send, void *receive, size_t size);

/* What ends it with the rank 0 that let us in: a reason of its own, its end, its silence, bytes
 * that were not asked for. The sentence is made; the status in force is returned. */
lcomm_status lcomm_store_fail_reason(lcomm_store *store, lcomm_store_frame frame,
                                     const uint8_t *reason);
lcomm_status lcomm_store_fail_gone(lcomm_store *store);
lcomm_status lcomm_store_fail_silent(lcomm_store *store);
lcomm_status lcomm_store_fail_strange(lcomm_store *store);

/* --- the others in a tree (store_link.c, store_branch.c) --- */

/* A socket for children, before rank 0 is greeted over store->fd. Without one there is no tree. */
void lcomm_store_listen(lcomm_store *store);
/* Connect to the parent, take the children in, and hear whether the tree is used. */
lcomm_status lcomm_store_link(lcomm_store *store);
lcomm_status lcomm_store_pass(lcomm_store *store, const void *send, void *receive, size_t size);

#endif
