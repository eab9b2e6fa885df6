/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* Low rank between the steps: steps that never were, other policies, frozen tensors, the guard; and
 * waiting for one of two sums after the other. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/tensor/lowrank_model.h"

enum { STEPS = 8 };

/* --------------------------------------------------------------- undoing */

static void spoil(model *m, int step) {
  fill_model(m, 100 + step);
  for (int t = 0; t < TENSORS; t++) {
    for (uint64_t i = 0; i < size_of(t); i++) {
      m->gradient[t][i] *= 1000;
    }
  }
  m->gradient[0][5] = mpi_rank == mpi_size - 1 ? INFINITY : 1;
}

static void require_same_state(const model *m, const model *twin, int step) {
  static float own[LARGEST], other[LARGEST];
  require(memcmp(m->data, twin->data, sizeof m->data) == 0, "results of step %d differ", step);
  for (int t = 0; t < MATRICES; t++) {
    require_fine(m->comm, lcomm_tensor_residual(m->comm, m->tensors[t], own));
    require_fine(twin->comm, lcomm_tensor_residual(twin->comm, twin->tensors[t], other));
    require(memcmp(own, other, size_of(t) * sizeof(float)) == 0, "residuals of step %d differ",
            step);
  }
}

/* Bad steps before the first, in the warm-up and among the others. */
static void a_discarded_step_never_was(void) {
  static const char *const policies[] = {"net=lowrank:4 min=1 undo=on",
                                         "net=lowrank:2,values=int8 min=1 undo=on warmup=2",
                                         "net=lowrank:4 min=1 bucket=8K nonfinite=discard"};
  static model m, twin;
  for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
    for (int nodes = 1; nodes <= mpi_size; nodes++) {
      open_model(&m, policies[i], nodes, LCOMM_AVG);
      open_model(&twin, policies[i], nodes, LCOMM_AVG);
      for (int step = 0; step < STEPS; step++) {
        if (step % 2 == 0) {
          spoil(&m, step);
          send_model(&m);
          require_fine(m.comm, lcomm_tensors_discard(m.comm));
        }
        step_model(&m, step);
        step_model(&twin, step);
        require_same_state(&m, &twin, step);
      }
      close_model(&m);
      close_model(&twin);
    }
  }
}

/* --------------------------------------------------------- other policies */

/* Gradients and residuals before are results and residuals after. */
static void require_all_there(model *m, double before[MATRICES][LARGEST], const char *policy) {
  static double after[LARGEST], sum[LARGEST];
  for (int t = 0; t < MATRICES; t++) {
    sum_of_ranks(m->gradient[t], size_of(t), 1, sum);
    sum_residuals(m, t, after);
    for (uint64_t i = 0; i < size_of(t); i++) {
      sum[i] = (sum[i] + before[t][i] - after[i]) / mpi_size;
    }
    double far = distance(m->data[t], sum, size_of(t));
    require(far < 2e-5, "%s of '%s': %g is lost", shapes[t].name, policy, far);
    memcpy(before[t], after, sizeof after);
  }
}

static void another_policy_takes_up_what_was_kept(void) {
  static const char *const policies[] = {"net=lowrank:4 min=1",
                                         "net=lowrank:2 min=1",
                                         "net=int8+ef min=1",
                                         "net=lowrank:2 min=1",
                                         "",
                                         "net=lowrank:1 min=1 exempt=first",
                                         "net=topk:0.2+ef min=1",
                                         "net=lowrank:3 min=1K",
                                         "net=lowrank:3 min=1 warmup=1000"};
  static model m;
  static double before[MATRICES][LARGEST];
  for (int nodes = 1; nodes <= mpi_size; nodes++) {
    memset(before, 0, sizeof before);
    open_model(&m, "net=lowrank:4 min=1", nodes, LCOMM_AVG);
    for (int step = 0; step < 9; step++) {
      require_fine(m.comm, lcomm_policy_set(m.comm, policies[step]));
      for (int twice = 0; twice < 2; twice++) {
        step_model(&m, 2 * step + twice);
        require_same_bits(&m, step);
        require_all_there(&m, before, policies[step]);
      }
    }
    close_model(&m);
  }
}

