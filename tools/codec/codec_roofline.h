/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_ROOFLINE_H
#define LCOMM_TOOLS_CODEC_CODEC_ROOFLINE_H

/* Rooflines: what a kernel is measured against. A roofline reads and writes the same
 * bytes as a kernel and computes nothing but the exclusive or of what it reads,
 * as fast as one thread of this machine moves memory: with AVX-512, AVX2 or
 * plain C, whichever the processor has, storing past the caches from
 * LCOMM_STREAM_COUNT elements on, as the kernels do. kernel time / roofline time
 * says how far a kernel is from the limit, on any machine.
 *
 * Run kernel and roofline in turns, in one process, and take the median of the
 * ratios: other load then disturbs both alike. What codec_bench prints calls the
 * roofline a floor. */

#include <stdbool.h>
#include <stddef.h>

typedef struct lcomm_roofline {
  const char *name;    /* r4w2: reads 4 bytes and writes 2 for each element; r2rw4: also reads
                          what it overwrites */
  double source_bytes; /* per element */
  double destination_bytes;
  bool accumulates;
} lcomm_roofline;

/* n elements; every byte of both arrays is touched. The arrays must not overlap. Stores past the
 * caches need a destination aligned to 64 bytes. */
void lcomm_roofline_run(const lcomm_roofline *roofline, const void *source, void *destination,
                        size_t n);

/* All rooflines, ended by one without a name. */
extern const lcomm_roofline lcomm_rooflines[];

/* The roofline of this shape, NULL when there is none. */
const lcomm_roofline *lcomm_roofline_find(double source_bytes, double destination_bytes,
                                          bool accumulates);

/* The instructions that the rooflines use here: "avx512", "avx2" or "plain". */
const char *lcomm_roofline_instructions(void);

#endif
