/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- buckets */

static uint64_t end_of(const lcomm_source_tensor *tensor) {
  return tensor->first + tensor->count;
}

bool lcomm_dataset_next(const lcomm_source_contents *contents, lcomm_dataset_bucket *bucket) {
  const uint64_t most = LCOMM_DATASET_BUCKET_BYTES / sizeof(float);
  lcomm_dataset_bucket next = {.first = bucket->first + bucket->count,
                               .tensor = bucket->tensor + bucket->tensor_count};
  if (next.first == contents->count) {
    return false;
  }
  /* the last tensor is not at its end when it is taken in pieces */
  if (next.tensor > 0 && next.first < end_of(&contents->tensors[next.tensor - 1])) {
    next.tensor--;
  }
  const lcomm_source_tensor *tensor = &contents->tensors[next.tensor];
  next.count = end_of(tensor) - next.first;
  next.tensor_count = 1;
  if (next.count > LCOMM_DATASET_PIECE_MAX) {
    next.count = LCOMM_DATASET_PIECE_MAX;
  } else {
    for (tensor++; tensor < contents->tensors + contents->tensor_count && next.count <= most &&
                   tensor->count <= most - next.count;
         tensor++) {
      next.count += tensor->count;
      next.tensor_count++;
    }
  }
  *bucket = next;
  return true;
}

uint64_t lcomm_dataset_buckets(const lcomm_source_contents *contents) {
  lcomm_dataset_bucket bucket = {0};
  uint64_t buckets = 0;
  while (lcomm_dataset_next(contents, &bucket)) {
    buckets++;
  }
  return buckets;
}

void lcomm_dataset_ends(const lcomm_source_contents *contents, const lcomm_dataset_bucket *bucket,
                        uint64_t *ends) {
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    uint64_t end = end_of(&contents->tensors[bucket->tensor + i]) - bucket->first;
    ends[i] = end < bucket->count ? end : bucket->count;
  }
}

/* --------------------------------------------------------------- sources */

static lcomm_status no_memory(char *error) {
  snprintf(error, TOOL_ERROR_MAX, "no memory to list the sources");
  return LCOMM_ERR_MEMORY;
}

/* Takes the source, on failure too. */
static lcomm_status append(lcomm_dataset *dataset, lcomm_source *source, char *error) {
  lcomm_source **grown =
      realloc(dataset->sources, (dataset->source_count + 1) * sizeof(lcomm_source *));
  if (!grown) {
    lcomm_source_close(source);
    return no_memory(error);
  }
  dataset->sources = grown;
  grown[dataset->source_count++] = source;
  return LCOMM_OK;
}

static lcomm_status open_file(const lcomm_bench_options *options, const char *path,
                              lcomm_dataset *dataset, char *error) {
  lcomm_source *source = NULL;
  lcomm_status status = lcomm_source_open(path, options->layers, &source, error);
  return status == LCOMM_OK ? append(dataset, source, error) : status;
}

static lcomm_status leave_out(lcomm_dataset *dataset, char *error) {
  char **grown = realloc(dataset->unreadable, (dataset->unreadable_count + 1) * sizeof *grown);
  if (!grown) {
    return no_memory(error);
  }
  dataset->unreadable = grown;
  grown[dataset->unreadable_count] = strdup(error);
  if (!grown[dataset->unreadable_count]) {
    return no_memory(error);
  }
  dataset->unreadable_count++;
  return LCOMM_OK;
}

/* One bad file does not spoil the others. */
static lcomm_status open_folder(const lcomm_bench_options *options, const lcomm_source_paths *found,
                                lcomm_dataset *dataset, char *error) {
  lcomm_status status = LCOMM_OK, first = LCOMM_OK;
  size_t before = dataset->source_count, bad = dataset->unreadable_count;
  for (size_t i = 0; status == LCOMM_OK && i < found->count; i++) {
    status = open_file(options, found->paths[i], dataset, error);
    if (status != LCOMM_OK && status != LCOMM_ERR_MEMORY) {
      first = first == LCOMM_OK ? status : first;
      status = leave_out(dataset, error);
    }
  }
  if (status != LCOMM_OK || dataset->source_count > before) {
    return status;
  }
  snprintf(error, TOOL_ERROR_MAX, "%s", dataset->unreadable[bad]);
  return first;
}

static lcomm_status open_path(const lcomm_bench_options *options, const char *path,
                              lcomm_dataset *dataset, char *error) {
  lcomm_source_paths found = {0};
  lcomm_status status = lcomm_source_find(path, &found, error);
  bool itself = status == LCOMM_OK && found.count == 1 && strcmp(found.paths[0], path) == 0;
  if (status == LCOMM_OK) {
    status = itself ? open_file(options, path, dataset, error)
                    : open_folder(options, &found, dataset, error);
  }
  lcomm_source_paths_free(&found);
  return status;
}

