/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_AVX2_DECODE_BODY_H
#define LCOMM_KERNELS_AVX2_DECODE_BODY_H

/* Payloads of blocks, decoded or added by AVX2: written once for all codes. The file that includes
 * this defines code_format, code_scale (the type of a block's scale), and the functions code_size
 * (bytes of so many codes), decode_blocks (whole blocks) and decode_few (part of one).
 */

/* Past the caches to an address between lines: through a tile in the caches. */
LCOMM_AVX2_INLINE void decode_shifted(code_format format, const uint8_t *code,
                                      const code_scale *scale, size_t block, float factor,
                                      float *destination, size_t n) {
  float tile[TILE];
  for (size_t i = 0; i < n; i += TILE) {
    size_t length = n - i < TILE ? n - i : TILE;
    decode_blocks(format, LCOMM_AVX2_STORE, code + code_size(format, i), scale + i / block, block,
                  factor, tile, length);
    lcomm_avx2_stream(destination + i, tile, length);
  }
}

LCOMM_AVX2_INLINE void decode(code_format format, const uint8_t *code, const code_scale *scale,
                              size_t block, float factor, float *destination, size_t n) {
  size_t body = n - n % block;
  if (n < LCOMM_STREAM_COUNT) {
    decode_blocks(format, LCOMM_AVX2_STORE, code, scale, block, factor, destination, body);
  } else if (lcomm_avx2_aligned(destination)) {
    decode_blocks(format, LCOMM_AVX2_STREAM, code, scale, block, factor, destination, body);
    lcomm_avx2_streamed();
  } else {
    decode_shifted(format, code, scale, block, factor, destination, body);
    lcomm_avx2_streamed();
  }
  decode_few(format, LCOMM_AVX2_STORE, code, scale, block, factor, destination, body, n);
}

LCOMM_AVX2_INLINE void add(code_format format, const uint8_t *code, const code_scale *scale,
                           size_t block, float factor, float *destination, size_t n) {
  size_t body = n - n % block;
  decode_blocks(format, LCOMM_AVX2_ADD, code, scale, block, factor, destination, body);
  decode_few(format, LCOMM_AVX2_ADD, code, scale, block, factor, destination, body, n);
}

#endif
