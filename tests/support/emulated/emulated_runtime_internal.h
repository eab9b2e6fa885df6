/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_RUNTIME_INTERNAL_H
#define LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_RUNTIME_INTERNAL_H

#include "tests/support/emulated/emulated_device.h"
#include "tests/support/emulated/emulated_runtime.h"

/* The end of a call: an error is the thread's last one. */
cudaError_t emulated_runtime_ended(int error);

/* The thread's device: as in CUDA the first one until it says otherwise. */
int emulated_runtime_current(void);

/* For what is about the device in use: 0, or an error. */
int emulated_runtime_need_device(void);

/* Until a stream is at its end; what was freed in it is given back. */
int emulated_runtime_finish(void *stream);

/* Gives back what cudaFreeAsync() was given in a stream, which is at its end. */
int emulated_runtime_release(const void *stream);

#endif
