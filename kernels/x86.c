/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* x86-64: the tables there are, what the processor and the system support, and
 * the floating-point environment of SSE and AVX. */

#include <cpuid.h>
#include <xmmintrin.h>

#include "kernels/avx2.h"
#include "kernels/avx512.h"
#include "kernels/kernels.h"

const lcomm_kernels *const lcomm_kernels_list[] = {&lcomm_kernels_scalar, &lcomm_kernels_avx2,
                                                   &lcomm_kernels_avx512,
                                                   &lcomm_kernels_avx512_vbmi, NULL};

/* Feature bits, leaf 1 and leaf 7 of CPUID. */
enum {
  LEAF1_ECX =
      1u << 23 /* POPCNT */ | 1u << 27 /* OSXSAVE */ | 1u << 28 /* AVX */ | 1u << 29 /* F16C */,
  LEAF7_EBX_AVX2 = 1u << 3 | 1u << 5 | 1u << 8, /* BMI1, AVX2, BMI2 */
  LEAF7_ECX_VBMI = 1u << 1,
  EXTENDED_ECX_LZCNT = 1u << 5,
  STATE_AVX = 0x6,    /* XMM and YMM are saved by the system */
  STATE_AVX512 = 0xe0 /* and masks and ZMM */
};

/* F, DQ, BW and VL */
static const unsigned leaf7_ebx_avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;

static unsigned saved_state(void) {
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

typedef enum level { LEVEL_UNKNOWN, LEVEL_NONE, LEVEL_AVX2, LEVEL_AVX512, LEVEL_VBMI } level;

static bool has(unsigned bits, unsigned wanted) {
  return (bits & wanted) == wanted;
}

static level ask(void) {
  unsigned a, b, c, d, extended;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, LEAF1_ECX)) {
    return LEVEL_NONE;
  }
  unsigned state = saved_state();
  if (!has(state, STATE_AVX) || !__get_cpuid(0x80000001u, &a, &b, &extended, &d) ||
      !has(extended, EXTENDED_ECX_LZCNT)) {
    return LEVEL_NONE;
  }
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has(b, LEAF7_EBX_AVX2)) {
    return LEVEL_NONE;
  }
  if (!has(state, STATE_AVX512) || !has(b, leaf7_ebx_avx512)) {
    return LEVEL_AVX2;
  }
  return has(c, LEAF7_ECX_VBMI) ? LEVEL_VBMI : LEVEL_AVX512;
}

/* CPUID is executed once: under a hypervisor it traps, which takes microseconds.
 * Threads that do so at the same time get the same result. */
static level level_here(void) {
  static _Atomic int known = LEVEL_UNKNOWN;
  if (known == LEVEL_UNKNOWN) {
    known = (int)ask();
  }
  return (level)known;
}

bool lcomm_kernels_runs(const lcomm_kernels *kernels) {
  if (kernels == &lcomm_kernels_scalar) {
    return true;
  }
  level needed = kernels == &lcomm_kernels_avx2     ? LEVEL_AVX2
                 : kernels == &lcomm_kernels_avx512 ? LEVEL_AVX512
                                                    : LEVEL_VBMI;
  return level_here() >= needed;
}

/* Exceptions masked, round to nearest, subnormals kept; the six lowest bits
 * only record what happened. */
enum { STANDARD = 0x1f80, RECORDS = 0x3f };

uint32_t lcomm_fp_enter(void) {
  uint32_t environment = _mm_getcsr();
  if ((environment & ~(uint32_t)RECORDS) != STANDARD) {
    _mm_setcsr(STANDARD);
  }
  return environment;
}

void lcomm_fp_leave(uint32_t environment) {
  if ((environment & ~(uint32_t)RECORDS) != STANDARD) {
    _mm_setcsr(environment);
  }
}
