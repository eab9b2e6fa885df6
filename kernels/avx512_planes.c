/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* AVX-512 kernels that split numbers into planes of bytes and join them. 64
 * numbers at a time; the scalar kernels process the rest. */

#include "kernels/avx512.h"
#include "kernels/avx512_vector.h"

/* Are all planes aligned to lines? */
static bool are_lines(uint8_t *const *plane, size_t planes) {
  bool aligned = true;
  for (size_t p = 0; p < planes; p++) {
    aligned &= lcomm_is_line(plane[p]);
  }
  return aligned;
}

/* --------------------------------------------------------------------------- split */

LCOMM_VECTOR void split2_unit(lcomm_path path, const uint8_t *source, uint8_t *high, uint8_t *low) {
  const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  const __m512i byte = _mm512_set1_epi16(0xff);
  __m512i high_words[2], low_words[2];
  for (size_t i = 0; i < 2; i++) {
    __m512i value = _mm512_loadu_si512(source + i * LCOMM_LINE);
    __m512i rotated = _mm512_or_si512(_mm512_slli_epi16(value, 1), _mm512_srli_epi16(value, 15));
    high_words[i] = _mm512_srli_epi16(rotated, 8);
    low_words[i] = _mm512_and_si512(rotated, byte);
  }
  __m512i highs = _mm512_packus_epi16(high_words[0], high_words[1]);
  __m512i lows = _mm512_packus_epi16(low_words[0], low_words[1]);
  lcomm_store_bits(path, high, _mm512_permutexvar_epi64(order, highs));
  lcomm_store_bits(path, low, _mm512_permutexvar_epi64(order, lows));
}

/* 16 numbers: lane l of the result holds, of numbers 4 * l to 4 * l + 3, the
 * top bytes, then the next ones, and so on. */
LCOMM_VECTOR __m512i planes_of_lanes(const uint8_t *source) {
  const __m512i by_plane = _mm512_set4_epi32(0x0c080400, 0x0d090501, 0x0e0a0602, 0x0f0b0703);
  __m512i rotated = _mm512_rol_epi32(_mm512_loadu_si512(source), 1);
  return _mm512_shuffle_epi8(rotated, by_plane);
}

LCOMM_VECTOR void split4_unit(lcomm_path path, const uint8_t *source, uint8_t *const plane[4],
                              size_t at) {
  /* Two planes of two vectors, 8 dwords each */
  const __m512i upper = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
  const __m512i lower = _mm512_add_epi32(upper, _mm512_set1_epi32(2));
  __m512i a = planes_of_lanes(source), b = planes_of_lanes(source + 64);
  __m512i c = planes_of_lanes(source + 128), d = planes_of_lanes(source + 192);
  __m512i ab = _mm512_permutex2var_epi32(a, upper, b), cd = _mm512_permutex2var_epi32(c, upper, d);
  lcomm_store_bits(path, plane[0] + at, _mm512_shuffle_i64x2(ab, cd, 0x44));
  lcomm_store_bits(path, plane[1] + at, _mm512_shuffle_i64x2(ab, cd, 0xee));
  ab = _mm512_permutex2var_epi32(a, lower, b);
  cd = _mm512_permutex2var_epi32(c, lower, d);
  lcomm_store_bits(path, plane[2] + at, _mm512_shuffle_i64x2(ab, cd, 0x44));
  lcomm_store_bits(path, plane[3] + at, _mm512_shuffle_i64x2(ab, cd, 0xee));
}

/* `planes` is 2 or 4, the bytes of a number. */
LCOMM_VECTOR void split(size_t planes, lcomm_path path, const uint8_t *source,
                        uint8_t *const *plane, size_t n) {
  size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    for (size_t line = 0; line < planes; line++) {
      lcomm_prefetch(source + planes * i + line * LCOMM_LINE, LCOMM_AHEAD);
    }
    if (planes == 2) {
      split2_unit(path, source + 2 * i, plane[0] + i, plane[1] + i);
    } else {
      split4_unit(path, source + 4 * i, plane, i);
    }
  }
  uint8_t *rest[4];
  for (size_t p = 0; p < planes; p++) {
    rest[p] = plane[p] + i;
  }
  (planes == 2 ? lcomm_kernels_scalar.planes.split2
               : lcomm_kernels_scalar.planes.split4)(source + planes * i, rest, n - i);
}

