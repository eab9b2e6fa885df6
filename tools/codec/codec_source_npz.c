/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* .npz: a ZIP archive of .npy files, stored or deflated, as numpy.savez() and
 * numpy.savez_compressed() write it. The central directory at the end says what there is; of the
 * local headers only their lengths are looked at. */

#include "tools/codec/codec_source.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
  END_SIZE = 22, /* of the end of the central directory, which a comment may follow */
  LOCATOR_SIZE = 20,
  END64_SIZE = 56,
  ENTRY_SIZE = 46,
  LOCAL_SIZE = 30,
  COMMENT_MAX = 65535,
  STORED = 0,
  DEFLATED = 8,
  EXPANSION_MAX = 1032 /* of a byte by deflate */
};

typedef struct archive {
  const lcomm_source_input *input;
  char *error;
  size_t directory, end; /* of the central directory */
  bool deflated;         /* one of the members is */
  uint64_t unpacked;     /* bytes of all .npy members */
  uint64_t packed;       /* the same in the archive */
} archive;

typedef struct member {
  const char *name;
  size_t name_size;
  uint64_t flags, method, crc, packed, size, offset;
  const uint8_t *bytes; /* as they are in the archive */
} member;

static lcomm_status fail(const archive *a, const char *what) {
  return lcomm_source_fail(a->error, LCOMM_ERR_WIRE, a->input->path, "%s", what);
}

static lcomm_status fail_member(const archive *a, const member *m, lcomm_status status,
                                const char *what) {
  return lcomm_source_fail(a->error, status, a->input->path, "its member %.*s %s",
                           (int)(m->name_size < 100 ? m->name_size : 100), m->name, what);
}

static uint64_t number(const archive *a, uint64_t at, size_t size) {
  return lcomm_source_number(a->input->bytes + at, size);
}

static bool has_mark(const archive *a, uint64_t at, const char mark[4]) {
  return memcmp(a->input->bytes + at, mark, 4) == 0;
}

/* -------------------------------------------------------------- directory */

/* Where the end of the directory is: the last place that looks like it and whose comment ends
 * with the file. */
static bool find_end(const archive *a, size_t *at) {
  size_t size = a->input->size;
  for (size_t comment = 0; size >= END_SIZE + comment && comment <= COMMENT_MAX; comment++) {
    *at = size - END_SIZE - comment;
    if (has_mark(a, *at, "PK\5\6") && number(a, *at + 20, 2) == comment) {
      return true;
    }
  }
  return false;
}

static lcomm_status find_directory(archive *a) {
  size_t end = 0;
  if (!find_end(a, &end)) {
    return fail(a, "has no end of a ZIP directory, expected a .npz file; it may be cut short");
  }
  uint64_t size = number(a, end + 12, 4), begin = number(a, end + 16, 4);
  if (end >= LOCATOR_SIZE && has_mark(a, end - LOCATOR_SIZE, "PK\6\7")) { /* more than 4 GiB */
    uint64_t at = number(a, end - LOCATOR_SIZE + 8, 8);
    if (at > end - LOCATOR_SIZE || end - LOCATOR_SIZE - at < END64_SIZE ||
        !has_mark(a, at, "PK\6\6")) {
      return fail(a, "has a damaged end of its ZIP64 directory");
    }
    size = number(a, at + 40, 8);
    begin = number(a, at + 48, 8);
  }
  if (begin > end || size > end - begin) {
    return fail(a, "announces a ZIP directory outside of itself");
  }
  a->directory = (size_t)begin;
  a->end = (size_t)(begin + size);
  return LCOMM_OK;
}

/* Sizes and offset that do not fit into 32 bits stand in a field of their own, in this order. */
static bool read_extra(const archive *a, size_t at, size_t end, member *m) {
  uint64_t *const wide[] = {&m->size, &m->packed, &m->offset};
  while (end - at >= 4) {
    uint64_t id = number(a, at, 2), size = number(a, at + 2, 2);
    at += 4;
    if (size > end - at) {
      return false;
    }
    size_t value = at, stop = at + (size_t)size;
    for (int i = 0; id == 1 && i < 3; i++) {
      if (*wide[i] == UINT32_MAX) {
        if (stop - value < 8) {
          return false;
        }
        *wide[i] = number(a, value, 8);
        value += 8;
      }
    }
    at = stop;
  }
  return true;
}

