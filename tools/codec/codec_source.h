/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_SOURCE_H
#define LCOMM_TOOLS_CODEC_CODEC_SOURCE_H

/* Where codec_bench gets its values from: a file of any known format, or a
 * synthetic distribution, is a `source`: values number 0 to count-1, read as
 * float32, and the named tensors they belong to.
 *
 *   extension      values              tensors
 *   .f32 .f16 .bf16  raw, little-endian  from a layer list, else one named
 *                                      after the file
 *   .npy           '<f4' '<f2' '<f8'   the same
 *   .npz           the same            one for each array, named after it
 *   .safetensors   F32 F16 BF16 F64    its own; those of other types are skipped
 *   .lcg           float32             its own; a captured bucket, see CAPTURE
 *
 * LAYER LISTS say which values of a raw or .npy file are which tensor. Offsets
 * and counts are elements, so a list fits every element type.
 *   text   lines `name count` (follows the line before) or `name offset
 *          count`; `#` begins a comment at the start of a word
 *   JSON   an object with "layers": [{"name", "offset", "numel" (or "count"), "shape"}];
 *          everything else in it is ignored. A shape of two and more whole numbers whose
 *          product is the count makes it a matrix: the first one rows, the others columns
 * Tensors must lie inside the file and must not overlap; those without values
 * are left out. Values that no tensor claims become tensors named
 * "unlisted-FIRST". A raw file with a meta.json in its folder uses it unless
 * another list is given; a meta.json without "layers" is no list.
 *
 * CAPTURE files hold the gradients of one bucket as the library saw them, one
 * file per step, bucket and rank, stepNNNNNN-bucketNNN-rankNNNN.lcg. Numbers
 * are little-endian:
 *   'L' 'C' 'M' 'G', u32 version 2, u64 step, u32 rank, u32 ranks, u32 nodes,
 *   u32 tensors (1 to 65536);
 *   per tensor: u32 length of the name (1 to 127), the name, u64 count, u64 rows, u64
 *   columns (0, 0: no matrix; version 1, which is read as well, has neither);
 *   zeros up to a multiple of 64 bytes from the start of the file;
 *   the float32 values of all tensors, one after the other;
 *   u64 XXH3-64 of every byte before it. The file ends here.
 *
 * Files are not trusted: a reader looks at no byte outside of what it was
 * given, and refuses what it does not know. An `error` is a buffer of
 * LCOMM_SOURCE_ERROR_MAX bytes; on failure it holds one printable sentence that
 * begins with the file's name. Statuses: SYSTEM the file cannot be opened or
 * mapped, WIRE it is damaged or not what its name says, UNSUPPORTED it is
 * sound but of no type that is read, ARGUMENT the request makes no sense,
 * MEMORY.
 *
 * Threads: opening is for one thread at a time (the JSON library keeps its last
 * error in a global); an open source may be read by many. A file that is cut
 * while it is open kills the process (SIGBUS), as with every mapping. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/include/libcomm_types.h"
#include "tools/codec/codec_synthetic.h"

enum {
  LCOMM_SOURCE_NAME_MAX = 128,        /* bytes of a name with its final 0 */
  LCOMM_SOURCE_ERROR_MAX = 1024,      /* bytes of an error sentence with its final 0 */
  LCOMM_SOURCE_JSON_MAX = 16 << 20,   /* bytes of a JSON text that is read */
  LCOMM_CAPTURE_TENSORS_MAX = 1 << 16 /* in one capture file */
};

/* ---------------------------------------------------------------- sources */

typedef enum lcomm_source_type {
  LCOMM_SOURCE_F32,
  LCOMM_SOURCE_F16,
  LCOMM_SOURCE_BF16,
  LCOMM_SOURCE_F64
} lcomm_source_type;

/* Names are valid UTF-8 of 1 to 127 bytes without control characters. They
 * need not differ, except in .safetensors files. */
typedef struct lcomm_source_tensor {
  char name[LCOMM_SOURCE_NAME_MAX];
  uint64_t first;         /* index of its first value in the source */
  uint64_t count;         /* values, at least 1 */
  uint64_t offset;        /* of its first byte in the file; 0 in a synthetic source */
  uint64_t rows, columns; /* of a matrix; 0: its file or list says nothing of a shape */
  lcomm_source_type type; /* in the file */
} lcomm_source_tensor;

/* A tensor of the file that has no part in the source. */
typedef struct lcomm_source_skipped {
  char name[LCOMM_SOURCE_NAME_MAX];
  char why[24]; /* its type ("I64"), or "no values" */
} lcomm_source_skipped;

typedef struct lcomm_source_capture {
  uint64_t step;
  uint32_t rank, ranks, nodes; /* rank < ranks, 1 <= nodes <= ranks */
} lcomm_source_capture;

/* What is in a source. Tensor 0 begins at value 0, each next one where the one
 * before ends, the last one ends at count. */
typedef struct lcomm_source_contents {
  uint64_t count;
  size_t tensor_count, skipped_count;
  lcomm_source_tensor *tensors;
  lcomm_source_skipped *skipped;
  lcomm_source_capture capture; /* ranks is 0 when the source is no capture */
} lcomm_source_contents;

typedef struct lcomm_source lcomm_source;

/* Open a file by its extension. layers: path of a layer list (JSON when it ends
 * in .json, else text), or NULL. A file without any value is refused. */
lcomm_status lcomm_source_open(const char *path, const char *layers, lcomm_source **source,
                               char *error);

