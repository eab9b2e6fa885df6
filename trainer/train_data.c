/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

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
