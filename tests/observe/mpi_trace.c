/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors
 *
 * mpirun: 2 */

/* Traces of ranks that are still at work: what is in the file before the end. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/engine.h"
#include "tests/support/mpi_property.h"

static char folder[64];

static void begin(void) {
  char path[sizeof(folder) + 16];
  snprintf(folder, sizeof(folder), "/tmp/libcomm-traces-XXXXXX");
  if (mpi_rank == 0 && !mkdtemp(folder)) {
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Bcast(folder, sizeof(folder), MPI_CHAR, 0, MPI_COMM_WORLD);
  snprintf(path, sizeof(path), "%s/t%%d", folder);
  setenv("LCOMM_TRACE", path, 1);
}

/* The file of a rank; `number` counts the communicators of the process. */
static void name_file(char *path, size_t size, int number, int rank) {
  if (number == 1) {
    snprintf(path, size, "%s/t%d", folder, rank);
  } else {
    snprintf(path, size, "%s/t%d.%d", folder, number, rank);
  }
}

static void end(int number) {
  char path[sizeof(folder) + 32];
  name_file(path, sizeof(path), number, mpi_rank);
  unlink(path);
  unsetenv("LCOMM_TRACE");
  MPI_Barrier(MPI_COMM_WORLD);
  require(mpi_rank != 0 || rmdir(folder) == 0, "nothing else is in the folder of traces");
}

/* Has the file of rank 0 this event? */
static bool has_event(int number, const char *event) {
  char path[sizeof(folder) + 32], line[8192];
  bool found = false;
  name_file(path, sizeof(path), number, 0);
  FILE *file = fopen(path, "r");
  while (file && !found && fgets(line, sizeof(line), file)) {
    found = strstr(line, event) != NULL;
  }
  if (file) {
    fclose(file);
  }
  return found;
}

/* Rank 1 comes to the second sum only when it has seen the first in rank 0's file. */
static void look_into_the_file(lcomm_progress_mode mode, int number) {
  enum { PATIENCE_S = 60 };
  static float values[1000];
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.progress = mode;
  config.transport = "shm";
  begin();
  lcomm_comm *comm = make_comm_if_possible(&config);
  for (int call = 0; comm && call < 2; call++) {
    bool seen = call == 0 || mpi_rank != 1;
    for (double end_s = lcomm_clock_s() + PATIENCE_S; !seen && lcomm_clock_s() < end_s;) {
      usleep(10000);
      seen = has_event(number, "\"name\":\"all-reduce\"");
    }
    require(seen, "the first sum is not in the file of a rank that waits for the second");
    require(lcomm_allreduce(comm, values, values, 1000, LCOMM_FLOAT32, LCOMM_SUM) == LCOMM_OK, "%s",
            lcomm_last_error(comm));
  }
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
  MPI_Barrier(MPI_COMM_WORLD);
  end(number);
}

static void a_rank_that_waits_writes_what_it_did(void) {
  look_into_the_file(LCOMM_PROGRESS_CALLS, 1);
}

static void a_progress_thread_writes_what_it_did(void) {
  look_into_the_file(LCOMM_PROGRESS_THREAD, 2);
}

static void messages_between_two_ranks_are_events(void) {
  enum { SIZE = 100000, NUMBER = 3 };
  static char bytes[SIZE];
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.transport = "shm";
  begin();
  lcomm_comm *comm = make_comm_if_possible(&config);
  lcomm_status status = mpi_rank == 0 ? lcomm_send(comm, bytes, SIZE, LCOMM_UINT8, 1)
                                      : lcomm_recv(comm, bytes, SIZE, LCOMM_UINT8, 0);
  require(status == LCOMM_OK, "%s", lcomm_last_error(comm));
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
  MPI_Barrier(MPI_COMM_WORLD); /* the file of rank 0 is whole */
  require(has_event(NUMBER, "\"operation\":\"message\""), "no event of a message");
  require(has_event(NUMBER, "\"bytes\":100024"), "no event with the bytes of the message");
  MPI_Barrier(MPI_COMM_WORLD);
  end(NUMBER);
}

static void both_sums_of_low_rank_say_what_matrices_they_are_of(void) {
  enum { ROWS = 96, COLUMNS = 64, NUMBER = 4 };
  static float data[ROWS * COLUMNS];
  lcomm_tensor *tensor = NULL;
  begin();
  lcomm_comm *comm = make_comm("net=lowrank:2 min=1", 2);
  require(lcomm_tensor_add_shaped(comm, "w", data, ROWS, COLUMNS, LCOMM_FLOAT32, LCOMM_AVG,
                                  &tensor) == LCOMM_OK &&
              lcomm_tensor_ready(comm, tensor) == LCOMM_OK && lcomm_tensors_wait(comm) == LCOMM_OK,
          "%s", lcomm_last_error(comm));
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
  MPI_Barrier(MPI_COMM_WORLD); /* the file of rank 0 is whole */
  require(has_event(NUMBER, "\"tensor\":\"w\",\"sum\":1,\"rank\":2,\"elements\":6144,\"rows\":96,"
                            "\"columns\":64}"),
          "no event of the first sum");
  require(has_event(NUMBER, "\"tensor\":\"w, second sum\",\"sum\":2,\"rank\":2,\"elements\":6144,"
                            "\"rows\":96,\"columns\":64}"),
          "no event of the second sum");
  MPI_Barrier(MPI_COMM_WORLD);
  end(NUMBER);
}

static const mpi_property properties[] = {
    PROPERTY(a_rank_that_waits_writes_what_it_did),
    PROPERTY(a_progress_thread_writes_what_it_did),
    PROPERTY(messages_between_two_ranks_are_events),
    PROPERTY(both_sums_of_low_rank_say_what_matrices_they_are_of),
};
RUN_PROPERTIES(mpi_property_main_threads, properties)
