/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BOOTSTRAP_STORE_STORE_INTERNAL_H
#define LCOMM_BOOTSTRAP_STORE_STORE_INTERNAL_H

/* The inside of a store, shared by store*.c only. */

#include <poll.h>

#include "libcomm/bootstrap/store/store.h"
#include "libcomm/bootstrap/store/store_socket.h"
#include "libcomm/bootstrap/store/store_wire.h"

/* What rank 0 knows of another rank. */
typedef struct lcomm_store_peer {
  int fd;        /* -1: not here */
  bool was_here; /* and has gone */
  bool told;     /* why there is no meeting */
  uint64_t process;
  uint32_t attempt; /* of its greeting */
  char host[LCOMM_HOST_MAX];
  uint8_t header[LCOMM_STORE_HEADER_SIZE];
  size_t received, sent; /* of the frame in each direction, header included */
} lcomm_store_peer;

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
  lcomm_store_peer *peers; /* at rank 0, one per rank; else NULL */
  struct pollfd *polls;    /* at rank 0, LCOMM_STORE_POLLS(size) */
  double next_wait_s;      /* at rank 0: when to say WAIT again */
};

/* At once; who has not greeted makes room for newcomers. */
enum { LCOMM_STORE_VISITORS_MAX = 256 };
#define LCOMM_STORE_POLLS(size) ((size_t)(size) + LCOMM_LISTEN_MAX + LCOMM_STORE_VISITORS_MAX)

/* The first failure counts. The sentence is prefixed with who we are. Returns
 * the status in force. */
__attribute__((format(printf, 3, 4))) lcomm_status
lcomm_store_fail(lcomm_store *store, lcomm_status status, const char *format, ...);

/* Names of ranks for people. */
const char *lcomm_store_who(const lcomm_store *store, int rank, char *text, size_t size);

/* --- rank 0 while it meets (store_rendezvous.c, store_visitor.c) --- */

/* Somebody who came to the meeting and is no member yet. */
typedef struct lcomm_store_visitor {
  int fd; /* -1: to be forgotten */
  bool leaving;
  double until_s;
  size_t received;
  uint8_t handshake[LCOMM_STORE_HANDSHAKE_SIZE];
} lcomm_store_visitor;

typedef struct lcomm_store_rendezvous {
  lcomm_store *store;
  int listeners[LCOMM_LISTEN_MAX], listener_count;
  lcomm_store_visitor *visitors;
  int visitor_count;
  int missing; /* ranks */
  double until_s, accept_from_s;
  bool starved; /* somebody could not be taken in for lack of file descriptors */
  int refused;
  char refusal[160]; /* the last one */
} lcomm_store_rendezvous;

/* Something can be read from it; its time may be up; it goes. */
void lcomm_store_visitor_receive(lcomm_store_rendezvous *m, lcomm_store_visitor *it);
void lcomm_store_visitor_mind_time(lcomm_store_rendezvous *m, lcomm_store_visitor *it);
void lcomm_store_visitor_part(lcomm_store_visitor *it);

/* A member loses its place; so does, after a check, one that has gone or does not
 * wait in silence. */
void lcomm_store_member_lose(lcomm_store_rendezvous *m, int rank);
void lcomm_store_member_check(lcomm_store_rendezvous *m, int rank);

/* After a failure: tells it to all who come. */
lcomm_status lcomm_store_open(lcomm_store *store);

/* --- rank 0 afterwards (store_serve.c) --- */

/* Say a frame without bytes, or one with a reason, REFUSED or FAILED. They go through at once or
 * never, which is noticed when the socket is looked at. */
bool lcomm_store_say(int fd, lcomm_store_kind kind);
void lcomm_store_say_reason(int fd, lcomm_store_kind kind, lcomm_status status, const char *text);

/* The connection of a rank has ended. */
void lcomm_store_lose(lcomm_store_peer *peer);

/* Tell all that are here, and be done with them. Returns the status in force. */
lcomm_status lcomm_store_fail_all(lcomm_store *store);

/* Tell the patient ones now and then that we are here. */
void lcomm_store_say_wait(lcomm_store *store);

lcomm_status lcomm_store_serve(lcomm_store *store, const void *send, void *receive, size_t size);

/* --- the others (store_join.c) --- */

lcomm_status lcomm_store_join(lcomm_store *store);
lcomm_status lcomm_store_exchange(lcomm_store *store, const void *send, void *receive, size_t size);

#endif
