/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_WIRE_GOLDEN_REFUSED_H
#define LCOMM_TESTS_WIRE_GOLDEN_REFUSED_H

/* Messages made by hand from codecs/WIRE.md: the awkward and the wrong. */

#include "codecs/wire.h"

typedef struct hand_made_message {
  const char *name;
  uint8_t codec, flags;
  uint64_t count;
  const char *payload; /* or stream, in hex */
  const char *phrase;  /* NULL: it is read */
} hand_made_message;

enum {
  FIXED = 0x10,   /* fp16 with a fixed scale */
  SPARSE8 = 0x10, /* top-k with int8 values */
  STREAM = 0x02,
  HALF = LCOMM_CODEC_FP16,
  SMALL = LCOMM_CODEC_FP8E4M3,
  BYTE = LCOMM_CODEC_INT8,
  NIBBLE = LCOMM_CODEC_INT4,
  BIT = LCOMM_CODEC_SIGN,
  PAIR = LCOMM_CODEC_INT2,
  SPARSE = LCOMM_CODEC_TOPK
};

/* 100 codes of fp8e4m3: what stands before a chunk of codes in a stream, and a
 * frame with one block of 100 equal bytes. */
#define SCALE_PLANE "08 00 00 00 7f 00 00 00 00 00 00 00 "
#define FRAME_HEAD "28 b5 2f fd 20 "
#define EQUAL_BYTES "23 03 00 38"

/* example_topk in a stream: head, delta plane, planes 1 and 0. */
#define DELTAS_OF_3 "03 00 00 00 02 00 05 "
#define VALUES_OF_3 "03 00 00 00 00 01 00 03 00 00 00 7f 80 7e"

