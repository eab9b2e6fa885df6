/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/stream/stream_replay.h"

static const double MICRO = 1e-6;

/* A capture is ended in any case: the stream would stay unusable. */
bool stream_replay_begin(stream_work *w, stream_put *put) {
  const stream_graphs *graphs = w->world->graphs;
  if (!graphs) {
    return stream_fail(w->result, false, "%s", w->world->no_graphs);
  }
  if (!stream_is_fine(w, graphs->capture_begin(w->world->stream))) {
    return false;
  }
  bool is_put = put(w);
  int error = graphs->capture_end(w->world->stream, &w->graph);
  return is_put && stream_is_fine(w, error) &&
         stream_is_fine(w, graphs->instantiate(w->graph, &w->executable));
}

void stream_replay_end(stream_work *w) {
  const stream_graphs *graphs = w->world->graphs;
  if (w->executable) {
    (void)graphs->executable_destroy(w->executable);
  }
  if (w->graph) {
    (void)graphs->graph_destroy(w->graph);
  }
}

bool stream_replay_put(const stream_work *w) {
  return stream_is_fine(w, w->world->graphs->launch(w->executable, w->world->stream));
}

/* -------------------------------------------------------------------- cases */

static bool time_of_replay(const stream_work *w, double *seconds) {
  double begin_s = tool_now_s();
  bool good = stream_replay_put(w) && stream_finish(w, w->world->stream);
  *seconds = tool_now_s() - begin_s;
  return good;
}

static bool time_of_launch(const stream_work *w, double *seconds) {
  double begin_s = tool_now_s();
  bool good = stream_replay_put(w);
  *seconds = tool_now_s() - begin_s;
  return good && stream_finish(w, w->world->stream);
}

static void run_timed(stream_world *world, stream_result *result, stream_timed *run) {
  stream_work w = stream_work_of(world, result);
  result->measured = stream_work_begin(&w) && stream_replay_begin(&w, stream_put_sum) &&
                     stream_measure(&w, run, MICRO);
  stream_replay_end(&w);
  stream_work_end(&w);
}

void stream_replay_latency(stream_world *world, stream_result *result) {
  run_timed(world, result, time_of_replay);
}

void stream_replay_launch(stream_world *world, stream_result *result) {
  run_timed(world, result, time_of_launch);
}
