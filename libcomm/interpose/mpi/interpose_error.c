/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the interposer tells the user and the program: the log, and MPI's error handlers. */

#include <stdarg.h>

#include "libcomm/interpose/interpose_log.h"
#include "libcomm/interpose/mpi/interpose_comm.h"

/* ---------------------------------------------------------------------- log */

void lcomm_interpose_log(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  lcomm_interpose_log_line("libcomm-mpi", format, arguments);
  va_end(arguments);
}

/* ----------------------------------------------------------- error handlers */

/* Calls the error handlers of communicators that are freed. */
static struct {
  pthread_mutex_t lock; /* also guards `comm` and `handler` of all communicators */
  MPI_Comm self;
} errors = {.lock = PTHREAD_MUTEX_INITIALIZER, .self = MPI_COMM_NULL};

void lcomm_interpose_error_open(void) {
  PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &errors.self);
}

void lcomm_interpose_error_close(void) {
  if (errors.self != MPI_COMM_NULL) {
    PMPI_Comm_free(&errors.self);
  }
}

void lcomm_interpose_comm_detach(lcomm_interpose_comm *at) {
  pthread_mutex_lock(&errors.lock);
  PMPI_Comm_get_errhandler(at->comm, &at->handler);
  at->comm = MPI_COMM_NULL;
  pthread_mutex_unlock(&errors.lock);
}

/* A handler is a function of the program and needs an existing communicator: that of a freed one
 * gets `self`, one handler at a time. */
static void call_errhandler(const lcomm_interpose_comm *at) {
  pthread_mutex_lock(&errors.lock);
  MPI_Comm comm = at->comm;
  if (comm == MPI_COMM_NULL) {
    PMPI_Comm_set_errhandler(errors.self, at->handler);
    PMPI_Comm_call_errhandler(errors.self, MPI_ERR_OTHER);
  }
  pthread_mutex_unlock(&errors.lock);
  if (comm != MPI_COMM_NULL) {
    PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
  }
}

int lcomm_interpose_call_fail(const lcomm_interpose_call *call, lcomm_status status) {
  lcomm_interpose_comm *at = call->at;
  if (!at->failed) {
    at->failed = true;
    const char *sentence = "";
    if (at->context.sentence) {
      sentence = at->context.sentence;
    } else if (call->comm) {
      sentence = lcomm_last_error(call->comm);
    }
    lcomm_interpose_log("%s", sentence[0] ? sentence : lcomm_status_string(status));
  }
  call_errhandler(at);
  return MPI_ERR_OTHER;
}

/* ------------------------------------------------------- error-handler guard */

/* The guard is an error handler of MPI_COMM_WORLD that removes itself when it is called. */
static struct {
  pthread_mutex_t lock;
  bool armed;
  MPI_Errhandler kept, own;
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local bool expected; /* the next error of this thread is to be absorbed */

/* Where the program has set another handler of the world meanwhile, that one stays. */
static void disarm(void) {
  MPI_Errhandler now = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &now);
  if (now == guard.own) {
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, guard.kept);
  }
  PMPI_Errhandler_free(&now);
  PMPI_Errhandler_free(&guard.kept);
  PMPI_Errhandler_free(&guard.own);
  guard.armed = false;
}

/* MPI calls this. Errors that are not expected go to the world's own handler. */
static void on_error(MPI_Comm *comm, int *code, ...) {
  bool absorbed = expected;
  (void)comm;
  expected = false;
  pthread_mutex_lock(&guard.lock);
  if (guard.armed) {
    disarm();
  }
  pthread_mutex_unlock(&guard.lock);
  if (!absorbed) {
    PMPI_Comm_call_errhandler(MPI_COMM_WORLD, *code);
  }
}

void lcomm_interpose_error_guard_arm(void) {
  expected = true;
  pthread_mutex_lock(&guard.lock);
  if (!guard.armed && PMPI_Comm_create_errhandler(on_error, &guard.own) == MPI_SUCCESS) {
    PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &guard.kept);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, guard.own);
    guard.armed = true;
  }
  pthread_mutex_unlock(&guard.lock);
}
