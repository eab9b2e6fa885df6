/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* MPI's beginning and end, as programs call them. */

#include "libcomm/interpose/mpi/start.h"

LCOMM_INTERPOSE_API int MPI_Init(int *argc, char ***argv) {
  int granted = MPI_THREAD_SINGLE, level = lcomm_interpose_level_to_ask(MPI_THREAD_SINGLE);
  int code = level == MPI_THREAD_SINGLE ? PMPI_Init(argc, argv)
                                        : PMPI_Init_thread(argc, argv, level, &granted);
  if (code == MPI_SUCCESS) {
    lcomm_interpose_level_to_tell(MPI_THREAD_SINGLE, granted);
    code = lcomm_interpose_open();
  }
  return code;
}

LCOMM_INTERPOSE_API int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  int code = PMPI_Init_thread(argc, argv, lcomm_interpose_level_to_ask(required), provided);
  if (code == MPI_SUCCESS) {
    *provided = lcomm_interpose_level_to_tell(required, *provided);
    code = lcomm_interpose_open();
  }
  return code;
}

LCOMM_INTERPOSE_API int MPI_Query_thread(int *provided) {
  int code = PMPI_Query_thread(provided);
  if (code == MPI_SUCCESS && lcomm_interpose_level() >= MPI_THREAD_SINGLE) {
    *provided = lcomm_interpose_level();
  }
  return code;
}

LCOMM_INTERPOSE_API int MPI_Finalize(void) {
  lcomm_interpose_shut();
  return PMPI_Finalize();
}
