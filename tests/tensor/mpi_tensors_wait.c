/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Tensors whose buffers change, and waiting for one of them. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tensor/change_model.h"

enum { STEPS = 4 };

/* -------------------------------------------------------------- buffers */

static const char *const policies[] = {"net=none", "net=topk:0.05+ef min=1",
                                       "net=int8+ef min=1 bucket=16K", "net=int4 min=8K"};

/* Every buffer of every step is a new one, here and there, before the step or in it. */
static void new_buffers(model *m, int step) {
  for (int t = 0; t < TENSORS; t++) {
    if ((mpi_rank + t + step) % 3 == 0) {
      continue;
    }
    float *before = m->data[t];
    m->data[t] = malloc(sizes[t] * sizeof(float));
    require_fine(m, lcomm_tensor_data_set(m->comm, m->tensors[t], m->data[t]));
    memset(before, 0xff, sizes[t] * sizeof(float));
    free(before);
  }
}

static void buffers_may_change_in_every_step(void) {
  for (int p = 0; p < 4; p++) {
    model m, twin;
    make_model(&m, policies[p], two_nodes(), LCOMM_AVG);
    make_model(&twin, policies[p], two_nodes(), LCOMM_AVG);
    for (int step = 0; step < STEPS; step++) {
      new_buffers(&m, step);
      fill_model(&m, step);
      fill_model(&twin, step);
      require_fine(&m, step_model(&m));
      require_fine(&twin, step_model(&twin));
      for (int t = 0; t < TENSORS; t++) {
        require(memcmp(m.data[t], twin.data[t], sizes[t] * 4) == 0,
                "%s, step %d: tensor %d differs", policies[p], step, t);
      }
    }
    free_model(&m);
    free_model(&twin);
  }
}

/* Until the tensor itself is ready, others may be. */
static void a_buffer_may_be_set_as_long_as_its_tensor_is_not_ready(void) {
  model m;
  make_model(&m, "net=int8+ef min=1", two_nodes(), LCOMM_SUM);
  for (int step = 0; step < STEPS; step++) {
    for (int t = 0; t < TENSORS; t++) {
      free(m.data[t]);
      m.data[t] = malloc(sizes[t] * sizeof(float));
      fill_gradient(m.data[t], sizes[t], seed_of(t, step));
      require_fine(&m, lcomm_tensor_data_set(m.comm, m.tensors[t], m.data[t]));
      require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[t]));
      require(lcomm_tensor_data_set(m.comm, m.tensors[t], m.data[t]) == LCOMM_ERR_STATE &&
                  strstr(lcomm_last_error(m.comm), names[t]),
              "set after ready: %s", lcomm_last_error(m.comm));
    }
    require_fine(&m, lcomm_tensors_wait(m.comm));
    for (int t = 0; t < TENSORS; t++) {
      require(same_everywhere(m.data[t], sizes[t] * 4), "the ranks differ");
    }
  }
  free_model(&m);
}

static void bad_buffers_are_refused_and_harmless(void) {
  model m;
  make_model(&m, "net=none", 1, LCOMM_SUM);
  lcomm_comm *other = make_comm("net=none", 1);
  char *odd = (char *)m.data[0] + 2;
  require(lcomm_tensor_data_set(m.comm, m.tensors[0], odd) == LCOMM_ERR_ARGUMENT &&
              strstr(lcomm_last_error(m.comm), "multiple"),
          "an odd address: %s", lcomm_last_error(m.comm));
  require(lcomm_tensor_data_set(m.comm, NULL, odd) == LCOMM_ERR_ARGUMENT, "no tensor");
  require(lcomm_tensor_data_set(NULL, m.tensors[0], odd) == LCOMM_ERR_ARGUMENT, "no communicator");
  require(lcomm_tensor_data_set(other, m.tensors[0], m.data[0]) == LCOMM_ERR_ARGUMENT,
          "of another communicator");
  require_fine(&m, lcomm_tensor_data_set(m.comm, m.tensors[0], NULL));
  require(lcomm_tensor_ready(m.comm, m.tensors[0]) == LCOMM_ERR_STATE &&
              strstr(lcomm_last_error(m.comm), "lcomm_tensor_data_set"),
          "ready without a buffer: %s", lcomm_last_error(m.comm));
  require_fine(&m, lcomm_tensor_data_set(m.comm, m.tensors[0], m.data[0]));
  fill_model(&m, 0);
  require_fine(&m, step_model(&m));
  lcomm_destroy(other);
  free_model(&m);
}

