/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_UCX_UCX_FORK_H
#define LCOMM_TRANSPORT_UCX_UCX_FORK_H

/* UCX's sockets in processes that the program starts. A connection ends when the
 * last process that has it ends, so a child, such as a data loader, would hide from
 * the peers that its parent was killed. A forked child closes them; a program that is
 * executed never has them. */

/* From here on, for the worker behind `event_fd`. Where memory is short, or event_fd is -1,
 * children keep its connections. */
void lcomm_ucx_fork_watch(int event_fd);

/* What is executed shall not have the connections that there are now; part of lcomm_ucx_fork_watch,
 * for those that come later. */
void lcomm_ucx_fork_close_on_exec(int event_fd);

/* Its sockets are about to be closed. */
void lcomm_ucx_fork_forget(int event_fd);

#endif
