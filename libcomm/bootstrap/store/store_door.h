/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BOOTSTRAP_STORE_STORE_DOOR_H
#define LCOMM_BOOTSTRAP_STORE_STORE_DOOR_H

/* The door of a job that is under way: rank 0 listens at the port of the store, and newcomers wait
 * there until they are admitted. Nobody looks after it in between: whoever came is let in, or
 * refused, when rank 0 looks, which takes no time. Strangers are refused as at the meeting. */

#include "libcomm/bootstrap/store/store_internal.h"

enum { LCOMM_STORE_NEWCOMERS_MAX = 64 }; /* that wait at once */

typedef struct lcomm_store_newcomer {
  int fd;
  uint64_t process;
} lcomm_store_newcomer;

/* The port stays closed until somebody looks. NULL without memory. */
lcomm_store_door *lcomm_store_door_make(const lcomm_launcher_env *launcher);

/* NULL ok. Those that wait are hung up on. */
void lcomm_store_door_free(lcomm_store_door *door);

/* Let in whoever has come, and forget who has gone: how many wait. While another program has the
 * port, nobody does. */
int lcomm_store_door_look(lcomm_store_door *door);

/* The connections of all that wait are the caller's from then on; fds has room for all. */
int lcomm_store_door_take(lcomm_store_door *door, int fds[LCOMM_STORE_NEWCOMERS_MAX]);

/* A newcomer has said who it is: false when there is no room. Its connection is the door's then. */
bool lcomm_store_door_admit(lcomm_store_door *door, int fd, const lcomm_store_handshake *handshake);

/* Another meeting of this process needs the port: doors there are closed until somebody looks. */
void lcomm_store_door_yield(int port);

#endif
