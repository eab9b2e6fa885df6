/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Frames: the data of a piece to a header and a payload, and back. */

#include "libcomm/engine/pair_frame.h"

#include <stdlib.h>
#include <string.h>

#include "codecs/codec_residual.h"
#include "codecs/wire.h"
#include "libcomm/base/assert.h"
#include "libcomm/base/clock.h"
#include "libcomm/plan/pipe.h"

enum { ALIGN = 64, LEAST_ELEMENT = 2 /* bytes, of types that are encoded */ };

/* ------------------------------------------------------------------ memory */

static uint64_t elements_of(const lcomm_pair_message *it, size_t size) {
  return size / lcomm_dtype_size(it->what.dtype);
}

static bool make_coder(lcomm_pair_coder *coder) {
  if (!coder->values) {
    coder->values =
        aligned_alloc(ALIGN, LCOMM_PAIR_FRAME_PIECE / LEAST_ELEMENT * sizeof *coder->values);
  }
  if (!coder->payload) {
    coder->payload = aligned_alloc(ALIGN, LCOMM_PAIR_FRAME_ROOM);
  }
  return coder->values && coder->payload;
}

static lcomm_status create_lossless(const lcomm_pair_message *it, lcomm_lossless **lossless) {
  uint64_t most = elements_of(it, LCOMM_PAIR_FRAME_PIECE);
  return lcomm_lossless_create(&it->format, lcomm_payload_size(&it->format, most), lossless);
}

static lcomm_status make_lossless(lcomm_pair_coder *coder, const lcomm_pair_message *it) {
  lcomm_lossless **lossless = &coder->lossless[it->what.dtype];
  lcomm_format *format = &coder->formats[it->what.dtype];
  if (*lossless && lcomm_format_equal(format, &it->format)) {
    return LCOMM_OK;
  }
  lcomm_lossless_destroy(*lossless);
  *lossless = NULL;
  *format = it->format;
  return create_lossless(it, lossless);
}

/* A graph keeps its format when the policy changes. */
static lcomm_status take_lossless(lcomm_pair_coder *coder, lcomm_pair_message *it) {
  if (it->graph_channel > 0) {
    return create_lossless(it, &it->lossless);
  }
  LCOMM_TRY(make_lossless(coder, it));
  it->lossless = coder->lossless[it->what.dtype];
  return LCOMM_OK;
}

lcomm_status lcomm_pair_frame_prepare(lcomm_comm *comm, lcomm_pair_queue *queue,
                                      lcomm_pair_message *it) {
  if (it->size == 0 || !lcomm_pair_header_is_framed(&it->what)) {
    return LCOMM_OK;
  }
  if (!queue->wire) {
    queue->wire = aligned_alloc(ALIGN, (size_t)LCOMM_PAIR_WINDOW * LCOMM_PAIR_FRAME_ROOM);
  }
  if (!queue->wire || !make_coder(&comm->pairs->coder)) {
    return LCOMM_ERR_MEMORY;
  }
  it->wire = queue->wire;
  return it->format.zstd ? take_lossless(&comm->pairs->coder, it) : LCOMM_OK;
}

void lcomm_pair_frames_free(lcomm_comm *comm) {
  lcomm_pair_coder *coder = &comm->pairs->coder;
  for (int peer = 0; peer < comm->size; peer++) {
    free(comm->pairs->out[peer].wire);
    free(comm->pairs->in[peer].wire);
  }
  for (int i = 0; i < LCOMM_PAIR_CODED_TYPES; i++) {
    lcomm_lossless_destroy(coder->lossless[i]);
  }
  free(coder->values);
  free(coder->payload);
}

/* ------------------------------------------------------------------ headers */

/* All but the payload's size and its checksum. */
static lcomm_wire_header header_of(const lcomm_pair_message *it, uint32_t piece, uint64_t count) {
  return (lcomm_wire_header){.version = LCOMM_WIRE_VERSION,
                             .codec = it->what.codec,
                             .dtype = (uint8_t)it->what.dtype,
                             .flags = it->what.flags,
                             .parameters = piece,
                             .sequence = it->what.number,
                             .count = count};
}

