/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_QUICKSELECT_H
#define LCOMM_TOOLS_CODEC_CODEC_QUICKSELECT_H

#include <stddef.h>
#include <stdint.h>

/* Top-k as it is written without further thought, to measure the real one
 * against: copies the magnitudes, finds the k-th largest by quickselect (Hoare's
 * partition, median of three), and collects what is as large. The positions and
 * values of the kept <= n largest magnitudes go to position and value in
 * ascending order of position; of equal magnitudes the lower positions are
 * kept. Magnitudes are compared as bits, so NaN is larger than Inf. scratch has
 * room for n. Returns how many were kept. */
size_t lcomm_fastpathselect(const float *values, size_t n, size_t kept, uint32_t *scratch,
                            uint32_t *position, float *value);

#endif
