/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_pair_frame.h"

#include <string.h>

#include "codecs/wire.h"
#include "libcomm/engine/pair_frame.h"
#include "libcomm/plan/policy.h"
#include "tests/support/fuzz_promise.h"

enum { COUNT_MOST = 4096, TYPES = 3, HEAD = 3 };

static const char *const codecs[] = {"int8",      "fp8e4m3:block=32", "bf16+zstd", "int4",
                                     "none+zstd", "fp16:scale=block", "int8+zstd", "none"};

/* A rank alone, with what frames are read in; kept from input to input. */
static lcomm_comm *comm_alone(void) {
  static lcomm_comm *comm;
  if (!comm) {
    comm = fuzz_allocate(sizeof *comm);
    comm->size = 1;
    comm->kernels = lcomm_kernels_best();
    fuzz_require(lcomm_pairs_make(comm) == LCOMM_OK, "the test machine has memory");
  }
  return comm;
}

/* A receive that expects one frame. */
static lcomm_pair_message *expect(lcomm_comm *comm, uint8_t choice, uint64_t count) {
  lcomm_why why;
  lcomm_codec_spec spec;
  lcomm_pair_message *it = fuzz_allocate(sizeof *it);
  lcomm_dtype type = (lcomm_dtype)(choice / 8 % TYPES);
  fuzz_require(lcomm_format_parse(codecs[choice % 8], &spec, &why) == LCOMM_OK, why.text);
  bool is_half = spec.format.codec->id == LCOMM_CODEC_NONE && type != LCOMM_FLOAT32;
  it->format = is_half ? lcomm_format_exact(type) : spec.format;
  it->format.zstd = spec.format.zstd;
  it->what = (lcomm_pair_header){.count = count, .dtype = type, .number = 7};
  lcomm_pair_header_set_format(&it->what, &it->format, choice >= 128 || choice % 8 == 7);
  it->size = count * lcomm_dtype_size(type);
  it->piece_size = LCOMM_PAIR_FRAME_PIECE;
  it->pieces = 1;
  it->data = fuzz_allocate(it->size);
  lcomm_pair_queue *queue = lcomm_pair_queue_of(comm, false, it->peer);
  fuzz_require(lcomm_pair_frame_prepare(comm, queue, it) == LCOMM_OK,
               "the test machine has memory");
  return it;
}

void lcomm_fuzz_pair_frame(const uint8_t *data, size_t size) {
  lcomm_comm *comm = comm_alone();
  if (size < HEAD || size - HEAD > LCOMM_PAIR_FRAME_ROOM) {
    return;
  }
  uint64_t count = 1 + (data[1] | (uint64_t)data[2] << 8) % COUNT_MOST;
  lcomm_pair_message *it = expect(comm, data[0], count);
  memcpy(lcomm_pair_frame_at(it, 0), data + HEAD, size - HEAD);
  const char *why = lcomm_pair_frame_read(comm, it, 0, size - HEAD);
  fuzz_require(!why || strlen(why) > 0, "a refusal says why");
  if (!why) { /* what was read can be sent on */
    size_t written = lcomm_pair_frame_write(comm, it, 0);
    fuzz_require(written <= LCOMM_PAIR_FRAME_ROOM, "a frame fits into its room");
    fuzz_require(!lcomm_pair_frame_read(comm, it, 0, written), "what is written is read again");
  }
  free(it->data);
  free(it);
}