/* The same policy again is no change: neither residual nor Q. */
static void the_same_policy_changes_no_bit(void) {
  static model m, twin;
  for (int nodes = 1; nodes <= mpi_size; nodes++) {
    open_model(&m, "net=lowrank:4 min=1", nodes, LCOMM_AVG);
    open_model(&twin, "net=lowrank:4 min=1", nodes, LCOMM_AVG);
    for (int step = 0; step < 4; step++) {
      step_model(&m, step);
      step_model(&twin, step);
      require_same_state(&m, &twin, step);
      require_fine(m.comm, lcomm_policy_set(m.comm, "net=lowrank:4 min=1 bucket=8K"));
    }
    close_model(&m);
    close_model(&twin);
  }
}

/* One that is frozen for two steps goes on as it would have after one more of zeros; the other one
 * does not notice. */
static void a_frozen_matrix_keeps_what_it_has(void) {
  static model m, twin;
  static float own[LARGEST], later[LARGEST];
  open_model(&m, "net=lowrank:4 min=1", two_nodes(), LCOMM_SUM);
  open_model(&twin, "net=lowrank:4 min=1", two_nodes(), LCOMM_SUM);
  for (int step = 0; step < 6; step++) {
    bool frozen = step == 2 || step == 3;
    if (step == 2) {
      require_fine(m.comm, lcomm_tensor_residual(m.comm, m.tensors[0], own));
      require_fine(m.comm, lcomm_tensor_freeze(m.comm, m.tensors[0]));
    }
    if (step == 4) {
      require_fine(m.comm, lcomm_tensor_residual(m.comm, m.tensors[0], later));
      require(memcmp(own, later, sizeof own) == 0, "a frozen residual has changed");
      require_fine(m.comm, lcomm_tensor_unfreeze(m.comm, m.tensors[0]));
    }
    fill_model(&m, step);
    memcpy(m.data, m.gradient, sizeof m.data);
    for (int t = 0; t < TENSORS; t++) {
      require_fine(m.comm, frozen && t == 0 ? LCOMM_OK : lcomm_tensor_ready(m.comm, m.tensors[t]));
    }
    require_fine(m.comm, lcomm_tensors_wait(m.comm));
    step_model(&twin, step);
    for (int t = frozen || step > 3 ? 1 : 0; t < TENSORS; t++) {
      require(memcmp(m.data[t], twin.data[t], size_of(t) * sizeof(float)) == 0,
              "step %d: %s differs", step, shapes[t].name);
    }
  }
  close_model(&m);
  close_model(&twin);
}

/* ------------------------------------------------------------------ guard */

static void the_guard_knows_the_residual_of_low_rank(void) {
  static model m;
  static double residual[LARGEST], gradient[LARGEST];
  lcomm_guard_figures figures;
  open_model(&m, "net=lowrank:1 min=1 guard=2,report", two_nodes(), LCOMM_AVG);
  for (int step = 0; step < 6 && mpi_size > 1; step++) {
    step_model(&m, step);
    if (step % 2 == 0) {
      continue;
    }
    double kept = 0, sent = 0;
    require_fine(m.comm, lcomm_tensor_guard(m.comm, m.tensors[0], &figures));
    require(figures.checks > 0 && strcmp(figures.codec, "lowrank:1") == 0, "%s was checked",
            figures.codec);
    sum_residuals(&m, 0, residual);
    sum_of_ranks(m.gradient[0], size_of(0), 1, gradient);
    for (uint64_t i = 0; i < size_of(0); i++) {
      kept += residual[i] * residual[i];
      sent += gradient[i] * gradient[i];
    }
    double ratio = figures.residual / sqrt(kept / sent);
    require(ratio > 0.3 && ratio < 3, "step %d: a residual of %g, not %g", step, figures.residual,
            sqrt(kept / sent));
    require_fine(m.comm, lcomm_tensor_guard(m.comm, m.tensors[2], &figures));
    require(figures.checks == 0, "a tensor that is exact was checked");
  }
  close_model(&m);
}

static void the_guard_goes_from_low_rank_to_int4(void) {
  static model m;
  static double before[MATRICES][LARGEST];
  lcomm_guard_figures figures;
  memset(before, 0, sizeof before);
  open_model(&m, "net=lowrank:1 min=1 guard=2,residual=0.000001", two_nodes(), LCOMM_AVG);
  for (int step = 0; step < 6 && mpi_size > 1; step++) {
    step_model(&m, step);
    require_same_bits(&m, step);
    require_all_there(&m, before, "guard");
    require_fine(m.comm, lcomm_tensor_guard(m.comm, m.tensors[0], &figures));
    const char *wanted = step < 1 ? "" : step < 3 ? "int4+ef" : step < 5 ? "int8+ef" : "bf16";
    require(step < 1 || strcmp(figures.next, wanted) == 0, "step %d: %s", step, figures.next);
  }
  close_model(&m);
}

