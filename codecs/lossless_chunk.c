/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#define ZSTD_STATIC_LINKING_ONLY /* contexts in memory of ours, literal compression */

#include "codecs/lossless_chunk.h"

#include <string.h>
#include <zstd.h>

enum {
  WORD = sizeof(uint32_t),
  UNTRIED = 7,     /* chunks stored untried after one that gained too little */
  HUFFMAN = -1000, /* level: tries a match at every 1000th byte */
  PLAIN = 1        /* level */
};

static const uint32_t is_frame = 0x80000000u;

/* A block of a frame, with its Huffman table, is no longer than the window. */
static const struct {
  int level, window_log; /* 0: as long as the chunk */
} settings[LCOMM_PLANE_KINDS] = {[LCOMM_PLANE_DENSE] = {HUFFMAN, 0},
                                 [LCOMM_PLANE_REPEATS] = {PLAIN, 0},
                                 [LCOMM_PLANE_MANTISSAS] = {HUFFMAN, 11},
                                 [LCOMM_PLANE_CODES] = {HUFFMAN, 12}};

static size_t compressor_size_of(int level) {
  return ZSTD_estimateCCtxSize_usingCParams(ZSTD_getCParams(level, LCOMM_CHUNK, 0));
}

static size_t compressor_size(void) {
  size_t huffman = compressor_size_of(HUFFMAN), plain = compressor_size_of(PLAIN);
  return ((huffman > plain ? huffman : plain) + 7) / 8 * 8;
}

size_t lcomm_zstd_memory(void) {
  return compressor_size() + ZSTD_estimateDCtxSize();
}

lcomm_zstd lcomm_zstd_init(void *memory) {
  size_t size = compressor_size();
  lcomm_zstd zstd = {.compressor = ZSTD_initStaticCCtx(memory, size),
                     .decompressor =
                         ZSTD_initStaticDCtx((uint8_t *)memory + size, ZSTD_estimateDCtxSize())};
  if (zstd.compressor) {
    ZSTD_CCtx_setParameter(zstd.compressor, ZSTD_c_contentSizeFlag, 1);
    ZSTD_CCtx_setParameter(zstd.compressor, ZSTD_c_checksumFlag, 0);
  }
  return zstd;
}

/* ZSTD_ps_enable, which older versions call ZSTD_lcm_huffman. */
enum { COMPRESS_LITERALS = 1 };

/* Negative levels switch the compression of literals off, unless told
 * otherwise by a parameter that zstd calls experimental: a zstd without it
 * uses its plain level. The reset ends a frame that found no room, which
 * would keep its parameters. */
static void prepare(ZSTD_CCtx *compressor, lcomm_plane_kind kind) {
  ZSTD_CCtx_reset(compressor, ZSTD_reset_session_only);
  size_t refused =
      ZSTD_CCtx_setParameter(compressor, ZSTD_c_literalCompressionMode, COMPRESS_LITERALS);
  ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel,
                         ZSTD_isError(refused) ? PLAIN : settings[kind].level);
  ZSTD_CCtx_setParameter(compressor, ZSTD_c_windowLog, settings[kind].window_log);
}

size_t lcomm_planes_bound(size_t size, size_t planes) {
  return size + (size / LCOMM_CHUNK + planes) * WORD;
}

static size_t chunk_size(size_t left) {
  return left < LCOMM_CHUNK ? left : LCOMM_CHUNK;
}

/* Bytes of the frame written, 0 when it would not be 5 % smaller: zstd stops
 * at the end of its room. */
static size_t compress(const lcomm_zstd *zstd, const uint8_t *chunk, size_t n, uint8_t *frame) {
  size_t size = ZSTD_compress2(zstd->compressor, frame, n - (n + 19) / 20, chunk, n);
  return ZSTD_isError(size) ? 0 : size;
}

static uint8_t *put_word(uint32_t word, uint8_t *bytes) {
  memcpy(bytes, &word, WORD);
  return bytes + WORD;
}

uint8_t *lcomm_plane_encode(const lcomm_zstd *zstd, lcomm_plane_kind kind, const uint8_t *plane,
                            size_t size, uint8_t *stream) {
  unsigned untried = 0;
  prepare(zstd->compressor, kind);
  for (size_t n; size > 0; plane += n, size -= n) {
    n = chunk_size(size);
    size_t frame = untried == 0 ? compress(zstd, plane, n, stream + WORD) : 0;
    if (frame > 0) {
      stream = put_word(is_frame | (uint32_t)frame, stream) + frame;
      continue;
    }
    untried = untried == 0 ? UNTRIED : untried - 1;
    stream = put_word((uint32_t)n, stream);
    memcpy(stream, plane, n);
    stream += n;
  }
  return stream;
}

/* `size` bytes are one frame, whole and alone, of n bytes. */
static const char *decompress(const lcomm_zstd *zstd, const uint8_t *frame, size_t size,
                              uint8_t *chunk, size_t n) {
  if (ZSTD_getFrameContentSize(frame, size) != n) {
    return "a frame that does not declare the size of its chunk";
  }
  if (ZSTD_findFrameCompressedSize(frame, size) != size) {
    return "a frame that does not end with its chunk";
  }
  if (ZSTD_decompressDCtx(zstd->decompressor, chunk, n, frame, size) != n) {
    return "a frame that zstd refuses";
  }
  return NULL;
}

static const char *decode_chunk(const lcomm_zstd *zstd, lcomm_stream *stream, uint8_t *chunk,
                                size_t n) {
  uint32_t word;
  if (stream->size < WORD) {
    return "a stream that ends before its planes do";
  }
  memcpy(&word, stream->bytes, WORD);
  const uint8_t *bytes = stream->bytes + WORD;
  size_t size = word & ~is_frame, left = stream->size - WORD;
  if (size > left) {
    return "a chunk that is longer than its stream";
  }
  *stream = (lcomm_stream){bytes + size, left - size};
  if ((word & is_frame) != 0) {
    return decompress(zstd, bytes, size, chunk, n);
  }
  if (size != n) {
    return "a stored chunk of another size than its plane has";
  }
  memcpy(chunk, bytes, n);
  return NULL;
}

const char *lcomm_plane_decode(const lcomm_zstd *zstd, lcomm_stream *stream, uint8_t *plane,
                               size_t size) {
  const char *wrong = NULL;
  for (size_t n; size > 0 && !wrong; plane += n, size -= n) {
    n = chunk_size(size);
    wrong = decode_chunk(zstd, stream, plane, n);
  }
  return wrong;
}
