/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CODECS_CODEC_TOPK_H
#define LCOMM_CODECS_CODEC_TOPK_H

/* Top-k sparsification: the k largest magnitudes of a view, as sorted
 * positions and values. Selection is exact; NaN ranks above Inf, Inf above
 * finite values, equal magnitudes go to the lower index.
 *
 * A *view* is part `part` of `parts` of a base array of `base_count` elements
 * (see kernels/stripe.h); parts == 1 is the whole array. A view is encoded
 * into `outputs` payloads: with outputs == 1 one payload whose positions are
 * the view's local indices; with outputs > 1 (only for parts == 1) payload o
 * holds the entries of part o of `outputs`, as local indices of that part.
 *
 * Payload, little-endian, its numbers at any address:
 *   u32 entries
 *   for each block of 32 entries one byte w (0..32) and the block's deltas in
 *     w bits each, least significant bit first, padded with zeros to whole
 *     bytes; the last block holds entries % 32 deltas if that is not 0
 *   the values in order: `entries` bf16 (LCOMM_VARIANT_PLAIN), or
 *     ceil(entries / 128) float32 scales and then `entries` int8 codes
 *     (LCOMM_TOPK_INT8), as the kernel f32_to_int8 makes them of blocks of 128
 * A delta is the distance to the previous position minus one; the first
 * position counts from -1. Positions are strictly increasing. w is the least
 * width that its block's deltas allow, so a set of positions has one
 * representation only.
 *
 * A *format* (codec.h) here is one of lcomm_codec_topk; reading needs its
 * variant alone.
 */

#include "codecs/codec.h"

/* What happens to a value that is sent. */
typedef enum lcomm_topk_keep {
  LCOMM_TOPK_RELEASE, /* residual = acc - sent: it is surely applied */
  LCOMM_TOPK_HOLD     /* residual = acc, until lcomm_topk_commit() */
} lcomm_topk_keep;

/* Number of entries kept of `count`: density * count rounded to nearest, at
 * least 1 when count > 0, at most count. */
uint64_t lcomm_topk_entries(double density, uint64_t count);

/* Entries a payload may hold when a view with `total` kept entries is split
 * over `outputs` parts of at most `part_count` elements each:
 * total when outputs == 1, else min(part_count, total, 8*total/outputs + 64 + 3*s), with s the
 * root of LCOMM_TILE*total/outputs, rounded down: large values of a layer often lie together,
 * and s is how far the entries of a part deviate from an even share when a tile is picked whole or
 * not at all. */
uint64_t lcomm_topk_capacity(uint64_t total, uint32_t outputs, uint64_t part_count);

/* Bytes of the largest payload that has at most `entries` entries and is for a
 * view of `count` elements. Grows with entries and with count. */
size_t lcomm_topk_bound(const lcomm_format *format, uint64_t entries, uint64_t count);

/* An encoder for one view: its segments and scratch memory, no state that
 * outlives a call. Made at plan time, used every step, one thread at a time. */
typedef struct lcomm_topk lcomm_topk;

typedef struct lcomm_topk_shape {
  uint64_t base_count; /* elements of the base array, below 2^32 */
  uint32_t parts, part;
  uint32_t outputs;
  const lcomm_format *format; /* copied */
  /* Ascending ends of the segments in base coordinates, the last one equal to
   * base_count: every segment keeps its own lcomm_topk_entries() of its
   * elements inside the view. Copied. One segment: selection over all. */
  const uint64_t *segment_ends;
  /* The density of each segment, above 0 and at most 1. Copied. NULL: the
   * format's, or, when that is 0, the one that keeps format->kept of the
   * segment's elements. */
  const double *segment_densities;
  size_t segments;
} lcomm_topk_shape;

/* ARGUMENT for a bad shape, MEMORY. Free with lcomm_topk_destroy (NULL ok). */
lcomm_status lcomm_topk_create(const lcomm_topk_shape *shape, lcomm_topk **topk);
void lcomm_topk_destroy(lcomm_topk *topk);

