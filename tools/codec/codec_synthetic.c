/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/codec/codec_synthetic.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/element.h"

static const float sigma = 1e-3f;

enum { LAYER_MIN = 1024, LAYER_MAX = 16 << 20, LAYERS_MIN = 8 };

/* ---------------------------------------------------------- random numbers */

/* What a number is drawn for. Different draws of one element are independent. */
typedef enum draw { DRAW_VALUE, DRAW_CHOICE, DRAW_ROW, DRAW_SIZE, DRAW_SCALE } draw;

static const uint64_t golden = 0x9e3779b97f4a7c15u;

/* The finaliser of splitmix64 (Steele et al. 2014). The codecs' own random
 * numbers have another construction: data must not follow their rounding. */
static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static uint64_t open_stream(const lcomm_synthetic *self, uint64_t tensor, draw what) {
  uint64_t key = mix(self->seed + golden);
  key = mix(key + (uint64_t)self->kind * 0xd1342543de82ef95u + golden);
  key = mix(key + tensor * golden + golden);
  return mix(key + (uint64_t)what * golden + golden);
}

static uint64_t random_at(uint64_t stream, uint64_t index) {
  return mix(stream + (index + 1) * golden);
}

/* In (0, 1], from the upper 40 bits: fine steps next to 0, where tails are. */
static float open_unit(uint64_t random) {
  return ((float)(random >> 24) + 0.5f) * 0x1p-40f;
}

/* In [0, 1), from the lower 24 bits. */
static float low_unit(uint64_t random) {
  return (float)(random & 0xffffffu) * 0x1p-24f;
}

/* In [0, 1), from the upper 53 bits. */
static double unit(uint64_t random) {
  return (double)(random >> 11) * 0x1p-53;
}

/* ----------------------------------------------------------- distributions */

static float cos_turns(float turns) {
  return cosf(6.2831853f * turns);
}

/* Box and Muller 1958. */
static float normal(uint64_t random) {
  return sqrtf(-2.0f * logf(open_unit(random))) * cos_turns(low_unit(random));
}

static float laplace(uint64_t random) {
  float magnitude = -0.70710678f * logf(open_unit(random));
  return (random & 1) != 0 ? -magnitude : magnitude;
}

/* Student's t with 3 degrees of freedom (Bailey 1994), divided by its standard
 * deviation. Its fourth moment is infinite. */
static float student(uint64_t random) {
  return sqrtf(powf(open_unit(random), -2.0f / 3.0f) - 1.0f) * cos_turns(low_unit(random));
}

static float bits(uint64_t random) {
  static const uint32_t special[] = {
      0x00000000u, 0x80000000u, 0x7f800000u, 0xff800000u, /* zeros, Inf */
      0x7fc00000u, 0xffc00001u, 0x7f800001u, 0xffbfffffu, /* NaN, quiet and signalling */
      0x00000001u, 0x807fffffu, 0x00800000u, 0x80800000u, /* around the subnormals' ends */
      0x7f7fffffu, 0xff7fffffu, 0x3f800000u, 0xbf800000u, /* the largest, 1 */
  };
  uint32_t pattern = (uint32_t)random;
  if (random >> 58 == 0) {
    pattern = special[(random >> 54) & 15];
  }
  return lcomm_f32_from_bits(pattern);
}

static void fill_with(float (*value)(uint64_t random), float scale, uint64_t stream, uint64_t first,
                      uint64_t n, float *values) {
  for (uint64_t i = 0; i < n; i++) {
    values[i] = scale * value(random_at(stream, first + i));
  }
}

/* Without a scale: a multiplication would quieten a signalling NaN. */
static void fill_bits(uint64_t stream, uint64_t first, uint64_t n, float *values) {
  for (uint64_t i = 0; i < n; i++) {
    values[i] = bits(random_at(stream, first + i));
  }
}

static void fill_sparse(const lcomm_synthetic *self, uint64_t tensor, uint64_t first, uint64_t n,
                        float *values) {
  uint64_t choice = open_stream(self, tensor, DRAW_CHOICE);
  uint64_t stream = open_stream(self, tensor, DRAW_VALUE);
  for (uint64_t i = 0; i < n; i++) {
    bool some = unit(random_at(choice, first + i)) < 0.01;
    values[i] = some ? sigma * normal(random_at(stream, first + i)) : 0.0f;
  }
}

/* ------------------------------------------------------------------ layers */

static float log_uniform(uint64_t random, double low, double high) {
  return (float)(low * exp(unit(random) * log(high / low)));
}

