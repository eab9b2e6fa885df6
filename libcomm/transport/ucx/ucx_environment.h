/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_UCX_UCX_ENVIRONMENT_H
#define LCOMM_TRANSPORT_UCX_UCX_ENVIRONMENT_H

/* What UCX sees of the environment while it loads and sets itself up. UCX
 * takes its settings from variables UCX_*, which the user sets for MPI, and
 * reads those before any private ones. For the moment of a call it is shown
 * another list of variables.
 *
 * The list is exchanged as a whole: neither list changes while another thread
 * may read it, and the variables of the program are those it had, without a
 * setenv. One thread at a time may be between enter and leave.
 */

#include <stdbool.h>

/* Show all variables but those that begin with `hidden` (NULL: hide none); those
 * of the user that begin with LCOMM_ and then `hidden` are shown without LCOMM_,
 * too, because not all parts of UCX 1.13 read private ones; then `standard`, strings "NAME=value"
 * ended by NULL: they count where the variable is not set. False when memory ran out; nothing is
 * changed then. lcomm_ucx_environment_leave shows the program's own variables again. */
bool lcomm_ucx_environment_enter(const char *hidden, const char *const *standard);
void lcomm_ucx_environment_leave(void);

#endif