/* The second one that is reported is refused, and may be reported with another buffer. */
static void a_buffer_in_two_tensors_of_a_step_is_refused(void) {
  model m;
  make_model(&m, "net=none bucket=4K", two_nodes(), LCOMM_SUM);
  fill_model(&m, 0);
  for (int step = 0; step < 2; step++) { /* the first tensor waits, or its sum is over */
    float *inside = m.data[0] + 1;
    require_fine(&m, lcomm_tensor_data_set(m.comm, m.tensors[1], inside));
    require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[0]));
    for (int i = 0; i < 100 && step > 0; i++) {
      require_fine(&m, lcomm_progress(m.comm));
    }
    require(lcomm_tensor_ready(m.comm, m.tensors[1]) == LCOMM_ERR_ARGUMENT &&
                strstr(lcomm_last_error(m.comm), names[0]) &&
                strstr(lcomm_last_error(m.comm), names[1]),
            "in two tensors: %s", lcomm_last_error(m.comm));
    require_fine(&m, lcomm_tensor_data_set(m.comm, m.tensors[1], m.data[1]));
    for (int t = 1; t < TENSORS; t++) {
      require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[t]));
    }
    require_fine(&m, lcomm_tensors_wait(m.comm));
  }
  free_model(&m);
}

/* One buffer for the first two tensors of a step, one after the other; what is in the place of
 * a tensor that is not ready does not count. */
static void a_buffer_that_came_back_may_be_used_again(void) {
  model m;
  make_model(&m, "net=none bucket=4K", two_nodes(), LCOMM_SUM);
  for (int step = 0; step < STEPS; step++) {
    size_t longer = sizes[0] > sizes[1] ? sizes[0] : sizes[1];
    float *shared = malloc(longer * sizeof(float));
    for (int t = 0; t < TENSORS; t++) {
      float *data = t < 2 ? shared : m.data[t];
      fill_gradient(data, sizes[t], seed_of(t, step));
      require_fine(&m, lcomm_tensor_data_set(m.comm, m.tensors[t], data));
      require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[t]));
      if (t == 0 && step > 0) {
        require_fine(&m, lcomm_tensor_wait(m.comm, m.tensors[0]));
        require(same_everywhere(shared, sizes[0] * 4), "the ranks differ");
      } else if (t == 0) { /* nothing is over before all have compared their tensors */
        require_fine(&m, lcomm_tensor_data_set(m.comm, m.tensors[1], m.data[1]));
        fill_gradient(m.data[1], sizes[1], seed_of(1, step));
        require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[1]));
        t++;
      }
    }
    require_fine(&m, lcomm_tensors_wait(m.comm));
    require_fine(&m, lcomm_tensor_data_set(m.comm, m.tensors[0], m.data[0]));
    require_fine(&m, lcomm_tensor_data_set(m.comm, m.tensors[1], m.data[1]));
    free(shared);
  }
  free_model(&m);
}

/* -------------------------------------------------------------- waiting */

/* Each tensor is a bucket of its own, so the first is over before the last is ready. */
static void one_tensor_is_over_before_the_others_are_ready(void) {
  model m, twin;
  make_model(&m, "net=int8+ef min=1 bucket=4K", two_nodes(), LCOMM_AVG);
  make_model(&twin, "net=int8+ef min=1 bucket=4K", two_nodes(), LCOMM_AVG);
  for (int step = 0; step < STEPS; step++) {
    fill_model(&m, step);
    fill_model(&twin, step);
    require_fine(&twin, step_model(&twin));
    for (int t = 0; t < TENSORS; t++) {
      require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[t]));
      if (step == 0 && t < TENSORS - 1) {
        continue; /* the first step is compared; all or nothing may be ready for it, too */
      }
      int done = step % 2;
      while (all_well() && step % 2 == 0 && !done) {
        require_fine(&m, lcomm_tensor_test(m.comm, m.tensors[t], &done));
      }
      if (step % 2) {
        require_fine(&m, lcomm_tensor_wait(m.comm, m.tensors[t]));
      }
      require(memcmp(m.data[t], twin.data[t], sizes[t] * 4) == 0, "step %d: tensor %d differs",
              step, t);
      memset(m.data[t], 0, sizes[t] * 4); /* ours again */
    }
    require_fine(&m, lcomm_tensors_wait(m.comm));
    require(step == 0 || m.data[0][0] == 0, "the library wrote to a tensor that was over");
  }
  free_model(&m);
  free_model(&twin);
}

