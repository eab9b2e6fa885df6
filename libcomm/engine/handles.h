/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_HANDLES_H
#define LCOMM_ENGINE_HANDLES_H

/* Handles of tensors and residuals: which of them live, and to which communicator they belong. A
 * handle that a program gives is looked up here before anything of it is read, so one of a
 * communicator that was destroyed is refused and not followed. Any thread, at any time. */

#include <stdbool.h>

#include "libcomm/include/libcomm_types.h"

struct lcomm_comm;

/* Register a handle; false without memory for it. */
bool lcomm_handle_add(const void *handle, const struct lcomm_comm *owner);

/* A handle that lives belongs to another communicator from here on. */
void lcomm_handle_pass(const void *handle, const struct lcomm_comm *owner);

/* Remove a handle; one that was never added is allowed. */
void lcomm_handle_remove(const void *handle);

/* The communicator of a handle that lives, else NULL. */
const struct lcomm_comm *lcomm_handle_owner(const void *handle);

/* Does the handle (of a tensor, say: `object`) live and belong to `comm`? ARGUMENT, with
 * a sentence that names the call, where not. STATE in a forked child. */
lcomm_status lcomm_handle_check(struct lcomm_comm *comm, const void *handle, const char *call,
                                const char *object);

#endif
