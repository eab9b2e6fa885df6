/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_TRAINER_H
#define LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_TRAINER_H

#include "trainer/cuda/train_cuda.h"

/* The trainer's back end of CUDA devices on emulated ones, which have begun (emulated_begin). Its
 * stream lives until emulated_trainer_close(). */
trainer_cuda_open_function emulated_trainer_open;
void emulated_trainer_close(void);

#endif
