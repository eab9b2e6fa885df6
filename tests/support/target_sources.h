/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_SOURCES_H
#define LCOMM_TESTS_SUPPORT_TARGET_SOURCES_H

/* Fuzz targets for the file readers of codec_bench, as in fuzz_targets.h. */

#include <stddef.h>
#include <stdint.h>

void lcomm_fuzz_npy(const uint8_t *data, size_t size);
void lcomm_fuzz_npz(const uint8_t *data, size_t size);
void lcomm_fuzz_safetensors(const uint8_t *data, size_t size);

/* Two bytes (little-endian), modulo 1024 the number of values of the data file
 * less one, then a layer list, read both as text and as JSON. */
void lcomm_fuzz_meta(const uint8_t *data, size_t size);

/* Read as it is, and with the checksum that belongs to it. */
void lcomm_fuzz_capture(const uint8_t *data, size_t size);

#endif
