/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 5 */

/* Calls of the MPI interposer that do not block: their requests are MPI's in every
 * function that waits or tests, and what the program does meanwhile is its own affair. */

#include <dirent.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "tests/interpose/interposer_sums.h"

static void before(void) {
  set_default("LCOMM_POLICY", "net=none min=0");
}

/* ------------------------------------------------------------ wait and test */

enum { MIXED = 4 }; /* a send, a sum, a receive, a sum */

typedef void (*completer)(MPI_Request *requests);

static void by_wait(MPI_Request *requests) {
  for (int i = MIXED - 1; i >= 0; i--) {
    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  }
}

static void by_test(MPI_Request *requests) {
  for (int i = 0; i < MIXED; i++) {
    for (int over = 0; !over; sched_yield()) {
      MPI_Test(&requests[i], &over, MPI_STATUS_IGNORE);
    }
  }
}

static void by_waitall(MPI_Request *requests) {
  MPI_Waitall(MIXED, requests, MPI_STATUSES_IGNORE);
}

static void by_testall(MPI_Request *requests) {
  for (int over = 0; !over; sched_yield()) {
    MPI_Testall(MIXED, requests, &over, MPI_STATUSES_IGNORE);
  }
}

static void by_waitany(MPI_Request *requests) {
  for (int i = 0; i < MIXED; i++) {
    int which = -1;
    MPI_Waitany(MIXED, requests, &which, MPI_STATUS_IGNORE);
  }
}

static void by_testany(MPI_Request *requests) {
  for (int left = MIXED; left > 0; sched_yield()) {
    int which = -1, over = 0;
    MPI_Testany(MIXED, requests, &which, &over, MPI_STATUS_IGNORE);
    left -= over;
  }
}

static void by_waitsome(MPI_Request *requests) {
  for (int left = MIXED, some = 0; left > 0; left -= some) {
    int which[MIXED];
    MPI_Waitsome(MIXED, requests, &some, which, MPI_STATUSES_IGNORE);
  }
}

static void by_testsome(MPI_Request *requests) {
  for (int left = MIXED, some = 0; left > 0; left -= some) {
    int which[MIXED];
    MPI_Testsome(MIXED, requests, &some, which, MPI_STATUSES_IGNORE);
    sched_yield();
  }
}

static const struct {
  const char *name;
  completer complete;
} completers[] = {{"MPI_Wait", by_wait},         {"MPI_Test", by_test},
                  {"MPI_Waitall", by_waitall},   {"MPI_Testall", by_testall},
                  {"MPI_Waitany", by_waitany},   {"MPI_Testany", by_testany},
                  {"MPI_Waitsome", by_waitsome}, {"MPI_Testsome", by_testsome}};

static void sums_complete_in_all_functions_with_own_messages(void) {
  for (size_t i = 0; i < sizeof(completers) / sizeof(completers[0]); i++) {
    int to = (mpi_rank + 1) % mpi_size, from = (mpi_rank + mpi_size - 1) % mpi_size;
    int sent = mpi_rank, received = -1;
    MPI_Request requests[MIXED];
    sum_call large = new_call(30000, (int)i), small = new_call(10, (int)i + 1);
    MPI_Isend(&sent, 1, MPI_INT, to, 3, MPI_COMM_WORLD, &requests[0]);
    start(&large, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(&received, 1, MPI_INT, from, 3, MPI_COMM_WORLD, &requests[2]);
    start(&small, MPI_COMM_WORLD, &requests[3]);
    completers[i].complete(requests);
    for (int k = 0; k < MIXED; k++) {
      require(requests[k] == MPI_REQUEST_NULL, "%s: request %d is left", completers[i].name, k);
    }
    require(received == from, "%s: received %d", completers[i].name, received);
    end(&large, completers[i].name);
    end(&small, completers[i].name);
  }
}

static void status_says_what_was_summed(void) {
  MPI_Request request;
  MPI_Status status;
  int elements = -1, cancelled = -1;
  sum_call call = new_call(1234, 5);
  memset(&status, 0xff, sizeof(status));
  start(&call, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, &status);
  MPI_Get_elements(&status, MPI_FLOAT, &elements);
  MPI_Test_cancelled(&status, &cancelled);
  require(!cancelled, "it says that it was cancelled");
  require(!interposer_is_on() || elements == call.count, "%d elements", elements);
  require(!interposer_is_on() ||
              (status.MPI_SOURCE == MPI_UNDEFINED && status.MPI_TAG == MPI_UNDEFINED),
          "source %d, tag %d", status.MPI_SOURCE, status.MPI_TAG);
  end(&call, "status");
}

/* ----------------------------------------------------------------- lifetimes */

static void communicators_may_be_freed_before_the_wait(void) {
  MPI_Comm comm;
  MPI_Request requests[3];
  sum_call calls[3];
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < 3; i++) {
    calls[i] = new_call(15000, i);
    start(&calls[i], comm, &requests[i]);
  }
  MPI_Comm_free(&comm);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 3; i++) {
    end(&calls[i], "communicator freed");
  }
}

