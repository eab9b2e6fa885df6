/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Executable graphs. Each branch has a stream of its own, into which a launch puts copies of the
 * nodes' tasks, and waits where a node comes after one of another branch. */

#include <stdlib.h>
#include <string.h>

#include "tests/support/emulated/emulated_stream.h"

typedef struct executable {
  emulated_graph *graph;
  void *streams[EMULATED_BRANCHES_MAX];
  void *ends[EMULATED_BRANCHES_MAX]; /* events: of the branches, in a launch */
  void *begin, *end;                 /* of a launch */
  void **after;                      /* of each node */
  uint32_t node_count;
  int branches;
} executable;

static int executables; /* with the lock */

static void destroy(executable *it) {
  for (int i = 0; i < it->branches; i++) {
    emulated_branch_end(it->streams[i]);
    (void)emulated_event_drop(it->ends[i]);
  }
  for (uint32_t i = 0; it->after && i < it->node_count; i++) {
    (void)emulated_event_drop(it->after[i]);
  }
  (void)emulated_event_drop(it->begin);
  (void)emulated_event_drop(it->end);
  free(it->after);
  free(it);
}

static int make(executable *it) {
  int error = emulated_event_make(&it->begin);
  error = error ? error : emulated_event_make(&it->end);
  for (int i = 0; i < it->branches && error == 0; i++) {
    it->streams[i] = emulated_branch_begin(it->graph->device);
    error = it->streams[i] ? emulated_event_make(&it->ends[i]) : EMULATED_OUT_OF_MEMORY;
  }
  for (uint32_t i = 0; i < it->node_count && error == 0; i++) {
    error = emulated_event_make(&it->after[i]);
  }
  return error;
}

int emulated_graph_instantiate(void *handle, void **made) {
  emulated_graph *graph = handle;
  executable *it = calloc(1, sizeof *it);
  *made = NULL;
  if (!it || graph->device != emulated_current()) {
    free(it);
    return it ? EMULATED_INVALID_DEVICE : EMULATED_OUT_OF_MEMORY;
  }
  it->graph = graph;
  it->branches = graph->branches;
  for (const emulated_node *node = graph->first; node; node = node->next) {
    it->node_count++;
  }
  it->after = calloc((size_t)it->node_count + 1, sizeof *it->after);
  int error = it->after ? make(it) : EMULATED_OUT_OF_MEMORY;
  if (error != 0) {
    destroy(it);
    return error;
  }
  emulated_lock();
  graph->holders++;
  executables++;
  emulated_unlock();
  *made = it;
  return 0;
}

/* ---------------------------------------------------------------- launching */

static emulated_task *copy_of(const emulated_task *task) {
  emulated_task *copy = malloc(task->size);
  if (copy) {
    memcpy(copy, task, task->size);
    copy->next = copy->next_in_queue = NULL;
    copy->stream = NULL;
    copy->drop = NULL; /* what it holds, the graph holds */
  }
  return copy;
}

/* The event after a node of a branch. */
static void *event_after(const executable *it, int branch, uint32_t place) {
  const emulated_node *node = it->graph->first;
  uint32_t i = 0;
  while (node->branch != branch || node->place != place) {
    node = node->next;
    i++;
  }
  return it->after[i];
}

/* How far each branch has waited for each other one. */
typedef uint32_t waited[EMULATED_BRANCHES_MAX][EMULATED_BRANCHES_MAX];

static int put_node(const executable *it, const emulated_node *node, void *after, waited so_far) {
  void *stream = it->streams[node->branch];
  int error = 0;
  for (int i = 0; i < it->branches && error == 0; i++) {
    if (i != node->branch && node->after.at[i] > so_far[node->branch][i]) {
      so_far[node->branch][i] = node->after.at[i];
      error = emulated_follow(stream, event_after(it, i, node->after.at[i]));
    }
  }
  emulated_task *task = error == 0 ? copy_of(node->task) : NULL;
  if (!task) {
    return error ? error : EMULATED_OUT_OF_MEMORY;
  }
  error = emulated_put(stream, task);
  return error ? error : emulated_mark(after, stream);
}

static int put_all(const executable *it, void *stream) {
  waited so_far;
  uint32_t i = 0;
  memset(so_far, 0, sizeof(so_far));
  int error = emulated_mark(it->begin, stream);
  for (int b = 0; b < it->branches && error == 0; b++) {
    error = emulated_follow(it->streams[b], it->begin);
    error = error ? error : emulated_follow(it->streams[b], it->end); /* of the launch before */
  }
  for (const emulated_node *node = it->graph->first; node && error == 0; node = node->next) {
    error = put_node(it, node, it->after[i++], so_far);
  }
  for (int b = 0; b < it->branches && error == 0; b++) {
    error = emulated_mark(it->ends[b], it->streams[b]);
    error = error ? error : emulated_follow(stream, it->ends[b]);
  }
  return error ? error : emulated_mark(it->end, stream);
}

int emulated_graph_launch(void *handle, void *stream) {
  emulated_enter(EMULATED_CALL_GRAPH_LAUNCH);
  return emulated_stream_is_captured(stream) ? EMULATED_NOT_SUPPORTED : put_all(handle, stream);
}

/* ------------------------------------------------------------------ the end */

typedef struct release_task {
  emulated_task base;
  emulated_graph *graph;
} release_task;

static void run_release(emulated_task *base) {
  emulated_graph_release(((release_task *)base)->graph);
}

static int release_later(const executable *it) {
  release_task *task = emulated_task_new(sizeof *task, run_release);
  if (!task) {
    return EMULATED_OUT_OF_MEMORY;
  }
  task->graph = it->graph;
  int error = emulated_follow(it->streams[0], it->end);
  return error ? error : emulated_put(it->streams[0], &task->base);
}

/* What was launched goes on; what the graph keeps alive is released after it. */
int emulated_executable_destroy(void *handle) {
  bool over = true;
  executable *it = handle;
  emulated_graph *graph = it->graph;
  int error = emulated_look(it->end, &over);
  if (error == 0 && !over) {
    error = release_later(it);
  }
  destroy(it);
  if (over) {
    emulated_graph_release(graph);
  }
  emulated_lock();
  executables--;
  emulated_unlock();
  return error;
}

int emulated_executables_left(void) {
  return executables;
}