/* The entry at *at, which moves behind it. */
static lcomm_status read_entry(const archive *a, size_t *at, member *m) {
  if (a->end - *at < ENTRY_SIZE || !has_mark(a, *at, "PK\1\2")) {
    return fail(a, "has a damaged ZIP directory");
  }
  uint64_t names = number(a, *at + 28, 2), extra = number(a, *at + 30, 2);
  uint64_t comment = number(a, *at + 32, 2);
  size_t name = *at + ENTRY_SIZE;
  if (names + extra + comment > a->end - name) {
    return fail(a, "has a ZIP directory that ends inside an entry");
  }
  *m = (member){.name = (const char *)a->input->bytes + name,
                .name_size = (size_t)names,
                .flags = number(a, *at + 8, 2),
                .method = number(a, *at + 10, 2),
                .crc = number(a, *at + 16, 4),
                .packed = number(a, *at + 20, 4),
                .size = number(a, *at + 24, 4),
                .offset = number(a, *at + 42, 4)};
  size_t extras = name + (size_t)names;
  *at = extras + (size_t)(extra + comment);
  return read_extra(a, extras, extras + (size_t)extra, m)
             ? LCOMM_OK
             : fail_member(a, m, LCOMM_ERR_WIRE, "has a damaged ZIP entry");
}

static lcomm_status find_bytes(const archive *a, member *m) {
  size_t size = a->input->size;
  if (m->flags & 1) {
    return fail_member(a, m, LCOMM_ERR_UNSUPPORTED, "is encrypted");
  }
  if (m->method != STORED && m->method != DEFLATED) {
    return fail_member(a, m, LCOMM_ERR_UNSUPPORTED, "is neither stored nor deflated");
  }
  if (m->offset > size || size - m->offset < LOCAL_SIZE || !has_mark(a, m->offset, "PK\3\4")) {
    return fail_member(a, m, LCOMM_ERR_WIRE, "is not where the ZIP directory says");
  }
  uint64_t begin =
      m->offset + LOCAL_SIZE + number(a, m->offset + 26, 2) + number(a, m->offset + 28, 2);
  if (begin > size || m->packed > size - begin) {
    return fail_member(a, m, LCOMM_ERR_WIRE, "ends behind the file");
  }
  bool possible = m->method == STORED ? m->size == m->packed : m->size / EXPANSION_MAX <= m->packed;
  if (!possible) {
    return fail_member(a, m, LCOMM_ERR_WIRE, "announces a size that its bytes cannot have");
  }
  m->bytes = a->input->bytes + begin;
  return LCOMM_OK;
}

static bool is_npy(const member *m) {
  return m->name_size > 4 && memcmp(m->name + m->name_size - 4, ".npy", 4) == 0;
}

/* ---------------------------------------------------------------- members */

static lcomm_status inflate_member(const archive *a, const member *m, uint8_t *bytes) {
  z_stream stream = {0};
  uint64_t in = 0, out = 0;
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
    return lcomm_source_fail(a->error, LCOMM_ERR_MEMORY, a->input->path, "no memory to unpack it");
  }
  int verdict = Z_OK;
  while (verdict == Z_OK) { /* zlib counts in 32 bits */
    uInt room = m->size - out < UINT_MAX / 2 ? (uInt)(m->size - out) : UINT_MAX / 2;
    uInt left = m->packed - in < UINT_MAX / 2 ? (uInt)(m->packed - in) : UINT_MAX / 2;
    stream.next_in = (Bytef *)(uintptr_t)(m->bytes + in);
    stream.avail_in = left;
    stream.next_out = bytes + out;
    stream.avail_out = room;
    verdict = inflate(&stream, Z_NO_FLUSH);
    in += left - stream.avail_in;
    out += room - stream.avail_out;
  }
  inflateEnd(&stream);
  return verdict == Z_STREAM_END && out == m->size
             ? LCOMM_OK
             : fail_member(a, m, LCOMM_ERR_WIRE, "cannot be unpacked: it is damaged");
}

static bool is_whole(const member *m, const uint8_t *bytes) {
  uLong crc = crc32(0, NULL, 0);
  for (uint64_t done = 0; done < m->size;) {
    uInt piece = m->size - done < UINT_MAX / 2 ? (uInt)(m->size - done) : UINT_MAX / 2;
    crc = crc32(crc, bytes + done, piece);
    done += piece;
  }
  return crc == m->crc;
}

