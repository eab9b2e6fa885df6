/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* MPI's beginning and end, as programs call them. */

#include "libcomm/doors/mpi/start.h"

LCOMM_DOOR_API int MPI_Init(int *argc, char ***argv) {
  int granted = MPI_THREAD_SINGLE, level = lcomm_door_level_to_ask(MPI_THREAD_SINGLE);
  int code = level == MPI_THREAD_SINGLE ? PMPI_Init(argc, argv)
                                        : PMPI_Init_thread(argc, argv, level, &granted);
  if (code == MPI_SUCCESS) {
    lcomm_door_level_to_tell(MPI_THREAD_SINGLE, granted);
    code = lcomm_door_open();
  }
  return code;
}

LCOMM_DOOR_API int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  int code = PMPI_Init_thread(argc, argv, lcomm_door_level_to_ask(required), provided);
  if (code == MPI_SUCCESS) {
    *provided = lcomm_door_level_to_tell(required, *provided);
    code = lcomm_door_open();
  }
  return code;
}

LCOMM_DOOR_API int MPI_Query_thread(int *provided) {
  int code = PMPI_Query_thread(provided);
  if (code == MPI_SUCCESS && lcomm_door_level() >= MPI_THREAD_SINGLE) {
    *provided = lcomm_door_level();
  }
  return code;
}

LCOMM_DOOR_API int MPI_Finalize(void) {
  lcomm_door_shut();
  return PMPI_Finalize();
}
