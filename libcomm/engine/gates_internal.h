/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_GATES_INTERNAL_H
#define LCOMM_ENGINE_GATES_INTERNAL_H

/* What the files of gates share: gates_file.c has the files of ranks in this process, gates.c what
 * ranks agree on in them. */

#include "libcomm/engine/gates.h"

/* Of a payload, as its sender says. */
enum { LCOMM_GATE_GOES = 0, LCOMM_GATE_STAYS = 1, LCOMM_GATE_HAS_GATE = 2 };

/* Between the owner of a file and one other rank of its node: a message of each direction. */
typedef struct lcomm_gate_entry {
  uint32_t gate;        /* of the message to the owner, written by lanes of its sender */
  uint32_t takes;       /* the owner reads that message where it is */
  uint32_t stays;       /* the message from the owner: LCOMM_GATE_GOES ... */
  uint64_t place, size; /* where its payload is in the owner's memory; 0 bytes: nowhere */
} lcomm_gate_entry;

/* A file in this process. */
typedef struct lcomm_gate_file {
  lcomm_gate_entry *entries; /* NULL: it is not open */
  size_t size;
  uint32_t messages;
  lcomm_device_ipc ipc;
  void *memory; /* of its owner's run, open here, or NULL */
} lcomm_gate_file;

/* Pinned numbers: that of the replay that comes; not 0: lanes wait for no gate; what recordings
 * write (recording.h). */
enum { LCOMM_GATES_NUMBER, LCOMM_GATES_PASSED, LCOMM_GATES_ONE, LCOMM_GATES_NUMBERS };

struct lcomm_gates {
  const lcomm_device_table *table;
  int ranks, mine; /* of the node */
  int file;
  lcomm_gate_file *files; /* per rank of the node */
  uint32_t *numbers;
  uint32_t **gates;     /* per step that is a message, or NULL */
  bool *are_all;        /* per step that is a computation */
  const uint8_t **from; /* per slot */
  uint32_t count, slots;
};

/* Room for what is known of each step and slot of a run. */
bool lcomm_gates_make_tables(const lcomm_run *run, lcomm_gates *gates);

/* Of a message inside the node, once it is known what stays on devices: may the lane of its sender
 * write a gate, the lane of its receiver await one? It has one where both may. */
bool lcomm_gates_may_write(const lcomm_run *run, const lcomm_step *send);
bool lcomm_gates_may_await(const lcomm_run *run, const lcomm_step *receive);

/* gates->gates are known: so is which computations wait for nothing else. */
void lcomm_gates_find_all(const lcomm_schedule *schedule, lcomm_gates *gates);

/* This rank's file; -1: there is none. */
int lcomm_gate_file_make(lcomm_gates *gates, uint32_t messages);

/* A peer's, and the memory that its card describes; what cannot be opened is not. */
void lcomm_gate_file_open(lcomm_gates *gates, const lcomm_comm *comm, int rank,
                          const lcomm_gate_card *card);
void lcomm_gate_file_close(const lcomm_gates *gates, lcomm_gate_file *file);

/* The entry of a message with a rank of the node; NULL where the file has none. */
static inline lcomm_gate_entry *lcomm_gate_entry_of(const lcomm_gate_file *file, int rank,
                                                    uint32_t message) {
  bool here = file->entries && message < file->messages;
  return here ? &file->entries[(size_t)rank * file->messages + message] : NULL;
}

/* Where a payload of `size` bytes is that can stay; else NULL. */
const uint8_t *lcomm_gate_place(const lcomm_gate_file *file, const lcomm_gate_entry *it,
                                uint64_t size);

#endif
