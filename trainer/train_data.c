/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_data.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

/* --------------------------------------------------------------- IDX files */

/* Unsigned bytes (type 8) of so many dimensions. */
#define MAGIC_OF(dimensions) (0x00000800u | (uint32_t)(dimensions))

enum { FIRST_CAPACITY = 1 << 20 };

typedef struct idx_reader {
  const char *path;
  gzFile file;
  failure *why;
} idx_reader;

static int fail_reading(const idx_reader *reader) {
  int code = Z_OK;
  const char *text = gzerror(reader->file, &code);
  if (code == Z_ERRNO) {
    text = strerror(errno);
  }
  return failure_set(reader->why, EXIT_SETUP,
                     "cannot read %s: %s; the file is damaged, fetch it again (make data)",
                     reader->path, text);
}

/* Up to `size` bytes into `to`; *got is smaller at the end of the file. */
static int read_bytes(const idx_reader *reader, void *to, uint32_t size, uint32_t *got) {
  int count = gzread(reader->file, to, size);
  if (count < 0) {
    return fail_reading(reader);
  }
  *got = (uint32_t)count;
  return 0;
}

static int read_word(const idx_reader *reader, uint32_t *word) {
  uint8_t bytes[4];
  uint32_t got = 0;
  if (read_bytes(reader, bytes, sizeof bytes, &got)) {
    return -1;
  }
  if (got < sizeof bytes) {
    return failure_set(reader->why, EXIT_SETUP,
                       "%s ends inside its header; expected an IDX file, fetch it again "
                       "(make data)",
                       reader->path);
  }
  *word = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
  return 0;
}

static int read_header(const idx_reader *reader, idx_array *made, uint32_t *total) {
  uint32_t magic = 0;
  if (read_word(reader, &magic)) {
    return -1;
  }
  if (magic != MAGIC_OF(made->dimensions)) {
    return failure_set(reader->why, EXIT_SETUP,
                       "%s begins with 0x%08x, expected 0x%08x (IDX, unsigned bytes, %d "
                       "dimension%s); is it another file under this name?",
                       reader->path, magic, MAGIC_OF(made->dimensions), made->dimensions,
                       made->dimensions == 1 ? "" : "s");
  }
  uint64_t product = 1;
  for (int i = 0; i < made->dimensions; i++) {
    if (read_word(reader, &made->sizes[i])) {
      return -1;
    }
    if (made->sizes[i] < 1 || made->sizes[i] > IDX_SIZE_MAX) {
      return failure_set(reader->why, EXIT_SETUP,
                         "%s announces %u in dimension %d, expected 1 to %d; the file is damaged, "
                         "fetch it again (make data)",
                         reader->path, made->sizes[i], i + 1, IDX_SIZE_MAX);
    }
    product *= made->sizes[i];
    if (product > IDX_BYTES_MAX) {
      return failure_set(reader->why, EXIT_SETUP,
                         "%s announces more than %d bytes, the most that is read; use a smaller "
                         "data set",
                         reader->path, IDX_BYTES_MAX);
    }
  }
  *total = (uint32_t)product;
  return 0;
}

static int read_body(const idx_reader *reader, idx_array *made, uint32_t total) {
  uint32_t filled = 0;
  uint32_t capacity = total < FIRST_CAPACITY ? total : FIRST_CAPACITY;
  for (;;) {
    uint8_t *grown = realloc(made->bytes, capacity);
    if (!grown) {
      return failure_set(reader->why, EXIT_SETUP, "no memory for the %u bytes of %s", total,
                         reader->path);
    }
    made->bytes = grown;
    uint32_t got = 0;
    if (read_bytes(reader, made->bytes + filled, capacity - filled, &got)) {
      return -1;
    }
    filled += got;
    if (filled == total) {
      return 0;
    }
    if (filled < capacity) {
      return failure_set(reader->why, EXIT_SETUP,
                         "%s holds %u bytes of data, its header announces %u; the file is cut "
                         "short, fetch it again (make data)",
                         reader->path, filled, total);
    }
    capacity = capacity < total / 2 ? capacity * 2 : total;
  }
}

/* Reading past the data also makes zlib compare the checksum. */
static int read_end(const idx_reader *reader, uint32_t total) {
  uint8_t byte = 0;
  uint32_t got = 0;
  if (read_bytes(reader, &byte, 1, &got)) {
    return -1;
  }
  if (got > 0) {
    return failure_set(reader->why, EXIT_SETUP,
                       "%s goes on after the %u bytes that its header announces; is it another "
                       "file under this name?",
                       reader->path, total);
  }
  return 0;
}

