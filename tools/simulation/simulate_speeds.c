/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_speeds.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/simulation/simulate_file.h"

/* ---------------------------------------------------------------- built in */

typedef struct known {
  const char *codec;
  struct {
    double encode, decode, add;
  } in[SIMULATE_PLACES];
  bool assumed;
} known;

/* One core, 256 MiB (tools/bench/RESULTS.md, "Speed of codecs"), and 2 MiB, which the last cache
 * holds; what is not measured there is assumed. */
static const known table[] = {
    {"none+zstd", {{0.6, 1.2, 1.1}, {3.3, 6.7, 6.5}}, true},
    {"fp16", {{20.7, 22.5, 16.5}, {72.4, 66.8, 63.6}}, false},
    {"bf16", {{22.6, 26.4, 19.6}, {72.2, 67.8, 65.1}}, false},
    {"fp8e4m3", {{27.8, 25.8, 19.5}, {51.5, 79.2, 76.9}}, false},
    {"fp8e5m2", {{27.8, 25.8, 19.5}, {51.5, 79.2, 76.9}}, true},
    {"int8", {{20.0, 25.6, 21.3}, {66.9, 78.8, 78.1}}, false},
    {"int4", {{8.0, 16.0, 14.0}, {15.4, 83.1, 83.6}}, true},
    {"int2", {{8.0, 16.0, 14.0}, {15.4, 83.1, 83.6}}, true},
    {"sign", {{8.0, 16.0, 14.0}, {15.4, 83.1, 83.6}}, true},
    {"topk:0.01+ef", {{9.7, 25.0, 40.0}, {14.9, 73.4, 204}}, true},
    {"topk:0.001+ef", {{12.5, 40.0, 150.0}, {19.9, 110, 1966}}, true},
};

static const double COPY_GB_S[] = {12, 41}, SUM_GB_S[] = {10, 20};

/* kernels/README.md; the processor is the limit, so in a cache it is no faster. */
static const simulate_lowrank_speed LOWRANK = {6.0, 8.3, 4.5};

static bool add(simulate_speeds *speeds, const char *codec, double encode, double decode,
                double sum, bool assumed) {
  lcomm_why error;
  simulate_speed it = {
      .encode_gb_s = encode, .decode_gb_s = decode, .add_gb_s = sum, .assumed = assumed};
  if (lcomm_format_parse(codec, &it.choice, &error) != LCOMM_OK) {
    return false;
  }
  size_t at = 0;
  while (at < speeds->count && !lcomm_codec_spec_equal(&speeds->codec[at].choice, &it.choice)) {
    at++;
  }
  if (at == SIMULATE_SPEEDS_MAX) {
    return false;
  }
  speeds->codec[at] = it;
  speeds->count += at == speeds->count;
  return true;
}

simulate_speeds simulate_speeds_built_in(simulate_place place) {
  simulate_speeds speeds = {.copy_gb_s = COPY_GB_S[place],
                            .sum_gb_s = SUM_GB_S[place],
                            .lowrank = LOWRANK,
                            .source = "built in, one core of a server"};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    (void)add(&speeds, table[i].codec, table[i].in[place].encode, table[i].in[place].decode,
              table[i].in[place].add, table[i].assumed);
  }
  return speeds;
}

/* ------------------------------------------------------------------- JSON */

static double median_of(const cJSON *entry, const char *key) {
  const cJSON *median =
      cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(entry, key), "median");
  double value = cJSON_IsNumber(median) ? median->valuedouble : 0;
  return isfinite(value) && value > 0 && value < 1e6 ? value : 0;
}

/* Is a size nearer to where the vectors are than the best one so far? */
static bool is_nearer(simulate_place place, double size, double best_size) {
  return place == SIMULATE_IN_CACHE ? size < best_size || best_size <= 0 : size > best_size;
}

/* Of the largest size, or in a cache of the smallest one, by the fastest kernels, or 0. */
static double speed_of(const cJSON *codec, const char *operation, simulate_place place,
                       double *copy_gb_s) {
  double best = 0, best_size = 0;
  const cJSON *entry;
  cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(codec, "speed")) {
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(entry, "operation");
    const cJSON *size = cJSON_GetObjectItemCaseSensitive(entry, "size_bytes");
    if (!cJSON_IsString(name) || strcmp(name->valuestring, operation) != 0 ||
        !cJSON_IsNumber(size)) {
      continue;
    }
    double gb_s = median_of(entry, "gb_s");
    bool same = size->valuedouble == best_size && gb_s > best;
    if (is_nearer(place, size->valuedouble, best_size) || same) {
      best = gb_s;
      best_size = size->valuedouble;
      *copy_gb_s =
          median_of(entry, "memcpy_gb_s") > 0 ? median_of(entry, "memcpy_gb_s") : *copy_gb_s;
    }
  }
  return best;
}

/* Speeds are those of all threads together. */
static double threads_of(const cJSON *root) {
  const cJSON *threads = cJSON_GetObjectItemCaseSensitive(root, "threads");
  double count = cJSON_IsNumber(threads) ? threads->valuedouble : 1;
  return count >= 1 && count <= 65536 ? count : 1;
}

