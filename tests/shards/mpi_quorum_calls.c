/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 5 8 */

/* Calls with a residual that do not wait for the slowest rank. The one that is late here waits
 * until the others have made their calls, and not for a time, so that it is late on any machine. */

#include "tests/shards/quorum_calls.h"

static const char *const codecs[] = {"net=none",
                                     "net=int8+ef min=1",
                                     "net=bf16 min=1",
                                     "net=fp8e4m3:stochastic+ef min=1",
                                     "net=int4 min=1",
                                     "net=topk:0.05+ef min=1",
                                     "net=topk:k=100+ef min=1"};
enum { CODECS = sizeof(codecs) / sizeof(codecs[0]) };

/* ---------------------------------------------------------------- a late rank */

static void nothing_is_lost_of_a_late_rank_and_results_are_equal(void) {
  for (int c = 0; c < CODECS; c++) {
    for (int nodes = 1; nodes <= mpi_size; nodes += mpi_size > 2 ? mpi_size - 1 : 1) {
      set *s = set_of(codecs[c], all_but_one(), nodes, LCOMM_SUM);
      make_first_calls(s);
      make_calls_apart(s);
      for (int number = 0; number < TOGETHER; number++) {
        call_all(s, AHEAD + number, true);
      }
      require_conserved(s, codecs[c]);
      require_equal_replicas(s, codecs[c]);
      free_set(s);
    }
  }
}

/* With requests that are waited for in another order on every rank, and tested. */
static void calls_that_do_not_block_are_summed_alike(void) {
  for (int c = 0; c < CODECS; c++) {
    set *s = set_of(codecs[c], all_but_one(), two_nodes(), LCOMM_SUM);
    s->blocks = false;
    make_first_calls(s);
    make_calls_apart(s);
    require_conserved(s, codecs[c]);
    require_equal_replicas(s, codecs[c]);
    free_set(s);
  }
}

static lcomm_lateness lateness_of(const set *s, int rank) {
  lcomm_lateness known;
  require_fine(s->comm, lcomm_lateness_get(s->comm, rank, &known));
  return known;
}

static void lateness_is_counted_alike_by_all(void) {
  set *s = set_of("net=int8+ef min=1", all_but_one(), two_nodes(), LCOMM_AVG);
  make_first_calls(s);
  require(lateness_of(s, LATE).sums == 0, "a first call is no sum of owners");
  make_calls_apart(s);
  for (int rank = 0; rank < mpi_size; rank++) {
    lcomm_lateness it = lateness_of(s, rank);
    require(it.sums == AHEAD * LAYERS && it.pieces >= it.sums, "%d sums of %d pieces", (int)it.sums,
            (int)it.pieces);
    require(it.late_sums == (rank == LATE ? it.sums : 0), "rank %d: %d late sums of %d", rank,
            (int)it.late_sums, (int)it.sums);
    require(it.late_pieces == (rank == LATE ? it.pieces : 0), "rank %d: %d late pieces", rank,
            (int)it.late_pieces);
  }
  require_equal_replicas(s, "an average");
  free_set(s);
}

/* What the late rank has brought is in the next sum that uses it. */
static void an_average_is_of_those_that_were_used(void) {
  set *s = set_of("net=none", all_but_one(), 1, LCOMM_AVG);
  int token = 0;
  make_first_calls(s);
  for (uint64_t i = 0; i < counts[0]; i++) {
    s->gradient[0][i] = mpi_rank == LATE ? 100 : 3;
  }
  await_others(&token);
  require_fine(s->comm, lcomm_allreduce_ef(s->residuals[0], s->gradient[0], s->result[0]));
  require(fabsf(s->result[0][0] - 3) < 1e-6f && fabsf(s->result[0][counts[0] - 1] - 3) < 1e-6f,
          "an average of threes is %g", (double)s->result[0][0]);
  tell_late(token);
  free_set(s);
}

/* ------------------------------------------------------------------ all ranks */

/* The sums of the plans, but for rounding; and of all codecs the same bits twice. */
static void with_all_ranks_sums_are_exact_and_have_the_same_bits(void) {
  for (int c = 0; c < CODECS; c++) {
    set *s = set_of(codecs[c], "quorum=100% late=0", two_nodes(), LCOMM_AVG);
    set *twin = set_of(codecs[c], "quorum=100%", two_nodes(), LCOMM_AVG);
    set *plain = set_of("net=none", "", two_nodes(), LCOMM_AVG);
    for (int number = 0; number < 4; number++) {
      call_all(s, number, true);
      call_all(twin, number, true);
      call_all(plain, number, true);
      for (int i = 0; i < LAYERS; i++) {
        require(memcmp(s->result[i], twin->result[i], counts[i] * sizeof(float)) == 0,
                "'%s': other bits", codecs[c]);
        bool is_exact = c == 0 || number == 0;
        for (uint64_t k = 0; is_exact && k < counts[i]; k++) {
          float error = fabsf(s->result[i][k] - plain->result[i][k]);
          require(error <= 1e-5f * (1 + fabsf(plain->result[i][k])), "'%s': element %d is wrong",
                  codecs[c], (int)k);
        }
      }
    }
    free_set(s);
    free_set(twin);
    free_set(plain);
  }
}