static int read_array(const idx_reader *reader, idx_array *made) {
  uint32_t total = 0;
  if (read_header(reader, made, &total)) {
    return -1;
  }
  if (read_body(reader, made, total)) {
    return -1;
  }
  return read_end(reader, total);
}

int idx_read(const char *path, int dimensions, idx_array *made, failure *why) {
  memset(made, 0, sizeof *made);
  made->dimensions = dimensions;
  errno = 0;
  idx_reader reader = {path, gzopen(path, "rb"), why};
  if (!reader.file) {
    return failure_set(why, EXIT_SETUP, "cannot open %s: %s; fetch the data (make data)", path,
                       errno ? strerror(errno) : "no memory");
  }
  int result = read_array(&reader, made);
  /* A gzip file that was cut is reported here, if its data were complete. */
  bool ended_well = gzclose_r(reader.file) == Z_OK;
  if (result == 0 && !ended_well) {
    result = failure_set(why, EXIT_SETUP,
                         "%s is a gzip file that is cut short; fetch it again (make data)", path);
  }
  if (result) {
    idx_free(made);
  }
  return result;
}

void idx_free(idx_array *self) {
  free(self->bytes);
  memset(self, 0, sizeof *self);
}

/* ---------------------------------------------------------- loading images */

enum { SIDE_MIN = 4, SIDE_MAX = 256 }; /* two poolings leave at least one pixel */

static const char *const default_places[] = {"data", "../shared/data"};
static const char *const folders[] = {"/fashion-mnist", ""};
static const char *const endings[] = {"", ".gz"};

typedef char path_text[DATASET_TEXT_SIZE];

/* Directory, slash and name into `path`; what is too long does not exist. */
static bool find_file(const char *directory, const char *name, path_text path) {
  for (int i = 0; i < 2; i++) {
    int length = snprintf(path, sizeof(path_text), "%s/%s%s", directory, name, endings[i]);
    if (length < DATASET_TEXT_SIZE && access(path, F_OK) == 0) {
      return true;
    }
  }
  return false;
}

static bool find_folder(const char *place, path_text folder) {
  path_text path;
  for (int i = 0; i < 2; i++) {
    int length = snprintf(folder, sizeof(path_text), "%s%s", place, folders[i]);
    if (length < DATASET_TEXT_SIZE && (find_file(folder, "train-images-idx3-ubyte", path) ||
                                       find_file(folder, "train-labels-idx1-ubyte", path))) {
      return true;
    }
  }
  return false;
}

static int read_named(const char *folder, const char *name, int dimensions, idx_array *made,
                      failure *why) {
  path_text path;
  if (!find_file(folder, name, path)) {
    return failure_set(why, EXIT_SETUP,
                       "%s holds no %s or %s.gz, a part of the data set; fetch it (make data)",
                       folder, name, name);
  }
  return idx_read(path, dimensions, made, why);
}

/* Labels must be as many as the images, and classes that exist. */
static int check_labels(const char *folder, const char *name, const idx_array *images,
                        const idx_array *labels, failure *why) {
  if (labels->sizes[0] != images->sizes[0]) {
    return failure_set(why, EXIT_SETUP,
                       "%s/%s has %u labels for %u images; the files do not belong together",
                       folder, name, labels->sizes[0], images->sizes[0]);
  }
  for (uint32_t i = 0; i < labels->sizes[0]; i++) {
    if (labels->bytes[i] >= DATASET_CLASSES) {
      return failure_set(why, EXIT_SETUP,
                         "%s/%s: label %u is %u, expected 0 to %d; this is not a data set of %d "
                         "classes",
                         folder, name, i, labels->bytes[i], DATASET_CLASSES - 1, DATASET_CLASSES);
    }
  }
  return 0;
}

/* One half of a data set; the bytes change owner. */
static int load_set(const char *folder, const char *prefix, image_set *set, failure *why) {
  char images_name[64], labels_name[64];
  snprintf(images_name, sizeof images_name, "%s-images-idx3-ubyte", prefix);
  snprintf(labels_name, sizeof labels_name, "%s-labels-idx1-ubyte", prefix);
  idx_array images = {0}, labels = {0};
  if (read_named(folder, images_name, 3, &images, why) ||
      read_named(folder, labels_name, 1, &labels, why) ||
      check_labels(folder, labels_name, &images, &labels, why)) {
    idx_free(&images);
    idx_free(&labels);
    return -1;
  }
  *set = (image_set){images.sizes[0], (int)images.sizes[1], (int)images.sizes[2], images.bytes,
                     labels.bytes};
  return 0;
}