static const hand_made_message hand_made[] = {
    {"fp16_fixed_nan", HALF, FIXED, 2, "00 00 c0 7f ff ff ff ff 00 3c 00 00", NULL},
    {"fp16_fixed_zero", HALF, FIXED, 3, "00 00 00 80 01 02 03 04 00 3c 00 7c 01 7c", NULL},
    {"fp16_fixed_tiny", HALF, FIXED, 3, "01 00 00 00 00 00 00 00 00 3e 00 38 00 41", NULL},
    {"int8_unused", BYTE, 0, 1, "00 00 00 bf ff ff ff ff 80", NULL},
    {"int4_unused", NIBBLE, 0, 1, "00 00 00 3f ff ff ff ff f8", NULL},
    {"sign_unused", BIT, 0, 3, "80 ff ff ff ff ff ff ff fa", NULL},
    {"int2_unused", PAIR, 0, 1, "80 ff ff ff ff ff ff ff fe", NULL},
    {"topk_numbers", SPARSE, 0, 6, "04 00 00 00 00 c0 ff 80 7f 80 ff 00 80", NULL},
    {"topk_int8_inf", SPARSE, SPARSE8, 5, "03 00 00 00 01 02 00 00 80 7f 7f 00 80", NULL},
    {"topk_int8_minus", SPARSE, SPARSE8, 9, "01 00 00 00 04 08 00 00 00 bf 80", NULL},
    {"topk_12_bits", SPARSE, 0, 70000, "02 00 00 00 0c 00 58 00 80 3f 80 bf", NULL},
    {"topk_none_kept", SPARSE, 0, 4, "00 00 00 00", NULL},

    {"refused_topk_entries", SPARSE, 0, 2, "03 00 00 00 00 80 3f 80 3f 80 3f",
     "not a top-k payload"},
    {"refused_topk_many", SPARSE, 0, 20, "ff ff ff ff 03 42 01 80 3f 00 c0 00 3f",
     "not a top-k payload"},
    {"refused_topk_past_end", SPARSE, 0, 9, "03 00 00 00 03 42 01 80 3f 00 c0 00 3f",
     "not a top-k payload"},
    {"refused_topk_around", SPARSE, 0, 20, "02 00 00 00 20 ff ff ff ff ff ff ff ff 80 3f 80 3f",
     "not a top-k payload"},
    {"refused_topk_width_33", SPARSE, 0, 20, "01 00 00 00 21 02 00 00 00 00 80 3f",
     "not a top-k payload"},
    {"refused_topk_width_loose", SPARSE, 0, 20, "03 00 00 00 04 02 05 80 3f 00 c0 00 3f",
     "not a top-k payload"},
    {"refused_topk_width_1_of_0", SPARSE, 0, 20, "01 00 00 00 01 00 80 3f", "not a top-k payload"},
    {"refused_topk_padding", SPARSE, 0, 20, "03 00 00 00 03 42 03 80 3f 00 c0 00 3f",
     "not a top-k payload"},
    {"refused_topk_cut_head", SPARSE, 0, 20, "00 00 00", "not a top-k payload"},
    {"refused_topk_cut_width", SPARSE, 0, 20, "03 00 00 00", "not a top-k payload"},
    {"refused_topk_cut_deltas", SPARSE, 0, 20, "03 00 00 00 03 42", "not a top-k payload"},
    {"refused_topk_cut_wide", SPARSE, 0, 20, "04 00 00 00 20 80 3f 80 3f 80 3f 80 3f",
     "not a top-k payload"},
    {"refused_topk_cut_values", SPARSE, 0, 20, "03 00 00 00 03 42 01 80 3f 00 c0 00",
     "not a top-k payload"},
    {"refused_topk_longer", SPARSE, 0, 20, "03 00 00 00 03 42 01 80 3f 00 c0 00 3f 00",
     "not a top-k payload"},
    {"refused_topk_int8_as_bf16", SPARSE, SPARSE8, 20, "03 00 00 00 03 42 01 80 3f 00 c0 00 3f",
     "not a top-k payload"},

    {"frame_zstd", SMALL, STREAM, 100, SCALE_PLANE "0a 00 00 80 " FRAME_HEAD "64 " EQUAL_BYTES,
     NULL},
    {"refused_frame_99_declared", SMALL, STREAM, 100,
     SCALE_PLANE "0a 00 00 80 " FRAME_HEAD "63 " EQUAL_BYTES,
     "a frame that does not declare the size of its chunk"},
    {"refused_frame_none_declared", SMALL, STREAM, 100,
     SCALE_PLANE "0a 00 00 80 28 b5 2f fd 00 58 " EQUAL_BYTES,
     "a frame that does not declare the size of its chunk"},
    {"refused_frame_magic", SMALL, STREAM, 100,
     SCALE_PLANE "0a 00 00 80 29 b5 2f fd 20 64 " EQUAL_BYTES,
     "a frame that does not declare the size of its chunk"},
    {"refused_frame_cut", SMALL, STREAM, 100, SCALE_PLANE "09 00 00 80 " FRAME_HEAD "64 23 03 00",
     "a frame that does not end with its chunk"},
    {"refused_frame_longer", SMALL, STREAM, 100,
     SCALE_PLANE "0b 00 00 80 " FRAME_HEAD "64 " EQUAL_BYTES " 00",
     "a frame that does not end with its chunk"},
    {"refused_frame_two", SMALL, STREAM, 100,
     SCALE_PLANE "13 00 00 80 " FRAME_HEAD "64 " EQUAL_BYTES " " FRAME_HEAD "00 01 00 00",
     "a frame that does not end with its chunk"},
    {"refused_frame_99_inside", SMALL, STREAM, 100,
     SCALE_PLANE "0a 00 00 80 " FRAME_HEAD "64 1b 03 00 38", "a frame that zstd refuses"},
    {"refused_frame_garbage", SMALL, STREAM, 100,
     SCALE_PLANE "0e 00 00 80 " FRAME_HEAD "64 2d 00 00 ff ff ff ff ff",
     "a frame that zstd refuses"},
    {"refused_stream_empty", SMALL, STREAM, 100, "", "a stream that ends before its planes do"},
    {"refused_stream_cut", SMALL, STREAM, 100, SCALE_PLANE "64 00 00",
     "a stream that ends before its planes do"},
    {"refused_chunk_longer", SMALL, STREAM, 100, SCALE_PLANE "64 00 00 00 38 38",
     "a chunk that is longer than its stream"},
    {"refused_chunk_1_longer", SMALL, STREAM, 2, SCALE_PLANE "02 00 00 00 38",
     "a chunk that is longer than its stream"},
    {"refused_chunk_bit_30", SMALL, STREAM, 2, SCALE_PLANE "02 00 00 40 38 38",
     "a chunk that is longer than its stream"},
    {"refused_chunk_size", SMALL, STREAM, 100, SCALE_PLANE "02 00 00 00 38 38",
     "a stored chunk of another size than its plane has"},
    {"refused_stream_longer", SMALL, STREAM, 2, SCALE_PLANE "02 00 00 00 38 38 00",
     "bytes behind the last plane"},
    {"refused_stream_room", SMALL, STREAM, (uint64_t)1 << 40, SCALE_PLANE,
     "more values than there is room for"},
    {"refused_stream_wraps", LCOMM_CODEC_NONE, STREAM, (uint64_t)1 << 62, "",
     "more values than there is room for"},

    {"refused_topk_stream_head", SPARSE, STREAM, 20, "03 00 00 00 03 00 00",
     "a stream that ends in its head"},
    {"refused_topk_stream_entries", SPARSE, STREAM, 2,
     "03 00 00 00 03 00 00 00 " DELTAS_OF_3 VALUES_OF_3, "more entries than elements"},
    {"refused_topk_stream_planes", SPARSE, STREAM, 20,
     "03 00 00 00 ff ff ff ff " DELTAS_OF_3 VALUES_OF_3, "larger planes than those of any payload"},
    {"refused_topk_stream_cut", SPARSE, STREAM, 20,
     "03 00 00 00 03 00 00 00 " DELTAS_OF_3 "03 00 00 00 00 01 00",
     "a stream that ends before its planes do"},
    {"refused_topk_stream_longer", SPARSE, STREAM, 20,
     "03 00 00 00 03 00 00 00 " DELTAS_OF_3 VALUES_OF_3 " 00", "bytes behind the last plane"},
    {"refused_delta_missing", SPARSE, STREAM, 20,
     "04 00 00 00 03 00 00 00 " DELTAS_OF_3 VALUES_OF_3,
     "a delta plane that ends before its entries do"},
    {"refused_delta_cut", SPARSE, STREAM, 300,
     "03 00 00 00 03 00 00 00 03 00 00 00 02 00 85 " VALUES_OF_3,
     "a delta plane that ends before its entries do"},
    {"refused_delta_33_bits", SPARSE, STREAM, 20,
     "01 00 00 00 05 00 00 00 05 00 00 00 ff ff ff ff 1f " VALUES_OF_3,
     "a delta of more than 32 bits"},
    {"refused_delta_6_bytes", SPARSE, STREAM, 20,
     "01 00 00 00 06 00 00 00 06 00 00 00 82 80 80 80 80 00 " VALUES_OF_3,
     "a delta of more than 32 bits"},
    {"refused_delta_overlong", SPARSE, STREAM, 20,
     "01 00 00 00 02 00 00 00 02 00 00 00 82 00 " VALUES_OF_3,
     "a delta that is longer than it need be"},
    {"refused_delta_past_end", SPARSE, STREAM, 9,
     "03 00 00 00 03 00 00 00 " DELTAS_OF_3 VALUES_OF_3, "a position outside the view"},
    {"refused_delta_more", SPARSE, STREAM, 20, "02 00 00 00 03 00 00 00 " DELTAS_OF_3 VALUES_OF_3,
     "a delta plane that goes on after its entries"},
};

