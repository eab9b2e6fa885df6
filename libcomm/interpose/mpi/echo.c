/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The world's error handler steps aside for one error of one thread. */

#include "libcomm/interpose/mpi/echo.h"

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>

static struct {
  pthread_mutex_t lock;
  bool aside;
  MPI_Errhandler kept, own;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local bool expected;

/* The program may have given the world another handler meanwhile, which then stays. */
static void give_back(void) {
  MPI_Errhandler now = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &now);
  if (now == world.own) {
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, world.kept);
  }
  PMPI_Errhandler_free(&now);
  PMPI_Errhandler_free(&world.kept);
  PMPI_Errhandler_free(&world.own);
  world.aside = false;
}

/* Called by MPI. Errors that are not the echo are for the world's own handler. */
static void on_error(MPI_Comm *comm, int *code, ...) {
  bool echo = expected;
  (void)comm;
  expected = false;
  pthread_mutex_lock(&world.lock);
  if (world.aside) {
    give_back();
  }
  pthread_mutex_unlock(&world.lock);
  if (!echo) {
    PMPI_Comm_call_errhandler(MPI_COMM_WORLD, *code);
  }
}

void lcomm_interpose_echo_expect(void) {
  expected = true;
  pthread_mutex_lock(&world.lock);
  if (!world.aside && PMPI_Comm_create_errhandler(on_error, &world.own) == MPI_SUCCESS) {
    PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &world.kept);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, world.own);
    world.aside = true;
  }
  pthread_mutex_unlock(&world.lock);
}
