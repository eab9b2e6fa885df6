/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_FORK_H
#define LCOMM_BASE_FORK_H

/* Forked children. A child of fork() inherits memory and descriptors of its parent, but not its
 * threads, and its peers know nothing of it. An object that must not be used there stores the
 * generation in which it was made and compares it. */

/* How many forks lie between this process and the one that called lcomm_fork_watch()
 * first. Changes only inside fork(), in the child, so reading needs no lock. */
extern unsigned lcomm_fork_generation;

/* Begin to count forks. Any thread, any number of times. */
void lcomm_fork_watch(void);

#endif
