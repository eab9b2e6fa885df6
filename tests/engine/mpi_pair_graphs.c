/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Messages between two ranks that a program captures into graphs, and replays. */

#include "libcomm/engine/recording.h"
#include "libcomm/plan/pipe.h"
#include "tests/engine/pair_graphs.h"

enum { REPLAYS = 4 };

/* Send to the right, receive from the left. */
static void capture_ring(const ring *it, uint64_t count, launchable *made) {
  check(emulated_capture_begin(it->stream));
  ring_send(it, count);
  ring_receive(it, count);
  end_capture(made, it->stream);
}

static void messages_of_any_size_go_round_a_ring(void) {
  static const uint64_t counts[] = {0, 1, 1000, 1020, 17500, LONGEST};
  ring it = ring_begin("", 1);
  for (int i = 0; i < (int)(sizeof(counts) / sizeof(counts[0])); i++) {
    launchable one;
    capture_ring(&it, counts[i], &one);
    for (int replay = 0; replay < REPLAYS; replay++) {
      ring_fill(&it, replay);
      launch_to_the_end(&one, it.stream);
      ring_require(&it, replay, counts[i]);
    }
    free_graph(&one);
  }
  ring_end(&it);
}

/* Calls between replays have a queue of their own. */
static void replays_and_calls_do_not_mix(void) {
  ring it = ring_begin("", 1);
  launchable one;
  capture_ring(&it, 5000, &one);
  for (int replay = 0; replay < REPLAYS; replay++) {
    ring_fill(&it, replay);
    launch(&one, it.stream);
    ring_send(&it, 3000);
    ring_receive(&it, 3000);
    launch(&one, it.stream);
    check(device->stream.finish(it.stream));
    ring_require(&it, replay, 5000);
  }
  free_graph(&one);
  ring_end(&it);
}

/* What one replay receives the next one sends, around the ring, with all of them in the stream. */
static void replays_follow_each_other_on_the_device(void) {
  enum { COUNT = 70000 };
  ring it = ring_begin("", 1);
  launchable one;
  check(emulated_capture_begin(it.stream));
  ring_send(&it, COUNT);
  ring_receive(&it, COUNT);
  check(device->copy(it.from, it.to, COUNT * sizeof(float), it.stream));
  end_capture(&one, it.stream);
  ring_fill(&it, 0);
  for (int replay = 0; replay < mpi_size + 1; replay++) { /* once around, and once more */
    launch(&one, it.stream);
  }
  free_graph(&one); /* what was launched goes on */
  check(device->stream.finish(it.stream));
  ring_require(&it, 0, COUNT);
  ring_end(&it);
}

/* Receives come before sends in the program, and from all ranks. */
static void groups_exchange_between_all(void) {
  enum { PART = 6000 };
  ring it = ring_begin("", two_nodes());
  launchable one;
  check(emulated_capture_begin(it.stream));
  require_fine(it.comm, lcomm_group_begin(it.comm));
  for (int peer = 0; peer < mpi_size; peer++) {
    require_fine(it.comm, lcomm_receive_on_stream(it.comm, it.to + peer * PART, PART, LCOMM_FLOAT32,
                                                  peer, it.stream));
    require_fine(it.comm, lcomm_send_on_stream(it.comm, it.from + peer * PART, PART, LCOMM_FLOAT32,
                                               peer, it.stream));
  }
  require_fine(it.comm, lcomm_group_end(it.comm));
  end_capture(&one, it.stream);
  for (int replay = 0; replay < REPLAYS; replay++) {
    ring_fill(&it, replay);
    launch_to_the_end(&one, it.stream);
    from_device(it.got, it.to, LONGEST * sizeof(float));
    for (int peer = 0; peer < mpi_size; peer++) {
      for (int i = 0; i < PART; i++) {
        float wanted = ring_value(peer, replay, (uint64_t)(mpi_rank * PART + i));
        require(it.got[peer * PART + i] == wanted, "replay %d, of rank %d, element %d", replay,
                peer, i);
      }
    }
  }
  free_graph(&one);
  ring_end(&it);
}

