/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 */

/* Calls with wrong arguments fail as they do in MPI, by the same class and the same
 * error handler; a failure of libcomm goes to the communicator's own handler. The
 * policy lets libcomm do all that it can do. */

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interpose/interposer_probe.h"
#include "tests/interpose/interposer_said.h"

enum { MANY = 20000 };

static void before(void) {
  set_default("LCOMM_POLICY", "net=none min=0 match=dtype=float32,dtype=float32&op=min,"
                              "call=allgather,call=broadcast");
}

/* ------------------------------------------------------------------- faults */

typedef enum fault {
  NOTHING_WRONG,
  NEGATIVE_COUNT,
  NULL_OPERATION,
  NULL_TYPE,
  TYPE_NOT_COMMITTED,
  OPERATION_NOT_FOR_TYPE,
  ROOT_TOO_LARGE,
  ROOT_NEGATIVE,
  RECEIVE_IN_PLACE,
  SAME_BUFFER,
  NULL_COMMUNICATOR,
  FAULTS
} fault;

static const char *const fault_names[FAULTS] = {
    "nothing wrong",    "a negative count",     "no operation",
    "no type",          "a type not committed", "another's operation",
    "a root too large", "a negative root",      "a receive buffer in place",
    "one buffer",       "no communicator"};

static MPI_Datatype uncommitted;

static bool concerns(fault what, interposer_function function) {
  switch (what) {
  case NULL_OPERATION:
  case OPERATION_NOT_FOR_TYPE:
    return interposer_function_sums(function);
  case ROOT_TOO_LARGE:
  case ROOT_NEGATIVE:
    return function == INTERPOSER_BCAST;
  case SAME_BUFFER:
    return function <= INTERPOSER_ALLREDUCE_INIT;
  case NULL_TYPE: /* Open MPI 4.1 itself does not survive these two in an all-gather */
  case NULL_COMMUNICATOR:
    return function != INTERPOSER_ALLGATHER && function != INTERPOSER_ALLGATHERV;
  default:
    return true;
  }
}

static void spoil(interposer_call *call, fault what) {
  switch (what) {
  case NEGATIVE_COUNT:
    call->count = -1;
    memset(call->parts, -1, sizeof(call->parts));
    break;
  case NULL_OPERATION:
    call->op = MPI_OP_NULL;
    break;
  case NULL_TYPE:
    call->type = MPI_DATATYPE_NULL;
    break;
  case TYPE_NOT_COMMITTED:
    call->type = uncommitted;
    break;
  case OPERATION_NOT_FOR_TYPE:
    call->op = MPI_BAND;
    break;
  case ROOT_TOO_LARGE:
    call->root = mpi_size;
    break;
  case ROOT_NEGATIVE:
    call->root = -77;
    break;
  case NULL_COMMUNICATOR:
    call->comm = MPI_COMM_NULL;
    break;
  default:
    break;
  }
}

/* --------------------------------------------------------- who hears of it */

static int heard, heard_class;

static void hear(MPI_Comm *comm, int *code, ...) {
  (void)comm;
  heard++;
  PMPI_Error_class(*code, &heard_class);
}

static int class_of(int code) {
  int class = 0;
  PMPI_Error_class(code, &class);
  return class;
}

typedef struct outcome {
  int class, heard, heard_class;
} outcome;

static outcome make_wrong(const interposer_mpi *mpi, const interposer_call *call, fault what) {
  static float send[2 * MANY], receive[INTERPOSER_RANKS_MAX * MANY / 8];
  void *to = what == RECEIVE_IN_PLACE ? MPI_IN_PLACE : what == SAME_BUFFER ? send : receive;
  heard = heard_class = 0;
  int code = interposer_make(mpi, call, send, to);
  return (outcome){class_of(code), heard, heard_class};
}

static void try_fault(MPI_Comm comm, interposer_function function, fault what) {
  interposer_call call = float_sum(function, comm, MANY);
  if (function == INTERPOSER_ALLGATHER) {
    call.count = MANY / 16;
  }
  spoil(&call, what);
  outcome called = make_wrong(&interposer_mpi_called, &call, what);
  outcome plain = make_wrong(&interposer_mpi_plain, &call, what);
  const char *name = interposer_function_names[function];
  require(called.class == plain.class, "%s with %s: class %d, not %d", name, fault_names[what],
          called.class, plain.class);
  require(called.heard == plain.heard && called.heard_class == plain.heard_class,
          "%s with %s: the handler heard %d of class %d, not %d of class %d", name,
          fault_names[what], called.heard, called.heard_class, plain.heard, plain.heard_class);
}

