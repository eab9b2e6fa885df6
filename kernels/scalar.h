/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_SCALAR_H
#define LCOMM_KERNELS_SCALAR_H

/* The scalar kernels by name, so that another table can take those that are
 * not worth a version of its own. */

#include "kernels/isa_table.h"

LCOMM_DECLARE_KERNELS(scalar);

#endif