/* One graph has both, and the message brings what was summed before. */
static void sums_and_messages_are_in_one_graph(int nodes) {
  enum { COUNT = 20000 };
  ring it = ring_begin("", nodes);
  launchable one;
  check(emulated_capture_begin(it.stream));
  require_fine(it.comm, lcomm_allreduce_on_stream(it.comm, it.from, it.from, COUNT, LCOMM_FLOAT32,
                                                  LCOMM_SUM, it.stream));
  ring_send(&it, COUNT);
  ring_receive(&it, COUNT);
  require_fine(it.comm, lcomm_allreduce_on_stream(it.comm, it.to, it.to, COUNT, LCOMM_FLOAT32,
                                                  LCOMM_SUM, it.stream));
  end_capture(&one, it.stream);
  for (int replay = 0; replay < REPLAYS; replay++) {
    ring_fill(&it, replay);
    launch_to_the_end(&one, it.stream);
    from_device(it.got, it.to, COUNT * sizeof(float));
    for (uint64_t i = 0; i < COUNT; i++) {
      float sum = 0;
      for (int rank = 0; rank < mpi_size; rank++) {
        sum += ring_value(rank, replay, i);
      }
      require(it.got[i] == sum * (float)mpi_size, "replay %d, element %d", replay, (int)i);
    }
  }
  free_graph(&one);
  ring_end(&it);
}

static void sums_and_messages_share_a_graph(void) {
  sums_and_messages_are_in_one_graph(mpi_size);
  sums_and_messages_are_in_one_graph(1); /* by gates */
}

/* What the codec makes of a neighbour's values, if it is on another node. */
static void pass_through(const lcomm_comm *comm, int from, float *values, uint64_t count) {
  lcomm_format format =
      lcomm_pipe_format(&comm->settings.policy, &comm->topo, from, mpi_rank, LCOMM_FLOAT32, count);
  lcomm_range range = lcomm_range_whole(count);
  uint8_t *payload = malloc(lcomm_payload_size(&format, count) + 8);
  lcomm_encode(&format, lcomm_kernels_best(), values, range, 0, payload);
  lcomm_decode(&format, lcomm_kernels_best(), payload, range, 1, values);
  free(payload);
}

static void require_decoded(ring *it, int replay, const lcomm_comm *by) {
  static float wanted[LONGEST];
  for (uint64_t i = 0; i < LONGEST; i++) {
    wanted[i] = ring_value(it->left, replay, i);
  }
  pass_through(by, it->left, wanted, LONGEST);
  from_device(it->got, it->to, sizeof(wanted));
  require(memcmp(it->got, wanted, sizeof(wanted)) == 0, "replay %d: not what the codec gives",
          replay);
}

/* Graphs keep the codec that they were captured with; its sizes are counted in each replay. */
static void between_nodes_they_go_through_the_codec(void) {
  ring it = ring_begin("pipe=int8+zstd", two_nodes());
  lcomm_comm *as_captured = make_driven("pipe=int8+zstd", two_nodes(), LCOMM_PROGRESS_CALLS);
  launchable one;
  lcomm_stats stats;
  capture_ring(&it, LONGEST, &one);
  for (int replay = 0; replay < REPLAYS; replay++) {
    ring_fill(&it, replay);
    launch_to_the_end(&one, it.stream);
    require_decoded(&it, replay, as_captured);
    if (replay == 1) {
      require_fine(it.comm, lcomm_policy_set(it.comm, "pipe=bf16+zstd"));
      ring_send(&it, LONGEST);
      ring_receive(&it, LONGEST);
      check(device->stream.finish(it.stream));
      require_decoded(&it, replay, it.comm);
    }
  }
  require_fine(it.comm, lcomm_stats_get(it.comm, &stats));
  bool is_across = lcomm_topo_link(&it.comm->topo, mpi_rank, it.right) == LCOMM_LINK_NET;
  require(!is_across || stats.sent_bytes[LCOMM_LINK_NET] > 0, "nothing was counted");
  free_graph(&one);
  require_fine(NULL, lcomm_destroy(as_captured));
  ring_end(&it);
}

/* All that was sent arrives, but for what waits in the channel. */
static void channels_feed_back_in_replays(void) {
  enum { COUNT = 9000 };
  static float waits[COUNT], sum[COUNT];
  ring it = ring_begin("pipe=int4+ef", mpi_size);
  lcomm_channel *channel;
  launchable one;
  require_fine(it.comm, lcomm_channel_create(it.comm, it.right, COUNT, &channel));
  check(emulated_capture_begin(it.stream));
  require_fine(it.comm, lcomm_channel_send_on_stream(channel, it.from, it.stream));
  ring_receive(&it, COUNT);
  end_capture(&one, it.stream);
  for (int replay = 0; replay < REPLAYS; replay++) {
    ring_fill(&it, replay);
    launch_to_the_end(&one, it.stream);
    from_device(it.got, it.to, sizeof(sum));
    for (int i = 0; i < COUNT; i++) {
      sum[i] = it.got[i] + (replay > 0 ? sum[i] : 0);
    }
  }
  require_fine(it.comm, lcomm_barrier(it.comm)); /* the right one has all */
  while (lcomm_channel_get(channel, waits) == LCOMM_ERR_STATE) {
    sched_yield();
  }
  MPI_Sendrecv_replace(waits, COUNT, MPI_FLOAT, it.right, 0, it.left, 0, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE);
  for (uint64_t i = 0; i < COUNT; i++) {
    float sent = 0;
    for (int replay = 0; replay < REPLAYS; replay++) {
      sent += ring_value(it.left, replay, i);
    }
    float off = sent - sum[i] - waits[i];
    require(off < 1e-3f && off > -1e-3f, "element %d is off by %g", (int)i, (double)off);
  }
  require(lcomm_channel_destroy(channel) == LCOMM_ERR_STATE, "a graph has it");
  free_graph(&one);
  while (lcomm_channel_destroy(channel) == LCOMM_ERR_STATE) {
    sched_yield(); /* until what was launched is over */
  }
  ring_end(&it);
}

