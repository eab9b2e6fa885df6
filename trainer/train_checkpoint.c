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

static const char magic[8] = {'L', 'C', 'T', 'R', 'A', 'I', 'N', '3'};

typedef struct head_bytes {
  char magic[sizeof magic];
  checkpoint_words at;
  char model[CHECKPOINT_NAME_SIZE];
  uint64_t hash; /* of all before it */
} head_bytes;

static uint64_t hash_head(const head_bytes *head) {
  return XXH3_64bits(head, offsetof(head_bytes, hash));
}

/* Returns 0, or -1 with `why`; then there is nothing to close. */
static int open_file(const char *path, const char *mode, const char *doing, checkpoint_file *made,
                     failure *why) {
  *made = (checkpoint_file){.path = path, .file = fopen(path, mode)};
  if (!made->file) {
    return failure_set(why, EXIT_SETUP, "cannot %s the checkpoint %s: %s", doing, path,
                       strerror(errno));
  }
  made->hash = XXH3_createState();
  if (!made->hash) {
    checkpoint_close(made);
    return failure_set(why, EXIT_SETUP, "no memory to %s the checkpoint %s", doing, path);
  }
  XXH3_64bits_reset(made->hash);
  return 0;
}

void checkpoint_close(checkpoint_file *self) {
  if (self->file) {
    fclose(self->file);
  }
  XXH3_freeState(self->hash);
  memset(self, 0, sizeof *self);
}

/* -------------------------------------------------------------------- writing */

static int cannot_write(const checkpoint_file *self, failure *why) {
  return failure_set(why, EXIT_SETUP, "cannot write the checkpoint %s: %s", self->path,
                     strerror(errno));
}

int checkpoint_begin(const char *path, const checkpoint *head, checkpoint_file *made,
                     failure *why) {
  head_bytes bytes = {.at = head->at};
  memset(made, 0, sizeof *made);
  if (open_file(path, "wb", "write", made, why)) {
    return -1;
  }
  made->left = head->at.values;
  memcpy(bytes.magic, magic, sizeof magic);
  memcpy(bytes.model, head->model, sizeof bytes.model);
  bytes.hash = hash_head(&bytes);
  return fwrite(&bytes, sizeof bytes, 1, made->file) == 1 ? 0 : cannot_write(made, why);
}

int checkpoint_put(checkpoint_file *self, const float *values, size_t count, failure *why) {
  XXH3_64bits_update(self->hash, values, count * sizeof *values);
  self->left -= count;
  return fwrite(values, sizeof *values, count, self->file) == count ? 0 : cannot_write(self, why);
}

int checkpoint_finish(checkpoint_file *self, failure *why) {
  uint64_t end = XXH3_64bits_digest(self->hash);
  bool good = self->left == 0 && fwrite(&end, sizeof end, 1, self->file) == 1 &&
              fflush(self->file) == 0 && fsync(fileno(self->file)) == 0;
  return good ? 0 : cannot_write(self, why);
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
  memset(made, 0, sizeof *made);
  if (open_file(path, "rb", "open", made, why)) {
    return -1;
  }
  if (read_head(made, head, why)) {
    checkpoint_close(made);
    return -1;
  }
  made->left = head->at.values;
  return 0;
}

int checkpoint_expect(const checkpoint_file *self, uint64_t values, failure *why) {
  return self->left == values
             ? 0
             : refuse(self->path, "has vectors of other sizes than this training", why);
}

int checkpoint_get(checkpoint_file *self, float *values, size_t count, failure *why) {
  if (fread(values, sizeof *values, count, self->file) != count) {
    return refuse(self->path, "is cut short", why);
  }
  XXH3_64bits_update(self->hash, values, count * sizeof *values);
  self->left -= count;
  return 0;
}

int checkpoint_end(checkpoint_file *self, failure *why) {
  uint64_t end = 0;
  if (self->left != 0 || fread(&end, sizeof end, 1, self->file) != 1) {
    return refuse(self->path, "is cut short", why);
  }
  if (fgetc(self->file) != EOF) {
    return refuse(self->path, "goes on after its end", why);
  }
  bool same = end == XXH3_64bits_digest(self->hash);
  return same ? 0 : refuse(self->path, "is damaged", why);
}
