/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 */

/* Memory of lcomm_memory_alloc() serves in every call, on every communicator, at any time,
 * and what is sent out of it is not copied. */

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/engine/engine.h"
#include "libcomm/transport/shm/shm_internal.h"
#include "tests/support/mpi_property.h"

enum { COUNT = 70000, MANY = 300000 };

static void *get(size_t size) {
  void *memory = NULL;
  lcomm_status status = lcomm_memory_alloc(size, &memory);
  require(status == LCOMM_OK, "%zu bytes: %s", size, lcomm_last_error(NULL));
  require((uintptr_t)memory % 4096 == 0, "%p is not aligned", memory);
  return memory;
}

static void give_back(void *memory) {
  require(lcomm_memory_free(memory) == LCOMM_OK, "%s", lcomm_last_error(NULL));
}

static lcomm_comm *make_over(const char *policy, int nodes) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = policy;
  config.nodes = nodes;
  config.timeout_s = 30;
  return make_comm_if_possible(&config);
}

/* Small whole numbers, so that every order of summing gives the same bits. */
static float given(int rank, uint64_t i) {
  return (float)((rank * 7 + (int)(i % 31)) % 16);
}

static float summed(uint64_t i) {
  float sum = 0;
  for (int rank = 0; rank < mpi_size; rank++) {
    sum += given(rank, i);
  }
  return sum;
}

static void fill(float *values, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    values[i] = given(mpi_rank, i);
  }
}

static void require_fine(const lcomm_comm *comm, lcomm_status status) {
  require(status == LCOMM_OK, "%s: %s", lcomm_status_name(status),
          status == LCOMM_OK ? "" : lcomm_last_error(comm)); /* it may be gone */
}

/* --------------------------------------------------------------- all calls */

static void sum_all(lcomm_comm *comm, float *send, float *receive, bool exact) {
  fill(send, COUNT);
  require_fine(comm, lcomm_allreduce(comm, send, receive, COUNT, LCOMM_FLOAT32, LCOMM_SUM));
  for (uint64_t i = 0; exact && i < COUNT; i++) {
    require(receive[i] == summed(i), "sum %d is %g, not %g", (int)i, receive[i], summed(i));
  }
  require(equal_everywhere(receive[COUNT / 2] == receive[COUNT / 2]), "ranks differ");
}

static void scatter_all(lcomm_comm *comm, float *send, float *receive) {
  uint64_t part = COUNT / (uint64_t)mpi_size, first = part * (uint64_t)mpi_rank;
  fill(send, part * (uint64_t)mpi_size);
  require_fine(comm, lcomm_reduce_scatter(comm, send, receive, part, LCOMM_FLOAT32, LCOMM_SUM));
  for (uint64_t i = 0; i < part; i++) {
    require(receive[i] == summed(first + i), "part %d is %g", (int)i, receive[i]);
  }
}

static void move_all(lcomm_comm *comm, float *send, float *receive) {
  uint64_t part = COUNT / (uint64_t)mpi_size;
  fill(send, COUNT);
  require_fine(comm, lcomm_allgather(comm, send, receive, part, LCOMM_FLOAT32));
  for (uint64_t i = 0; i < part * (uint64_t)mpi_size; i++) {
    require(receive[i] == given((int)(i / part), i % part), "gathered %d is %g", (int)i,
            receive[i]);
  }
  require_fine(comm, lcomm_alltoall(comm, send, receive, part, LCOMM_FLOAT32));
  for (uint64_t i = 0; i < part * (uint64_t)mpi_size; i++) {
    uint64_t theirs = part * (uint64_t)mpi_rank + i % part;
    require(receive[i] == given((int)(i / part), theirs), "exchanged %d is %g", (int)i, receive[i]);
  }
  require_fine(comm, lcomm_broadcast(comm, send, COUNT, LCOMM_FLOAT32, mpi_size - 1));
  for (uint64_t i = 0; i < COUNT; i++) {
    require(send[i] == given(mpi_size - 1, i), "broadcast %d is %g", (int)i, send[i]);
  }
}

