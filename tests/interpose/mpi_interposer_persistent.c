/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 5 */

/* Persistent all-reduces through the MPI interposer. */

#include <mpi.h>

#include <malloc.h>
#include <sched.h>
#include <string.h>

#include "tests/interpose/interposer_init.h"
#include "tests/interpose/interposer_sums.h"

static void before(void) {
  set_default("LCOMM_POLICY", "net=none min=64");
}

static void init(const sum_call *call, MPI_Comm comm, MPI_Request *request) {
  ALLREDUCE_INIT(call->send, call->receive, call->count, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL,
                 request);
}

/* New input for the next start. */
static void refill(sum_call *call, int seed) {
  call->seed = seed;
  for (int i = 0; i < call->count; i++) {
    call->send[i] = given(mpi_rank, i, seed);
    call->receive[i] = -1;
  }
}

static void a_request_is_started_fifty_times(void) {
  MPI_Request request;
  sum_call call = new_call(3000, 0);
  init(&call, MPI_COMM_WORLD, &request);
  for (int round = 0; round < 50; round++) {
    refill(&call, round);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    require(request != MPI_REQUEST_NULL, "the request is gone in round %d", round);
    check(&call, "a start of fifty");
  }
  MPI_Request_free(&request);
  require(request == MPI_REQUEST_NULL, "the request is left");
  end(&call, "the last");
}

static void in_place_and_short_ones_work(void) {
  for (int count = 1; count <= 4096; count *= 16) {
    MPI_Request request;
    sum_call call = new_call(count, count);
    memcpy(call.receive, call.send, (size_t)count * sizeof(float));
    ALLREDUCE_INIT(MPI_IN_PLACE, call.receive, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    end(&call, "in place");
  }
}

/* With a persistent message of the program's own, and one that is none. */
static void all_are_started_together_with_own_messages(void) {
  enum { SUMS = 3, ALL = SUMS + 2 };
  int to = (mpi_rank + 1) % mpi_size, from = (mpi_rank + mpi_size - 1) % mpi_size;
  int sent = mpi_rank, received = -1;
  MPI_Request requests[ALL + 1];
  sum_call calls[SUMS], other = new_call(5000, 77);
  MPI_Send_init(&sent, 1, MPI_INT, to, 4, MPI_COMM_WORLD, &requests[SUMS]);
  MPI_Recv_init(&received, 1, MPI_INT, from, 4, MPI_COMM_WORLD, &requests[SUMS + 1]);
  for (int i = 0; i < SUMS; i++) {
    calls[i] = new_call(1000 * (i + 1), i);
    init(&calls[i], MPI_COMM_WORLD, &requests[i]);
  }
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < SUMS; i++) {
      refill(&calls[i], round + i);
    }
    received = -1;
    MPI_Startall(ALL, requests);
    start(&other, MPI_COMM_WORLD, &requests[ALL]);
    if (round % 2) {
      MPI_Waitall(ALL + 1, requests, MPI_STATUSES_IGNORE);
    }
    for (int left = round % 2 ? 0 : ALL + 1, some = 0; left > 0; left -= some) {
      int which[ALL + 1];
      MPI_Waitsome(ALL + 1, requests, &some, which, MPI_STATUSES_IGNORE);
    }
    require(received == from, "received %d", received);
    check(&other, "one that is not persistent");
    for (int i = 0; i < SUMS; i++) {
      check(&calls[i], "started with others");
    }
  }
  for (int i = 0; i < ALL; i++) {
    MPI_Request_free(&requests[i]);
  }
  for (int i = 0; i < SUMS; i++) {
    end(&calls[i], "the last");
  }
  end(&other, "the last");
}

/* Those below the policy's min are MPI's own. */
static void short_and_long_ones_end_together(void) {
  MPI_Request requests[2];
  sum_call calls[2] = {new_call(10, 1), new_call(3000, 2)};
  for (int i = 0; i < 2; i++) {
    init(&calls[i], MPI_COMM_WORLD, &requests[i]);
  }
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < 2; i++) {
      refill(&calls[i], round + i);
    }
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++) {
      check(&calls[i], i == 0 ? "short" : "long");
    }
  }
  for (int i = 0; i < 2; i++) {
    MPI_Request_free(&requests[i]);
    end(&calls[i], "the last");
  }
}