static uint64_t layer_count(const lcomm_synthetic *self, uint64_t layer, uint64_t left) {
  uint64_t most = self->count / LAYERS_MIN;
  most = most < LAYER_MIN ? LAYER_MIN : most;
  most = most > LAYER_MAX ? LAYER_MAX : most;
  uint64_t random = random_at(open_stream(self, layer, DRAW_SIZE), 0);
  uint64_t count = (uint64_t)log_uniform(random, LAYER_MIN, (double)most);
  return count < left ? count : left;
}

static uint64_t row_length(uint64_t layer_size) {
  uint64_t length = 1;
  while (length * length < layer_size) {
    length *= 2;
  }
  return length;
}

static float mixture_scale(uint64_t random) {
  double u = unit(random);
  if (u < 0.90) {
    return 1.0f;
  }
  return u < 0.99 ? 3.0f : 10.0f;
}

static void fill_layer(const lcomm_synthetic *self, uint64_t layer, uint64_t layer_size,
                       uint64_t first, uint64_t n, float *values) {
  uint64_t rows = open_stream(self, layer, DRAW_ROW);
  uint64_t choice = open_stream(self, layer, DRAW_CHOICE);
  uint64_t stream = open_stream(self, layer, DRAW_VALUE);
  uint64_t length = row_length(layer_size), row = UINT64_MAX;
  float layer_scale = log_uniform(random_at(open_stream(self, layer, DRAW_SCALE), 0), 1e-6, 3e-3);
  float scale = 0.0f;
  for (uint64_t i = 0; i < n; i++) {
    uint64_t index = first + i;
    if (index / length != row) {
      row = index / length;
      scale = layer_scale * expf(0.5f * normal(random_at(rows, row)));
    }
    values[i] = scale * mixture_scale(random_at(choice, index)) * normal(random_at(stream, index));
  }
}

/* --------------------------------------------------------------- interface */

static const struct {
  const char *name, *about;
} kinds[LCOMM_SYNTHETIC_KINDS] = {
    [LCOMM_SYNTHETIC_NORMAL] = {"normal", "normal, deviation 1e-3"},
    [LCOMM_SYNTHETIC_LAPLACE] = {"laplace", "Laplace, deviation 1e-3"},
    [LCOMM_SYNTHETIC_STUDENT] = {"student", "Student's t, 3 degrees of freedom: heavy tails"},
    [LCOMM_SYNTHETIC_LAYERS] = {"layers", "like a gradient: layers and rows of unlike scales"},
    [LCOMM_SYNTHETIC_SPARSE] = {"sparse", "99 % zeros, the others normal"},
    [LCOMM_SYNTHETIC_CONSTANT] = {"constant", "every value 1e-3"},
    [LCOMM_SYNTHETIC_BITS] = {"bits", "any bit pattern, NaN and Inf included"},
};

const char *lcomm_synthetic_name(lcomm_synthetic_kind kind) {
  return kinds[kind].name;
}

const char *lcomm_synthetic_about(lcomm_synthetic_kind kind) {
  return kinds[kind].about;
}

bool lcomm_synthetic_by_name(const char *name, lcomm_synthetic_kind *kind) {
  for (int i = 0; i < LCOMM_SYNTHETIC_KINDS; i++) {
    if (strcmp(kinds[i].name, name) != 0) {
      continue;
    }
    *kind = (lcomm_synthetic_kind)i;
    return true;
  }
  return false;
}

uint64_t lcomm_synthetic_tensor_count(const lcomm_synthetic *self, uint64_t tensor, uint64_t left) {
  return self->kind == LCOMM_SYNTHETIC_LAYERS ? layer_count(self, tensor, left) : left;
}

void lcomm_synthetic_fill(const lcomm_synthetic *self, uint64_t tensor, uint64_t tensor_count,
                          uint64_t first, uint64_t n, float *values) {
  uint64_t stream = open_stream(self, tensor, DRAW_VALUE);
  switch (self->kind) {
  case LCOMM_SYNTHETIC_NORMAL:
    fill_with(normal, sigma, stream, first, n, values);
    return;
  case LCOMM_SYNTHETIC_LAPLACE:
    fill_with(laplace, sigma, stream, first, n, values);
    return;
  case LCOMM_SYNTHETIC_STUDENT:
    fill_with(student, sigma, stream, first, n, values);
    return;
  case LCOMM_SYNTHETIC_LAYERS:
    fill_layer(self, tensor, tensor_count, first, n, values);
    return;
  case LCOMM_SYNTHETIC_SPARSE:
    fill_sparse(self, tensor, first, n, values);
    return;
  case LCOMM_SYNTHETIC_CONSTANT:
    for (uint64_t i = 0; i < n; i++) {
      values[i] = sigma;
    }
    return;
  case LCOMM_SYNTHETIC_BITS:
    fill_bits(stream, first, n, values);
    return;
  case LCOMM_SYNTHETIC_KINDS:
    return;
  }
}
