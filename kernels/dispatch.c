/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "kernels/kernels.h"

const lcomm_kernels *lcomm_kernels_best(void) {
  return &lcomm_kernels_scalar;
}
