/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Conversions of the kernels for oracle.py to compare:
 *
 *   oracle tables                 names of the tables that run here, "element" first
 *   oracle encode TABLE FORMAT    float32 on stdin, codes on stdout
 *   oracle decode TABLE FORMAT    all codes in order: float32 on stdout
 *   oracle scales TABLE FORMAT    the same under each of the 256 scale bytes
 *   oracle compiler TABLE         against _Float16; 0: equal, 1: not, 77: no _Float16
 *
 * "element" is the functions of kernels/element.h without a kernel around them.
 * FORMAT is fp16, bf16, fp16_block, e4m3 or e5m2. Kernels with scales get the
 * largest value of their format in each block, so that its scale is 1.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/element.h"
#include "kernels/kernels.h"

enum { SKIPPED = 77, CHUNK = 50000 };

typedef enum format { FP16, BF16, FP16_BLOCK, E4M3, E5M2, FORMATS } format;

static const char *const names[FORMATS] = {"fp16", "bf16", "fp16_block", "e4m3", "e5m2"};

static size_t code_size(format f) {
  return f == E4M3 || f == E5M2 ? 1 : 2;
}

static void encode_element(format f, const float *source, uint8_t *code, size_t n) {
  for (size_t i = 0; i < n; i++) {
    uint16_t wide = f == BF16 ? lcomm_f32_to_bf16(source[i]) : lcomm_f32_to_f16(source[i]);
    if (f == E4M3 || f == E5M2) {
      code[i] = f == E4M3 ? lcomm_f32_to_e4m3(source[i]) : lcomm_f32_to_e5m2(source[i]);
    } else {
      memcpy(code + 2 * i, &wide, sizeof wide);
    }
  }
}

static void encode(const lcomm_kernels *kernels, format f, size_t block, const float *source,
                   uint8_t *code, uint8_t *scale, size_t n) {
  uint16_t *wide = (uint16_t *)(void *)code;
  switch (f) {
  case FP16:
    kernels->half.f32_to_f16(source, 1.0f, wide, n);
    break;
  case BF16:
    kernels->half.f32_to_bf16(source, wide, n);
    break;
  case FP16_BLOCK:
    kernels->f16_block.f32_to_f16_block(source, wide, scale, n);
    break;
  default:
    kernels->f32_to_fp8[f == E4M3 ? LCOMM_E4M3 : LCOMM_E5M2](source, block, code, scale, n);
  }
}

/* Values with the largest one before each group of them, so that all blocks
 * have the scale 1. Returns whether they do. */
static int encode_groups(const lcomm_kernels *kernels, format f, size_t block, const float *source,
                         uint8_t *code, size_t n) {
  static float padded[2 * CHUNK];
  static uint16_t codes[2 * CHUNK];
  static uint8_t scale[CHUNK];
  const uint8_t *made = (const uint8_t *)codes;
  size_t group = block - 1, blocks = (n + group - 1) / group, size = code_size(f);
  for (size_t b = 0; b < blocks; b++) {
    size_t length = n - b * group < group ? n - b * group : group;
    padded[b * block] = f == E4M3 ? 448.0f : 57344.0f;
    memcpy(padded + b * block + 1, source + b * group, length * sizeof *source);
  }
  encode(kernels, f, block, padded, (uint8_t *)codes, scale, n + blocks);
  int good = 1;
  for (size_t b = 0; b < blocks; b++) {
    size_t length = n - b * group < group ? n - b * group : group;
    memcpy(code + b * group * size, made + (b * block + 1) * size, length * size);
    good = good && scale[b] == LCOMM_E8M0_ONE;
  }
  return good;
}

static int encode_all(const lcomm_kernels *kernels, format f) {
  static float source[CHUNK];
  static uint16_t code[CHUNK];
  uint8_t *bytes = (uint8_t *)code;
  int good = 1;
  size_t block = LCOMM_BLOCK;
  for (size_t n = 1; n > 0;) {
    n = fread(source, sizeof *source, CHUNK, stdin);
    if (!kernels) {
      encode_element(f, source, bytes, n);
    } else if (f == FP16 || f == BF16) {
      encode(kernels, f, block, source, bytes, NULL, n);
    } else {
      good = good && encode_groups(kernels, f, block, source, bytes, n);
    }
    good = good && fwrite(bytes, code_size(f), n, stdout) == n;
    if (code_size(f) == 1) { /* the kernels of fp8 have blocks of 128, 64 and 32 */
      block = block == 32 ? LCOMM_BLOCK : block / 2;
    }
  }
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static float decode_element(format f, uint16_t code) {
  switch (f) {
  case BF16:
    return lcomm_bf16_to_f32(code);
  case E4M3:
    return lcomm_e4m3_to_f32((uint8_t)code);
  case E5M2:
    return lcomm_e5m2_to_f32((uint8_t)code);
  default:
    return lcomm_f16_to_f32(code);
  }
}

static void decode(const lcomm_kernels *kernels, format f, const uint16_t *wide,
                   const uint8_t *scale, float *value, size_t n) {
  const uint8_t *code = (const uint8_t *)wide;
  switch (f) {
  case FP16:
    kernels->half.f16_to_f32(wide, 1.0f, value, n);
    break;
  case BF16:
    kernels->half.bf16_to_f32(wide, 1.0f, value, n);
    break;
  case FP16_BLOCK:
    kernels->f16_block.f16_block_to_f32(wide, scale, 1.0f, value, n);
    break;
  default:
    kernels->fp8_to_f32[f == E4M3 ? LCOMM_E4M3 : LCOMM_E5M2](code, scale, LCOMM_BLOCK, 1.0f, value,
                                                             n);
  }
}

/* Copies of each code next to each other: a block without NaN may be decoded in
 * another way than one with it. */
static size_t copies_of(format f) {
  return code_size(f) == 1 ? LCOMM_BLOCK : 1;
}

static void fill_codes(format f, uint16_t *code, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (code_size(f) == 2) {
      code[i] = (uint16_t)i;
    } else {
      ((uint8_t *)code)[i] = (uint8_t)(i / LCOMM_BLOCK);
    }
  }
}

