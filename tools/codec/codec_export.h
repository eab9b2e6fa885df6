/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_EXPORT_H
#define LCOMM_TOOLS_CODEC_CODEC_EXPORT_H

#include <stdbool.h>

#include "tools/codec/codec_dataset.h"

/* Write every tensor of every source as float32 into a file of its own, folder/SOURCE.TENSOR.npy,
 * or SOURCE.npy where the source names none (version 1.0, one dimension), which numpy.load() reads.
 * The folder is made if it is not there. In names of files what is neither a letter nor a digit nor
 * one of "._-" becomes '_'; where a file of the name is there already, a number follows. *files:
 * how many were written. false with one sentence in `error` (TOOL_ERROR_MAX bytes); files
 * written before stay. */
bool lcomm_export(const lcomm_dataset *dataset, const char *folder, uint64_t *files, char *error);

#endif