LCOMM_VECTOR void split_all(size_t planes, const uint8_t *source, uint8_t *const *plane, size_t n) {
  if (n < LCOMM_STREAM_COUNT || !are_lines(plane, planes)) {
    split(planes, LCOMM_CACHED, source, plane, n);
    return;
  }
  split(planes, LCOMM_STREAMED, source, plane, n);
  _mm_sfence();
}

void lcomm_avx512_split2(const uint8_t *source, uint8_t *const plane[2], size_t n) {
  split_all(2, source, plane, n);
}

void lcomm_avx512_split4(const uint8_t *source, uint8_t *const plane[4], size_t n) {
  split_all(4, source, plane, n);
}

/* ---------------------------------------------------------------------------- join */

LCOMM_VECTOR void join2_unit(lcomm_path path, const uint8_t *high, const uint8_t *low,
                             uint8_t *destination) {
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  __m512i highs = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(high));
  __m512i lows = _mm512_permutexvar_epi64(order, _mm512_loadu_si512(low));
  __m512i words[2] = {_mm512_unpacklo_epi8(lows, highs), _mm512_unpackhi_epi8(lows, highs)};
  for (size_t i = 0; i < 2; i++) {
    __m512i rotated =
        _mm512_or_si512(_mm512_srli_epi16(words[i], 1), _mm512_slli_epi16(words[i], 15));
    lcomm_store_bits(path, destination + i * LCOMM_LINE, rotated);
  }
}

/* 64 bytes of a plane; lane l holds dwords l, l + 4, l + 8 and l + 12, so that
 * what is unpacked within the lanes comes out in order. */
LCOMM_VECTOR __m512i plane_at(const uint8_t *plane) {
  return lcomm_in_order(_mm512_loadu_si512(plane));
}

LCOMM_VECTOR void join4_unit(lcomm_path path, const uint8_t *const plane[4], size_t at,
                             uint8_t *destination) {
  __m512i a = plane_at(plane[0] + at), b = plane_at(plane[1] + at);
  __m512i c = plane_at(plane[2] + at), d = plane_at(plane[3] + at);
  __m512i top_low = _mm512_unpacklo_epi8(b, a), top_high = _mm512_unpackhi_epi8(b, a);
  __m512i end_low = _mm512_unpacklo_epi8(d, c), end_high = _mm512_unpackhi_epi8(d, c);
  const __m512i value[4] = {
      _mm512_unpacklo_epi16(end_low, top_low), _mm512_unpackhi_epi16(end_low, top_low),
      _mm512_unpacklo_epi16(end_high, top_high), _mm512_unpackhi_epi16(end_high, top_high)};
  for (size_t v = 0; v < 4; v++) {
    lcomm_store_bits(path, destination + v * LCOMM_LINE, _mm512_ror_epi32(value[v], 1));
  }
}

LCOMM_VECTOR void join(size_t planes, lcomm_path path, const uint8_t *const *plane,
                       uint8_t *destination, size_t n) {
  size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    if (planes == 2) {
      join2_unit(path, plane[0] + i, plane[1] + i, destination + 2 * i);
    } else {
      join4_unit(path, plane, i, destination + 4 * i);
    }
  }
  const uint8_t *rest[4];
  for (size_t p = 0; p < planes; p++) {
    rest[p] = plane[p] + i;
  }
  (planes == 2 ? lcomm_kernels_scalar.planes.join2
               : lcomm_kernels_scalar.planes.join4)(rest, destination + planes * i, n - i);
}

LCOMM_VECTOR void join_all(size_t planes, const uint8_t *const *plane, uint8_t *destination,
                           size_t n) {
  if (n < LCOMM_STREAM_COUNT || !lcomm_is_line(destination)) {
    join(planes, LCOMM_CACHED, plane, destination, n);
    return;
  }
  join(planes, LCOMM_STREAMED, plane, destination, n);
  _mm_sfence();
}

void lcomm_avx512_join2(const uint8_t *const plane[2], uint8_t *destination, size_t n) {
  join_all(2, plane, destination, n);
}

void lcomm_avx512_join4(const uint8_t *const plane[4], uint8_t *destination, size_t n) {
  join_all(4, plane, destination, n);
}
