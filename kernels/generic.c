/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Any processor: the scalar table only. */

#include <fenv.h>

#include "kernels/kernels.h"

const lcomm_kernels *const lcomm_kernels_list[] = {&lcomm_kernels_scalar, NULL};

bool lcomm_kernels_runs(const lcomm_kernels *kernels) {
  return kernels == &lcomm_kernels_scalar;
}

uint32_t lcomm_fp_enter(void) {
  int rounding = fegetround();
  fesetround(FE_TONEAREST);
  return (uint32_t)rounding;
}

void lcomm_fp_leave(uint32_t environment) {
  fesetround((int)environment);
}
