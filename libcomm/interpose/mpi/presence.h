/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_PRESENCE_H
#define LCOMM_INTERPOSE_MPI_PRESENCE_H

/* Do all ranks of the world run with this library and a policy? A rank that does not is
 * in its program already, and must not be sent anything over MPI: a message could meet one
 * of its receives, and a collective call would hang or meet one of its own. So
 * the ranks ask the launcher's name service (MPI_Publish_name), which no message of a
 * program can meet.
 */

#include <stdbool.h>

typedef enum lcomm_interpose_presence {
  LCOMM_INTERPOSE_ALL_PRESENT,   /* and each is in MPI_Init, where it will stay for collective calls
                                  */
  LCOMM_INTERPOSE_RANK_MISSING,  /* rank 0 has told all ranks that are there which one */
  LCOMM_INTERPOSE_FIRST_MISSING, /* rank 0 itself */
} lcomm_interpose_presence;

/* Every rank of a world of `size` calls this in MPI_Init. ALL_PRESENT on all ranks or on none,
 * however late one is. Otherwise `sentence` (LCOMM_INTERPOSE_SENTENCE_MAX bytes) says who is
 * missing, after 1.5 s on a machine that is idle. Where the launcher has no name service all ranks
 * are waited for, and the job ends with a sentence when some do not come. */
lcomm_interpose_presence lcomm_interpose_presence_find(int rank, int size, char *sentence);

/* All were present, and have said so to each other since: leave no names behind. */
void lcomm_interpose_presence_end(int rank, int size);

#endif
