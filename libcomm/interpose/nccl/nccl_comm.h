/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_NCCL_COMM_H
#define LCOMM_INTERPOSE_NCCL_COMM_H

/* Alone: communicators and calls of NCCL that are libcomm's. */

#include <pthread.h>

#include "libcomm/interpose/nccl/nccl_calls.h"
#include "libcomm/interpose/nccl/nccl_feedback.h"
#include "libcomm_interpose.h"

/* ------------------------------------------------------------------ places */

/* Where the ranks of a communicator meet: what an ncclUniqueId holds. */
enum { LCOMM_NCCL_ADDRESS_MAX = 64, LCOMM_NCCL_TOKEN_MAX = 33 };
typedef struct lcomm_nccl_place {
  char address[LCOMM_NCCL_ADDRESS_MAX]; /* of the host that made it, where rank 0 listens */
  char token[LCOMM_NCCL_TOKEN_MAX];     /* drawn by lot */
  uint16_t port;
} lcomm_nccl_place;

/* Write a place into an id, and back. False: the bytes are no id of this library. */
void lcomm_nccl_id_write(const lcomm_nccl_place *place, ncclUniqueId *id);
bool lcomm_nccl_id_read(const ncclUniqueId *id, lcomm_nccl_place *place);

/* A new place on this host; its port is kept free as long as the socket *listener is open, which
 * the caller closes. */
ncclResult_t lcomm_nccl_place_find(lcomm_nccl_place *place, int *listener);

/* The same, with a port that nobody keeps free. */
ncclResult_t lcomm_nccl_place_guess(lcomm_nccl_place *place);

/* ncclGetUniqueId. The port is kept free until rank 0 releases the place. */
ncclResult_t lcomm_nccl_id_get(ncclUniqueId *id);
void lcomm_nccl_place_release(const lcomm_nccl_place *place);

/* ----------------------------------------------------------- communicators */

enum { LCOMM_NCCL_NAME_MAX = 64 }; /* of a communicator's name, with the terminator */

typedef enum lcomm_nccl_state {
  LCOMM_NCCL_MAKING,   /* by another thread, for a program that does not wait */
  LCOMM_NCCL_READY,    /* `comm` is there */
  LCOMM_NCCL_FAILED,   /* it could not be made: `failure` */
  LCOMM_NCCL_ABANDONED /* aborted while it was made: the thread that makes it frees it */
} lcomm_nccl_state;

enum { LCOMM_NCCL_ELEMENT_MAX = 8 }; /* bytes of the longest type */

/* An operation that a program has made: the factor times each element is summed. */
typedef struct lcomm_nccl_factor {
  bool is_used;
  unsigned char bytes[LCOMM_NCCL_ELEMENT_MAX];
  const void *there; /* where on the device it is instead, or NULL */
  ncclDataType_t type;
} lcomm_nccl_factor;

/* What an ncclComm_t points to. */
struct ncclComm {
  pthread_mutex_t lock; /* one thread at a time is in libcomm with it */
  _Atomic int state;    /* lcomm_nccl_state */
  lcomm_comm *comm;     /* once it is READY, likewise: */
  int rank, size;
  ncclResult_t failure; /* of FAILED, with `sentence` */
  char *sentence;
  int device;                     /* that was current when it was made; -1: none */
  char name[LCOMM_NCCL_NAME_MAX]; /* of its configuration; "" */
  bool blocks;                    /* the program waits for what is made of it */
  /* Ranks of this process that are in one communicator have one number here. */
  uint64_t family;
  uint32_t parts;             /* that were made of it, for their families */
  ncclUniqueId *places;       /* per rank: where its survivors may meet */
  int place_socket;           /* keeps this rank's place free */
  uint64_t *counts;           /* room for one per rank */
  lcomm_nccl_factor *factors; /* operations from ncclNumOps on */
  int factor_count;
  lcomm_nccl_made now;    /* makes sums: `comm`, or one of another policy */
  lcomm_preview *preview; /* LCOMM_INTERPOSE=report: what the policy would say; else NULL */
  struct lcomm_nccl_controlled *controlled; /* nccl_alone_control.h; NULL: no file says more */
  bool is_parked;                           /* destroyed by the program, see nccl_end.c */
  ncclComm_t next;
};