/* The first call is exact, and the calls after it send what the codec makes. */
static void what_is_sent_is_counted(void) {
  enum { CALLS = 10 };
  lcomm_stats before, stats;
  set *s = set_of("net=int8+ef min=1", "quorum=100%", mpi_size, LCOMM_SUM);
  call_all(s, 0, true);
  require_fine(s->comm, lcomm_stats_get(s->comm, &before));
  double elements = 0;
  for (int number = 0; number < CALLS; number++) {
    call_all(s, number, true);
    for (int i = 0; i < LAYERS; i++) {
      elements += (double)counts[i];
    }
  }
  require_fine(s->comm, lcomm_stats_get(s->comm, &stats));
  double all = 2 * elements * (mpi_size - 1) / mpi_size;
  double sent = (double)(stats.sent_bytes[LCOMM_LINK_NET] - before.sent_bytes[LCOMM_LINK_NET]);
  double exact = (double)(stats.exact_bytes[LCOMM_LINK_NET] - before.exact_bytes[LCOMM_LINK_NET]);
  require(sent > 0.8 * all && sent < 1.4 * all, "%g bytes for %g values", sent, all);
  require(exact > 3.2 * all && exact < 4.6 * all, "%g bytes of float32 for %g values", exact, all);
  require(stats.operations - before.operations == CALLS * LAYERS, "%d operations",
          (int)(stats.operations - before.operations));
  free_set(s);
}

/* What ranks keep, and what was late, is in the sum of a flush, and nowhere afterwards. */
static void a_flush_brings_all_that_was_late(void) {
  for (int c = 0; c < CODECS; c++) {
    set *s = set_of(codecs[c], all_but_one(), two_nodes(), LCOMM_SUM);
    make_first_calls(s);
    make_calls_apart(s);
    s->flushes = true;
    call_all(s, AHEAD, true);
    for (int i = 0; i < LAYERS; i++) {
      require_fine(s->comm, lcomm_residual_get(s->residuals[i], s->kept));
      for (uint64_t k = 0; k < counts[i]; k++) {
        require(!(fabsf(s->kept[k]) > 0), "'%s': element %d of layer %d is still owed", codecs[c],
                (int)k, i);
      }
    }
    s->flushes = false;
    call_all(s, AHEAD + 1, true);
    require_conserved(s, codecs[c]);
    require_equal_replicas(s, codecs[c]);
    free_set(s);
  }
}

static void what_is_not_finite_is_told_once_and_remembered_nowhere(void) {
  for (int c = 0; c < CODECS; c++) {
    for (int late = 0; late < 2; late++) {
      set *s = set_of(codecs[c], late ? all_but_one() : "quorum=100%", two_nodes(), LCOMM_AVG);
      make_first_calls(s);
      s->is_spoilt = true;
      if (late) {
        make_calls_apart(s);
      } else {
        call_all(s, 1, true);
        require(s->not_finite > 0, "'%s': NaN is not told", codecs[c]);
      }
      s->is_spoilt = false;
      if (!late) {
        call_all(s, 2, true);
        require(s->not_finite == 0, "'%s': NaN is told again", codecs[c]);
      }
      for (int i = 0; i < LAYERS; i++) {
        require_fine(s->comm, lcomm_residual_get(s->residuals[i], s->kept));
        for (uint64_t k = 0; k < counts[i]; k++) {
          require(isfinite(s->kept[k]), "'%s': element %d of a residual is not finite", codecs[c],
                  (int)k);
        }
      }
      free_set(s);
    }
  }
}

static const mpi_property properties[] = {
    PROPERTY(nothing_is_lost_of_a_late_rank_and_results_are_equal),
    PROPERTY(calls_that_do_not_block_are_summed_alike),
    PROPERTY(lateness_is_counted_alike_by_all),
    PROPERTY(an_average_is_of_those_that_were_used),
    PROPERTY(with_all_ranks_sums_are_exact_and_have_the_same_bits),
    PROPERTY(what_is_sent_is_counted),
    PROPERTY(a_flush_brings_all_that_was_late),
    PROPERTY(what_is_not_finite_is_told_once_and_remembered_nowhere),
};
RUN_PROPERTIES(mpi_property_main, properties)