static int check_sides(const char *folder, const image_set *train, const image_set *test,
                       failure *why) {
  int height = train->height, width = train->width;
  if (height != test->height || width != test->width) {
    return failure_set(why, EXIT_SETUP,
                       "%s: training images are %dx%d, test images %dx%d; the files do not belong "
                       "together",
                       folder, height, width, test->height, test->width);
  }
  if (height < SIDE_MIN || height > SIDE_MAX || width < SIDE_MIN || width > SIDE_MAX) {
    return failure_set(
        why, EXIT_SETUP,
        "%s: images are %dx%d, expected %d to %d pixels a side; use another data set", folder,
        height, width, SIDE_MIN, SIDE_MAX);
  }
  return 0;
}

static int load_folder(const char *folder, dataset *made, failure *why) {
  if (load_set(folder, "train", &made->train, why) || load_set(folder, "t10k", &made->test, why) ||
      check_sides(folder, &made->train, &made->test, why)) {
    return -1;
  }
  snprintf(made->where, sizeof made->where, "%s", folder);
  return 0;
}

static int load_built_in(uint64_t seed, dataset *made, failure *why) {
  made->built_in = true;
  if (shapes_draw_set(seed, 0, SHAPES_TRAIN, &made->train, why)) {
    return -1;
  }
  return shapes_draw_set(seed, SHAPES_TRAIN, SHAPES_TEST, &made->test, why);
}

static int load_given(const char *source, const char *directory, uint64_t seed, dataset *made,
                      failure *why) {
  path_text folder;
  if (strcmp(directory, DATASET_BUILT_IN) == 0) {
    return load_built_in(seed, made, why);
  }
  if (find_folder(directory, folder)) {
    return load_folder(folder, made, why);
  }
  return failure_set(why, EXIT_SETUP,
                     "%s says the data are in %s, but there is no train-images-idx3-ubyte(.gz) in "
                     "it or in its folder fashion-mnist; fetch the data (make data), or leave %s "
                     "out to use the built-in images",
                     source, directory, source);
}

static int load_any(const char *directory, uint64_t seed, dataset *made, failure *why) {
  if (directory) {
    return load_given("--data", directory, seed, made, why);
  }
  const char *variable = getenv("LCOMM_DATA");
  if (variable && *variable) {
    return load_given("LCOMM_DATA", variable, seed, made, why);
  }
  path_text folder;
  for (size_t i = 0; i < sizeof default_places / sizeof default_places[0]; i++) {
    if (find_folder(default_places[i], folder)) {
      return load_folder(folder, made, why);
    }
  }
  return load_built_in(seed, made, why);
}

static size_t pixels_of_image(const image_set *set) {
  return (size_t)set->height * (size_t)set->width;
}

/* Bytes become values of mean 0 and deviation 1 over the training images. */
static void make_levels(dataset *self) {
  uint64_t counts[256] = {0};
  uint64_t total = self->train.count * (uint64_t)pixels_of_image(&self->train);
  for (uint64_t i = 0; i < total; i++) {
    counts[self->train.pixels[i]]++;
  }
  double sum = 0.0, squares = 0.0;
  for (int value = 0; value < 256; value++) {
    sum += (double)counts[value] * value;
    squares += (double)counts[value] * value * value;
  }
  double mean = sum / (double)total;
  double variance = squares / (double)total - mean * mean;
  double deviation = variance > 1.0 ? sqrt(variance) : 1.0;
  for (int value = 0; value < 256; value++) {
    self->level[value] = (float)((value - mean) / deviation);
  }
}

int dataset_load(const char *directory, uint64_t seed, dataset *made, failure *why) {
  memset(made, 0, sizeof *made);
  if (load_any(directory, seed, made, why)) {
    dataset_free(made);
    return -1;
  }
  make_levels(made);
  return 0;
}

void dataset_free(dataset *self) {
  free(self->train.pixels);
  free(self->train.labels);
  free(self->test.pixels);
  free(self->test.labels);
  memset(self, 0, sizeof *self);
}

void dataset_limit(dataset *self, uint32_t count) {
  if (count < self->train.count) {
    self->train.count = count;
  }
}

static uint64_t hash_set(const image_set *set, uint64_t seed) {
  uint64_t hash = XXH3_64bits_withSeed(set->pixels, set->count * pixels_of_image(set), seed);
  return XXH3_64bits_withSeed(set->labels, set->count, hash);
}

uint64_t dataset_hash(const dataset *self) {
  return hash_set(&self->test, hash_set(&self->train, 0));
}

void dataset_batch(const dataset *self, const image_set *set, const uint32_t *order, int count,
                   float *images, uint8_t *labels) {
  size_t image_size = pixels_of_image(set);
  for (int i = 0; i < count; i++) {
    const uint8_t *pixels = set->pixels + order[i] * image_size;
    for (size_t k = 0; k < image_size; k++) {
      *images++ = self->level[pixels[k]];
    }
    labels[i] = set->labels[order[i]];
  }
}
