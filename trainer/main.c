/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <mpi.h>
#include <stdio.h>

#include <libcomm_mpi.h>

#include "trainer/loop.h"
#include "trainer/stop_signal.h"

/* OpenBLAS has no header of its own everywhere; cblas.h does not name it. */
void openblas_set_num_threads(int threads);

/* One write per sentence, so that those of several ranks do not mix. */
static void say_failure(int rank, const failure *what) {
  if (what->speaker == SPEAKER_EACH_RANK) {
    fprintf(stderr, "train: rank %d: %s\n", rank, what->text);
  } else if (rank == 0) {
    fprintf(stderr, "train: %s\n", what->text);
  }
}

/* The log belongs to rank 0; if it cannot be opened, session_open() makes
 * all ranks stop. */
static int train(lcomm_comm *comm, const options *chosen, session *of, failure *why) {
  run_log *log = NULL;
  if (lcomm_rank(comm) == 0) {
    log_open(chosen->log, &log, why);
  }
  int result = session_open(comm, chosen, of, why);
  if (result == 0) {
    result = loop_run(of, log, why);
  }
  if (log_close(log, why)) {
    return -1;
  }
  return result;
}

/* Returns what became of the communicator. */
static lcomm_status train_with_comm(const options *chosen, int rank, failure *why) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = chosen->policy;
  lcomm_comm *comm = NULL;
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm);
  if (status != LCOMM_OK) {
    why->exit_code = EXIT_SETUP;
    fprintf(stderr, "train: %s\n", lcomm_last_error(NULL)); /* it names the rank */
    return status;
  }
  session of;
  if (train(comm, chosen, &of, why)) {
    say_failure(rank, why);
  }
  status = lcomm_destroy(comm);
  session_close(&of);
  return status;
}

/* After these a peer may be gone for ever, and MPI_Finalize() would wait for
 * it. */
static int peer_is_lost(lcomm_status status) {
  return status == LCOMM_ERR_TIMEOUT || status == LCOMM_ERR_TRANSPORT;
}

static void say_asked(const options *chosen) {
  if (chosen->version) {
    printf("train (libcomm) %d.%d.%d\n", LCOMM_VERSION_MAJOR, LCOMM_VERSION_MINOR,
           LCOMM_VERSION_PATCH);
  } else {
    fputs(options_help(), stdout);
  }
}

int main(int argc, char **argv) {
  int level = 0, rank = 0;
  stop_signal_watch();
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  openblas_set_num_threads(1); /* the ranks are the parallelism */
  options chosen;
  failure why = {0};
  lcomm_status status = LCOMM_OK;
  if (options_parse(argc, argv, &chosen, &why)) {
    say_failure(rank, &why);
  } else if (!chosen.help && !chosen.version) {
    status = train_with_comm(&chosen, rank, &why);
  } else if (rank == 0) {
    say_asked(&chosen);
  }
  fflush(NULL);
  if (peer_is_lost(status)) {
    MPI_Abort(MPI_COMM_WORLD, EXIT_SETUP);
  }
  MPI_Finalize();
  return why.exit_code;
}
