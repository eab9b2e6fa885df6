/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Top-k split over owners: how much of what is picked finds no room. */

#include <math.h>
#include <stdio.h>

#include "kernels/stripe.h"
#include "tests/codecs/topk_samples.h"
#include "tests/support/unit_tests.h"

enum { MOST_OWNERS = 64, TENSORS_MAX = 256 };

typedef struct gradient {
  float *values;
  uint64_t count;
  uint64_t ends[TENSORS_MAX]; /* of its tensors */
  size_t tensors;
} gradient;

/* The share of the picked entries that wait. */
static double waiting(const gradient *g, bool by_tensor, uint32_t owners, double density) {
  const lcomm_format format = topk_format(density, LCOMM_VARIANT_PLAIN);
  lcomm_topk_shape shape = {.base_count = g->count,
                            .parts = 1,
                            .outputs = owners,
                            .format = &format,
                            .segment_ends = by_tensor ? g->ends : &g->ends[g->tensors - 1],
                            .segments = by_tensor ? g->tensors : 1};
  uint8_t *payload[MOST_OWNERS];
  size_t size[MOST_OWNERS];
  uint64_t waited = 0;
  lcomm_topk *topk = make(&shape);
  for (uint32_t o = 0; o < owners; o++) {
    payload[o] = sample_memory(lcomm_topk_output_bound(topk, o) + 64);
  }
  lcomm_topk_encode(topk, lcomm_kernels_best(), g->values, NULL, NULL, LCOMM_TOPK_HOLD, payload,
                    size);
  for (size_t i = 0; i < lcomm_topk_segments(topk); i++) {
    waited += lcomm_topk_segment_waited(topk, i);
  }
  for (uint32_t o = 0; o < owners; o++) {
    free(payload[o]);
  }
  double share = (double)waited / (double)lcomm_topk_total(topk);
  lcomm_topk_destroy(topk);
  return share;
}

static const double densities[] = {0.001, 0.003, 0.01};
static const uint32_t owners[] = {2, 4, 8, 16, 32, 64};

/* Less than one percent, whatever the owners and the density; the table on the way. */
static void expect_room(const gradient *g, const char *name) {
  for (int by_tensor = 0; by_tensor < 2; by_tensor++) {
    for (size_t d = 0; d < sizeof densities / sizeof densities[0]; d++) {
      print_message("%s, %s, %g %%:", name, by_tensor ? "each tensor" : "the whole",
                    100 * densities[d]);
      double most = 0;
      for (size_t o = 0; o < sizeof owners / sizeof owners[0]; o++) {
        double share = waiting(g, by_tensor, owners[o], densities[d]);
        most = share > most ? share : most;
        print_message(" %.2f", 100 * share);
      }
      print_message(" %% wait\n");
      assert_true(most < 0.01);
    }
  }
}

/* ---------------------------------------------------------------- recorded */

/* The lengths of its tensors, in their order. */
static bool read_tensors(const char *folder, const char *model, gradient *g) {
  char path[4096], line[256];
  unsigned long long count = 0;
  snprintf(path, sizeof path, "%s/gradients/%s/meta.json", folder, model);
  FILE *file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, " \"numel\": %llu", &count) == 1 && g->tensors < TENSORS_MAX) {
      g->count += count;
      g->ends[g->tensors++] = g->count;
    }
  }
  if (file) {
    fclose(file);
  }
  return g->count > 0;
}

static bool read_gradient(const char *folder, const char *model, int worker, gradient *g) {
  char path[4096];
  *g = (gradient){.values = NULL};
  snprintf(path, sizeof path, "%s/gradients/%s/step100_worker%d.f32", folder, model, worker);
  FILE *file = fopen(path, "rb");
  if (!file || !read_tensors(folder, model, g)) {
    return false;
  }
  g->values = sample_memory(g->count * sizeof *g->values);
  bool good = fread(g->values, sizeof *g->values, g->count, file) == g->count;
  fclose(file);
  return good;
}

static void recorded_gradients_find_room(void **state) {
  (void)state;
  static const char *const models[] = {"cnn", "gpt"};
  const char *folders[] = {getenv("LCOMM_DATA"), "data", "../shared/data"};
  int seen = 0;
  for (size_t f = 0; f < sizeof folders / sizeof folders[0] && seen == 0; f++) {
    for (int i = 0; folders[f] && i < 4; i++) {
      gradient g;
      if (read_gradient(folders[f], models[i / 2], i % 2, &g)) {
        expect_room(&g, models[i / 2]);
        seen++;
      }
      free(g.values);
    }
  }
  if (seen == 0) {
    skip();
  }
}

/* ---------------------------------------------------------------- synthetic */

/* Tensors of all lengths, each of its own scale, with tiles a tenth of which are large. */
static void tiles_of_uneven_scales_find_room(void **state) {
  (void)state;
  enum { COUNT = 3000000 };
  gradient g = {.values = sample_memory(COUNT * sizeof(float)), .count = COUNT};
  uint64_t random = 7;
  for (uint64_t end = 500; end < COUNT && g.tensors < TENSORS_MAX - 1; end += end / 3) {
    g.ends[g.tensors++] = end;
  }
  g.ends[g.tensors++] = COUNT;
  float tile = 1, tensor = 1;
  for (uint64_t i = 0, t = 0; i < COUNT; i++) {
    if (i % LCOMM_TILE == 0) {
      tile = sample_u64(&random) % 10 == 0 ? 20.0f : 1.0f;
    }
    if (i == g.ends[t]) {
      tensor = expf(2 * sample_normal(&random));
      t++;
    }
    g.values[i] = tensor * tile * sample_normal(&random);
  }
  expect_room(&g, "synthetic");
  free(g.values);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(recorded_gradients_find_room),
    cmocka_unit_test(tiles_of_uneven_scales_find_room),
};
RUN_TESTS(tests)
