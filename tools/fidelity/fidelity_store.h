/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_FIDELITY_FIDELITY_STORE_H
#define LCOMM_TOOLS_FIDELITY_FIDELITY_STORE_H

/* The file of results: one line of JSON for each cell that was trained, appended as a whole, by
 * several processes too. A run that was interrupted goes on with what is not there; lines that are
 * not whole are passed over. */

#include "tools/fidelity/fidelity_train.h"

typedef struct fidelity_record {
  char key[FIDELITY_KEY_MAX]; /* fidelity_cell_key() */
  fidelity_outcome outcome;
} fidelity_record;

typedef struct fidelity_store {
  fidelity_record *records;
  size_t count, room;
} fidelity_store;

/* A file that is not there is an empty one. Returns 0, or -1 with `why`; then nothing is kept. */
int fidelity_store_read(const char *path, fidelity_store *made, failure *why);
void fidelity_store_free(fidelity_store *self);

/* The last result of the cell, or NULL. */
const fidelity_outcome *fidelity_store_find(const fidelity_store *self, const fidelity_cell *cell);

/* Add a line to the file. Returns 0, or -1 with `why`. */
int fidelity_store_append(const char *path, const fidelity_cell *cell,
                          const fidelity_outcome *outcome, failure *why);

#endif