static void try_all_faults(MPI_Comm comm) {
  MPI_Type_contiguous(2, MPI_FLOAT, &uncommitted);
  for (int what = 0; what < FAULTS; what++) {
    for (int function = 0; function < INTERPOSER_FUNCTIONS; function++) {
      if (interposer_function_exists((interposer_function)function) &&
          concerns((fault)what, (interposer_function)function)) {
        try_fault(comm, (interposer_function)function, (fault)what);
      }
    }
  }
  MPI_Type_free(&uncommitted);
}

/* --------------------------------------------------------------- properties */

/* Debian's MPICH is built without checks of arguments. */
static bool mpi_checks_arguments(void) {
  if (mpi_is_mpich()) {
    skip_property("this MPI checks no arguments, and does not survive wrong ones");
  }
  return !mpi_is_mpich();
}

static void wrong_calls_return_the_class_of_mpi(void) {
  MPI_Comm comm = MPI_COMM_NULL;
  if (!mpi_checks_arguments()) {
    return;
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  try_all_faults(comm);
  MPI_Comm_free(&comm);
}

static void the_handler_of_the_program_hears_of_them(void) {
  MPI_Errhandler handler;
  MPI_Comm comm = MPI_COMM_NULL;
  if (!mpi_checks_arguments()) {
    return;
  }
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  try_all_faults(comm);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
}

static void wrong_constructors_fail_as_in_mpi(void) {
  MPI_Comm comm = MPI_COMM_NULL;
  if (!mpi_checks_arguments()) {
    return;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  require(class_of(MPI_Comm_dup(MPI_COMM_NULL, &comm)) == MPI_ERR_COMM, "a copy of none");
  require(class_of(MPI_Comm_split(MPI_COMM_NULL, 0, 0, &comm)) == MPI_ERR_COMM, "parts of none");
  require(class_of(MPI_Comm_split(MPI_COMM_WORLD, -99, 0, &comm)) ==
              class_of(PMPI_Comm_split(MPI_COMM_WORLD, -99, 0, &comm)),
          "a color that is none");
  comm = MPI_COMM_NULL;
  require(class_of(MPI_Comm_free(&comm)) == class_of(PMPI_Comm_free(&comm)), "none is freed");
}

static void right_calls_work_afterwards(void) {
  interposer_call call = float_sum(INTERPOSER_ALLREDUCE, MPI_COMM_WORLD, MANY);
  require(!is_compressed(&call), "a sum");
  call.function = INTERPOSER_IALLREDUCE;
  require(!is_compressed(&call), "a sum without blocking");
}

/* ------------------------------------------------------ failures of libcomm */

static outcome sum_too_many(MPI_Comm comm) {
  static float values[MANY + 1];
  heard = heard_class = 0;
  int code = MPI_Allreduce(MPI_IN_PLACE, values, MANY + (mpi_rank == 0), MPI_FLOAT, MPI_SUM, comm);
  return (outcome){class_of(code), heard, heard_class};
}

static void require_failure(outcome is, const char *when) {
  require(is.class == MPI_ERR_OTHER, "%s: class %d", when, is.class);
  require(is.heard == 1 && is.heard_class == MPI_ERR_OTHER, "%s: the handler heard %d of class %d",
          when, is.heard, is.heard_class);
}

/* Counts that differ are an error that libcomm finds. */
static void failures_go_to_the_error_handler(void) {
  MPI_Errhandler handler;
  MPI_Comm comm = MPI_COMM_NULL;
  if (!compresses(MPI_COMM_WORLD)) {
    skip_property("nothing goes through libcomm");
    return;
  }
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, handler);
  listening to = listen_begin();
  outcome first = sum_too_many(comm), second = sum_too_many(comm);
  int said = listen_end(to, "", 1);
  require_failure(first, "the first sum");
  require_failure(second, "the second sum");
  require(said == 1, "it was said %d times", said);
  right_calls_work_afterwards();
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
  right_calls_work_afterwards();
}

/* ------------------------------- the same where the program waits for the call */

enum { LATE = 3 }; /* requests that are waited for together; one of them fails */

typedef int (*completer)(MPI_Request *requests, MPI_Status *statuses);

static int by_wait(MPI_Request *requests, MPI_Status *statuses) {
  int code = MPI_SUCCESS;
  for (int i = 0; i < LATE; i++) {
    int each = MPI_Wait(&requests[i], &statuses[i]);
    code = each != MPI_SUCCESS ? each : code;
  }
  return code;
}

static int by_test(MPI_Request *requests, MPI_Status *statuses) {
  int code = MPI_SUCCESS;
  for (int i = 0; i < LATE; i++) {
    for (int over = 0; !over; sched_yield()) {
      int each = MPI_Test(&requests[i], &over, &statuses[i]);
      over |= each != MPI_SUCCESS;
      code = each != MPI_SUCCESS ? each : code;
    }
  }
  return code;
}

static int by_waitall(MPI_Request *requests, MPI_Status *statuses) {
  return MPI_Waitall(LATE, requests, statuses);
}

static int by_testall(MPI_Request *requests, MPI_Status *statuses) {
  int code = MPI_SUCCESS;
  for (int over = 0; !over && code == MPI_SUCCESS; sched_yield()) {
    code = MPI_Testall(LATE, requests, &over, statuses);
  }
  return code;
}

static int by_waitany(MPI_Request *requests, MPI_Status *statuses) {
  int code = MPI_SUCCESS;
  for (int i = 0, which = 0; i < LATE; i++) {
    int each = MPI_Waitany(LATE, requests, &which, statuses);
    code = each != MPI_SUCCESS ? each : code;
  }
  return code;
}

static int by_waitsome(MPI_Request *requests, MPI_Status *statuses) {
  int code = MPI_SUCCESS, which[LATE];
  MPI_Status some[LATE];
  for (int left = LATE, done = 0; left > 0; left -= done) {
    int each = MPI_Waitsome(LATE, requests, &done, which, some);
    code = each != MPI_SUCCESS ? each : code;
    for (int i = 0; i < done; i++) {
      statuses[which[i]] = some[i];
      statuses[which[i]].MPI_ERROR = each == MPI_SUCCESS ? MPI_SUCCESS : some[i].MPI_ERROR;
    }
  }
  return code;
}

static const struct {
  const char *name;
  completer complete;
  bool in_status; /* says of each whether it has failed */
} completers[] = {{"MPI_Wait", by_wait, false},       {"MPI_Test", by_test, false},
                  {"MPI_Waitall", by_waitall, true},  {"MPI_Testall", by_testall, true},
                  {"MPI_Waitany", by_waitany, false}, {"MPI_Waitsome", by_waitsome, true}};

/* A message, a sum whose counts differ, a message. */
static void fail_late(MPI_Comm comm, int how) {
  static float values[MANY + 1];
  const char *name = completers[how].name;
  int to = (mpi_rank + 1) % mpi_size, from = (mpi_rank + mpi_size - 1) % mpi_size, received = -1;
  MPI_Request requests[LATE];
  MPI_Status statuses[LATE];
  memset(statuses, 0, sizeof(statuses));
  MPI_Irecv(&received, 1, MPI_INT, from, 5, comm, &requests[0]);
  MPI_Iallreduce(MPI_IN_PLACE, values, MANY + (mpi_rank == 0), MPI_FLOAT, MPI_SUM, comm,
                 &requests[1]);
  MPI_Isend(&mpi_rank, 1, MPI_INT, to, 5, comm, &requests[2]);
  heard = heard_class = 0;
  int class = class_of(completers[how].complete(requests, statuses));
  bool in_status = completers[how].in_status;
  require(class == (in_status ? MPI_ERR_IN_STATUS : MPI_ERR_OTHER), "%s: class %d", name, class);
  require(heard == 1 && heard_class == MPI_ERR_OTHER, "%s: the handler heard %d of class %d", name,
          heard, heard_class);
  require(received == from, "%s: received %d", name, received);
  for (int i = 0; i < LATE; i++) {
    require(requests[i] == MPI_REQUEST_NULL, "%s: request %d is left", name, i);
    require(!in_status || class_of(statuses[i].MPI_ERROR) == (i == 1 ? MPI_ERR_OTHER : MPI_SUCCESS),
            "%s: status %d says %d", name, i, statuses[i].MPI_ERROR);
  }
}

static void failures_of_calls_that_do_not_block_go_there_when_they_end(void) {
  MPI_Errhandler handler;
  if (!compresses(MPI_COMM_WORLD)) {
    skip_property("nothing goes through libcomm");
    return;
  }
  MPI_Comm_create_errhandler(hear, &handler);
  for (size_t i = 0; i < sizeof(completers) / sizeof(completers[0]); i++) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    listening to = listen_begin();
    fail_late(comm, (int)i);
    int said = listen_end(to, "all-reduce", 1);
    require(said == 1, "%s: it was said %d times", completers[i].name, said);
    MPI_Comm_free(&comm);
  }
  MPI_Errhandler_free(&handler);
  right_calls_work_afterwards();
}

static const mpi_property properties[] = {
    PROPERTY(wrong_calls_return_the_class_of_mpi),
    PROPERTY(the_handler_of_the_program_hears_of_them),
    PROPERTY(wrong_constructors_fail_as_in_mpi),
    PROPERTY(right_calls_work_afterwards),
    PROPERTY(failures_go_to_the_error_handler),
    PROPERTY(failures_of_calls_that_do_not_block_go_there_when_they_end),
};
RUN_INTERPOSER_PROPERTIES(before, properties)
