/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The collective functions of MPI with counts of int, what they share with those of MPI_Count, and
 * the functions for memory. */

#include <string.h>

#define COUNT int
#define DISPLACEMENT int
#define NAME(name) name
#include "libcomm/interpose/mpi/interpose_collective_functions.h"
#include "libcomm/interpose/mpi/interpose_fortran.h"

/* ------------------------------------------------------ shared with large counts */

static void set_buffers(lcomm_interpose_call *call, const void *send, void *receive) {
  call->send = send == MPI_IN_PLACE ? receive : send;
  call->receive = receive;
}

int lcomm_interpose_run(lcomm_interpose_call *call, const void *send, void *receive) {
  set_buffers(call, send, receive);
  return lcomm_interpose_call_run(call);
}

int lcomm_interpose_run_gather(lcomm_interpose_call *call, const void *send, void *receive,
                               uint64_t before) {
  if (send == MPI_IN_PLACE) {
    send = (const char *)receive + before * lcomm_dtype_size(call->dtype);
  }
  return lcomm_interpose_run(call, send, receive);
}

int lcomm_interpose_submit(lcomm_interpose_call *call, const void *send, void *receive,
                           MPI_Request *request) {
  set_buffers(call, send, receive);
  lcomm_interpose_call_check_alias(call);
  return lcomm_interpose_enqueue(call, request);
}

int lcomm_interpose_intra_size(MPI_Comm comm) {
  int size = 0, inter = 0;
  if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter ||
      PMPI_Comm_size(comm, &size) != MPI_SUCCESS) {
    return 0;
  }
  return size;
}

/* -------------------------------------------------------------------- memory */

/* libcomm gives whole pages, and shorter buffers gain nothing. */
enum { ALLOC_MIN_BYTES = 64 << 10 };

static bool takes_calls(void) {
  int mode = atomic_load_explicit(&lcomm_interpose_mode_now, memory_order_relaxed);
  return mode == LCOMM_INTERPOSE_ON || mode == LCOMM_INTERPOSE_BLOCKING;
}

/* libcomm's memory can be read by the other ranks of the host. An info is for MPI. */
LCOMM_INTERPOSE_API int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr) {
  void *memory = NULL;
  if (!takes_calls() || size < ALLOC_MIN_BYTES || info != MPI_INFO_NULL || !baseptr ||
      lcomm_memory_alloc((size_t)size, &memory) != LCOMM_OK) {
    return PMPI_Alloc_mem(size, info, baseptr);
  }
  memcpy(baseptr, &memory, sizeof(memory)); /* baseptr is the address of a pointer of any type */
  return MPI_SUCCESS;
}

/* Works in all modes, because the interposer may have been switched off since. */
LCOMM_INTERPOSE_API int MPI_Free_mem(void *base) {
  if (base && lcomm_memory_free(base) == LCOMM_OK) {
    return MPI_SUCCESS;
  }
  return PMPI_Free_mem(base);
}

/* Fortran's MPI_ALLOC_MEM is MPI's, but Fortran may free what C has allocated. */
static void lcomm_interpose_mpi_free_mem(void *base, MPI_Fint *error) {
  lcomm_interpose_fortran_end(error, MPI_Free_mem(base));
}
LCOMM_INTERPOSE_FORTRAN(mpi_free_mem, MPI_FREE_MEM)
