/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_ASSERT_H
#define LCOMM_BASE_ASSERT_H

/* Invariants. Debug builds (EXTRA_CFLAGS=-UNDEBUG) and builds with sanitizers end the process
 * where one does not hold; release builds leave them out, and evaluate nothing. */

#ifdef NDEBUG
#define LCOMM_ASSERT(condition) ((void)sizeof(!(condition)))
#else
#include <assert.h>
#define LCOMM_ASSERT(condition) assert(condition)
#endif

#endif
