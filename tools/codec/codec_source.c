/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Files and folders: what is opened, mapped and given to which reader. */

#include "tools/codec/codec_source.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

struct lcomm_source {
  char *name;
  lcomm_source_input input; /* mapped; bytes are NULL when the source is synthetic */
  uint8_t *unpacked;        /* what is read instead, or NULL; owned */
  lcomm_synthetic synthetic;
  lcomm_source_contents contents;
};

/* ------------------------------------------------------------------ formats */

/* What a format knows of its tensors. */
typedef enum naming {
  NAMES_BESIDE, /* nothing; a meta.json may lie beside the file */
  NAMES_LISTED, /* nothing; only a list that is asked for names them */
  NAMES_OWN
} naming;

typedef struct format {
  const char *extension;
  naming names;
  lcomm_source_type raw; /* when there is nothing to parse */
  lcomm_status (*parse)(const lcomm_source_input *input, lcomm_source_contents *contents,
                        char *error);
} format;

#define EXTENSIONS ".f32, .f16, .bf16, .npy, .npz, .safetensors or .lcg"

static const format formats[] = {
    {".f32", NAMES_BESIDE, LCOMM_SOURCE_F32, NULL},
    {".f16", NAMES_BESIDE, LCOMM_SOURCE_F16, NULL},
    {".bf16", NAMES_BESIDE, LCOMM_SOURCE_BF16, NULL},
    {".npy", NAMES_LISTED, 0, lcomm_source_parse_npy},
    {".npz", NAMES_OWN, 0, NULL},
    {".safetensors", NAMES_OWN, 0, lcomm_source_parse_safetensors},
    {".lcg", NAMES_OWN, 0, lcomm_source_parse_capture},
};

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The last dot of the name and what follows; "" when there is none. */
static const char *extension_of(const char *path) {
  const char *dot = strrchr(base_name(path), '.');
  return dot ? dot : "";
}

static const format *find_format(const char *path) {
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    if (strcasecmp(formats[i].extension, extension_of(path)) == 0) {
      return formats + i;
    }
  }
  return NULL;
}

/* -------------------------------------------------------------- layer lists */

static lcomm_status split_by_neighbour(const char *path, lcomm_source_contents *contents,
                                       char *error) {
  char *beside = NULL;
  int folder = (int)(base_name(path) - path);
  if (asprintf(&beside, "%.*smeta.json", folder, path) < 0) {
    return lcomm_source_fail(error, LCOMM_ERR_MEMORY, path, "no memory for a path");
  }
  lcomm_status status = LCOMM_OK;
  if (access(beside, F_OK) == 0) {
    status = lcomm_source_split_file(beside, contents, error);
  }
  free(beside);
  return status == LCOMM_ERR_UNSUPPORTED ? LCOMM_OK : status; /* some other meta.json */
}

static lcomm_status name_tensors(const char *path, const char *layers, naming names,
                                 lcomm_source_contents *contents, char *error) {
  if (layers && names == NAMES_OWN) {
    return lcomm_source_fail(error, LCOMM_ERR_ARGUMENT, path,
                             "names its own tensors, expected no layer list (%s)", layers);
  }
  if (contents->count == 0) {
    return lcomm_source_fail(error, LCOMM_ERR_UNSUPPORTED, path,
                             "holds no floating-point values, expected some");
  }
  if (layers) {
    return lcomm_source_split_file(layers, contents, error);
  }
  return names == NAMES_BESIDE ? split_by_neighbour(path, contents, error) : LCOMM_OK;
}

/* ------------------------------------------------------------------ sources */

static lcomm_status parse_archive(lcomm_source *self, char *error) {
  size_t size = 0;
  return lcomm_source_parse_npz(&self->input, &self->unpacked, &size, &self->contents, error);
}