/* Parts of one piece of memory, which begin anywhere; one or both buffers in it. */
static void every_call_takes_any_part_of_it(void) {
  static const struct {
    const char *policy;
    int nodes;
    bool exact;
  } cases[] = {{"net=none", 1, true},
               {"net=none", 2, true},
               {"net=int8 min=1", 2, false},
               {"net=topk:0.05+ef min=1", 2, true},
               {"net=none node=bf16 min=1", 1, true}};
  float *shared = get(4 * COUNT * sizeof(float)), *private = calloc(2 * COUNT, sizeof(float));
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    lcomm_comm *comm = make_over(cases[i].policy, cases[i].nodes < mpi_size ? cases[i].nodes : 1);
    bool exact = cases[i].exact || mpi_size < 2;
    for (int round = 0; comm && round < 3; round++) {
      float *send = round == 1 ? private : shared + 3;
      float *receive = round == 2 ? private : shared + 2 * COUNT + 1021;
      sum_all(comm, send, receive, exact);
      sum_all(comm, receive, receive, exact);
      if (exact) {
        scatter_all(comm, send, receive);
      }
      move_all(comm, send, receive);
    }
    require_fine(NULL, lcomm_destroy(comm));
  }
  free(private);
  give_back(shared);
}

/* ------------------------------------------------------------- what it is for */

/* Bytes of copies that were made for messages. */
static size_t copied(const lcomm_comm *comm) {
  return lcomm_links_use(&comm->links, "shm")
             ? ((lcomm_shm *)comm->links.open[0])->memory.bounce_size
             : 0;
}

static void what_is_sent_out_of_it_is_not_copied(void) {
  float *shared = get(MANY * sizeof(float)), *private = calloc(MANY, sizeof(float));
  lcomm_comm *comm = make_over("net=none", 1);
  require_fine(comm, lcomm_allreduce(comm, shared, shared, MANY, LCOMM_FLOAT32, LCOMM_SUM));
  require_fine(comm, lcomm_broadcast(comm, shared, MANY, LCOMM_FLOAT32, 0));
  require(copied(comm) == 0, "%zu bytes were copied", copied(comm));
  require_fine(comm, lcomm_allreduce(comm, private, private, MANY, LCOMM_FLOAT32, LCOMM_SUM));
  require(mpi_size < 2 || !lcomm_links_use(&comm->links, "shm") || copied(comm) > 0,
          "copies are counted elsewhere now");
  require_fine(NULL, lcomm_destroy(comm));
  free(private);
  give_back(shared);
}

static void it_outlives_communicators_and_their_errors(void) {
  float *shared = get(COUNT * sizeof(float));
  lcomm_comm *broken = make_over("net=none", 1), *part = NULL;
  sum_all(broken, shared, shared, true);
  lcomm_abort(broken, "on purpose");
  require(lcomm_allreduce(broken, shared, shared, COUNT, LCOMM_FLOAT32, LCOMM_SUM) ==
              LCOMM_ERR_ABORTED,
          "not aborted");
  lcomm_destroy(broken);
  lcomm_comm *whole = make_over("net=none", 1);
  require_fine(whole, lcomm_split(whole, 0, mpi_rank, NULL, &part));
  sum_all(part, shared, shared, true);
  require_fine(NULL, lcomm_destroy(whole));
  sum_all(part, shared, shared, true);
  require_fine(NULL, lcomm_destroy(part));
  fill(shared, COUNT);
  require(shared[COUNT - 1] == given(mpi_rank, COUNT - 1), "it is gone");
  give_back(shared);
}

static void tensors_lie_in_it(void) {
  enum { STEPS = 3 };
  float *shared = get(COUNT * sizeof(float));
  lcomm_comm *comm = make_over("net=topk:0.1+ef min=1 warmup=1", mpi_size < 2 ? 1 : 2);
  lcomm_tensor *tensor = NULL;
  require_fine(comm,
               lcomm_tensor_add(comm, "layer", shared, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &tensor));
  for (int step = 0; step < STEPS; step++) {
    fill(shared, COUNT);
    require_fine(comm, lcomm_tensor_ready(comm, tensor));
    require_fine(comm, lcomm_tensors_wait(comm));
    for (uint64_t i = 0; step == 0 && i < COUNT; i++) {
      require(shared[i] == summed(i), "sum %d is %g", (int)i, shared[i]);
    }
  }
  require_fine(NULL, lcomm_destroy(comm));
  give_back(shared);
}

/* ----------------------------------------------------------------- mistakes */

