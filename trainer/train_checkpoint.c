/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_checkpoint.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "checkpoints are written as they are");
_Static_assert(sizeof(checkpoint_words) == CHECKPOINT_WORDS * sizeof(uint64_t),
               "the words have no gaps");

static const char magic[8] = {'L', 'C', 'T', 'R', 'A', 'I', 'N', '1'};

typedef struct head_bytes {
  char magic[sizeof magic];
  checkpoint_words at;
  char model[CHECKPOINT_NAME_SIZE];
  uint64_t hash; /* of all before it */
} head_bytes;

static uint64_t hash_head(const head_bytes *head) {
  return XXH3_64bits(head, offsetof(head_bytes, hash));
}

/* Of the vectors; each goes on from the one before. */
static uint64_t hash_vectors(const checkpoint_vector *vectors, int count) {
  uint64_t hash = 0;
  for (int i = 0; i < count; i++) {
    hash = XXH3_64bits_withSeed(vectors[i].values, vectors[i].size, hash);
  }
  return hash;
}

static uint64_t values_of(const checkpoint_vector *vectors, int count) {
  uint64_t values = 0;
  for (int i = 0; i < count; i++) {
    values += vectors[i].size / sizeof(float);
  }
  return values;
}

/* -------------------------------------------------------------------- writing */

static int write_all(FILE *file, const checkpoint *head, const checkpoint_vector *vectors,
                     int count) {
  head_bytes bytes = {.at = head->at};
  memcpy(bytes.magic, magic, sizeof magic);
  memcpy(bytes.model, head->model, sizeof bytes.model);
  bytes.hash = hash_head(&bytes);
  uint64_t end = hash_vectors(vectors, count);
  size_t written = fwrite(&bytes, sizeof bytes, 1, file);
  for (int i = 0; i < count; i++) {
    written += fwrite(vectors[i].values, vectors[i].size, 1, file);
  }
  written += fwrite(&end, sizeof end, 1, file);
  bool good = written == (size_t)count + 2 && fflush(file) == 0 && fsync(fileno(file)) == 0;
  return good ? 0 : -1;
}

int checkpoint_write(const char *path, checkpoint *head, const checkpoint_vector *vectors,
                     int count, failure *why) {
  head->at.values = values_of(vectors, count);
  FILE *file = fopen(path, "wb");
  int result = file ? write_all(file, head, vectors, count) : -1;
  int code = errno;
  if (file && fclose(file) != 0 && result == 0) {
    code = errno;
    result = -1;
  }
  if (result == 0) {
    return 0;
  }
  return failure_set(why, EXIT_SETUP, "cannot write the checkpoint %s: %s", path, strerror(code));
}

/* -------------------------------------------------------------------- reading */

static int refuse(const char *path, const char *what, failure *why) {
  return failure_set(why, EXIT_SETUP,
                     "the checkpoint %s %s; remove its folder, so that --resume takes the one "
                     "before",
                     path, what);
}

static int read_head(const checkpoint_file *self, checkpoint *head, failure *why) {
  head_bytes bytes;
  if (fread(&bytes, sizeof bytes, 1, self->file) != 1) {
    return refuse(self->path, "ends inside its head", why);
  }
  if (memcmp(bytes.magic, magic, sizeof magic) != 0) {
    return refuse(self->path, "does not begin as checkpoints of this version do", why);
  }
  if (bytes.hash != hash_head(&bytes) || bytes.model[CHECKPOINT_NAME_SIZE - 1] != '\0') {
    return refuse(self->path, "has a damaged head", why);
  }
  head->at = bytes.at;
  memcpy(head->model, bytes.model, sizeof head->model);
  return 0;
}

int checkpoint_open(const char *path, checkpoint_file *made, checkpoint *head, failure *why) {
  *made = (checkpoint_file){.path = path, .file = fopen(path, "rb")};
  if (!made->file) {
    return failure_set(why, EXIT_SETUP, "cannot open the checkpoint %s: %s", path, strerror(errno));
  }
  if (read_head(made, head, why) == 0) {
    return 0;
  }
  checkpoint_close(made);
  return -1;
}

int checkpoint_load(checkpoint_file *self, const checkpoint *head, const checkpoint_vector *vectors,
                    int count, failure *why) {
  if (head->at.values != values_of(vectors, count)) {
    return refuse(self->path, "has vectors of other sizes than this training", why);
  }
  for (int i = 0; i < count; i++) {
    if (fread(vectors[i].values, vectors[i].size, 1, self->file) != 1) {
      return refuse(self->path, "is cut short", why);
    }
  }
  uint64_t end = 0;
  if (fread(&end, sizeof end, 1, self->file) != 1) {
    return refuse(self->path, "is cut short", why);
  }
  if (fgetc(self->file) != EOF) {
    return refuse(self->path, "goes on after its end", why);
  }
  return end == hash_vectors(vectors, count) ? 0 : refuse(self->path, "is damaged", why);
}

void checkpoint_close(checkpoint_file *self) {
  fclose(self->file);
  self->file = NULL;
}