/* example_int4, 50 bytes, cut or filled with zeros to `size`, and some bytes
 * of it changed. */
typedef struct changed_message {
  const char *name;
  size_t size, offset;
  const char *bytes, *phrase;
} changed_message;

static const changed_message changed[] = {
    {"refused_empty", 0, 0, "", "fewer bytes than a header"},
    {"refused_39_bytes", 39, 0, "", "fewer bytes than a header"},
    {"refused_magic", 50, 3, "77", "wrong magic"},
    {"refused_version_0", 50, 4, "00", "unknown wire version"},
    {"refused_version_2", 50, 4, "02", "unknown wire version"},
    {"refused_codec_10", 50, 5, "0a", "unknown codec"},
    {"refused_dtype_8", 50, 6, "08", "unknown dtype"},
    {"refused_flag_6", 50, 7, "40", "unknown flag"},
    {"refused_flag_7", 50, 7, "80", "unknown flag"},
    {"refused_block_int4", 50, 7, "08", "a block size that the codec does not have"},
    {"refused_block_int8", 50, 5, "05 00 08", "a block size that the codec does not have"},
    {"refused_block_fp8", 50, 5, "03 00 0c", "a block size that the codec does not have"},
    {"refused_block_sign", 50, 5, "08 00 0c", "a block size that the codec does not have"},
    {"refused_block_none", 50, 5, "00 00 04", "a block size that the codec does not have"},
    {"refused_block_topk", 50, 5, "06 00 04", "a block size that the codec does not have"},
    {"refused_variant_int4", 50, 7, "10", "a variant that the codec does not have"},
    {"refused_variant_int2", 50, 5, "09 00 10", "a variant that the codec does not have"},
    {"refused_variant_fp16", 50, 5, "01 00 30", "a variant that the codec does not have"},
    {"refused_variant_topk", 50, 5, "06 00 20", "a variant that the codec does not have"},
    {"refused_checksum_unflagged", 50, 39, "01", "a checksum without its flag"},
    {"refused_checksum", 50, 7, "01", "wrong checksum"},
    {"refused_size_small", 49, 24, "09", "payload bytes"},
    {"refused_size_large", 51, 24, "0b", "payload bytes"},
    {"refused_size_most", 50, 24, "ff ff ff ff ff ff ff ff", "payload bytes"},
    {"refused_count_5", 50, 16, "05", "payload bytes"},
    {"refused_count_most", 50, 16, "ff ff ff ff ff ff ff ff", "payload bytes"},
    {"refused_count_wraps", 50, 16, "08 00 00 00 00 00 00 80", "payload bytes"},
    {"refused_shorter", 49, 0, "", "its length is not what its header says"},
    {"refused_longer", 51, 0, "", "its length is not what its header says"},
};

#endif