/* The one array of a member becomes a tensor; `base`: of its bytes among all. */
static lcomm_status add_array(const archive *a, const member *m, const uint8_t *bytes,
                              uint64_t base, lcomm_source_contents *contents) {
  char path[PATH_MAX];
  lcomm_source_contents alone = {0};
  snprintf(path, sizeof path, "%s: %.*s", a->input->path, (int)m->name_size, m->name);
  lcomm_source_input file = {path, bytes, (size_t)m->size};
  lcomm_source_entry entry = {.name = m->name, .name_size = m->name_size - 4};
  lcomm_status status = lcomm_source_parse_npy(&file, &alone, a->error);
  if (status == LCOMM_ERR_UNSUPPORTED) {
    status = lcomm_source_skip(a->input, &entry, "no floats", contents, a->error);
  } else if (status == LCOMM_OK) {
    if (alone.tensor_count > 0) {
      entry.count = alone.tensors[0].count;
      entry.offset = base + alone.tensors[0].offset;
      entry.type = alone.tensors[0].type;
    }
    status = lcomm_source_add(a->input, &entry, contents, a->error);
  }
  lcomm_source_contents_free(&alone);
  return status;
}

/* ------------------------------------------------------------------- walk */

/* The next array at or behind *at, and its bytes. false at the end, or when *status says why. */
static bool next_array(const archive *a, size_t *at, member *m, lcomm_status *status) {
  while (*status == LCOMM_OK && *at < a->end) {
    *status = read_entry(a, at, m);
    if (*status == LCOMM_OK && is_npy(m)) {
      *status = find_bytes(a, m);
      return *status == LCOMM_OK;
    }
  }
  return false;
}

/* All members once, to know what is there. */
static lcomm_status measure(archive *a) {
  lcomm_status status = LCOMM_OK;
  size_t at = a->directory;
  for (member m; next_array(a, &at, &m, &status);) {
    a->deflated |= m.method == DEFLATED;
    a->packed += m.packed;
    if (a->packed > a->input->size) { /* a few bytes that unpack to too many */
      return fail(a, "has members that overlap");
    }
    if (__builtin_add_overflow(a->unpacked, m.size, &a->unpacked)) {
      return fail(a, "announces more bytes than there can be");
    }
  }
  return status;
}

static lcomm_status take_array(const archive *a, const member *m, uint8_t *unpacked, uint64_t base,
                               lcomm_source_contents *contents) {
  const uint8_t *bytes = unpacked ? unpacked + base : m->bytes;
  lcomm_status status = LCOMM_OK;
  if (unpacked && m->method == DEFLATED) {
    status = inflate_member(a, m, unpacked + base);
  } else if (unpacked) {
    memcpy(unpacked + base, m->bytes, (size_t)m->size);
  }
  if (status == LCOMM_OK && !is_whole(m, bytes)) {
    status = fail_member(a, m, LCOMM_ERR_WIRE, "has a wrong checksum: it is damaged");
  }
  uint64_t offset = unpacked ? base : (uint64_t)(m->bytes - a->input->bytes);
  return status == LCOMM_OK ? add_array(a, m, bytes, offset, contents) : status;
}

static lcomm_status take(const archive *a, uint8_t *unpacked, lcomm_source_contents *contents) {
  lcomm_status status = LCOMM_OK;
  size_t at = a->directory;
  uint64_t base = 0;
  for (member m; status == LCOMM_OK && next_array(a, &at, &m, &status); base += m.size) {
    status = take_array(a, &m, unpacked, base, contents);
  }
  return status;
}

lcomm_status lcomm_source_parse_npz(const lcomm_source_input *input, uint8_t **unpacked,
                                    size_t *unpacked_size, lcomm_source_contents *contents,
                                    char *error) {
  archive a = {.input = input, .error = error};
  *unpacked = NULL;
  *unpacked_size = 0;
  lcomm_status status = find_directory(&a);
  if (status == LCOMM_OK) {
    status = measure(&a);
  }
  if (status != LCOMM_OK) {
    return status;
  }
  if (a.deflated) {
    *unpacked = malloc((size_t)a.unpacked + 1);
    *unpacked_size = (size_t)a.unpacked;
    if (!*unpacked) {
      return lcomm_source_fail(error, LCOMM_ERR_MEMORY, input->path,
                               "no memory for the %llu bytes that it unpacks to",
                               (unsigned long long)a.unpacked);
    }
  }
  status = take(&a, *unpacked, contents);
  if (status != LCOMM_OK) {
    free(*unpacked);
    *unpacked = NULL;
  }
  return status;
}
