/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BOOTSTRAP_LAUNCHER_ENV_H
#define LCOMM_BOOTSTRAP_LAUNCHER_ENV_H

/* What launchers tell a process of its place in the job, by environment
 * variables (libcomm/base/env.h). */

#include <stdbool.h>
#include <stddef.h>

#include "libcomm/base/error.h"

enum {
  LCOMM_TOKEN_MAX = 256,   /* bytes of a token and of the zeros behind it, one at least */
  LCOMM_ADDRESS_MAX = 256, /* of a host's name or address, terminator included */
  LCOMM_PORT_STANDARD = 29600
};

typedef struct lcomm_launcher_env {
  int rank, world_size;
  const char *size_from;           /* the variable that told the world size; NULL: a world of one */
  bool one_host;                   /* all ranks share a host, as far as is known */
  char address[LCOMM_ADDRESS_MAX]; /* where rank 0 is */
  int port;
  char token[LCOMM_TOKEN_MAX];
  const char *token_from; /* the variable that told the token; NULL: none did */
} lcomm_launcher_env;

/* Read the environment. ARGUMENT, with a sentence in `why` that names the variable, its
 * value and what it should be. */
lcomm_status lcomm_launcher_env_read(lcomm_launcher_env *launcher_env, lcomm_why *why);

/* The same of a newcomer, who has no rank yet: address, port and token. The address may be several
 * hosts, separated by commas. */
lcomm_status lcomm_launcher_env_read_place(lcomm_launcher_env *launcher_env, lcomm_why *why);

/* For sentences of ranks that do not meet: that MASTER_ADDR is not set, so that all ranks
 * were taken to be on one host; "" where that is not so. */
const char *lcomm_launcher_env_supposed(void);

#endif
