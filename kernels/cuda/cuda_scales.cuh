/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_SCALES_CUH
#define LCOMM_KERNELS_CUDA_CUDA_SCALES_CUH

/* Scales of blocks. A block of 128, 64 or 32 elements is one piece of each of 32,
 * 16 or 8 neighbouring lanes, so these lanes hold pieces of four blocks. One
 * bit of a lane's number selects the first or the last two pieces, another bit selects
 * one of these two: the lane computes the maximum of the block of that piece.
 */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_nan_exact.cuh"

/* `shift` is the logarithm of the block. */
LCOMM_DEVICE uint32_t lcomm_lanes_of_block(uint32_t shift) {
  return (1u << shift) / LCOMM_PIECE;
}

LCOMM_DEVICE int32_t lcomm_larger(int32_t a, int32_t b) {
  return a > b ? a : b;
}

/* The maximum with the lane `mask` away: of `kept` here, and of `given` there. */
LCOMM_DEVICE int32_t lcomm_exchange(int32_t kept, int32_t given, uint32_t mask) {
  return lcomm_larger(kept, (int32_t)lcomm_shuffle_xor((uint32_t)given, mask));
}

/* The piece whose block a lane computes. */
LCOMM_DEVICE int lcomm_piece_of_lane(uint32_t lanes) {
  uint32_t lane = lcomm_lane();
  return (lane & (lanes / 2) ? 2 : 0) + (lane & (lanes / 4) ? 1 : 0);
}

/* A lane that computes the block of this lane's piece. */
LCOMM_DEVICE uint32_t lcomm_lane_of_piece(uint32_t lanes, int piece) {
  uint32_t first = lcomm_lane() & ~(lanes - 1);
  return first + (piece & 2 ? lanes / 2 : 0) + (piece & 1 ? lanes / 4 : 0);
}

/* Magnitude bits of the largest value of the lane's block. */
LCOMM_DEVICE int32_t lcomm_block_amax(const float value[LCOMM_VALUES], uint32_t lanes) {
  int32_t most[LCOMM_PIECES];
  LCOMM_UNROLL for (int j = 0; j < LCOMM_PIECES; j++) {
    int32_t left =
        lcomm_larger(lcomm_f32_magnitude(value[4 * j]), lcomm_f32_magnitude(value[4 * j + 1]));
    int32_t right =
        lcomm_larger(lcomm_f32_magnitude(value[4 * j + 2]), lcomm_f32_magnitude(value[4 * j + 3]));
    most[j] = lcomm_larger(left, right);
  }
  uint32_t half = lanes / 2, quarter = lanes / 4;
  int last = (lcomm_lane() & half) != 0, odd = (lcomm_lane() & quarter) != 0;
  int32_t even = lcomm_exchange(last ? most[2] : most[0], last ? most[0] : most[2], half);
  int32_t next = lcomm_exchange(last ? most[3] : most[1], last ? most[1] : most[3], half);
  int32_t amax = lcomm_exchange(odd ? next : even, odd ? even : next, quarter);
  for (uint32_t mask = quarter / 2; mask > 0; mask /= 2) {
    amax = lcomm_exchange(amax, amax, mask);
  }
  return amax;
}

/* The sum of a part of each piece over the lanes of its block: for the lane's block. */
LCOMM_DEVICE uint32_t lcomm_block_sum(const uint32_t part[LCOMM_PIECES], uint32_t lanes) {
  uint32_t half = lanes / 2, quarter = lanes / 4;
  int last = (lcomm_lane() & half) != 0, odd = (lcomm_lane() & quarter) != 0;
  uint32_t even = (last ? part[2] : part[0]) + lcomm_shuffle_xor(last ? part[0] : part[2], half);
  uint32_t next = (last ? part[3] : part[1]) + lcomm_shuffle_xor(last ? part[1] : part[3], half);
  uint32_t sum = (odd ? next : even) + lcomm_shuffle_xor(odd ? even : next, quarter);
  for (uint32_t mask = quarter / 2; mask > 0; mask /= 2) {
    sum += lcomm_shuffle_xor(sum, mask);
  }
  return sum;
}

/* Does this lane write the scale of its block, and which one is that? */
LCOMM_DEVICE int lcomm_writes_scale(uint32_t lanes, uint32_t shift, const lcomm_thread_values *at,
                                    uint64_t n, uint64_t *block) {
  int piece = lcomm_piece_of_lane(lanes);
  *block = (at->local + (uint64_t)(piece * LCOMM_STEP)) >> shift;
  return (lcomm_lane() & (lanes / 4 - 1)) == 0 && *block << shift < n;
}

/* Bits of a float32 scale and of what values are multiplied with. The latter is
 * NaN or Inf in a block that is not finite, and 0 in one that is too small. */
typedef struct lcomm_integer_scale {
  uint32_t scale, inverse;
} lcomm_integer_scale;

LCOMM_DEVICE lcomm_integer_scale lcomm_integer_scale_of(int32_t amax, float top) {
  lcomm_integer_scale result = {0, 0};
  if (amax >= (int32_t)LCOMM_F32_INF_BITS) {
    int nan = amax > (int32_t)LCOMM_F32_INF_BITS;
    result.scale = result.inverse = nan ? LCOMM_F32_NAN_BITS : LCOMM_F32_INF_BITS;
  } else if (amax >= LCOMM_INTEGER_TINY_BITS) {
    float largest = lcomm_f32_from_bits((uint32_t)amax);
    result.scale = lcomm_f32_bits(largest / top);
    result.inverse = lcomm_f32_bits(top / largest);
  }
  return result;
}

#endif
