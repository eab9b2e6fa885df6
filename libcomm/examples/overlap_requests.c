/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors
 *
 * Operations that run while the program computes: started, moved forward now and then, and
 * waited for at the end.
 *   RANK=0 WORLD_SIZE=2 ./overlap_requests &
 *   RANK=1 WORLD_SIZE=2 ./overlap_requests */
#include <libcomm.h>

#include <stdio.h>

enum { PARTS = 8, COUNT = 1 << 18 };
static float values[PARTS][COUNT];

/* What a program does meanwhile. */
static double compute(lcomm_comm *comm) {
  double sum = 0.0;
  for (int i = 1; i <= 1 << 22; i++) {
    sum += 1.0 / i;
    if (i % (1 << 18) == 0) {
      lcomm_progress(comm); /* not needed with LCOMM_PROGRESS=thread */
    }
  }
  return sum;
}

static lcomm_status run(lcomm_comm *comm) {
  lcomm_request requests[PARTS]; /* must stay where they are until they are over */
  lcomm_status status = LCOMM_OK;
  int started = 0;
  while (started < PARTS && status == LCOMM_OK) {
    float *part = values[started];
    for (int i = 0; i < COUNT; i++) {
      part[i] = (float)(started + lcomm_rank(comm));
    }
    status = lcomm_iallreduce(comm, part, part, COUNT, LCOMM_FLOAT32, LCOMM_MAX,
                              &requests[started]); /* `part` is the library's from here */
    started += status == LCOMM_OK;
  }
  double computed = compute(comm);
  for (int i = 0; i < started; i++) { /* also after a failure */
    lcomm_status ended = lcomm_wait(comm, &requests[i]);
    if (status == LCOMM_OK) {
      status = ended;
    }
  }
  if (status == LCOMM_OK) {
    printf("rank %d: computed %.3f, the largest value is %g, expected %d\n", lcomm_rank(comm),
           computed, (double)values[PARTS - 1][COUNT - 1], PARTS + lcomm_size(comm) - 2);
  }
  return status;
}

int main(void) {
  lcomm_comm *comm = NULL;
  if (lcomm_create_env(NULL, &comm) != LCOMM_OK) {
    fprintf(stderr, "%s\n", lcomm_last_error(NULL));
    return 1;
  }
  lcomm_status status = run(comm);
  if (status != LCOMM_OK) {
    fprintf(stderr, "%s\n", lcomm_last_error(comm));
  }
  lcomm_destroy(comm);
  return status == LCOMM_OK ? 0 : 1;
}
