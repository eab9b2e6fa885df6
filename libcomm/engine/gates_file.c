/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Files of gates: memory files that ranks of a node share, registered with their devices. */

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libcomm/device/device_deferred.h"
#include "libcomm/engine/device_zcopy.h"
#include "libcomm/engine/gates_internal.h"
#include "libcomm/transport/shm/shm_file.h"

#define LABEL "libcomm-gates"

static size_t size_of(int ranks, uint32_t messages) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t size = (size_t)ranks * messages * sizeof(lcomm_gate_entry);
  return (size + page - 1) / page * page;
}

/* It stays closed where devices cannot use it. */
static void map(const lcomm_gates *gates, lcomm_gate_file *file, int descriptor,
                uint32_t messages) {
  size_t size = size_of(gates->ranks, messages);
  bool fits = descriptor >= 0 && lcomm_shm_file_is_fixed(descriptor, size);
  void *memory = fits ? lcomm_shm_file_map(descriptor, size, PROT_READ | PROT_WRITE) : NULL;
  if (!memory) {
    return;
  }
  if (gates->table->memory.pin(memory, size) != 0) {
    munmap(memory, size);
    return;
  }
  file->entries = memory;
  file->size = size;
  file->messages = messages;
}

int lcomm_gate_file_make(lcomm_gates *gates, uint32_t messages) {
  lcomm_gate_file *file = &gates->files[gates->mine];
  int descriptor = lcomm_shm_file_create(LABEL, size_of(gates->ranks, messages));
  map(gates, file, descriptor, messages);
  if (file->entries) {
    return descriptor;
  }
  lcomm_shm_file_close(descriptor);
  return -1;
}

void lcomm_gate_file_open(lcomm_gates *gates, const lcomm_comm *comm, int rank,
                          const lcomm_gate_card *card) {
  if (card->messages == 0 || card->messages > LCOMM_MESSAGES_MAX ||
      !lcomm_device_may_stay(comm, rank)) {
    return;
  }
  lcomm_gate_file *file = &gates->files[comm->topo.local[rank]];
  pid_t pid = (pid_t)comm->identity.processes[rank].pid;
  int descriptor = lcomm_shm_file_open(pid, card->file, O_RDWR, "/memfd:" LABEL);
  map(gates, file, descriptor, card->messages);
  lcomm_shm_file_close(descriptor);
  bool offers = file->entries && card->memory.size > 0;
  file->ipc = card->memory;
  if (!offers || gates->table->ipc.open(&card->memory, &file->memory) != 0) {
    file->memory = NULL;
  }
}

/* As long as a device has them registered they stay mapped. */
typedef struct registered {
  void *entries;
  size_t size;
} registered;

static void unregister(const lcomm_device_table *table, void *argument) {
  const registered *it = argument;
  (void)table->memory.unpin(it->entries);
  munmap(it->entries, it->size);
  free(argument);
}

static void close_entries(const lcomm_device_table *table, void *entries, size_t size) {
  int ordinal = LCOMM_DEVICE_NONE;
  registered *it = malloc(sizeof *it);
  if (!it) { /* they stay */
    return;
  }
  *it = (registered){entries, size};
  (void)table->current(&ordinal);
  lcomm_device_free_by(ordinal, unregister, it);
}

void lcomm_gate_file_close(const lcomm_gates *gates, lcomm_gate_file *file) {
  const lcomm_device_table *table = lcomm_device_freeing(gates->table);
  if (file->memory) {
    (void)table->ipc.close(file->memory);
  }
  if (file->entries) {
    close_entries(table, file->entries, file->size);
  }
  *file = (lcomm_gate_file){0};
}

const uint8_t *lcomm_gate_place(const lcomm_gate_file *file, const lcomm_gate_entry *it,
                                uint64_t size) {
  uint64_t place = it->place, all = file->ipc.size;
  bool fits = file->memory && it->size == size && size <= all && place <= all - size;
  return fits ? (const uint8_t *)file->memory + place : NULL;
}