static lcomm_status open_all(const lcomm_bench_options *options, lcomm_dataset *dataset,
                             char *error) {
  lcomm_status status = LCOMM_OK;
  for (size_t i = 0; status == LCOMM_OK && i < options->path_count; i++) {
    status = open_path(options, options->paths[i], dataset, error);
  }
  if (status != LCOMM_OK || !options->synthetic_wanted) {
    return status;
  }
  lcomm_source *source = NULL;
  status = lcomm_source_open_synthetic(&options->synthetic, &source, error);
  return status == LCOMM_OK ? append(dataset, source, error) : status;
}

/* --------------------------------------------------------------- streams */

static bool same_tensors(const lcomm_source_contents *a, const lcomm_source_contents *b) {
  if (a->tensor_count != b->tensor_count || a->count != b->count) {
    return false;
  }
  for (size_t i = 0; i < a->tensor_count; i++) {
    if (a->tensors[i].count != b->tensors[i].count ||
        strcmp(a->tensors[i].name, b->tensors[i].name) != 0) {
      return false;
    }
  }
  return true;
}

static bool same_stream(const lcomm_source *a, const lcomm_source *b) {
  const lcomm_source_contents *x = lcomm_source_contents_of(a), *y = lcomm_source_contents_of(b);
  return x->capture.ranks > 0 && y->capture.ranks > 0 && x->capture.rank == y->capture.rank &&
         same_tensors(x, y);
}

static lcomm_dataset_stream *stream_of(lcomm_dataset *dataset, const lcomm_source *source) {
  for (size_t i = 0; i < dataset->stream_count; i++) {
    if (same_stream(dataset->streams[i].steps[0], source)) {
      return &dataset->streams[i];
    }
  }
  lcomm_dataset_stream *stream = &dataset->streams[dataset->stream_count];
  stream->steps = calloc(dataset->source_count, sizeof(lcomm_source *));
  dataset->stream_count += stream->steps != NULL;
  return stream->steps ? stream : NULL;
}

static uint64_t step_of(const lcomm_source *source) {
  return lcomm_source_contents_of(source)->capture.step;
}

/* In its place by step; what came first stays first. */
static void insert(lcomm_dataset_stream *stream, lcomm_source *source) {
  size_t place = stream->step_count++;
  for (; place > 0 && step_of(stream->steps[place - 1]) > step_of(source); place--) {
    stream->steps[place] = stream->steps[place - 1];
  }
  stream->steps[place] = source;
}

static lcomm_status make_streams(lcomm_dataset *dataset, char *error) {
  dataset->streams = calloc(dataset->source_count, sizeof *dataset->streams);
  if (!dataset->streams) {
    return no_memory(error);
  }
  for (size_t i = 0; i < dataset->source_count; i++) {
    lcomm_dataset_stream *stream = stream_of(dataset, dataset->sources[i]);
    if (!stream) {
      return no_memory(error);
    }
    insert(stream, dataset->sources[i]);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_dataset_open(const lcomm_bench_options *options, lcomm_dataset *dataset,
                                char *error) {
  *dataset = (lcomm_dataset){0};
  lcomm_status status = open_all(options, dataset, error);
  if (status == LCOMM_OK) {
    status = make_streams(dataset, error);
  }
  if (status != LCOMM_OK) {
    lcomm_dataset_close(dataset);
  }
  return status;
}

void lcomm_dataset_close(lcomm_dataset *dataset) {
  for (size_t i = 0; i < dataset->stream_count; i++) {
    free(dataset->streams[i].steps);
  }
  free(dataset->streams);
  for (size_t i = 0; i < dataset->source_count; i++) {
    lcomm_source_close(dataset->sources[i]);
  }
  free(dataset->sources);
  for (size_t i = 0; i < dataset->unreadable_count; i++) {
    free(dataset->unreadable[i]);
  }
  free(dataset->unreadable);
  *dataset = (lcomm_dataset){0};
}

uint64_t lcomm_dataset_count(const lcomm_dataset *dataset) {
  uint64_t count = 0;
  for (size_t i = 0; i < dataset->source_count; i++) {
    count += lcomm_source_contents_of(dataset->sources[i])->count;
  }
  return count;
}

void lcomm_dataset_fill(const lcomm_dataset *dataset, uint64_t count, float *values) {
  uint64_t total = lcomm_dataset_count(dataset), done = 0;
  for (size_t i = 0; i < dataset->source_count && done < count; i++) {
    uint64_t n = lcomm_source_contents_of(dataset->sources[i])->count;
    n = n < count - done ? n : count - done;
    lcomm_source_read(dataset->sources[i], 0, n, values + done);
    done += n;
  }
  for (; done < count; done++) {
    values[done] = values[done - total];
  }
}
