/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Arrays are cut into units of 128 elements; a unit is `reads` cache lines of
 * the source and `writes` lines of the destination. Both numbers are constants
 * wherever the loops are inlined. */

#include "tools/codec/codec_roofline.h"

#include <stdint.h>
#include <string.h>

#include "kernels/kernels.h"

#if defined __x86_64__
#include <immintrin.h>
#endif

enum { LINE = 64, AHEAD = 2048 };

typedef enum shape {
  R4W2,
  R4W1,
  R4W05,
  R4W025,
  R4W0125,
  R4W4,
  R2W4,
  R1W4,
  R05W4,
  R025W4,
  R0125W4,
  R2RW4,
  R1RW4,
  R05RW4,
  R025RW4,
  R0125RW4,
  R4RW4,
  SHAPES
} shape;

typedef enum stores { REGULAR, STREAMED, ADDED } stores;

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Cache lines of a unit */
typedef struct unit_lines {
  size_t reads, writes;
} unit_lines;

static const unit_lines lines_of[SHAPES] = {
    [R4W2] = {8, 4},     [R4W1] = {8, 2},    [R4W05] = {8, 1},    [R4W4] = {8, 8},
    [R2W4] = {4, 8},     [R1W4] = {2, 8},    [R05W4] = {1, 8},    [R2RW4] = {4, 8},
    [R1RW4] = {2, 8},    [R05RW4] = {1, 8},  [R4RW4] = {8, 8},    [R4W025] = {16, 1},
    [R4W0125] = {32, 1}, [R025W4] = {1, 16}, [R0125W4] = {1, 32}, [R025RW4] = {1, 16},
    [R0125RW4] = {1, 32}};

/* Elements of a unit: one side has float32. */
static size_t unit_of(shape kind) {
  unit_lines lines = lines_of[kind];
  return (lines.reads > lines.writes ? lines.reads : lines.writes) * (LINE / sizeof(float));
}

static bool is_added(shape kind) {
  return kind >= R2RW4;
}

/* What is left after the last unit, byte by byte. */
static void run_rest(shape kind, const char *source, char *destination, size_t n) {
  size_t unit = unit_of(kind);
  size_t source_size = n * lines_of[kind].reads * LINE / unit;
  size_t size = n * lines_of[kind].writes * LINE / unit;
  char folded = 0;
  for (size_t i = 0; i < source_size; i++) {
    folded = (char)(folded ^ source[i]);
  }
  for (size_t i = 0; i < size; i++) {
    destination[i] = (char)(is_added(kind) ? destination[i] ^ folded : folded);
  }
}

typedef void (*units_fn)(shape kind, stores how, const char *source, char *destination,
                         size_t units);

/* Plain C */

static void plain_units(shape kind, stores how, const char *source, char *destination,
                        size_t units) {
  size_t reads = lines_of[kind].reads, writes = lines_of[kind].writes;
  for (size_t line = 0; line < units * writes; line++) {
    size_t first = line * reads / writes, end = (line + 1) * reads / writes;
    uint64_t words[LINE / sizeof(uint64_t)], other[LINE / sizeof(uint64_t)];
    memcpy(words, source + first * LINE, LINE);
    for (size_t read = first + 1; read < end; read++) {
      memcpy(other, source + read * LINE, LINE);
      for (size_t i = 0; i < LINE / sizeof *words; i++) {
        words[i] ^= other[i];
      }
    }
    memset(other, 0, LINE);
    if (how == ADDED) {
      memcpy(other, destination + line * LINE, LINE);
    }
    for (size_t i = 0; i < LINE / sizeof *words; i++) {
      words[i] ^= other[i];
    }
    memcpy(destination + line * LINE, words, LINE);
  }
}

#if defined __x86_64__

/* Asks for the unit that follows in 2 KiB; it may lie past the end. */
ALWAYS_INLINE void prefetch_unit(unit_lines lines, const char *source) {
  for (size_t line = 0; line < lines.reads; line++) {
    _mm_prefetch((const char *)((uintptr_t)source + AHEAD + line * LINE), _MM_HINT_T0);
  }
}

/* AVX-512 */

__attribute__((target("avx512f"))) ALWAYS_INLINE void
avx512_line(size_t reads, stores how, const char *source, char *destination) {
  __m512i value = _mm512_loadu_si512(source);
  for (size_t read = 1; read < reads; read++) {
    value = _mm512_xor_si512(value, _mm512_loadu_si512(source + read * LINE));
  }
  if (how == ADDED) {
    value = _mm512_xor_si512(value, _mm512_loadu_si512(destination));
  }
  if (how == STREAMED) {
    _mm512_stream_si512((__m512i *)(void *)destination, value);
  } else {
    _mm512_storeu_si512((__m512i *)(void *)destination, value);
  }
}