/* ---------------------------------------------------------------- waiting */

static void each_tensor_can_be_waited_for(void) {
  static model m, twin;
  for (int nodes = 1; nodes <= mpi_size; nodes++) {
    open_model(&m, "net=lowrank:4 min=1 bucket=8K", nodes, LCOMM_AVG);
    open_model(&twin, "net=lowrank:4 min=1 bucket=8K", nodes, LCOMM_AVG);
    for (int step = 0; step < 4; step++) {
      step_model(&twin, step);
      fill_model(&m, step);
      memcpy(m.data, m.gradient, sizeof m.data);
      for (int t = TENSORS - 1; t >= 0; t--) {
        require_fine(m.comm, lcomm_tensor_ready(m.comm, m.tensors[t]));
      }
      for (int i = 0; i < TENSORS; i++) {
        int t = step % 2 ? i : TENSORS - 1 - i, done = 0;
        while (!done && step > 1) {
          require_fine(m.comm, lcomm_tensor_test(m.comm, m.tensors[t], &done));
        }
        require_fine(m.comm, lcomm_tensor_wait(m.comm, m.tensors[t]));
        require(memcmp(m.data[t], twin.data[t], size_of(t) * sizeof(float)) == 0,
                "step %d: %s is not there", step, shapes[t].name);
      }
      require_fine(m.comm, lcomm_tensors_wait(m.comm));
    }
    close_model(&m);
    close_model(&twin);
  }
}

static void a_progress_thread_starts_the_second_sum(void) {
  static model m, twin;
  open_model(&twin, "net=lowrank:4 min=1 bucket=8K", two_nodes(), LCOMM_AVG);
  require(setenv("LCOMM_PROGRESS", "thread", 1) == 0, "setenv");
  open_model(&m, "net=lowrank:4 min=1 bucket=8K", two_nodes(), LCOMM_AVG);
  require(unsetenv("LCOMM_PROGRESS") == 0, "unsetenv");
  for (int step = 0; step < STEPS; step++) {
    step_model(&twin, step);
    step_model(&m, step);
    require_same_state(&m, &twin, step);
  }
  close_model(&m);
  close_model(&twin);
}

/* ------------------------------------------------------------------ trace */

/* Is the text in the file that is alone in this folder? It is removed with it. */
static bool take_text(const char *folder, const char *text) {
  static char line[1 << 16], path[512];
  bool found = false;
  DIR *opened = opendir(folder);
  require(opened != NULL, "%s", folder);
  for (struct dirent *it = readdir(opened); it; it = readdir(opened)) {
    snprintf(path, sizeof path, "%s/%s", folder, it->d_name);
    FILE *file = it->d_name[0] == '.' ? NULL : fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
      found |= strstr(line, text) != NULL;
    }
    require(!file || (fclose(file) == 0 && unlink(path) == 0), "%s stays", path);
  }
  closedir(opened);
  require(rmdir(folder) == 0, "%s stays", folder);
  return found;
}

static void the_second_sum_has_its_name_in_the_trace(void) {
  static model m;
  char folder[] = "/tmp/libcomm-traces-XXXXXX", path[64];
  require(mkdtemp(folder) != NULL, "mkdtemp");
  snprintf(path, sizeof path, "%s/t%%d", folder);
  require(setenv("LCOMM_TRACE", path, 1) == 0, "setenv");
  open_model(&m, "net=lowrank:4 min=1", two_nodes(), LCOMM_AVG);
  require(unsetenv("LCOMM_TRACE") == 0, "unsetenv");
  step_model(&m, 0);
  close_model(&m);
  bool found = take_text(folder, "first and 1 more, second sum");
  require(found == (mpi_size > 1), "the trace has the name of a second sum: %d", found);
}

static const mpi_property properties[] = {
    PROPERTY(a_discarded_step_never_was),
    PROPERTY(another_policy_takes_up_what_was_kept),
    PROPERTY(the_same_policy_changes_no_bit),
    PROPERTY(a_frozen_matrix_keeps_what_it_has),
    PROPERTY(the_guard_knows_the_residual_of_low_rank),
    PROPERTY(the_guard_goes_from_low_rank_to_int4),
    PROPERTY(each_tensor_can_be_waited_for),
    PROPERTY(a_progress_thread_starts_the_second_sum),
    PROPERTY(the_second_sum_has_its_name_in_the_trace),
};
RUN_PROPERTIES(mpi_property_main, properties)