/* MPI asks for the same order in making requests, not in starting them. */
static void each_rank_starts_in_its_own_order(void) {
  enum { SUMS = 4 };
  MPI_Request requests[SUMS];
  sum_call calls[SUMS], between = new_call(2000, 9);
  for (int i = 0; i < SUMS; i++) {
    calls[i] = new_call(2000, i); /* of one length: mixed up, they would be wrong unnoticed */
    init(&calls[i], MPI_COMM_WORLD, &requests[i]);
  }
  for (int round = 0; round < 5; round++) {
    for (int i = 0; i < SUMS; i++) {
      refill(&calls[i], round * SUMS + i);
    }
    for (int i = 0; i < SUMS; i++) {
      if (i == mpi_rank % 2) {
        MPI_Allreduce(between.send, between.receive, between.count, MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
      }
      MPI_Start(&requests[(i + mpi_rank) % SUMS]);
    }
    MPI_Waitall(SUMS, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < SUMS; i++) {
      check(&calls[i], "in another order");
    }
    check(&between, "between");
  }
  for (int i = 0; i < SUMS; i++) {
    MPI_Request_free(&requests[i]);
    end(&calls[i], "the last");
  }
  end(&between, "the last");
}

/* Plain Open MPI does not free active persistent sums. */
static void an_active_request_may_be_freed(void) {
  MPI_Comm comm;
  MPI_Request request, next;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  sum_call first = new_call(20000, 1), second = new_call(100, 2);
  init(&first, comm, &request);
  MPI_Start(&request);
  MPI_Request_free(&request);
  init(&second, comm, &next);
  MPI_Start(&next);
  MPI_Wait(&next, MPI_STATUS_IGNORE);
  MPI_Request_free(&next);
  MPI_Comm_free(&comm);
  end_unseen(&first, "freed");
  end(&second, "the next one");
}

static void give_back(MPI_Request *request) {
  if (*request != MPI_REQUEST_NULL) {
    MPI_Request_free(request);
  }
}

/* Freeing is up to each rank: some do it a round later. Shapes come again, because what
 * they need is kept for a while. */
static void requests_come_and_go_without_end(void) {
  size_t memory = 0;
  MPI_Request old[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  for (int round = 0; round < 100; round++) {
    MPI_Request requests[2];
    sum_call calls[2] = {new_call(100 + round % 5, round), new_call(50, round + 1)};
    for (int i = 0; i < 2; i++) {
      init(&calls[i], MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++) {
      end(&calls[i], "one of hundreds");
      give_back(&old[i]);
      if ((i + round + mpi_rank) % 2) {
        give_back(&requests[i]);
      }
      old[i] = requests[i];
    }
    memory = round == 20 ? mallinfo2().uordblks : memory;
  }
  size_t now = mallinfo2().uordblks;
  require(now < memory + 500000, "%zu bytes became %zu", memory, now);
  give_back(&old[0]);
  give_back(&old[1]);
}

/* ------------------------------------------------------------------ failures */

static int asked;

static void on_error(MPI_Comm *comm, int *code, ...) {
  (void)comm;
  (void)code;
  asked++;
}

static int complete(int how, MPI_Request *request, MPI_Status *status) {
  int flag = 0, index = 0, code = MPI_SUCCESS;
  switch (how) {
  case 0:
    return MPI_Wait(request, status);
  case 1:
    return MPI_Waitall(1, request, status);
  case 2:
    return MPI_Waitany(1, request, &index, status);
  case 3:
    return MPI_Waitsome(1, request, &flag, &index, status);
  }
  for (; !flag && code == MPI_SUCCESS; sched_yield()) {
    code = how == 4   ? MPI_Test(request, &flag, status)
           : how == 5 ? MPI_Testall(1, request, &flag, status)
           : how == 6 ? MPI_Testany(1, request, &index, &flag, status)
                      : MPI_Testsome(1, request, &flag, &index, status);
  }
  return code;
}

/* Ranks that sum different counts, which plain MPI does not compare: each hears of it where it
 * waits, once. */
static void failures_are_told_where_the_program_waits(void) {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(on_error, &handler);
  for (int how = 0; how < 8; how++) {
    MPI_Comm comm;
    MPI_Request request;
    MPI_Status status = {.MPI_ERROR = MPI_SUCCESS};
    sum_call call = new_call(4000 + mpi_rank, 1);
    bool several = how % 2 == 1; /* functions that complete several */
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    asked = 0;
    init(&call, comm, &request);
    MPI_Start(&request);
    int code = complete(how, &request, &status);
    require(code == (several ? MPI_ERR_IN_STATUS : MPI_ERR_OTHER), "%d: code %d", how, code);
    require(!several || status.MPI_ERROR == MPI_ERR_OTHER, "%d: status %d", how, status.MPI_ERROR);
    require(asked == 1, "%d: the error handler was asked %d times", how, asked);
    MPI_Wait(&request, &status);
    require(asked == 1, "%d: told again", how);
    MPI_Request_free(&request);
    MPI_Comm_free(&comm);
    free(call.send);
  }
  MPI_Errhandler_free(&handler);
}

static const mpi_property properties[] = {
    PROPERTY(a_request_is_started_fifty_times),
    PROPERTY(in_place_and_short_ones_work),
    PROPERTY(all_are_started_together_with_own_messages),
    PROPERTY(short_and_long_ones_end_together),
    PROPERTY(each_rank_starts_in_its_own_order),
    PROPERTY_WHERE(needs_interposer, an_active_request_may_be_freed),
    PROPERTY(requests_come_and_go_without_end),
    PROPERTY_WHERE(needs_interposer, failures_are_told_where_the_program_waits),
};
RUN_INTERPOSER_PROPERTIES(before, properties)
