/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Memory that a program takes from MPI: while the interposer is open it is libcomm's, which the
 * ranks of a host read where it is. */

#include <string.h>

#include "libcomm/interpose/mpi/fortran.h"

/* libcomm gives whole pages, and shorter buffers gain nothing. */
enum { LEAST_BYTES = 64 << 10 };

static bool takes_calls(void) {
  int mode = atomic_load_explicit(&lcomm_interpose_mode_now, memory_order_relaxed);
  return mode == LCOMM_INTERPOSE_OPEN || mode == LCOMM_INTERPOSE_BLOCKING;
}

/* What an info asks for is between the program and MPI. */
LCOMM_INTERPOSE_API int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr) {
  void *memory = NULL;
  if (!takes_calls() || size < LEAST_BYTES || info != MPI_INFO_NULL || !baseptr ||
      lcomm_memory_alloc((size_t)size, &memory) != LCOMM_OK) {
    return PMPI_Alloc_mem(size, info, baseptr);
  }
  memcpy(baseptr, &memory, sizeof(memory)); /* the address of a pointer to anything */
  return MPI_SUCCESS;
}

/* Also when the interposer has been shut since. */
LCOMM_INTERPOSE_API int MPI_Free_mem(void *base) {
  if (base && lcomm_memory_free(base) == LCOMM_OK) {
    return MPI_SUCCESS;
  }
  return PMPI_Free_mem(base);
}

/* Fortran's MPI_ALLOC_MEM is MPI's; what C code has taken may be given back in Fortran. */
static void lcomm_interpose_mpi_free_mem(void *base, MPI_Fint *error) {
  lcomm_interpose_fortran_end(error, MPI_Free_mem(base));
}
LCOMM_INTERPOSE_FORTRAN(mpi_free_mem, MPI_FREE_MEM)
