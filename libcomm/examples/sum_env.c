/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors
 *
 * All-reduce without MPI: the ranks meet through environment variables, as torchrun and srun
 * set them. By hand, on one host:
 *   RANK=0 WORLD_SIZE=2 ./sum_env &
 *   RANK=1 WORLD_SIZE=2 ./sum_env
 * On several hosts also MASTER_ADDR, the host of rank 0. Without any it is a world of one. */
#include <libcomm.h>

#include <stdio.h>

int main(void) {
  lcomm_comm *comm = NULL;
  if (lcomm_create_env(NULL, &comm) != LCOMM_OK) {
    fprintf(stderr, "%s\n", lcomm_last_error(NULL));
    return 1;
  }
  double sum = lcomm_rank(comm) + 1;
  lcomm_status status = lcomm_allreduce(comm, &sum, &sum, 1, LCOMM_FLOAT64, LCOMM_SUM);
  if (status == LCOMM_OK) {
    printf("rank %d of %d: the sum is %g\n", lcomm_rank(comm), lcomm_size(comm), sum);
  } else {
    fprintf(stderr, "%s\n", lcomm_last_error(comm));
  }
  lcomm_destroy(comm);
  return status == LCOMM_OK ? 0 : 1;
}