static bool take(const cJSON *root, simulate_place place, simulate_speeds *speeds, char *why) {
  const cJSON *codecs = cJSON_GetObjectItemCaseSensitive(root, "codecs"), *codec;
  double copy_gb_s = 0, threads = threads_of(root);
  size_t taken = 0;
  cJSON_ArrayForEach(codec, codecs) {
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(codec, "codec");
    double encode = speed_of(codec, "encode", place, &copy_gb_s);
    double decode = speed_of(codec, "decode", place, &copy_gb_s);
    double sum = speed_of(codec, "add", place, &copy_gb_s);
    if (!cJSON_IsString(name) || !(encode > 0) || !(decode > 0)) {
      continue;
    }
    sum = sum > 0 ? sum : decode;
    if (!add(speeds, name->valuestring, encode / threads, decode / threads, sum / threads, false)) {
      snprintf(why, SIMULATE_WHY_MAX, "'%.60s' is no codec, or one too many", name->valuestring);
      return false;
    }
    taken++;
  }
  if (taken == 0) {
    snprintf(why, SIMULATE_WHY_MAX,
             "no codec with the speed of encode and decode; codec_bench --json writes them");
    return false;
  }
  if (copy_gb_s > 0) {
    speeds->copy_gb_s = copy_gb_s / threads;
    speeds->sum_gb_s = speeds->copy_gb_s / 2;
  }
  return true;
}

bool simulate_speeds_parse(const char *text, size_t length, simulate_place place,
                           simulate_speeds *speeds, char *why) {
  simulate_speeds made = *speeds;
  cJSON *root = cJSON_ParseWithLength(text, length);
  bool good = cJSON_IsObject(root);
  if (!good) {
    snprintf(why, SIMULATE_WHY_MAX, "it is no JSON object");
  }
  good = good && take(root, place, &made, why);
  cJSON_Delete(root);
  if (good) {
    *speeds = made;
  }
  return good;
}

bool simulate_speeds_read(const char *path, simulate_place place, simulate_speeds *speeds,
                          char *why) {
  size_t length = 0;
  char *text = simulate_file_read(path, SIMULATE_SPEEDS_FILE_MAX, &length, why);
  bool good = text && simulate_speeds_parse(text, length, place, speeds, why);
  if (good) {
    snprintf(speeds->source, sizeof speeds->source, "%.120s", path);
  }
  free(text);
  return good;
}

/* ------------------------------------------------------------------- using */

/* How alike: 3 the same choice, 2 the same format, 1 the same codec and lossless stage. */
static int likeness(const lcomm_codec_spec *a, const lcomm_codec_spec *b) {
  if (a->format.codec != b->format.codec || a->format.zstd != b->format.zstd) {
    return 0;
  }
  if (!lcomm_format_equal(&a->format, &b->format)) {
    return 1;
  }
  return a->error_feedback == b->error_feedback ? 3 : 2;
}

static double slower(double gb_s, double stage_gb_s, double share) {
  return 1 / (1 / gb_s + share / stage_gb_s);
}

/* The codec without the lossless stage, then that stage over what it leaves. */
static simulate_speed with_lossless(const simulate_speeds *speeds, const lcomm_codec_spec *choice) {
  lcomm_codec_spec plain = *choice, zstd = {.format = lcomm_format_of(&lcomm_codec_none)};
  plain.format.zstd = false;
  zstd.format.zstd = true;
  simulate_speed it = simulate_speeds_of(speeds, &plain), stage = simulate_speeds_of(speeds, &zstd);
  double share = lcomm_format_bits(&plain.format) / 32;
  it.encode_gb_s = slower(it.encode_gb_s, stage.encode_gb_s, share);
  it.decode_gb_s = slower(it.decode_gb_s, stage.decode_gb_s, share);
  it.add_gb_s = slower(it.add_gb_s, stage.decode_gb_s, share);
  it.assumed = true;
  return it;
}

simulate_speed simulate_speeds_of(const simulate_speeds *speeds, const lcomm_codec_spec *choice) {
  const simulate_speed *best = NULL;
  int best_likeness = 0;
  for (size_t i = 0; i < speeds->count; i++) {
    int alike = likeness(&speeds->codec[i].choice, choice);
    if (alike > best_likeness) {
      best = &speeds->codec[i];
      best_likeness = alike;
    }
  }
  if (best) {
    return *best;
  }
  if (choice->format.zstd && choice->format.codec->id != LCOMM_CODEC_NONE) {
    return with_lossless(speeds, choice);
  }
  return (simulate_speed){.choice = *choice,
                          .encode_gb_s = speeds->copy_gb_s,
                          .decode_gb_s = speeds->copy_gb_s,
                          .add_gb_s = speeds->sum_gb_s,
                          .assumed = choice->format.codec->id != LCOMM_CODEC_NONE};
}

simulate_time simulate_speeds_time(double count, double gb_s) {
  return gb_s > 0 ? simulate_time_of(count * sizeof(float) / gb_s / 1e9) : 0;
}