/* Is it one that calls can be made with? If not, the sentence names the function. */
ncclResult_t lcomm_nccl_check(const char *function, const struct ncclComm *comm);

/* ---------------------------------------------------------- configurations */

/* Is it one, or NULL? If not, the sentence names the function. */
ncclResult_t lcomm_nccl_config_check(const char *function, const ncclConfig_t *config);

/* Does the program wait for what is made? `otherwise` where the configuration does not say. */
bool lcomm_nccl_config_blocks(const ncclConfig_t *config, bool otherwise);

/* The name that it gives; "" where it is too old, or NULL. */
void lcomm_nccl_config_name(const ncclConfig_t *config, char name[LCOMM_NCCL_NAME_MAX]);

/* ----------------------------------------------------------------- errors */

/* What NCCL's programs are told of a status. */
ncclResult_t lcomm_nccl_result(lcomm_status status);

/* A call of libcomm on `comm` has ended so; a failure's sentence is the thread's last error. */
ncclResult_t lcomm_nccl_ended(const lcomm_comm *comm, lcomm_status status);

/* ------------------------------------------------------------------ making */

/* A communicator that a thread makes: of a place, or of some ranks of another one. */
typedef struct lcomm_nccl_making {
  ncclComm_t *receiver;
  ncclComm_t comm; /* that is made */
  ncclComm_t parent;
  bool shrinks; /* else a part of `parent` by color and key */
  int color, key;
  lcomm_nccl_place place; /* without a parent, and where one shrinks */
  ncclResult_t result;
} lcomm_nccl_making;

/* Make it now, or, in a group, when that ends. */
ncclResult_t lcomm_nccl_submit_making(const lcomm_nccl_making *making);

/* Make them all at a time, those of one parent in their order. Communicators that the program does
 * not wait for are made by threads: ncclInProgress. The first failure. */
ncclResult_t lcomm_nccl_make_all(lcomm_nccl_making *all, size_t count);

/* Start a thread without signals, for the caller to join or detach. The error, or 0. */
int lcomm_nccl_thread_create(pthread_t *thread, void *(*run)(void *), void *argument);

/* Parts of it, in the thread that makes. */
ncclResult_t lcomm_nccl_make(lcomm_nccl_making *making);

/* Communicators of this process, for lcomm_nccl_end.c. A comm that is made is listed; one that is
 * freed was taken off. */
ncclResult_t lcomm_nccl_comm_new(const char *function, const ncclComm_t parent,
                                 const ncclConfig_t *config, ncclComm_t *made);
void lcomm_nccl_comm_free(ncclComm_t comm);
void lcomm_nccl_list(ncclComm_t comm);

/* What is in flight fails on all ranks, and what is begun later. Any thread, without the lock. */
void lcomm_nccl_give_up(ncclComm_t comm, const char *reason);

/* Abort it, and free it, without waiting for other ranks. */
void lcomm_nccl_drop(ncclComm_t comm);

/* ------------------------------------------------------------------ groups */

/* When in its group a call begins: what waits for no peer comes first, so that ranks which send to
 * each other do not wait for each other. */
typedef enum lcomm_nccl_turn {
  LCOMM_NCCL_TURN_SENDS,
  LCOMM_NCCL_TURN_CALLS,
  LCOMM_NCCL_TURN_RECEIVES,
  LCOMM_NCCL_TURN_ENDS, /* what waits for calls of the group */
  LCOMM_NCCL_TURN_COUNT
} lcomm_nccl_turn;