/* In two streams, which ranks launch in another order. */
static void two_graphs_go_side_by_side(void) {
  enum { COUNT = 40000 };
  ring it = ring_begin("", mpi_size), other = ring_begin("", mpi_size);
  require_fine(NULL, lcomm_destroy(other.comm));
  other.comm = it.comm;
  launchable here, there;
  capture_ring(&it, COUNT, &here);
  capture_ring(&other, COUNT, &there);
  for (int replay = 0; replay < REPLAYS; replay++) {
    bool turned = !need_one_order() && (mpi_rank + replay) % 2;
    ring_fill(&it, replay);
    ring_fill(&other, 10 + replay);
    launch(turned ? &there : &here, turned ? other.stream : it.stream);
    launch(turned ? &here : &there, turned ? it.stream : other.stream);
    check(device->stream.finish(it.stream));
    check(device->stream.finish(other.stream));
    ring_require(&it, replay, COUNT);
    ring_require(&other, 10 + replay, COUNT);
  }
  free_graph(&here);
  free_graph(&there);
  ring_end(&it);
  ring_free(&other);
}

/* What they need is given back once their graph is gone. */
static void recordings_end_with_their_graphs(void) {
  ring it = ring_begin("", 1);
  for (int i = 0; i < 3; i++) {
    launchable one;
    capture_ring(&it, 5000, &one);
    require(it.comm->recordings.pairs, "nothing is recorded");
    ring_fill(&it, i);
    launch(&one, it.stream);
    free_graph(&one);
    check(device->stream.finish(it.stream));
    ring_require(&it, i, 5000);
    for (bool some = true; some;) { /* the thread may still be about to see the end */
      require_fine(it.comm, lcomm_allreduce_on_stream(it.comm, it.from, it.from, 1, LCOMM_FLOAT32,
                                                      LCOMM_SUM, it.stream));
      check(device->stream.finish(it.stream));
      int mine = it.comm->recordings.pairs != NULL, any = 0;
      MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
      some = any;
    }
  }
  ring_end(&it);
}

/* Results mean nothing then, and nothing waits. Memory stays until the graph is gone. */
static void replays_pass_when_their_communicator_is_gone(void) {
  ring it = ring_begin("", 1);
  launchable one;
  capture_ring(&it, LONGEST, &one);
  ring_fill(&it, 0);
  launch_to_the_end(&one, it.stream);
  ring_require(&it, 0, LONGEST);
  require_fine(NULL, lcomm_destroy(it.comm));
  for (int replay = 0; replay < REPLAYS; replay++) {
    launch(&one, it.stream);
  }
  check(device->stream.finish(it.stream));
  free_graph(&one);
  it.comm = make_driven("", 1, LCOMM_PROGRESS_CALLS);
  require_fine(it.comm, lcomm_allreduce_on_stream(it.comm, it.from, it.from, 9, LCOMM_FLOAT32,
                                                  LCOMM_SUM, it.stream)); /* which frees it */
  check(device->stream.finish(it.stream));
  ring_end(&it);
}

static const mpi_property properties[] = {
    PROPERTY(messages_of_any_size_go_round_a_ring),
    PROPERTY(replays_and_calls_do_not_mix),
    PROPERTY(replays_follow_each_other_on_the_device),
    PROPERTY(groups_exchange_between_all),
    PROPERTY(sums_and_messages_share_a_graph),
    PROPERTY(between_nodes_they_go_through_the_codec),
    PROPERTY(channels_feed_back_in_replays),
    PROPERTY(two_graphs_go_side_by_side),
    PROPERTY(recordings_end_with_their_graphs),
    PROPERTY(replays_pass_when_their_communicator_is_gone),
    PROPERTY(nothing_is_left_on_the_device),
};
RUN_PROPERTIES(pausing_device_main, properties)