static void mistakes_are_refused_and_named(void) {
  int other = 0;
  void *memory = &other;
  require(lcomm_memory_alloc(10, NULL) == LCOMM_ERR_ARGUMENT, "nowhere to write to");
  require(lcomm_memory_alloc(SIZE_MAX, &memory) == LCOMM_ERR_MEMORY, "all there is and more");
  require(strstr(lcomm_last_error(NULL), "lcomm_memory_alloc") != NULL, "%s",
          lcomm_last_error(NULL));
  require(memory == &other, "written to on failure");
  require(lcomm_memory_free(&other) == LCOMM_ERR_ARGUMENT, "freed what it had not given");
  require(strstr(lcomm_last_error(NULL), "lcomm_memory_free") != NULL, "%s",
          lcomm_last_error(NULL));
  require(lcomm_memory_free(NULL) == LCOMM_OK, "NULL");
  char *mine = get(10000);
  require(lcomm_memory_free(mine + 4096) == LCOMM_ERR_ARGUMENT, "freed from the middle");
  mine[9999] = 1;
  give_back(mine);
  require(lcomm_memory_free(mine) == LCOMM_ERR_ARGUMENT, "freed twice");
  give_back(get(0));
}

/* ------------------------------------------------------------------ threads */

static void *take_turns(void *failed) {
  for (int i = 0; i < 400; i++) {
    void *memory = NULL;
    size_t size = (size_t)(i % 7 + 1) * 50000;
    if (lcomm_memory_alloc(size, &memory) != LCOMM_OK || ((char *)memory)[size - 1] != 0) {
      *(bool *)failed = true;
      return NULL;
    }
    memset(memory, 1, size);
    if (lcomm_memory_free(memory) != LCOMM_OK) {
      *(bool *)failed = true;
    }
  }
  return NULL;
}

static void other_threads_take_it_while_calls_run(void) {
  enum { THREADS = 3, CALLS = 40 };
  pthread_t threads[THREADS];
  bool failed[THREADS] = {false};
  float *shared = get(COUNT * sizeof(float));
  lcomm_comm *comm = make_over("net=none", 1);
  for (int i = 0; i < THREADS; i++) {
    require(pthread_create(&threads[i], NULL, take_turns, &failed[i]) == 0, "no thread");
  }
  for (int i = 0; i < CALLS; i++) {
    sum_all(comm, shared, shared, true);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    require(!failed[i], "thread %d failed", i);
  }
  require_fine(NULL, lcomm_destroy(comm));
  give_back(shared);
}

static size_t private_bytes(void) {
  struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

static void sum_plain(lcomm_comm *comm, uint64_t count) {
  static float values[MANY];
  fill(values, count);
  require_fine(comm, lcomm_allreduce(comm, values, values, count, LCOMM_FLOAT32, LCOMM_SUM));
  require(values[count - 1] == summed(count - 1), "%g", values[count - 1]);
}

/* What a sum works in is one for all shapes; a shape that is kept has no room of its own. */
static void shapes_that_are_kept_share_what_they_work_in(void) {
  enum { SHAPES = 40, EACH = 100 << 10 };
  lcomm_comm *comm = make_over("", 1);
  lcomm_stats before, after;
  if (!comm) {
    return;
  }
  sum_plain(comm, MANY / 2);
  lcomm_stats_get(comm, &before);
  size_t held = private_bytes();
  for (uint64_t i = 1; i <= SHAPES; i++) {
    sum_plain(comm, MANY / 2 + i);
  }
  lcomm_stats_get(comm, &after);
  size_t more = private_bytes() - held;
  require(after.run_misses == before.run_misses + SHAPES, "the shapes were not kept");
  require(private_bytes() <= held || more <= (size_t)SHAPES * EACH, "%zu KiB more for %d shapes",
          more >> 10, SHAPES);
  require_fine(NULL, lcomm_destroy(comm));
}

static const mpi_property properties[] = {
    PROPERTY(every_call_takes_any_part_of_it),
    PROPERTY(what_is_sent_out_of_it_is_not_copied),
    PROPERTY(it_outlives_communicators_and_their_errors),
    PROPERTY(tensors_lie_in_it),
    PROPERTY(mistakes_are_refused_and_named),
    PROPERTY(other_threads_take_it_while_calls_run),
    PROPERTY(shapes_that_are_kept_share_what_they_work_in),
};
RUN_PROPERTIES(mpi_property_main, properties)
