/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_MPI_MPI_INTERNAL_H
#define LCOMM_TRANSPORT_MPI_MPI_INTERNAL_H

/* The inside of the transport over MPI, shared by mpi_transport.c and mpi_control_messages.c.
 *
 * All calls are those of MPI's profiling interface, PMPI_: libcomm's own messages are not the
 * program's, so tools and interposers between a program and MPI must not see them. */

#include <mpi.h>

#include "libcomm/transport/mpi/mpi_transport.h"

/* Control messages. mpi_control_messages.c writes it. */
typedef struct lcomm_mpi_control {
  MPI_Request listening; /* receives the next one */
  unsigned char received[LCOMM_CONTROL_SIZE];
  struct lcomm_mpi_outgoing *sent; /* some per peer */
  bool *parted;                    /* the peers that were sent the last one */
  bool *gone;                      /* the peers whose last one has been received */
} lcomm_mpi_control;

typedef struct lcomm_mpi_transport {
  lcomm_transport base;
  MPI_Comm comm;
  int rank, size;
  int *ranks; /* of the peers, in comm */
  lcomm_mpi_control control;
  double cancel_until_s; /* patience with messages that are no longer wanted; 0: all of it */
  bool touches;          /* memory of messages that were cancelled, for all that is known */
  struct lcomm_mpi_transport *next_left;
} lcomm_mpi_transport;

static inline lcomm_mpi_transport *lcomm_mpi_of(lcomm_transport *transport) {
  return (lcomm_mpi_transport *)transport;
}

/* --------------------------------------------------------- mpi_transport.c */

/* The status of a result of MPI; TRANSPORT with MPI's sentence in base.why. */
lcomm_status lcomm_mpi_check(lcomm_mpi_transport *t, int code);

/* Cancel a receive. A message whose beginning has come can no longer be cancelled; its end is
 * waited for, so that nothing is written into memory of others later. False: it may be. */
bool lcomm_mpi_end_receive(lcomm_mpi_transport *t, MPI_Request *request);

/* -------------------------------------------------- mpi_control_messages.c */

/* Begin to receive control messages. MEMORY, TRANSPORT, with a phrase in base.why. */
lcomm_status lcomm_mpi_control_open(lcomm_mpi_transport *t);

/* Give control messages on their way a moment to leave; a dead peer cannot hold us. False: MPI may
 * still touch one. */
bool lcomm_mpi_control_close(lcomm_mpi_transport *t);

/* Free the memory, which MPI no longer touches. */
void lcomm_mpi_control_free(lcomm_mpi_transport *t);

void lcomm_mpi_control_send(lcomm_transport *transport, int peer, const void *message);
void lcomm_mpi_control_send_error(lcomm_transport *transport, int peer, const void *message);
bool lcomm_mpi_control_receive(lcomm_transport *transport, void *message);
void lcomm_mpi_control_part(lcomm_transport *transport, int peer);
int lcomm_mpi_control_unparted(const lcomm_transport *transport);

#endif