/* Values of a distribution, made when they are read; see synthetic.h. */
lcomm_status lcomm_source_open_synthetic(const lcomm_synthetic *synthetic, lcomm_source **source,
                                         char *error);

void lcomm_source_close(lcomm_source *source); /* may be NULL */

/* The file's name without folders, or "synthetic:NAME". Lives with the source. */
const char *lcomm_source_name(const lcomm_source *source);

/* Lives with the source; at least one tensor. */
const lcomm_source_contents *lcomm_source_contents_of(const lcomm_source *source);

/* Values first to first+n-1 (first + n <= count) as float32: exact for float32
 * (bit for bit), f16 and bf16, rounded to nearest even for f64. */
void lcomm_source_read(const lcomm_source *source, uint64_t first, uint64_t n, float *values);

/* The paths a data path stands for: a file stands for itself, a folder for its
 * capture files, or when it has none for its files of the other formats, in
 * name order (numbers inside names by value). At least one path; an empty
 * folder is refused. */
typedef struct lcomm_source_paths {
  size_t count;
  char **paths;
} lcomm_source_paths;

lcomm_status lcomm_source_find(const char *path, lcomm_source_paths *paths, char *error);
void lcomm_source_paths_free(lcomm_source_paths *paths);

/* ---------------------------------------------------------------- readers */

/* The bytes of a file (may be NULL when size is 0) and its path, which errors
 * begin with and a lone tensor is named after. */
typedef struct lcomm_source_input {
  const char *path;
  const uint8_t *bytes;
  size_t size;
} lcomm_source_input;

/* Readers of one format each. `contents` is {0} before, and is to be freed with
 * lcomm_source_contents_free after success and failure. On success the bytes
 * of all tensors lie inside the input; count may be 0. */
lcomm_status lcomm_source_parse_raw(const lcomm_source_input *input, lcomm_source_type type,
                                    lcomm_source_contents *contents, char *error);
lcomm_status lcomm_source_parse_npy(const lcomm_source_input *input,
                                    lcomm_source_contents *contents, char *error);
/* An archive of .npy files. Where one is deflated, *unpacked has the bytes of all, and offsets of
 * tensors count from there; to be freed. Else it is NULL, and they count from the input. */
lcomm_status lcomm_source_parse_npz(const lcomm_source_input *input, uint8_t **unpacked,
                                    size_t *unpacked_size, lcomm_source_contents *contents,
                                    char *error);
lcomm_status lcomm_source_parse_safetensors(const lcomm_source_input *input,
                                            lcomm_source_contents *contents, char *error);
lcomm_status lcomm_source_parse_capture(const lcomm_source_input *input,
                                        lcomm_source_contents *contents, char *error);
void lcomm_source_contents_free(lcomm_source_contents *contents);

/* Readers of layer lists: split `contents` of one tensor, which stays as it is
 * on failure. UNSUPPORTED: JSON without "layers", or too long. split_file maps
 * a list and reads it as what its extension says. */
lcomm_status lcomm_source_split_text(const lcomm_source_input *list,
                                     lcomm_source_contents *contents, char *error);
lcomm_status lcomm_source_split_json(const lcomm_source_input *list,
                                     lcomm_source_contents *contents, char *error);

lcomm_status lcomm_source_split_file(const char *path, lcomm_source_contents *contents,
                                     char *error);

/* n values of a type at `bytes`, which may have any address. */
void lcomm_source_convert(lcomm_source_type type, const uint8_t *bytes, uint64_t n, float *values);

/* ------------------------------------------------- what the readers share */

/* Write "path: sentence", unprintable bytes replaced; returns status. */
__attribute__((format(printf, 4, 5))) lcomm_status
lcomm_source_fail(char *error, lcomm_status status, const char *path, const char *format, ...);

/* Map a file to read it: sets all of `input`, whose path is the caller's. */
lcomm_status lcomm_source_map(const char *path, lcomm_source_input *input, char *error);
void lcomm_source_unmap(lcomm_source_input *input);

size_t lcomm_source_type_size(lcomm_source_type type);

/* The little-endian number of `size` (1 to 8) bytes. */
uint64_t lcomm_source_number(const uint8_t *bytes, size_t size);

/* Append a tensor; one without values is listed as skipped. WIRE when its name
 * (name_size bytes, without a final 0) is not a name. */
typedef struct lcomm_source_entry {
  const char *name;
  size_t name_size;
  uint64_t count, offset;
  uint64_t rows, columns; /* 0: no matrix */
  lcomm_source_type type;
} lcomm_source_entry;

lcomm_status lcomm_source_add(const lcomm_source_input *input, const lcomm_source_entry *entry,
                              lcomm_source_contents *contents, char *error);
lcomm_status lcomm_source_skip(const lcomm_source_input *input, const lcomm_source_entry *entry,
                               const char *why, lcomm_source_contents *contents, char *error);

/* Append the only tensor of a file, named after it. */
lcomm_status lcomm_source_add_file(const lcomm_source_input *input, lcomm_source_type type,
                                   uint64_t count, uint64_t offset, lcomm_source_contents *contents,
                                   char *error);

/* JSON text as a tree, to be freed with cJSON_Delete. */
struct cJSON;
lcomm_status lcomm_source_json(const lcomm_source_input *input, struct cJSON **tree, char *error);

/* Is this a whole number from 0 to 2^53? (NULL is not.) */
bool lcomm_source_json_whole(const struct cJSON *item, uint64_t *value);

#endif
