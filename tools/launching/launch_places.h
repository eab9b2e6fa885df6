/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_LAUNCH_PLACES_H
#define LCOMM_TOOLS_LAUNCH_PLACES_H

#include <stdbool.h>
#include <stddef.h>

/* Where ranks are started: all here, or on the hosts of a list. */

enum { LAUNCH_HOST_MAX = 256 }; /* bytes of a host's name with its final 0 */

typedef struct launch_place {
  char host[LAUNCH_HOST_MAX]; /* "": this machine */
  int local_rank, local_size; /* among the ranks of the host */
} launch_place;

/* All `ranks` here. NULL without memory; else free(). */
launch_place *launch_places_here(int ranks);

/* On the hosts of a file: a host a line, `NAME` or `NAME slots=N`, for ssh; # begins a comment.
 * Ranks of a host are adjacent. Without any slots= the hosts share the ranks evenly; with some,
 * hosts are filled in their order, and one that does not say has one slot. NULL with a sentence in
 * error[size]; else free(). */
launch_place *launch_places_read(const char *path, int ranks, char *error, size_t size);

/* Is the rank started by ssh? */
static inline bool launch_place_is_remote(const launch_place *at) {
  return at->host[0] != '\0';
}

/* "host0,host1,...": those of all ranks, each once, as many as MASTER_ADDR may have; this machine
 * is 127.0.0.1. NULL without memory; else free(). */
char *launch_places_list(const launch_place *places, int ranks);

/* The host's name without the user's ("name@"), or that of this machine, for people. */
void launch_place_name(const launch_place *at, char name[LAUNCH_HOST_MAX]);

#endif