/* Entries that payload `output` can hold at most, and its bound in bytes. */
uint64_t lcomm_topk_output_capacity(const lcomm_topk *topk, uint32_t output);
size_t lcomm_topk_output_bound(const lcomm_topk *topk, uint32_t output);

/* Entries kept over all segments. */
uint64_t lcomm_topk_total(const lcomm_topk *topk);

/* The segments of the view that hold elements, in a row from its first element:
 * how many there are, and the elements of one and what is kept of them. */
size_t lcomm_topk_segments(const lcomm_topk *topk);
void lcomm_topk_segment_get(const lcomm_topk *topk, size_t segment, uint64_t *count,
                            uint64_t *kept);

/* Entries of a segment that the last lcomm_topk_encode() selected and that did not fit into their
 * payload. */
uint64_t lcomm_topk_segment_waited(const lcomm_topk *topk, size_t segment);

/* acc = base + before (residual NULL: acc = base), select, encode. `before` is the residual of the
 * step before: the same array as residual, or another one, which stays as it is.
 * residual has the geometry of base and is written as `keep` says. What does
 * not fit into its payload is not sent: the largest magnitudes go first, the
 * rest stays in the residual. payload[o] has room for
 * lcomm_topk_output_bound(o) bytes; size[o] receives its length. base is not
 * changed.
 *
 * What stays of a value that was sent is lcomm_error_kept() (element.h) of it
 * and of what the payload decodes to. A finite value is never sent as an
 * infinite bf16: it stops at the largest finite one, the rest is its error. In
 * int8 a value that is not finite spoils its block for the peers: the finite
 * values there stay in the residual in full. Values that are not finite rank
 * first and, sent or not, leave a residual of 0, whatever `keep` says: the
 * peers are told, and one bad step leaves no trace. Allocates nothing. */
void lcomm_topk_encode(lcomm_topk *topk, const lcomm_kernels *kernels, const float *base,
                       const float *before, float *residual, lcomm_topk_keep keep,
                       uint8_t *const *payload, size_t *size);

/* For the owner of a sum: select from the view of base as above (without
 * accumulating), and residual[j] += weight * lcomm_error_kept(base[j], sent
 * value) for the selected j only, 0 where that is not finite. residual may be
 * NULL. outputs must be 1. */
void lcomm_topk_encode_owner(lcomm_topk *topk, const lcomm_kernels *kernels, const float *base,
                             float *residual, float weight, uint8_t *payload, size_t *size);

/* Is this a payload for a view of `count` elements? Any bytes are allowed;
 * never reads past size. LCOMM_ERR_WIRE if it is not. The functions below
 * must only be given payloads that passed with the same format. entries may
 * be NULL. */
lcomm_status lcomm_topk_check(const lcomm_format *format, const uint8_t *payload, size_t size,
                              uint64_t count, uint64_t *entries);

/* base[global(local index)] += factor * value for every entry. */
void lcomm_topk_add(const lcomm_format *format, const uint8_t *payload, uint32_t parts,
                    uint32_t part, float factor, float *base);

/* Zero the view of base (base_count elements), then lcomm_topk_add. */
void lcomm_topk_decode(const lcomm_format *format, const uint8_t *payload, uint64_t base_count,
                       uint32_t parts, uint32_t part, float factor, float *base);

/* residual[j] = lcomm_error_kept(residual[j], value sent) for every j in
 * `sent` that is also in `applied` (both payloads of the same part and
 * format); applied NULL: for every j in `sent`. */
void lcomm_topk_commit(const lcomm_format *format, const uint8_t *sent, const uint8_t *applied,
                       uint32_t parts, uint32_t part, float *residual);

/* momentum[j] = 0 for every j that lcomm_topk_commit commits: a value that was
 * sent starts anew, else its momentum would push in a stale direction
 * (momentum factor masking, Lin et al., Deep Gradient Compression, 2018). */
void lcomm_topk_mask(const lcomm_format *format, const uint8_t *sent, const uint8_t *applied,
                     uint32_t parts, uint32_t part, float *momentum);

#endif
