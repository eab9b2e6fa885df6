/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BOOTSTRAP_STORE_BOOTSTRAP_H
#define LCOMM_BOOTSTRAP_STORE_BOOTSTRAP_H

/* Communicators whose ranks meet at a TCP store. */

#include "libcomm/bootstrap/launcher_env.h"
#include "libcomm/include/libcomm_interpose.h"

/* Meet where `launcher` says, and make a communicator; alone where the world has one rank. */
lcomm_status lcomm_create_met(const lcomm_launcher_env *launcher, const lcomm_config *config,
                              lcomm_comm **comm);

/* How long ranks wait for each other there, by the configuration (NULL ok) or the environment. */
double lcomm_meeting_timeout_s(const lcomm_config *config);

#endif
