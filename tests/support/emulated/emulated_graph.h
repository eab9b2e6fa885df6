/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_GRAPH_H
#define LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_GRAPH_H

/* Graphs as streams, events and executables of the emulation see them. Each stream that is captured
 * has a branch of the graph; its tasks become nodes there, one after the other. What a node waits
 * for is how far its stream had come in all branches. All with the lock. */

#include "tests/support/emulated/emulated_internal.h"

enum { EMULATED_BRANCHES_MAX = 16 };

/* How far something has come in a capture: nodes of each branch. */
typedef struct emulated_frontier {
  uint64_t capture; /* 0: in none */
  uint32_t at[EMULATED_BRANCHES_MAX];
} emulated_frontier;

typedef struct emulated_node {
  struct emulated_node *next;
  emulated_task *task; /* that is copied when the graph is launched */
  int branch;
  uint32_t place; /* in its branch, from 1 */
  emulated_frontier after;
} emulated_node;

/* What a graph keeps alive. */
typedef struct emulated_kept {
  struct emulated_kept *next;
  void (*released)(void *data);
  void *data;
} emulated_kept;

typedef struct emulated_graph {
  struct emulated_graph *next; /* of all handles that are known */
  emulated_node *first, *last;
  emulated_kept *kept;
  int holders; /* its handle, and executables */
  int branches, device;
  uint32_t count[EMULATED_BRANCHES_MAX]; /* nodes */
} emulated_graph;

/* A task for a stream that may be captured: is it? Then it is the graph's. */
bool emulated_capture_takes(struct emulated_stream *s, emulated_task *task);
/* A stream waits for what an event has marked in a capture, and is captured from here on. */
int emulated_capture_follow(struct emulated_stream *s, const emulated_frontier *marked);

/* Give one holder's part back; what nobody holds any more is freed: without the lock. */
void emulated_graph_release(emulated_graph *graph);
/* How many are left: graphs, which are freed; executables. */
int emulated_graphs_end(void);
int emulated_executables_left(void);

#endif
