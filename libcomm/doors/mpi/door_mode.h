/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DOORS_MPI_DOOR_MODE_H
#define LCOMM_DOORS_MPI_DOOR_MODE_H

/* What the door does; here without MPI's types. */

typedef enum lcomm_door_mode {
  LCOMM_DOOR_SHUT,     /* no policy, or libcomm could not start: plain MPI */
  LCOMM_DOOR_OPEN,     /* calls that the policy chooses go to libcomm */
  LCOMM_DOOR_BLOCKING, /* those of them that block; the others are MPI's */
  LCOMM_DOOR_REPORT    /* all calls go to MPI; what would be done is counted */
} lcomm_door_mode;

#endif