/* NULL, or why it is no header of this piece with so many bytes behind it. */
static const char *refuse_header(const lcomm_pair_message *it, const lcomm_wire_header *wanted,
                                 const uint8_t *frame, size_t size, lcomm_wire_header *header) {
  const char *why = NULL;
  if (lcomm_wire_unpack(frame, size, header, &why) != LCOMM_OK) {
    return why;
  }
  if (header->codec != wanted->codec || header->dtype != wanted->dtype ||
      header->flags != wanted->flags || header->count != wanted->count) {
    return "a piece of another format or length";
  }
  if (header->parameters != wanted->parameters || header->sequence != wanted->sequence) {
    return "another piece than the next one";
  }
  if (header->payload_size != size - LCOMM_WIRE_HEADER_SIZE) {
    return "a payload of another size than its header says";
  }
  bool checked = (it->what.flags & LCOMM_WIRE_CHECKSUM) != 0;
  const uint8_t *payload = frame + LCOMM_WIRE_HEADER_SIZE;
  return checked && lcomm_wire_checksum(payload, header->payload_size) != header->checksum
             ? "a payload whose checksum is another one"
             : NULL;
}

/* ----------------------------------------------------------------- payloads */

static size_t payload_size(const lcomm_pair_message *it, size_t size) {
  return lcomm_pipe_is_plain(&it->format, it->what.dtype)
             ? size
             : lcomm_payload_size(&it->format, elements_of(it, size));
}

/* For stochastic rounding: another number for each piece of all messages. */
static uint64_t seed_of(const lcomm_comm *comm, const lcomm_pair_message *it, uint32_t piece) {
  uint64_t ranks = (uint64_t)comm->rank << 32 | (uint32_t)it->peer;
  ranks += (uint64_t)it->graph_channel << 16;
  return ranks * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)it->what.number << 24 ^ piece;
}

static void encode(const lcomm_comm *comm, const lcomm_pair_message *it, uint32_t piece,
                   const uint8_t *data, size_t size, uint8_t *payload) {
  lcomm_range range = lcomm_range_whole(elements_of(it, size));
  uint64_t seed = seed_of(comm, it, piece);
  const float *values = (const float *)(const void *)data;
  if (lcomm_pipe_is_plain(&it->format, it->what.dtype)) {
    memcpy(payload, data, size);
    return;
  }
  if (it->what.dtype != LCOMM_FLOAT32) {
    lcomm_format exact = lcomm_format_exact(it->what.dtype);
    lcomm_decode(&exact, comm->kernels, data, range, 1, comm->pairs->coder.values);
    values = comm->pairs->coder.values;
  }
  if (it->channel && comm->settings.policy.pipe.error_feedback) {
    float *residual = it->channel->residual + elements_of(it, (size_t)(data - it->data));
    lcomm_residual_encode(&it->format, comm->kernels, values, residual, residual, range, seed,
                          payload);
  } else {
    lcomm_encode(&it->format, comm->kernels, values, range, seed, payload);
  }
}

static void decode(lcomm_comm *comm, const lcomm_pair_message *it, const uint8_t *payload,
                   uint8_t *data, size_t size) {
  lcomm_range range = lcomm_range_whole(elements_of(it, size));
  bool is_wide = it->what.dtype == LCOMM_FLOAT32;
  float *values = is_wide ? (float *)(void *)data : comm->pairs->coder.values;
  if (lcomm_pipe_is_plain(&it->format, it->what.dtype)) {
    memcpy(data, payload, size);
    return;
  }
  lcomm_decode(&it->format, comm->kernels, payload, range, 1, values);
  if (!is_wide) {
    lcomm_format exact = lcomm_format_exact(it->what.dtype);
    lcomm_encode(&exact, comm->kernels, values, range, 0, data);
  }
}

