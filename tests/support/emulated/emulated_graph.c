/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Capturing: what is put into a stream is kept in a graph in place of being done. Streams that wait
 * for an event of a captured one are captured with it. */

#include <stdlib.h>
#include <string.h>

#include "tests/support/emulated/emulated_stream.h"

typedef struct capture {
  struct capture *next;
  uint64_t number;
  emulated_stream *origin;
  emulated_graph *graph;
  bool has_failed;
} capture;

static capture *captures;
static emulated_graph *graphs;
static uint64_t number_last;

/* With the lock. */
static capture *find_capture(uint64_t number) {
  capture *it = captures;
  while (it && it->number != number) {
    it = it->next;
  }
  return it;
}

/* ------------------------------------------------------------------- graphs */

static void free_task(emulated_task *task) {
  if (task && task->drop) {
    task->drop(task);
  }
  free(task);
}

static void free_graph(emulated_graph *graph) {
  while (graph->first) {
    emulated_node *node = graph->first;
    graph->first = node->next;
    free_task(node->task);
    free(node);
  }
  while (graph->kept) {
    emulated_kept *it = graph->kept;
    graph->kept = it->next;
    bool before = lcomm_device_bar(); /* CUDA forbids to call it there */
    it->released(it->data);
    lcomm_device_unbar(before);
    free(it);
  }
  free(graph);
}

static void forget_handle(const emulated_graph *graph) {
  emulated_graph **at = &graphs;
  while (*at && *at != graph) {
    at = &(*at)->next;
  }
  if (*at) {
    *at = graph->next;
  }
}

void emulated_graph_release(emulated_graph *graph) {
  emulated_lock();
  bool is_last = --graph->holders == 0;
  emulated_unlock();
  if (is_last) {
    free_graph(graph);
  }
}

int emulated_graph_destroy(void *graph) {
  emulated_lock();
  forget_handle(graph);
  emulated_unlock();
  emulated_graph_release(graph);
  return 0;
}

/* ---------------------------------------------------------------- capturing */

static int join_capture(emulated_stream *s, capture *it) {
  if (it->graph->branches == EMULATED_BRANCHES_MAX || s->device != it->graph->device) {
    it->has_failed = true;
    return EMULATED_NOT_SUPPORTED;
  }
  memset(&s->captured, 0, sizeof(s->captured));
  s->captured.capture = it->number;
  s->branch = it->graph->branches++;
  return 0;
}

int emulated_capture_begin(void *stream) {
  capture *it = calloc(1, sizeof *it);
  emulated_graph *graph = calloc(1, sizeof *graph);
  emulated_lock();
  emulated_stream *s = stream ? emulated_stream_find(stream) : NULL;
  bool can = it && graph && s && s->captured.capture == 0;
  if (can) {
    graph->device = s->device;
    graph->holders = 1;
    *it = (capture){.next = captures, .number = ++number_last, .origin = s, .graph = graph};
    captures = it;
    (void)join_capture(s, it);
  }
  emulated_unlock();
  if (!can) {
    free(it);
    free(graph);
  }
  return can ? 0 : EMULATED_CAPTURE_UNSUPPORTED;
}

/* With the lock: is all of it before where the stream has come that it began with? */
static bool is_joined(const capture *it) {
  for (int i = 0; i < it->graph->branches; i++) {
    if (it->origin->captured.at[i] < it->graph->count[i]) {
      return false;
    }
  }
  return true;
}

static void unlink_capture(const capture *it) {
  capture **at = &captures;
  while (*at != it) {
    at = &(*at)->next;
  }
  *at = it->next;
}

int emulated_capture_end(void *stream, void **graph) {
  emulated_lock();
  emulated_stream *s = emulated_stream_find(stream);
  capture *it = s ? find_capture(s->captured.capture) : NULL;
  *graph = NULL;
  if (!it || it->origin != s) {
    emulated_unlock();
    return EMULATED_INVALID_HANDLE;
  }
  int error = it->has_failed  ? EMULATED_CAPTURE_INVALIDATED
              : is_joined(it) ? 0
                              : EMULATED_CAPTURE_UNJOINED;
  unlink_capture(it);
  for (emulated_stream *other = emulated_streams; other; other = other->next) {
    if (other->captured.capture == it->number) {
      memset(&other->captured, 0, sizeof(other->captured));
    }
  }
  if (error == 0) {
    it->graph->next = graphs;
    graphs = it->graph;
    *graph = it->graph;
  }
  emulated_unlock();
  if (error != 0) {
    emulated_graph_release(it->graph);
  }
  free(it);
  return error;
}

bool emulated_capture_takes(emulated_stream *s, emulated_task *task) {
  capture *it = s->captured.capture == 0 ? NULL : find_capture(s->captured.capture);
  emulated_node *node = it ? calloc(1, sizeof *node) : NULL;
  if (!it) {
    return false;
  }
  if (!node) {
    it->has_failed = true;
    free_task(task);
    return true;
  }
  emulated_graph *graph = it->graph;
  node->task = task;
  node->branch = s->branch;
  node->after = s->captured;
  node->place = ++graph->count[s->branch];
  s->captured.at[s->branch] = node->place;
  *(graph->last ? &graph->last->next : &graph->first) = node;
  graph->last = node;
  return true;
}

int emulated_capture_follow(emulated_stream *s, const emulated_frontier *marked) {
  capture *it = find_capture(marked->capture);
  if (!it) {
    return EMULATED_CAPTURED_EVENT; /* that capture has ended */
  }
  if (s->captured.capture != 0 && s->captured.capture != marked->capture) {
    it->has_failed = true;
    return EMULATED_CAPTURE_MERGE;
  }
  int error = s->captured.capture == 0 ? join_capture(s, it) : 0;
  for (int i = 0; error == 0 && i < EMULATED_BRANCHES_MAX; i++) {
    s->captured.at[i] = s->captured.at[i] < marked->at[i] ? marked->at[i] : s->captured.at[i];
  }
  return error;
}

int emulated_stream_captured(void *handle, uint64_t *number) {
  emulated_enter(EMULATED_CALL_STREAM_CAPTURED);
  emulated_lock();
  const emulated_stream *s = emulated_stream_find(handle);
  *number = s ? s->captured.capture : 0;
  emulated_unlock();
  return s ? 0 : EMULATED_INVALID_HANDLE;
}

int emulated_stream_retain(void *stream, void (*released)(void *data), void *data) {
  emulated_enter(EMULATED_CALL_STREAM_RETAIN);
  emulated_kept *kept = calloc(1, sizeof *kept);
  if (!kept) {
    return EMULATED_OUT_OF_MEMORY;
  }
  emulated_lock();
  const emulated_stream *s = emulated_stream_find(stream);
  const capture *it = s ? find_capture(s->captured.capture) : NULL;
  if (it) {
    *kept = (emulated_kept){it->graph->kept, released, data};
    it->graph->kept = kept;
  }
  emulated_unlock();
  if (!it) {
    free(kept);
  }
  return it ? 0 : EMULATED_INVALID_HANDLE;
}

int emulated_graphs_end(void) {
  int left = 0;
  while (graphs) {
    (void)emulated_graph_destroy(graphs);
    left++;
  }
  return left;
}
