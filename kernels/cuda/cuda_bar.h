/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_BAR_H
#define LCOMM_KERNELS_CUDA_CUDA_BAR_H

/* Threads that must not call CUDA (lcomm_device_bar): the device may wait for what they do. All
 * that libcomm has of CUDA asks here first, and answers LCOMM_CUDA_BARRED in place of calling it: a
 * function that looks at a flag of the thread, beside a call of a driver. */

#include <stdbool.h>
#include <stddef.h>

/* No number of CUDA. */
enum { LCOMM_CUDA_BARRED = 900001 };

/* Is this thread one of them? Set by who has opened the module; NULL: none is. One for all files.
 */
__attribute__((weak)) bool (*lcomm_cuda_is_barred)(void);

static inline bool lcomm_cuda_may_call(void) {
  return !lcomm_cuda_is_barred || !lcomm_cuda_is_barred();
}

/* First in a function that returns int. */
#define LCOMM_CUDA_NEED_NO_BAR()                                                                   \
  do {                                                                                             \
    if (!lcomm_cuda_may_call()) {                                                                  \
      return LCOMM_CUDA_BARRED;                                                                    \
    }                                                                                              \
  } while (0)

#endif
