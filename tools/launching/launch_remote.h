/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_LAUNCH_REMOTE_H
#define LCOMM_TOOLS_LAUNCH_REMOTE_H

#include <stddef.h>

/* How a rank is started on another host: by `ssh HOST COMMAND`, or what LCOMM_LAUNCH_SSH names in
 * its place. The command is a shell that reads its standard input:
 *
 *   NAME=value     the rank's environment: variables of libcomm, of the meeting, and of threads. So
 *   ...            a token is in no list of processes
 *   (empty line)   the rank is started, in this folder
 *   15             later: signals for it, by their numbers
 *
 * When the input ends, because the launcher is gone, however it went, or the connection is, the
 * rank is killed. The shell ends with the rank's status. */

/* The words of that command, to execute; NULL ends them. NULL without memory; else
 * launch_remote_free(). */
char **launch_remote_command(const char *host, char *const *program);
void launch_remote_free(char **words);

/* Lines for its input: the environment of this process, as far as it travels. Returns -1 when they
 * cannot be written. */
int launch_remote_send_environment(int to);

#endif
