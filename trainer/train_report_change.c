/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <inttypes.h>
#include <stdio.h>

#include "trainer/train_report.h"
#include "trainer/train_screen.h"

/* What the screen says when ranks are lost, leave or join. */

/* "128 images a step as before, on each rank in 2 batches of 32", or the other rate. */
static void say_dealing(const training *of) {
  const deal *it = &of->deal;
  printf("%d %s a step", deal_samples(it), task_samples(&of->task));
  if (deal_samples(it) != it->at_first) {
    printf(" instead of %d, so the rate is multiplied by %.3g", it->at_first,
           (double)deal_rate(it));
  } else if (it->accumulate > 1) {
    printf(" as before, on each rank in %d batches of %d", it->accumulate, it->batch);
  } else {
    printf(" as before");
  }
}

/* "1 of 4 ranks was lost, 1 has left, 2 have joined; " */
static void say_who(const change *what) {
  const char *before = " ";
  printf("  elastic  ");
  if (what->lost > 0) {
    printf("%s%d of %d ranks %s lost", before, what->lost, what->before,
           what->lost == 1 ? "was" : "were");
    before = ", ";
  }
  if (what->left > 0) {
    printf("%s%d of %d ranks %s left in order", before, what->left, what->before,
           what->left == 1 ? "has" : "have");
    before = ", ";
  }
  if (what->joined > 0) {
    printf("%s%d rank%s joined %d", before, what->joined, what->joined == 1 ? " has" : "s have",
           what->before);
  }
  printf("; ");
}

void report_change(const training *of, const change *what) {
  if (of->ranks.rank != 0) {
    return;
  }
  say_who(what);
  printf("%d go%s on after %.2f s with step %" PRIu64 " of epoch %d%s, ", of->ranks.size,
         of->ranks.size == 1 ? "es" : "", what->seconds, of->step_of_epoch + 1, of->epoch,
         what->finished ? ", the one before was finished" : "");
  say_dealing(of);
  if (what->lost_residual > 0.0) {
    printf("; %.0f %% of what error feedback remembered is lost, of norm %.2g",
           100.0 * what->lost_residual, what->lost_norm);
  }
  printf("\n");
  fflush(stdout);
}
