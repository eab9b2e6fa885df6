/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_MODE_H
#define LCOMM_INTERPOSE_MPI_MODE_H

/* What the interposer does; here without MPI's types. */

typedef enum lcomm_interpose_mode {
  LCOMM_INTERPOSE_SHUT,     /* no policy, or libcomm could not start: plain MPI */
  LCOMM_INTERPOSE_OPEN,     /* calls that the policy chooses go to libcomm */
  LCOMM_INTERPOSE_BLOCKING, /* those of them that block; the others are MPI's */
  LCOMM_INTERPOSE_REPORT    /* all calls go to MPI; what would be done is counted */
} lcomm_interpose_mode;

#endif