static lcomm_status open_file(lcomm_source *self, const char *path, const char *layers,
                              char *error) {
  const format *as = find_format(path);
  lcomm_status status = lcomm_source_map(path, &self->input, error);
  if (status != LCOMM_OK) {
    return status;
  }
  if (!as) {
    return lcomm_source_fail(error, LCOMM_ERR_UNSUPPORTED, path,
                             "has the extension \"%s\", expected " EXTENSIONS, extension_of(path));
  }
  if (strcmp(as->extension, ".npz") == 0) {
    status = parse_archive(self, error);
  } else if (as->parse) {
    status = as->parse(&self->input, &self->contents, error);
  } else {
    status = lcomm_source_parse_raw(&self->input, as->raw, &self->contents, error);
  }
  if (status == LCOMM_OK) {
    status = name_tensors(path, layers, as->names, &self->contents, error);
  }
  return status;
}

static lcomm_status finish(lcomm_source *self, lcomm_status status, lcomm_source **source) {
  if (status == LCOMM_OK) {
    *source = self;
  } else {
    lcomm_source_close(self);
  }
  return status;
}

lcomm_status lcomm_source_open(const char *path, const char *layers, lcomm_source **source,
                               char *error) {
  lcomm_source *self = calloc(1, sizeof *self);
  if (!self || (self->name = strdup(base_name(path))) == NULL) {
    free(self);
    return lcomm_source_fail(error, LCOMM_ERR_MEMORY, path, "no memory to open it");
  }
  return finish(self, open_file(self, path, layers, error), source);
}

static lcomm_status make_tensors(lcomm_source *self, char *error) {
  lcomm_source_input nothing = {.path = self->name};
  uint64_t left = self->synthetic.count;
  for (uint64_t i = 0; left > 0; i++) {
    char name[LCOMM_SOURCE_NAME_MAX];
    uint64_t count = lcomm_synthetic_tensor_count(&self->synthetic, i, left);
    if (self->synthetic.kind == LCOMM_SYNTHETIC_LAYERS) {
      snprintf(name, sizeof name, "layer-%llu", (unsigned long long)i);
    } else {
      snprintf(name, sizeof name, "%s", lcomm_synthetic_name(self->synthetic.kind));
    }
    lcomm_source_entry entry = {.name = name, .name_size = strlen(name), .count = count};
    lcomm_status status = lcomm_source_add(&nothing, &entry, &self->contents, error);
    if (status != LCOMM_OK) {
      return status;
    }
    left -= count;
  }
  return LCOMM_OK;
}

lcomm_status lcomm_source_open_synthetic(const lcomm_synthetic *synthetic, lcomm_source **source,
                                         char *error) {
  const char *kind = lcomm_synthetic_name(synthetic->kind);
  if (synthetic->count < 1 || synthetic->count > LCOMM_SYNTHETIC_COUNT_MAX) {
    return lcomm_source_fail(
        error, LCOMM_ERR_ARGUMENT, kind, "cannot have %llu values, expected 1 to %llu",
        (unsigned long long)synthetic->count, (unsigned long long)LCOMM_SYNTHETIC_COUNT_MAX);
  }
  lcomm_source *self = calloc(1, sizeof *self);
  if (!self || asprintf(&self->name, "synthetic:%s", kind) < 0) {
    free(self);
    return lcomm_source_fail(error, LCOMM_ERR_MEMORY, kind, "no memory to make it");
  }
  self->synthetic = *synthetic;
  return finish(self, make_tensors(self, error), source);
}

void lcomm_source_close(lcomm_source *self) {
  if (!self) {
    return;
  }
  lcomm_source_contents_free(&self->contents);
  lcomm_source_unmap(&self->input);
  free(self->unpacked);
  free(self->name);
  free(self);
}

const char *lcomm_source_name(const lcomm_source *self) {
  return self->name;
}

const lcomm_source_contents *lcomm_source_contents_of(const lcomm_source *self) {
  return &self->contents;
}