#define ISA(name) avx512_##name
#define TARGET __attribute__((target("avx512f")))
#include "tools/codec/codec_roofline_body.h"
#undef ISA
#undef TARGET

/* AVX2 */

__attribute__((target("avx2"))) ALWAYS_INLINE void
avx2_half(size_t reads, stores how, const char *source, char *destination) {
  __m256i value = _mm256_loadu_si256((const __m256i *)(const void *)(source));
  for (size_t read = 1; read < reads; read++) {
    value = _mm256_xor_si256(
        value, _mm256_loadu_si256((const __m256i *)(const void *)(source + read * LINE)));
  }
  if (how == ADDED) {
    value =
        _mm256_xor_si256(value, _mm256_loadu_si256((const __m256i *)(const void *)(destination)));
  }
  if (how == STREAMED) {
    _mm256_stream_si256((__m256i *)(void *)destination, value);
  } else {
    _mm256_storeu_si256((__m256i *)(void *)destination, value);
  }
}

__attribute__((target("avx2"))) ALWAYS_INLINE void
avx2_line(size_t reads, stores how, const char *source, char *destination) {
  avx2_half(reads, how, source, destination);
  avx2_half(reads, how, source + LINE / 2, destination + LINE / 2);
}

#define ISA(name) avx2_##name
#define TARGET __attribute__((target("avx2")))
#include "tools/codec/codec_roofline_body.h"
#undef ISA
#undef TARGET

#endif

typedef struct instructions {
  const char *name;
  units_fn units;
} instructions;

static instructions best(void) {
#if defined __x86_64__
  if (__builtin_cpu_supports("avx512f")) {
    return (instructions){"avx512", avx512_units};
  }
  if (__builtin_cpu_supports("avx2")) {
    return (instructions){"avx2", avx2_units};
  }
#endif
  return (instructions){"plain", plain_units};
}

const char *lcomm_roofline_instructions(void) {
  return best().name;
}

void lcomm_roofline_run(const lcomm_roofline *roofline, const void *source, void *destination,
                        size_t n) {
  shape kind = (shape)(roofline - lcomm_rooflines);
  bool aligned = (uintptr_t)destination % LINE == 0;
  stores how = n >= LCOMM_STREAM_COUNT && aligned ? STREAMED : REGULAR;
  size_t unit = unit_of(kind), units = n / unit;
  best().units(kind, is_added(kind) ? ADDED : how, source, destination, units);
  run_rest(kind, (const char *)source + units * lines_of[kind].reads * LINE,
           (char *)destination + units * lines_of[kind].writes * LINE, n % unit);
#if defined __x86_64__
  _mm_sfence();
#endif
}

const lcomm_roofline lcomm_rooflines[] = {
    [R4W2] = {"r4w2", 4, 2, false},          [R4W1] = {"r4w1", 4, 1, false},
    [R4W05] = {"r4w0.5", 4, 0.5, false},     [R4W4] = {"r4w4", 4, 4, false},
    [R2W4] = {"r2w4", 2, 4, false},          [R1W4] = {"r1w4", 1, 4, false},
    [R05W4] = {"r0.5w4", 0.5, 4, false},     [R2RW4] = {"r2rw4", 2, 4, true},
    [R1RW4] = {"r1rw4", 1, 4, true},         [R05RW4] = {"r0.5rw4", 0.5, 4, true},
    [R4RW4] = {"r4rw4", 4, 4, true},         [SHAPES] = {NULL, 0, 0, false},
    [R4W025] = {"r4w0.25", 4, 0.25, false},  [R4W0125] = {"r4w0.125", 4, 0.125, false},
    [R025W4] = {"r0.25w4", 0.25, 4, false},  [R0125W4] = {"r0.125w4", 0.125, 4, false},
    [R025RW4] = {"r0.25rw4", 0.25, 4, true}, [R0125RW4] = {"r0.125rw4", 0.125, 4, true},
};

const lcomm_roofline *lcomm_roofline_find(double source_bytes, double destination_bytes,
                                          bool accumulates) {
  for (const lcomm_roofline *roofline = lcomm_rooflines; roofline->name != NULL; roofline++) {
    if (roofline->source_bytes == source_bytes &&
        roofline->destination_bytes == destination_bytes && roofline->accumulates == accumulates) {
      return roofline;
    }
  }
  return NULL;
}
