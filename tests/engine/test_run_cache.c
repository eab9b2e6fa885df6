/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Runs of plain calls are kept by shape, within a bound of bytes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libcomm/engine/engine.h"
#include "tests/support/forked_comm.h"
#include "tests/support/unit_tests.h"

enum { RANKS = 3, LARGEST = 20000 };

static float values[RANKS * LARGEST], received[RANKS * LARGEST];

static lcomm_comm *make(forked *self, const char *policy, const char *limit) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = policy;
  config.transport = "shm";
  config.nodes = strcmp(policy, "") == 0 ? 1 : self->size;
  config.progress = LCOMM_PROGRESS_CALLS;
  setenv("LCOMM_RUN_CACHE", limit, 1);
  return forked_create(self, &config);
}

static void sum(forked *self, lcomm_comm *comm, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    values[i] = (float)(self->rank + 1) * (float)(1 + i % 5);
  }
  lcomm_status status = lcomm_allreduce(comm, values, values, count, LCOMM_FLOAT32, LCOMM_SUM);
  forked_require(self, status == LCOMM_OK, "a sum: %s", lcomm_last_error(comm));
  float factor = (float)(self->size * (self->size + 1) / 2);
  for (uint64_t i = 0; lcomm_nodes(comm) == 1 && i < count; i++) {
    forked_require(self, values[i] == factor * (float)(1 + i % 5), "%llu elements, at %llu: %g",
                   (unsigned long long)count, (unsigned long long)i, (double)values[i]);
  }
}

static lcomm_stats look(lcomm_comm *comm) {
  lcomm_stats stats = {0};
  lcomm_stats_get(comm, &stats);
  return stats;
}

/* ------------------------------------------------------------------ finding */

static void fifty_shapes_in_turn_are_made_once(forked *self) {
  enum { SHAPES = 50, ROUNDS = 6 };
  lcomm_comm *comm = make(self, "", "256M");
  for (int round = 0; round < ROUNDS; round++) {
    for (uint64_t shape = 0; shape < SHAPES; shape++) {
      sum(self, comm, 100 + shape);
    }
  }
  lcomm_stats stats = look(comm);
  forked_require(self, stats.run_misses == SHAPES && stats.run_hits == SHAPES * (ROUNDS - 1),
                 "%d shapes were made %llu times and found %llu times", SHAPES,
                 (unsigned long long)stats.run_misses, (unsigned long long)stats.run_hits);
  forked_destroy(self, comm);
}

/* The figures of net=auto have changed meanwhile: the next call makes a plan by the new ones. */
static void a_run_that_expires_in_flight_is_not_used_again(forked *self) {
  lcomm_request request;
  lcomm_comm *comm = make(self, "net=auto:int8 min=1", "256M");
  forked_fine(self, comm,
              lcomm_iallreduce(comm, values, values, LARGEST, LCOMM_FLOAT32, LCOMM_SUM, &request),
              "a start");
  lcomm_run_cache_expire_automatic(&comm->runs.cache);
  forked_fine(self, comm, lcomm_wait(comm, &request), "its end");
  uint64_t made = look(comm).run_misses;
  sum(self, comm, LARGEST);
  sum(self, comm, LARGEST);
  forked_require(self, look(comm).run_misses == made + 1,
                 "%llu runs were made after the first %llu",
                 (unsigned long long)(look(comm).run_misses - made), (unsigned long long)made);
  forked_destroy(self, comm);
}

/* Averages are sums, but not in another type, from another root, ... */
static void shapes_are_told_apart(forked *self) {
  uint64_t one[RANKS] = {1, 2, 3}, other[RANKS] = {3, 2, 1}, n = 100;
  lcomm_comm *c = make(self, "", "256M");
  for (int i = 0; i < 3; i++) {
    lcomm_allreduce(c, values, received, n, LCOMM_FLOAT32, LCOMM_SUM);
    lcomm_allreduce(c, values, received, n, LCOMM_FLOAT32, LCOMM_AVG);
    lcomm_allreduce(c, values, received, n, LCOMM_FLOAT32, LCOMM_MAX);
    lcomm_allreduce(c, values, received, n, LCOMM_INT32, LCOMM_SUM);
    lcomm_allreduce(c, values, received, n + 1, LCOMM_FLOAT32, LCOMM_SUM);
    lcomm_reduce_scatter(c, values, received, n, LCOMM_FLOAT32, LCOMM_SUM);
    lcomm_allgather(c, values, received, n, LCOMM_FLOAT32);
    lcomm_allgatherv(c, values, received, one, LCOMM_FLOAT32);
    lcomm_allgatherv(c, values, received, other, LCOMM_FLOAT32);
    lcomm_alltoall(c, values, received, n, LCOMM_FLOAT32);
    lcomm_alltoall(c, values, values, n, LCOMM_FLOAT32);
    lcomm_broadcast(c, values, n, LCOMM_FLOAT32, 0);
    lcomm_broadcast(c, values, n, LCOMM_FLOAT32, 1);
  }
  lcomm_stats stats = look(c);
  forked_require(self, stats.run_misses == 12, "12 shapes were made %llu times: %s",
                 (unsigned long long)stats.run_misses, lcomm_last_error(c));
  forked_destroy(self, c);
}