/* It ends all the same, also when the communicator is gone. */
/* Plain MPI does not free requests of collective calls. */
static void requests_may_be_freed_without_a_wait(void) {
  MPI_Comm comm;
  MPI_Request request;
  sum_call call = new_call(15000, 3);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  start(&call, comm, &request);
  MPI_Request_free(&request);
  require(request == MPI_REQUEST_NULL, "the request is left");
  MPI_Comm_free(&comm);
  end_unseen(&call, "request freed");
}

static void ten_thousand_requests_leave_no_memory(void) {
  enum { BATCH = 20, BATCHES = 500 };
  float values[BATCH][16];
  MPI_Request requests[BATCH];
  size_t after_first = 0;
  memset(values, 0, sizeof(values));
  for (int round = 0; round < BATCHES; round++) {
    for (int i = 0; i < BATCH; i++) {
      MPI_Iallreduce(MPI_IN_PLACE, values[i], 16, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(BATCH, requests, MPI_STATUSES_IGNORE);
    if (round == BATCHES / 10) {
      after_first = mallinfo2().uordblks;
    }
  }
  size_t now = mallinfo2().uordblks;
  require(now < after_first + 100000, "%zu bytes became %zu", after_first, now);
}

/* ------------------------------------------------------------ reduce-scatter */

/* Rank 0 gets one more than the others when it is uneven. */
static void reduce_scatter(int part, int uneven, int in_place) {
  int counts[64], first = 0, whole = 0;
  for (int r = 0; r < mpi_size; r++) {
    counts[r] = part + (r == 0 ? uneven : 0);
    first += r < mpi_rank ? counts[r] : 0;
    whole += counts[r];
  }
  MPI_Request request;
  sum_call call = new_call(whole, part);
  float *result = in_place ? call.send : call.receive;
  const void *send = in_place ? MPI_IN_PLACE : (const void *)call.send;
  if (uneven) {
    MPI_Ireduce_scatter(send, result, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  } else if (part % 2) {
    MPI_Ireduce_scatter_block(send, result, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  } else {
    MPI_Ireduce_scatter(send, result, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < counts[mpi_rank]; i++) {
    require(result[i] == sum_of(first + i, part),
            "part %d, uneven %d, in place %d: element %d is %g", part, uneven, in_place, i,
            (double)result[i]);
  }
  free(call.send);
}

static void reduce_scatters_give_each_rank_its_part(void) {
  static const int parts[] = {1, 2, 100, 4001, 0};
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
    for (int how = 0; how < 4; how++) {
      reduce_scatter(parts[i], how & 1, how >> 1);
    }
  }
}

static void empty_sums_are_over(void) {
  MPI_Request request;
  float nothing = 1;
  MPI_Iallreduce(&nothing, &nothing, 0, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Iallreduce(MPI_IN_PLACE, &nothing, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  require(nothing == 1, "the sum of one is %g", (double)nothing);
}

/* ------------------------------------------------------------------ the thread */

static int queue_threads(void) {
  int found = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *task = tasks ? readdir(tasks) : NULL; task; task = readdir(tasks)) {
    char path[300], name[64] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
    FILE *file = fopen(path, "r");
    if (file) {
      found += fgets(name, sizeof(name), file) && strcmp(name, "libcomm-mpi\n") == 0;
      fclose(file);
    }
  }
  if (tasks) {
    closedir(tasks);
  }
  return found;
}

static void one_thread_serves_all(void) {
  int threads = queue_threads();
  require(threads == interposer_is_on(), "%d threads of the interposer", threads);
}

static int no_thread_is_left(void) {
  int threads = queue_threads();
  if (threads > 0 || mpi_rank == 0) {
    printf("%s no_thread_is_left_at_the_end\n", threads > 0 ? "FAIL" : "PASS");
  }
  return threads > 0;
}

static const mpi_property properties[] = {
    PROPERTY(sums_complete_in_all_functions_with_own_messages),
    PROPERTY(status_says_what_was_summed),
    PROPERTY(communicators_may_be_freed_before_the_wait),
    PROPERTY_WHERE(needs_interposer, requests_may_be_freed_without_a_wait),
    PROPERTY(ten_thousand_requests_leave_no_memory),
    PROPERTY(reduce_scatters_give_each_rank_its_part),
    PROPERTY(empty_sums_are_over),
    PROPERTY(one_thread_serves_all),
};

int main(int argc, char **argv) {
  int failed = interposer_property_main(&argc, &argv, before, WITH_COUNT(properties));
  return no_thread_is_left() || failed;
}