/* Ranks begin their first step by different calls. */
static void the_first_wait_may_be_any(void) {
  model m;
  float one = 1;
  make_model(&m, "net=topk:0.1+ef min=1", two_nodes(), LCOMM_SUM);
  fill_model(&m, 0);
  for (int t = 0; t < TENSORS; t++) {
    require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[t]));
  }
  int done = 0;
  if (mpi_rank % 3 == 0) {
    require_fine(&m, lcomm_tensor_wait(m.comm, m.tensors[3]));
  } else if (mpi_rank % 3 == 1) {
    require_fine(&m, lcomm_tensor_test(m.comm, m.tensors[1], &done));
  }
  require_fine(&m, lcomm_tensors_wait(m.comm));
  require_fine(&m, lcomm_allreduce(m.comm, &one, &one, 1, LCOMM_FLOAT32, LCOMM_SUM));
  require(one == (float)mpi_size, "the call after it gave %g", one);
  free_model(&m);
}

static void a_wait_that_nothing_would_end_is_refused(void) {
  model m;
  int done = 7;
  make_model(&m, "net=none bucket=4K", two_nodes(), LCOMM_SUM);
  fill_model(&m, 0);
  require_fine(&m, step_model(&m));
  for (int step = 1; step < 3; step++) {
    fill_model(&m, step);
    require(lcomm_tensor_wait(m.comm, m.tensors[2]) == LCOMM_ERR_STATE &&
                strstr(lcomm_last_error(m.comm), names[2]),
            "not ready: %s", lcomm_last_error(m.comm));
    require(lcomm_tensor_test(m.comm, m.tensors[2], &done) == LCOMM_ERR_STATE && done == 7,
            "not ready, %d", done);
    require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[2]));
    require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[0]));
    require(lcomm_tensor_wait(m.comm, m.tensors[2]) == LCOMM_ERR_STATE &&
                strstr(lcomm_last_error(m.comm), names[1]),
            "tensor 1 is missing: %s", lcomm_last_error(m.comm));
    require_fine(&m, lcomm_tensor_test(m.comm, m.tensors[2], &done));
    require(done == 0, "it is over without tensor 1");
    done = 7;
    require_fine(&m, lcomm_tensor_wait(m.comm, m.tensors[0]));
    require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[1]));
    require_fine(&m, lcomm_tensor_wait(m.comm, m.tensors[2]));
    require(same_everywhere(m.data[2], sizes[2] * 4), "the ranks differ");
    require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[3]));
    require(lcomm_tensor_ready(m.comm, m.tensors[0]) == LCOMM_ERR_STATE, "ready twice in a step");
    require_fine(&m, lcomm_tensors_wait(m.comm));
  }
  free_model(&m);
}

static void *report_in_order(void *argument) {
  model *m = argument;
  for (int t = 0; t < TENSORS; t++) {
    lcomm_tensor_data_set(m->comm, m->tensors[t], m->data[t]);
    lcomm_tensor_ready(m->comm, m->tensors[t]);
  }
  return NULL;
}

/* Backward in a thread of its own, the optimiser here. */
static void another_thread_may_report_while_this_one_tests(void) {
  model m;
  pthread_t thread;
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = "net=int8+ef min=1 bucket=4K";
  config.nodes = two_nodes();
  config.progress = LCOMM_PROGRESS_THREAD;
  config.transport = "shm";
  memset(&m, 0, sizeof(m));
  m.comm = make_comm_if_possible(&config);
  if (!m.comm) {
    return;
  }
  for (int t = 0; t < TENSORS; t++) {
    add_tensor(&m, t, LCOMM_AVG);
  }
  for (int step = 0; step < STEPS; step++) {
    fill_model(&m, step);
    pthread_create(&thread, NULL, report_in_order, &m);
    for (int t = 0; step > 0 && t < TENSORS && all_well(); t++) {
      int done = 0;
      while (!done && all_well()) {
        lcomm_status status = lcomm_tensor_test(m.comm, m.tensors[t], &done);
        require(status == LCOMM_OK || status == LCOMM_ERR_STATE, "%s", lcomm_last_error(m.comm));
      }
      require(same_everywhere(m.data[t], sizes[t] * 4), "the ranks differ");
    }
    pthread_join(thread, NULL);
    require_fine(&m, lcomm_tensors_wait(m.comm));
  }
  free_model(&m);
}

static const mpi_property properties[] = {
    PROPERTY(buffers_may_change_in_every_step),
    PROPERTY(a_buffer_may_be_set_as_long_as_its_tensor_is_not_ready),
    PROPERTY(bad_buffers_are_refused_and_harmless),
    PROPERTY(a_buffer_in_two_tensors_of_a_step_is_refused),
    PROPERTY(a_buffer_that_came_back_may_be_used_again),
    PROPERTY(one_tensor_is_over_before_the_others_are_ready),
    PROPERTY(the_first_wait_may_be_any),
    PROPERTY(a_wait_that_nothing_would_end_is_refused),
    PROPERTY(another_thread_may_report_while_this_one_tests),
};
RUN_PROPERTIES(mpi_property_main, properties)
