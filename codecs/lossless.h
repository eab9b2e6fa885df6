/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_LOSSLESS_H
#define LCOMM_CODECS_LOSSLESS_H

/* The lossless stage: it takes a payload of any codec and makes fewer bytes of
 * it by zstd, used as an entropy coder over planes of like bytes (exponents
 * apart from mantissas, scales from codes, index deltas from values).
 *
 * Stream, little-endian. For the sparse codec first u32 entries and u32 size
 * of the delta plane. Then every plane in the order below, cut into chunks of
 * 64 KiB of plane (the last one shorter, an empty plane has none); a chunk is
 * a u32 word and its bytes: bit 31 set, one zstd frame of so many bytes as the
 * lower bits say, which declares the size of its content; bit 31 clear, the
 * chunk's bytes as they are, of which the lower bits repeat the number. A chunk
 * that zstd would make less than 5 % smaller is stored as it is, and so may be
 * any other: how hard to try is the encoder's business. Frames differ between
 * versions of zstd, what they decode to does not.
 *
 *   none               split4: planes 3, 2, 1, 0 (the exponents come last)
 *   fp16, bf16         what stands before the codes, if anything, as one
 *                      plane; then the codes by split2: planes 1, 0
 *   fp8*, int8, int4, sign, int2
 *                      what stands before the codes as one plane; the codes
 *   topk               all deltas as LEB128, each as short as can be; then bf16
 *                      values by split2: planes 1, 0; or int8 values: scales;
 *                      codes
 *
 * Planes of 2- and 4-byte numbers are those of lcomm_kernels.planes.split2, split4.
 * Every valid payload, a sparse one too, comes back byte for byte.
 */

#include "codecs/codec.h"

/* Most bytes of the stream of a payload of at most `payload_bound` bytes: a
 * word for each chunk more than the payload; of the sparse codec, whose deltas
 * may grow, 1.5 times the payload (int8 values: twice). */
size_t lcomm_lossless_bound(const lcomm_format *format, size_t payload_bound);

/* Bytes of the numbers of a codec whose bytes go to planes; 1: its codes stay as they are. */
size_t lcomm_lossless_number_size(const lcomm_codec *codec);

/* zstd contexts (0.4 MB) and scratch memory, about as much as
 * lcomm_lossless_bound(), for payloads of one format; no state that outlives a
 * call. Made at plan time, one thread at a time. */
typedef struct lcomm_lossless lcomm_lossless;

/* For payloads of at most `payload_bound` bytes. MEMORY. Free with
 * lcomm_lossless_destroy (NULL ok). */
lcomm_status lcomm_lossless_create(const lcomm_format *format, size_t payload_bound,
                                   lcomm_lossless **lossless);
void lcomm_lossless_destroy(lcomm_lossless *lossless);

/* payload: `size` bytes of a valid payload for `count` values (dense: of just
 * lcomm_payload_size(count) bytes). Writes at most lcomm_lossless_bound() bytes
 * and returns how many. Allocates nothing. */
size_t lcomm_lossless_encode(lcomm_lossless *lossless, const lcomm_kernels *kernels,
                             const uint8_t *payload, size_t size, uint64_t count, uint8_t *stream);

/* The reverse, of untrusted bytes: never reads past `size`, never writes past
 * `capacity`. The payload is a valid one for `count` values then (sparse ones
 * pass lcomm_topk_check). LCOMM_ERR_WIRE if the stream is none, and *why (may
 * be NULL) points at a static phrase. Allocates nothing. */
lcomm_status lcomm_lossless_decode(lcomm_lossless *lossless, const lcomm_kernels *kernels,
                                   const uint8_t *stream, size_t size, uint64_t count,
                                   uint8_t *payload, size_t capacity, size_t *payload_size,
                                   const char **why);

#endif
