/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_LOWBIT_CUH
#define LCOMM_KERNELS_CUDA_CUDA_LOWBIT_CUH

/* Scales and codes of SIGN and INT2. */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_scales.cuh"

/* The squares of the steps of each piece, whose block has this largest magnitude. */
LCOMM_DEVICE void lcomm_squares_of_pieces(const float value[LCOMM_VALUES], int32_t own,
                                          uint32_t lanes, uint32_t squares[LCOMM_PIECES]) {
  LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
    int32_t amax = (int32_t)lcomm_shuffle((uint32_t)own, lcomm_lane_of_piece(lanes, j));
    float steps_of_one = lcomm_sign_steps_of_one(amax);
    squares[j] = 0;
    LCOMM_UNROLL for (int i = 0; i < LCOMM_PIECE; i++) {
      uint32_t steps = lcomm_sign_steps(value[4 * j + i], steps_of_one);
      squares[j] += steps * steps;
    }
  }
}

/* The scale of the lane's block. */
LCOMM_DEVICE uint32_t lcomm_lowbit_scale(int kind, uint32_t shift, const lcomm_thread_values *at,
                                         uint64_t n, const float value[LCOMM_VALUES]) {
  uint32_t lanes = lcomm_lanes_of_block(shift), squares[LCOMM_PIECES];
  int32_t amax = lcomm_block_amax(value, lanes);
  if (kind == LCOMM_CUDA_INT2) {
    return lcomm_int2_scale(amax);
  }
  lcomm_squares_of_pieces(value, amax, lanes, squares);
  uint32_t sum = lcomm_block_sum(squares, lanes), count = 1u << shift;
  uint64_t first = at->local + (uint64_t)(lcomm_piece_of_lane(lanes) * LCOMM_STEP);
  first = first >> shift << shift;
  if (first < n && n - first < count) {
    count = (uint32_t)(n - first);
  }
  return lcomm_sign_scale(amax, sum, lcomm_sign_share(count));
}

LCOMM_DEVICE uint32_t lcomm_lowbit_piece(int kind, uint32_t scale, const float value[LCOMM_PIECE]) {
  int32_t limit = lcomm_int2_limit((uint8_t)scale);
  int bits = lcomm_code_bits(kind);
  uint32_t word = 0;
  LCOMM_UNROLL for (int i = 0; i < LCOMM_PIECE; i++) {
    uint32_t large = kind == LCOMM_CUDA_INT2 && lcomm_f32_magnitude(value[i]) > limit ? 2 : 0;
    word |= (lcomm_f32_bits(value[i]) >> 31 | large) << bits * i;
  }
  return scale == LCOMM_E8M0_NAN ? 0 : word;
}

#endif