/* One value of each code; returns whether all copies have the same. */
static int write_values(const float *value, size_t count, size_t copies) {
  int good = 1;
  for (size_t i = 0; i < count; i += copies) {
    for (size_t copy = 1; copy < copies; copy++) {
      good = good && memcmp(&value[i], &value[i + copy], sizeof *value) == 0;
    }
    good = good && fwrite(&value[i], sizeof *value, 1, stdout) == 1;
  }
  return good;
}

static int decode_all(const lcomm_kernels *kernels, format f, unsigned first, unsigned last) {
  static uint16_t code[1 << 16];
  static uint8_t scale[(1 << 16) / LCOMM_BLOCK];
  static float value[1 << 16];
  size_t copies = copies_of(f), count = ((size_t)1 << 8 * code_size(f)) * copies;
  int good = 1;
  fill_codes(f, code, count);
  for (unsigned s = first; s <= last; s++) {
    memset(scale, (int)s, sizeof scale);
    if (kernels) {
      decode(kernels, f, code, scale, value, count);
    }
    for (size_t i = 0; kernels == NULL && i < count; i++) {
      value[i] = lcomm_e8m0_to_f32((uint8_t)s) * decode_element(f, (uint16_t)(i / copies));
    }
    good = write_values(value, count, copies) && good;
  }
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

#if defined(__FLT16_MAX__) && !defined(__clang__)
static int compare_compiler(const lcomm_kernels *kernels) {
  enum { N = 1 << 12, ROUNDS = 2500 };
  static float source[N];
  static uint16_t code[N];
  uint64_t random = 1;
  for (int round = 0; round < ROUNDS; round++) {
    for (size_t i = 0; i < N; i++) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      source[i] = lcomm_f32_from_bits((uint32_t)(random >> 32));
    }
    kernels->half.f32_to_f16(source, 1.0f, code, N);
    for (size_t i = 0; i < N; i++) {
      _Float16 expected = (_Float16)source[i], made;
      memcpy(&made, &code[i], sizeof made);
      int same = memcmp(&made, &expected, sizeof made) == 0;
      if (!same && (made == made || expected == expected)) {
        return EXIT_FAILURE;
      }
    }
  }
  return EXIT_SUCCESS;
}
#else
static int compare_compiler(const lcomm_kernels *kernels) {
  (void)kernels;
  return SKIPPED;
}
#endif

/* Two tables may have one name, being the same instructions and some more: the
 * second one is NAME.2 here. */
static void name_table(size_t index, char name[32]) {
  const lcomm_kernels *const *list = lcomm_kernels_list;
  unsigned number = 1;
  for (size_t i = 0; i < index; i++) {
    number += strcmp(list[i]->name, list[index]->name) == 0;
  }
  if (number == 1) {
    snprintf(name, 32, "%s", list[index]->name);
  } else {
    snprintf(name, 32, "%s.%u", list[index]->name, number);
  }
}

static int list_tables(void) {
  char name[32];
  puts("element");
  for (size_t i = 0; lcomm_kernels_list[i] != NULL; i++) {
    name_table(i, name);
    if (lcomm_kernels_runs(lcomm_kernels_list[i])) {
      puts(name);
    }
  }
  return EXIT_SUCCESS;
}

static const lcomm_kernels *table_of(const char *wanted) {
  char name[32];
  for (size_t i = 0; lcomm_kernels_list[i] != NULL; i++) {
    name_table(i, name);
    if (strcmp(name, wanted) == 0 && lcomm_kernels_runs(lcomm_kernels_list[i])) {
      return lcomm_kernels_list[i];
    }
  }
  return NULL;
}

static format format_of(const char *name) {
  format f = FP16;
  while (f < FORMATS && strcmp(names[f], name) != 0) {
    f++;
  }
  return f;
}

static int usage(void) {
  fputs("usage: oracle tables | {encode|decode|scales} TABLE FORMAT | compiler TABLE\n", stderr);
  return 2;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "tables") == 0) {
    return list_tables();
  }
  if (argc < 3) {
    return usage();
  }
  const lcomm_kernels *kernels = table_of(argv[2]);
  if (!kernels && strcmp(argv[2], "element") != 0) {
    return usage();
  }
  if (strcmp(what, "compiler") == 0 && kernels) {
    return compare_compiler(kernels);
  }
  format f = argc == 4 ? format_of(argv[3]) : FORMATS;
  if (f == FORMATS) {
    return usage();
  }
  if (strcmp(what, "encode") == 0) {
    return encode_all(kernels, f);
  }
  if (strcmp(what, "decode") == 0) {
    return decode_all(kernels, f, LCOMM_E8M0_ONE, LCOMM_E8M0_ONE);
  }
  return strcmp(what, "scales") == 0 ? decode_all(kernels, f, 0, 255) : usage();
}