/* The tensor that value number `index` belongs to. */
static size_t tensor_at(const lcomm_source_contents *contents, uint64_t index) {
  size_t low = 0, high = contents->tensor_count;
  while (high - low > 1) {
    size_t middle = low + (high - low) / 2;
    if (contents->tensors[middle].first <= index) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

void lcomm_source_read(const lcomm_source *self, uint64_t first, uint64_t n, float *values) {
  const uint8_t *bytes = self->unpacked ? self->unpacked : self->input.bytes;
  for (size_t t = tensor_at(&self->contents, first); n > 0; t++) {
    const lcomm_source_tensor *tensor = self->contents.tensors + t;
    uint64_t skipped = first - tensor->first;
    uint64_t piece = tensor->count - skipped < n ? tensor->count - skipped : n;
    uint64_t at = tensor->offset + skipped * lcomm_source_type_size(tensor->type);
    if (!self->input.bytes) {
      lcomm_synthetic_fill(&self->synthetic, t, tensor->count, skipped, piece, values);
    } else {
      lcomm_source_convert(tensor->type, bytes + at, piece, values);
    }
    first += piece;
    n -= piece;
    values += piece;
  }
}

/* ------------------------------------------------------------------ folders */

static bool is_capture(const char *path) {
  return strcasecmp(extension_of(path), ".lcg") == 0;
}

static int is_known(const struct dirent *entry) {
  return entry->d_name[0] != '.' && find_format(entry->d_name) != NULL;
}

static lcomm_status add_path(const char *folder, const char *name, lcomm_source_paths *paths,
                             char *error) {
  bool slash = name[0] != '\0' && folder[strlen(folder) - 1] != '/';
  if (asprintf(&paths->paths[paths->count], "%s%s%s", folder, slash ? "/" : "", name) < 0) {
    return lcomm_source_fail(error, LCOMM_ERR_MEMORY, folder, "no memory for its files' names");
  }
  paths->count++;
  return LCOMM_OK;
}

static lcomm_status add_entries(const char *folder, struct dirent **entries, size_t count,
                                lcomm_source_paths *paths, char *error) {
  bool captures = false;
  lcomm_status status = LCOMM_OK;
  for (size_t i = 0; i < count; i++) {
    captures = captures || is_capture(entries[i]->d_name);
  }
  for (size_t i = 0; status == LCOMM_OK && i < count; i++) {
    if (is_capture(entries[i]->d_name) == captures) {
      status = add_path(folder, entries[i]->d_name, paths, error);
    }
  }
  return status;
}

static lcomm_status find_in_folder(const char *folder, lcomm_source_paths *paths, char *error) {
  struct dirent **entries = NULL;
  int count = scandir(folder, &entries, is_known, versionsort);
  if (count < 0) {
    return lcomm_source_fail(error, LCOMM_ERR_SYSTEM, folder, "cannot be listed: %s",
                             strerror(errno));
  }
  lcomm_status status = LCOMM_OK;
  paths->paths = calloc((size_t)count + 1, sizeof *paths->paths);
  if (count == 0) {
    status = lcomm_source_fail(error, LCOMM_ERR_ARGUMENT, folder,
                               "has no files that can be read, expected " EXTENSIONS);
  } else if (!paths->paths) {
    status = lcomm_source_fail(error, LCOMM_ERR_MEMORY, folder, "no memory for its files' names");
  } else {
    status = add_entries(folder, entries, (size_t)count, paths, error);
  }
  for (int i = 0; i < count; i++) {
    free(entries[i]);
  }
  free(entries);
  return status;
}

lcomm_status lcomm_source_find(const char *path, lcomm_source_paths *paths, char *error) {
  struct stat found;
  lcomm_source_paths made = {0};
  lcomm_status status = LCOMM_OK;
  if (stat(path, &found) != 0) {
    return lcomm_source_fail(error, LCOMM_ERR_SYSTEM, path, "cannot be opened: %s",
                             strerror(errno));
  }
  if (S_ISDIR(found.st_mode)) {
    status = find_in_folder(path, &made, error);
  } else if ((made.paths = calloc(1, sizeof *made.paths)) == NULL) {
    status = lcomm_source_fail(error, LCOMM_ERR_MEMORY, path, "no memory for its name");
  } else {
    status = add_path(path, "", &made, error);
  }
  if (status == LCOMM_OK) {
    *paths = made;
  } else {
    lcomm_source_paths_free(&made);
  }
  return status;
}

void lcomm_source_paths_free(lcomm_source_paths *paths) {
  for (size_t i = 0; i < paths->count; i++) {
    free(paths->paths[i]);
  }
  free(paths->paths);
  *paths = (lcomm_source_paths){0};
}
