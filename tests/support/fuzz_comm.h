/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_FUZZ_COMM_H
#define LCOMM_TESTS_SUPPORT_FUZZ_COMM_H

/* A communicator whose peers are an input: what they tell and send is taken from it,
 * what they are told and sent is looked at and forgotten. */

#include "libcomm/engine/operation.h"
#include "tests/support/fuzz_bytes.h"

/* The transport to all peers. */
typedef struct fuzz_link {
  lcomm_transport base;
  lcomm_transport_table table;
  fuzz_bytes *in;
  uint8_t control[LCOMM_CONTROL_SIZE]; /* the next one to be heard, if has_control */
  bool has_control;
  int told;
} fuzz_link;

/* `size` ranks; messages come from `in`: one byte says how a message goes on, see
 * fuzz_comm.c. Allocated in one piece of exactly its size. */
lcomm_comm *fuzz_comm_make(fuzz_bytes *in, int rank, int size, fuzz_link *link);
void fuzz_comm_free(lcomm_comm *comm);

/* The error in force is a status with a sentence, or there is none. */
void fuzz_comm_check(const lcomm_comm *comm);

/* A text of people: it ends within `room`, and has no control characters. */
void fuzz_check_text(const char *text, size_t room);

#endif
