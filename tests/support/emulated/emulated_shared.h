/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_SHARED_H
#define LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_SHARED_H

/* Shared memory: what is declared with LCOMM_SHARED. Three ways, after what a
 * build can find out:
 *  - usually: arrays in a section of their own, all of which is filled with
 *    rubbish before a block begins, so that nobody lives on zeros (`used` tells
 *    the compiler that others write there);
 *  - with AddressSanitizer: plain arrays, which it surrounds with guards;
 *  - with ThreadSanitizer: arrays of each thread of the system, so that grids
 *    run side by side and it sees what they do to each other's memory.
 * The first two are one array for all, so grids run one at a time.
 */

#include "tests/support/emulated/emulated_sanitizers.h"

#if defined(__SANITIZE_THREAD__)
#define LCOMM_SHARED static __thread
#elif defined(__SANITIZE_ADDRESS__)
#define LCOMM_SHARED static
#else
#define LCOMM_SHARED static __attribute__((section("lcomm_shared"), used))
#endif

#ifdef __cplusplus
extern "C" {
#endif

void lcomm_emulated_enter_shared(void);
void lcomm_emulated_leave_shared(void);
void lcomm_emulated_spoil_shared(void);

#ifdef __cplusplus
}
#endif

#endif
