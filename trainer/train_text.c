/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_text.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* ------------------------------------------------------------ train and test */

enum { HELD_OUT = 10 /* one part in so many */ };

static int append(text_part *part, const uint8_t *bytes, size_t size) {
  uint8_t *grown = realloc(part->bytes, part->size + size + 1);
  if (!grown) {
    return -1;
  }
  memcpy(grown + part->size, bytes, size);
  part->bytes = grown;
  part->size += size;
  return 0;
}

/* The last tenth is held out: text is not drawn at random, so what is near is alike. */
static int divide(text_data *made, const uint8_t *bytes, size_t size, failure *why) {
  size_t held_out = size / HELD_OUT;
  if (append(&made->train, bytes, size - held_out) == 0 &&
      append(&made->test, bytes + (size - held_out), held_out) == 0) {
    return 0;
  }
  return failure_set(why, EXIT_SETUP, "no memory for the text");
}

static int load_file(const char *path, text_data *made, failure *why) {
  text_part whole = {0};
  int result = text_read_file(path, &whole, why);
  if (result == 0) {
    result = divide(made, whole.bytes, whole.size, why);
  }
  free(whole.bytes);
  return result;
}

/* ------------------------------------------------------------------ a folder */

typedef char path_text[TEXT_WHERE_SIZE + 256];

static bool is_folder(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static int not_hidden(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

/* The order of the bytes of the names, whatever the language of the machine. */
static int by_bytes(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

/* *files counts those that were read; folders in the folder are not. */
static int load_entries(const char *folder, struct dirent **entries, int count, int *files,
                        text_data *made, failure *why) {
  for (int i = 0; i < count; i++) {
    path_text path;
    snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
    if (is_folder(path)) {
      continue;
    }
    if (load_file(path, made, why)) {
      return -1;
    }
    ++*files;
    if (made->train.size + made->test.size > TEXT_BYTES_MAX) {
      return failure_set(why, EXIT_SETUP,
                         "the files of %s up to %s have more than %d bytes, the most that is read; "
                         "give --data less",
                         folder, entries[i]->d_name, TEXT_BYTES_MAX);
    }
  }
  return 0;
}

static int load_folder(const char *folder, text_data *made, failure *why) {
  struct dirent **entries = NULL;
  int files = 0;
  int count = scandir(folder, &entries, not_hidden, by_bytes);
  if (count < 0) {
    return failure_set(why, EXIT_SETUP, "cannot read the folder %s: %s", folder, strerror(errno));
  }
  int result = 0;
  if (count > TEXT_FILES_MAX) {
    result = failure_set(why, EXIT_SETUP, "%s holds %d files, %d are the most that are read",
                         folder, count, TEXT_FILES_MAX);
  } else {
    result = load_entries(folder, entries, count, &files, made, why);
  }
  for (int i = 0; i < count; i++) {
    free(entries[i]);
  }
  free(entries);
  if (result == 0 && files == 0) {
    return failure_set(why, EXIT_SETUP, "%s holds no files; give --data a file or folder of text",
                       folder);
  }
  return result;
}

/* ------------------------------------------------------------------- a place */

static const char *const default_places[] = {"data", "../shared/data"};
static const char *const known_texts[] = {"/text/tinyshakespeare.txt", "/tinyshakespeare.txt"};

/* The known text in a folder of data sets, if it is there. */
static bool find_known(const char *place, char found[TEXT_WHERE_SIZE]) {
  for (size_t i = 0; i < sizeof known_texts / sizeof known_texts[0]; i++) {
    int length = snprintf(found, TEXT_WHERE_SIZE, "%s%s", place, known_texts[i]);
    if (length < TEXT_WHERE_SIZE && access(found, F_OK) == 0) {
      return true;
    }
  }
  return false;
}

static int load_built_in(uint64_t seed, text_data *made, failure *why) {
  made->built_in = true;
  uint8_t *story = malloc(STORY_SIZE);
  if (!story) {
    return failure_set(why, EXIT_SETUP, "no memory for the built-in text");
  }
  story_write(seed, story, STORY_SIZE);
  int result = divide(made, story, STORY_SIZE, why);
  free(story);
  return result;
}

static int load_given(const char *source, const char *place, uint64_t seed, text_data *made,
                      failure *why) {
  if (strcmp(place, TEXT_BUILT_IN) == 0) {
    return load_built_in(seed, made, why);
  }
  if (strlen(place) >= TEXT_WHERE_SIZE) {
    return failure_set(why, EXIT_SETUP, "%s is longer than %d bytes", source, TEXT_WHERE_SIZE - 1);
  }
  if (find_known(place, made->where)) {
    return load_file(made->where, made, why);
  }
  strcpy(made->where, place);
  return is_folder(place) ? load_folder(place, made, why) : load_file(place, made, why);
}

static int load_any(const char *place, uint64_t seed, text_data *made, failure *why) {
  if (place) {
    return load_given("--data", place, seed, made, why);
  }
  const char *variable = getenv("LCOMM_DATA");
  if (variable && *variable) {
    return load_given("LCOMM_DATA", variable, seed, made, why);
  }
  for (size_t i = 0; i < sizeof default_places / sizeof default_places[0]; i++) {
    if (find_known(default_places[i], made->where)) {
      return load_file(made->where, made, why);
    }
  }
  made->where[0] = '\0';
  return load_built_in(seed, made, why);
}

int text_load(const char *place, uint64_t seed, text_data *made, failure *why) {
  memset(made, 0, sizeof *made);
  if (load_any(place, seed, made, why) == 0) {
    return 0;
  }
  text_free(made);
  return -1;
}

void text_free(text_data *self) {
  free(self->train.bytes);
  free(self->test.bytes);
  memset(self, 0, sizeof *self);
}

uint64_t text_hash(const text_data *self) {
  uint64_t hash = XXH3_64bits_withSeed(self->train.bytes, self->train.size, self->test.size);
  return XXH3_64bits_withSeed(self->test.bytes, self->test.size, hash);
}

/* ------------------------------------------------------------------- windows */

uint32_t text_windows(const text_part *part, int length) {
  return part->size == 0 ? 0 : (uint32_t)((part->size - 1) / (size_t)length);
}

void text_window(const text_part *part, size_t start, int length, float *bytes, uint8_t *next) {
  const uint8_t *from = part->bytes + start;
  for (int i = 0; i < length; i++) {
    bytes[i] = (float)from[i];
  }
  memcpy(next, from + 1, (size_t)length);
}
