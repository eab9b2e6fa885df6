/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_FIBERS_H
#define LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_FIBERS_H

/* Fibers: stacks that one thread of the system changes between on its own. They
 * are announced to AddressSanitizer and ThreadSanitizer. A thread keeps the
 * fibers that it made until it ends. */

typedef struct lcomm_fiber lcomm_fiber;

/* A fiber that will run body(), which must never return. Aborts when memory is
 * short, as all that follows would be wrong. */
lcomm_fiber *lcomm_fiber_create(void (*body)(void));
void lcomm_fiber_destroy(lcomm_fiber *fiber);

/* The calling thread's own stack, as a fiber to come back to. */
lcomm_fiber *lcomm_fiber_home(void);

/* Stop `from`, which runs, and go on with `to`. Returns when somebody changes
 * back to `from`. */
void lcomm_fiber_change(lcomm_fiber *from, lcomm_fiber *to);

#endif