/* So many operations of one shape at once need so many runs, once. */
static void operations_of_one_shape_at_once_have_runs_of_their_own(forked *self) {
  enum { FLYING = 12, ROUNDS = 4, COUNT = 500 };
  lcomm_request requests[FLYING];
  lcomm_comm *comm = make(self, "", "256M");
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < FLYING; i++) {
      lcomm_iallgather(comm, values + i * COUNT, received + i * RANKS * COUNT, COUNT, LCOMM_FLOAT32,
                       &requests[i]);
    }
    for (int i = FLYING; i-- > 0;) {
      lcomm_status status = lcomm_wait(comm, &requests[i]);
      forked_require(self, status == LCOMM_OK, "all at once: %s", lcomm_last_error(comm));
    }
  }
  lcomm_stats stats = look(comm);
  forked_require(self, stats.run_misses == FLYING, "%d at once were made %llu times", FLYING,
                 (unsigned long long)stats.run_misses);
  forked_destroy(self, comm);
}

/* ---------------------------------------------------------------- the bound */

static void require_bound(forked *self, lcomm_comm *comm, uint64_t one) {
  const lcomm_run_cache *cache = &comm->runs.cache;
  forked_require(self, cache->idle_bytes <= cache->limit_bytes || cache->newest == cache->oldest,
                 "%llu bytes are kept, %llu allowed", (unsigned long long)cache->idle_bytes,
                 (unsigned long long)cache->limit_bytes);
  uint64_t allowed = one > cache->limit_bytes ? one : cache->limit_bytes;
  forked_require(self, look(comm).memory_bytes <= allowed, "runs hold %llu bytes, %llu are allowed",
                 (unsigned long long)look(comm).memory_bytes, (unsigned long long)allowed);
}

static void stay_within(forked *self, const char *policy) {
  enum { SHAPES = 120 };
  lcomm_comm *comm = make(self, policy, "1M");
  for (uint64_t shape = 0; shape < SHAPES; shape++) {
    sum(self, comm, 1000 + 150 * shape);
    require_bound(self, comm, 0);
  }
  uint64_t misses = look(comm).run_misses;
  sum(self, comm, 1000 + 150 * (SHAPES - 1));
  sum(self, comm, 1000 + 150 * (SHAPES - 2));
  forked_require(self, look(comm).run_misses == misses, "those used last are not there any more");
  sum(self, comm, 1000);
  forked_require(self, look(comm).run_misses == misses + 1, "the one used first is still there");
  forked_destroy(self, comm);
}

static void what_is_kept_stays_within_the_bound(forked *self) {
  static const char *const policies[] = {"", "net=int8 min=1", "net=topk:0.1 min=1",
                                         "net=fp8e4m3-ef+zstd min=1", "net=none min=1"};
  for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
    stay_within(self, policies[i]);
  }
}

static void what_is_kept_is_bounded_in_number(forked *self) {
  lcomm_comm *comm = make(self, "", "1G");
  for (uint64_t shape = 1; shape <= LCOMM_RUN_CACHE_IDLE + 50; shape++) {
    sum(self, comm, shape);
  }
  forked_require(self, comm->runs.cache.idle_count == LCOMM_RUN_CACHE_IDLE, "%u runs are kept",
                 comm->runs.cache.idle_count);
  forked_destroy(self, comm);
}

static void one_shape_is_kept_whatever_its_size(forked *self) {
  lcomm_comm *comm = make(self, "", "0");
  for (int i = 0; i < 20; i++) {
    sum(self, comm, LARGEST);
  }
  forked_require(self, look(comm).run_misses == 1, "the shape of all calls was made %llu times",
                 (unsigned long long)look(comm).run_misses);
  forked_destroy(self, comm);
}

/* --------------------------------------------------------------- the setting */

static void all_ranks_take_the_smallest(forked *self) {
  static const char *const limits[RANKS] = {"3M", "512K", "1G"};
  lcomm_comm *comm = make(self, "", limits[self->rank]);
  forked_require(self, comm->runs.cache.limit_bytes == 512 << 10, "the limit is %llu",
                 (unsigned long long)comm->runs.cache.limit_bytes);
  forked_destroy(self, comm);
}

static void what_is_no_size_is_named_on_all_ranks(forked *self) {
  lcomm_comm *comm = NULL;
  setenv("LCOMM_RUN_CACHE", self->rank == 1 ? "lots" : "1M", 1);
  lcomm_status status = lcomm_create(&self->boot, NULL, &comm);
  forked_require(self,
                 status == LCOMM_ERR_ARGUMENT && strstr(lcomm_last_error(NULL), "lots") &&
                     strstr(lcomm_last_error(NULL), "rank 1"),
                 "%s: %s", lcomm_status_name(status), lcomm_last_error(NULL));
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(fifty_shapes_in_turn_are_made_once, RANKS),
    FORKED_TEST(a_run_that_expires_in_flight_is_not_used_again, 2),
    FORKED_TEST(shapes_are_told_apart, RANKS),
    FORKED_TEST(operations_of_one_shape_at_once_have_runs_of_their_own, RANKS),
    FORKED_TEST(what_is_kept_stays_within_the_bound, RANKS),
    FORKED_TEST(what_is_kept_is_bounded_in_number, RANKS),
    FORKED_TEST(one_shape_is_kept_whatever_its_size, RANKS),
    FORKED_TEST(all_ranks_take_the_smallest, RANKS),
    FORKED_TEST(what_is_no_size_is_named_on_all_ranks, RANKS),
};
RUN_TESTS(tests)