/* A call that a thread has made, and that begins when its outermost group ends. */
typedef struct lcomm_nccl_gathered lcomm_nccl_gathered;
typedef struct lcomm_nccl_call lcomm_nccl_call;
struct lcomm_nccl_call {
  ncclResult_t (*make)(const lcomm_nccl_call *call);
  ncclComm_t comm;
  const void *send;
  void *receive;
  size_t count;
  lcomm_dtype type;
  lcomm_op op;
  lcomm_call_kind kind; /* of sums, which the policy looks at, likewise: */
  const char *name;     /* of NCCL's function */
  ncclDataType_t given_type;
  ncclRedOp_t given_op;
  int root; /* or the peer */
  cudaStream_t stream;
  lcomm_nccl_turn turn;
  uint32_t pass;                 /* of its turn, in a group: */
  bool is_grouped;               /* it is made when that ends */
  lcomm_nccl_factor factor;      /* is_used: sums have it */
  lcomm_nccl_gathered *gathered; /* of nccl_gathered.c; the group frees it with its end */
};

/* Make it now, or, in a group, when that ends. */
ncclResult_t lcomm_nccl_submit(const lcomm_nccl_call *call);

ncclResult_t lcomm_nccl_group_start(void);
ncclResult_t lcomm_nccl_group_end(void);

/* End the group and make none of its calls; communicators are made, as by NCCL, because the program
 * goes on with them. Nothing is estimated: the time is -1, NCCL's word for unknown. */
ncclResult_t lcomm_nccl_group_simulate_end(ncclSimInfo_t *simulation);

/* As if the outermost group, if it ends here, had held nothing. */
void lcomm_nccl_group_drop(void);

/* ---------------------------------------------------------- NCCL's functions */

/* Data that is moved only: a type of the same size. False: there is none. */
bool lcomm_nccl_moved_type(ncclDataType_t type, lcomm_dtype *as);

/* The call with its communicator and type checked, and submitted. */
ncclResult_t lcomm_nccl_submit_move(const char *name, lcomm_nccl_call call, ncclDataType_t type);

/* As the body of a call's `make`: libcomm's function on its communicator, with the lock. */
#define LCOMM_NCCL_MAKE(it, function, ...)                                                         \
  lcomm_comm *comm_ = (it)->comm->comm;                                                            \
  pthread_mutex_lock(&(it)->comm->lock);                                                           \
  ncclResult_t result_ = lcomm_nccl_ended(comm_, function(comm_, __VA_ARGS__));                    \
  pthread_mutex_unlock(&(it)->comm->lock);                                                         \
  return result_

/* The operation `op` of a program; false: there is none. */
bool lcomm_nccl_factor_find(const struct ncclComm *comm, ncclRedOp_t op, lcomm_nccl_factor *factor);
/* Its bytes, in order with a stream: of one on the device the host waits for them. */
ncclResult_t lcomm_nccl_factor_read(const lcomm_nccl_factor *factor, cudaStream_t stream,
                                    unsigned char bytes[LCOMM_NCCL_ELEMENT_MAX]);

/* Sums that libcomm's collectives do not have (nccl_gathered.c), checked. `type` and `op` are those
 * of the program, `call->type` one of the same size. */
ncclResult_t lcomm_nccl_gathered_submit(lcomm_nccl_call *call, bool is_scatter, ncclDataType_t type,
                                        ncclRedOp_t op);
void lcomm_nccl_gathered_free(lcomm_nccl_gathered *it);

/* What each file has of the table. */
void lcomm_nccl_take_comms(lcomm_nccl_calls *calls);
void lcomm_nccl_take_parts(lcomm_nccl_calls *calls);
void lcomm_nccl_take_ends(lcomm_nccl_calls *calls);
void lcomm_nccl_take_sums(lcomm_nccl_calls *calls);
void lcomm_nccl_take_moves(lcomm_nccl_calls *calls);
void lcomm_nccl_take_pairs(lcomm_nccl_calls *calls);
void lcomm_nccl_take_configured(lcomm_nccl_calls *calls);
void lcomm_nccl_take_factors(lcomm_nccl_calls *calls);
void lcomm_nccl_take_memory(lcomm_nccl_calls *calls);

#endif
