/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BOOTSTRAP_REUNION_H
#define LCOMM_BOOTSTRAP_REUNION_H

/* How ranks of an elastic communicator find each other again after a loss.
 *
 * Each rank listens at a port from the creation on, and knows the addresses of all. A rank is known
 * by its seat, its rank in the first communicator, which stays; each shrink makes another
 * generation of communicators, of fewer seats. The lowest seat that lives hosts the meeting, the
 * others come to it. A seat at whose port nobody listens is dead; one that does not come is silent,
 * and nobody knows why. */

#include "libcomm/bootstrap/elastic/reunion_wire.h"
#include "libcomm/bootstrap/launcher_env.h"
#include "libcomm/bootstrap/store/store_door.h"
#include "libcomm/include/libcomm_elastic.h"
#include "libcomm/transport/bootstrap_object.h"

/* A rank that asked to leave when ranks began to regroup. Its seat is silent from then on; what it
 * remembered of tensors is with an heir. */
typedef struct lcomm_reunion_leaver {
  int seat;
  lcomm_remembered remembered; /* where this rank is the heir */
  lcomm_carry_block block;     /* then */
} lcomm_reunion_leaver;

typedef struct lcomm_reunion {
  int listener;              /* -1: none, as nobody has come so far to a rank that began alone */
  int seat, seats;           /* this rank's, and how many there were at first */
  lcomm_store_place *places; /* of each seat: WAY_IPV4 or WAY_IPV6 */
  int *members, count;       /* seats of the communicator's ranks, ascending */
  uint32_t generation;       /* of the communicator, 1 at first */
  uint64_t process;          /* drawn by lot, of this rank */
  uint32_t attempt;          /* of its greetings */
  lcomm_launcher_env place;  /* for greetings: token, and who told it */
  lcomm_reunion_leaver *leavers; /* of the communicator */
  int leaver_count;
  /* Newcomers of a communicator that this rank has prepared, of whom it does not know whether they
   * have gone on with it: seats, ascending. */
  const int *guests;
  int guest_count;
  lcomm_store_door *door; /* at rank 0, once it has looked for newcomers; else NULL */
  bool admits;            /* those at the door, where no rank is lost */
  lcomm_shrunk shrunk;    /* of the call that made the communicator; all zero: it is the first */
  lcomm_regrouped regrouped;
} lcomm_reunion;

/* While a communicator is made over a store: the object exchanges the addresses of all as it joins,
 * and gets a reunion, which its release frees. `making` lives as long. */
typedef struct lcomm_reunion_making {
  lcomm_store *store;
  const lcomm_launcher_env *launcher;
} lcomm_reunion_making;

void lcomm_reunion_prepare(lcomm_bootstrap_object *bootstrap, lcomm_reunion_making *making);

/* NULL ok. */
void lcomm_reunion_free(lcomm_reunion *reunion);

/* Nobody is about to leave. */
void lcomm_reunion_forget_leavers(lcomm_reunion *reunion);

/* The hooks of a bootstrap object with a reunion. */
void lcomm_reunion_release(lcomm_bootstrap_object *bootstrap, bool orderly);
int lcomm_reunion_look(lcomm_bootstrap_object *bootstrap);

/* Room for so many seats. MEMORY. */
lcomm_status lcomm_reunion_make_room(lcomm_reunion *reunion, int seats);

/* Of a newcomer: nobody knows it, and it listens nowhere. NULL without memory. */
lcomm_reunion *lcomm_reunion_of_newcomer(const lcomm_launcher_env *place);

/* Where this rank listens, for those that it meets over `store`, where one that began alone begins
 * to listen for those that have come; and where ranks of the store are
 * that said so, from here. UNSUPPORTED for one that cannot be met. */
lcomm_reunion_address lcomm_reunion_address_here(lcomm_reunion *reunion, const lcomm_store *store);
lcomm_status lcomm_reunion_resolve(const lcomm_store *store, int rank, lcomm_reunion_address *it);

/* ------------------------------------------------------------------ meeting */

/* The ranks that have met, with a store among them. */
typedef struct lcomm_survivors {
  lcomm_store *store;
  int rank; /* of this one; they are ordered by their seats */
  lcomm_reunion_list list;
} lcomm_survivors;

/* Meet all members that live; who is silent for timeout_s is left out. Where the host admits
 * newcomers and no rank is lost, those at its door are met as well. Collective over those that
 * live. Errors, with the thread's sentence: TIMEOUT (too many
 * are silent; nobody is met until `until_s`), MISMATCH (refused), SYSTEM, MEMORY. */
lcomm_status lcomm_reunion_meet(lcomm_reunion *reunion, double timeout_s, double until_s,
                                lcomm_survivors *found);

/* May `survivors` of `count` members go on, of which `dead` are known to be dead? So many that no
 * others can: more than half of those that may live, or half with the lowest of them. */
bool lcomm_reunion_suffices(int survivors, int count, int dead, bool has_lowest);

/* The same of the members whose seats are given, by what a list says. */
bool lcomm_reunion_list_suffices(const lcomm_reunion_list *list, const int *members, int count);

/* Inside. Host the meeting; or call at another seat that hosts one. */
typedef enum lcomm_reunion_answer {
  LCOMM_REUNION_LISTED, /* the list and the store are there */
  LCOMM_REUNION_DEAD,   /* nobody listens there */
  LCOMM_REUNION_SILENT, /* it cannot be reached, or says nothing */
  LCOMM_REUNION_AGAIN,  /* the connection broke */
  LCOMM_REUNION_ENDED   /* it is over: the sentence is the thread's */
} lcomm_reunion_answer;

lcomm_reunion_answer lcomm_reunion_call(lcomm_reunion *reunion, int seat, double timeout_s,
                                        double until_s, lcomm_survivors *found,
                                        lcomm_status *status);
lcomm_status lcomm_reunion_host(lcomm_reunion *reunion, double timeout_s, double until_s,
                                lcomm_survivors *found);

/* A newcomer knocks at the door at the other end of `fd`, which becomes its own, and waits for the
 * list. */
lcomm_reunion_answer lcomm_reunion_knock(lcomm_reunion *reunion, int fd, double until_s,
                                         lcomm_survivors *found, lcomm_status *status);

/* Is this seat a member, or a guest? Does nobody listen there? The latter connects, for a moment.
 */
bool lcomm_reunion_has(const lcomm_reunion *reunion, int seat);
bool lcomm_reunion_is_dead(const lcomm_reunion *reunion, int seat);

#endif
