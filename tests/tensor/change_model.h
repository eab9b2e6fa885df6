/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TENSOR_CHANGE_MODEL_H
#define LCOMM_TESTS_TENSOR_CHANGE_MODEL_H

/* A small model whose tensors change between the steps. */

#include "tests/tensor/tensor_model.h"

static const uint64_t sizes[TENSORS] = {20000, 3001, 9999, 5000};
static const char *const names[TENSORS] = {"head.weight", "conv.weight", "fc.weight", "embed"};

#endif