/* ------------------------------------------------------------------- frames */

/* Returns the bytes of the stream. */
static size_t encode_lossless(lcomm_comm *comm, const lcomm_pair_message *it, size_t size,
                              uint64_t count, uint8_t *stream) {
  lcomm_pair_coder *coder = &comm->pairs->coder;
  LCOMM_ASSERT(lcomm_lossless_bound(&it->format, size) <=
               LCOMM_PAIR_FRAME_ROOM - LCOMM_WIRE_HEADER_SIZE);
  return lcomm_lossless_encode(it->lossless, comm->kernels, coder->payload, size, count, stream);
}

size_t lcomm_pair_frame_write(lcomm_comm *comm, lcomm_pair_message *it, uint32_t piece) {
  uint8_t *data, *frame = lcomm_pair_frame_at(it, piece), *behind = frame + LCOMM_WIRE_HEADER_SIZE;
  size_t size = lcomm_pair_piece(it, piece, &data);
  lcomm_wire_header header = header_of(it, piece, elements_of(it, size));
  double begun_s = lcomm_clock_s();
  uint32_t environment = lcomm_fp_enter();
  encode(comm, it, piece, data, size, it->format.zstd ? comm->pairs->coder.payload : behind);
  header.payload_size = payload_size(it, size);
  if (it->format.zstd) {
    header.payload_size =
        encode_lossless(comm, it, (size_t)header.payload_size, header.count, behind);
  }
  lcomm_fp_leave(environment);
  if ((header.flags & LCOMM_WIRE_CHECKSUM) != 0) {
    header.checksum = lcomm_wire_checksum(behind, header.payload_size);
  }
  lcomm_wire_pack(&header, frame);
  it->end.coding_s += lcomm_clock_s() - begun_s;
  return LCOMM_WIRE_HEADER_SIZE + (size_t)header.payload_size;
}

/* The payload of a stream; NULL, or why it is none. */
static const char *decode_lossless(lcomm_comm *comm, const lcomm_pair_message *it,
                                   const lcomm_wire_header *header, const uint8_t *stream,
                                   size_t wanted) {
  lcomm_pair_coder *coder = &comm->pairs->coder;
  const char *why = NULL;
  size_t size = 0;
  lcomm_status status =
      lcomm_lossless_decode(it->lossless, comm->kernels, stream, (size_t)header->payload_size,
                            header->count, coder->payload, LCOMM_PAIR_FRAME_ROOM, &size, &why);
  if (status == LCOMM_OK && size != wanted) {
    return "a payload of another size than that of its elements";
  }
  return status == LCOMM_OK ? NULL : why;
}

const char *lcomm_pair_frame_read(lcomm_comm *comm, lcomm_pair_message *it, uint32_t piece,
                                  size_t size) {
  uint8_t *data;
  const uint8_t *frame = lcomm_pair_frame_at(it, piece), *payload = frame + LCOMM_WIRE_HEADER_SIZE;
  size_t data_size = lcomm_pair_piece(it, piece, &data), wanted = payload_size(it, data_size);
  lcomm_wire_header header, expected = header_of(it, piece, elements_of(it, data_size));
  double begun_s = lcomm_clock_s();
  const char *why = refuse_header(it, &expected, frame, size, &header);
  if (!why && !it->format.zstd && header.payload_size != wanted) {
    why = "a payload of another size than that of its elements";
  }
  if (why) {
    return why;
  }
  uint32_t environment = lcomm_fp_enter();
  if (it->format.zstd) {
    why = decode_lossless(comm, it, &header, payload, wanted);
    payload = comm->pairs->coder.payload;
  }
  if (!why) {
    decode(comm, it, payload, data, data_size);
  }
  lcomm_fp_leave(environment);
  it->end.coding_s += lcomm_clock_s() - begun_s;
  return why;
}
