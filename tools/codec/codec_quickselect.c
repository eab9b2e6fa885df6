/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_quickselect.h"

#include <string.h>

#include "kernels/element.h"

static void swap(uint32_t *a, uint32_t *b) {
  uint32_t held = *a;
  *a = *b;
  *b = held;
}

/* Of the first, middle and last key, which are put in order. */
static uint32_t median_of_three(uint32_t *key, size_t first, size_t last) {
  size_t middle = first + (last - first) / 2;
  if (key[middle] > key[first]) {
    swap(&key[middle], &key[first]);
  }
  if (key[last] > key[first]) {
    swap(&key[last], &key[first]);
  }
  if (key[last] > key[middle]) {
    swap(&key[last], &key[middle]);
  }
  return key[middle];
}

/* The key at `rank` in descending order; what is before it is not smaller. */
static uint32_t select_key(uint32_t *key, size_t n, size_t rank) {
  size_t first = 0, last = n - 1;
  while (first < last) {
    uint32_t pivot = median_of_three(key, first, last);
    size_t i = first, j = last;
    for (;;) {
      while (key[i] > pivot) {
        i++;
      }
      while (key[j] < pivot) {
        j--;
      }
      if (i >= j) {
        break;
      }
      swap(&key[i++], &key[j--]);
    }
    if (rank <= j) { /* all up to j is >= pivot, all behind it <= pivot */
      last = j;
    } else {
      first = j + 1;
    }
  }
  return key[first];
}

size_t lcomm_fastpathselect(const float *values, size_t n, size_t kept, uint32_t *scratch,
                            uint32_t *position, float *value) {
  size_t found = 0, larger = 0;
  if (kept == 0 || n == 0) {
    return 0;
  }
  for (size_t i = 0; i < n; i++) {
    scratch[i] = (uint32_t)lcomm_f32_magnitude(values[i]);
  }
  uint32_t threshold = select_key(scratch, n, kept - 1);
  for (size_t i = 0; i < kept; i++) { /* the largest are in front now */
    larger += scratch[i] > threshold;
  }
  size_t equal = kept - larger; /* so many of those at the threshold */
  for (size_t i = 0; i < n && found < kept; i++) {
    uint32_t key = (uint32_t)lcomm_f32_magnitude(values[i]);
    if (key < threshold || (key == threshold && equal == 0)) {
      continue;
    }
    equal -= key == threshold;
    position[found] = (uint32_t)i;
    value[found++] = values[i];
  }
  return found;
}
