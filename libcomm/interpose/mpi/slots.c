/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which communicator of MPI is free on all ranks? Each rank offers some of those that are free
 * with it, and keeps what it has offered out of other makings until the answer is there. What is
 * offered depends on the number of the making, so that makings at the same time seldom
 * offer the same; when nothing is common, the ranks try others. */

#include "libcomm/interpose/mpi/slots.h"

#include <stdlib.h>
#include <time.h>

#include "libcomm/interpose/mpi/comms.h"

enum { ROUNDS = 200, SOME = 4 };

static struct {
  pthread_mutex_t lock; /* guards the masks, a bit for each slot */
  bool open;
  uint64_t taken, offered;
  MPI_Comm comms[LCOMM_INTERPOSE_SLOTS + 1];
} slots = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool lcomm_interpose_slots_open(void) {
  MPI_Group everyone = MPI_GROUP_NULL;
  slots.open = lcomm_travels_over(lcomm_interpose_world(), "mpi") != 0;
  int needed = slots.open; /* by any pair of ranks: all make them */
  PMPI_Allreduce(MPI_IN_PLACE, &needed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  slots.open = needed != 0;
  PMPI_Comm_group(MPI_COMM_WORLD, &everyone);
  int code = MPI_SUCCESS;
  for (int i = 1; slots.open && code == MPI_SUCCESS && i <= LCOMM_INTERPOSE_SLOTS; i++) {
    code = PMPI_Comm_create(MPI_COMM_WORLD, everyone, &slots.comms[i]);
  }
  PMPI_Group_free(&everyone);
  return code == MPI_SUCCESS;
}

void lcomm_interpose_slots_close(void) {
  for (int i = 1; slots.open && i <= LCOMM_INTERPOSE_SLOTS; i++) {
    if (!(slots.taken >> i & 1)) {
      PMPI_Comm_free(&slots.comms[i]);
    }
  }
  slots.open = false;
}

MPI_Comm *lcomm_interpose_slot_comm(int slot) {
  return slot > 0 && slot <= LCOMM_INTERPOSE_SLOTS ? &slots.comms[slot] : NULL;
}

/* ------------------------------------------------------------------ taking */

/* A quarter of all, another one for each seed. */
static uint64_t some_of_all(uint64_t seed) {
  uint64_t some = 0;
  for (int i = 1; i <= LCOMM_INTERPOSE_SLOTS; i++) {
    uint64_t mixed = (seed * 64 + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15);
    some |= (uint64_t)((mixed >> 40) % SOME == 0) << i;
  }
  return some;
}

static uint64_t offer(uint64_t seed) {
  pthread_mutex_lock(&slots.lock);
  uint64_t mine = some_of_all(seed) & ~slots.taken & ~slots.offered;
  slots.offered |= mine;
  pthread_mutex_unlock(&slots.lock);
  return mine;
}

static void settle(uint64_t mine, int slot) {
  pthread_mutex_lock(&slots.lock);
  slots.offered &= ~mine;
  slots.taken |= slot > 0 ? UINT64_C(1) << slot : 0;
  pthread_mutex_unlock(&slots.lock);
}

static int lowest(uint64_t mask) {
  return mask ? __builtin_ctzll(mask) : 0;
}

/* One round: false when a rank does not come. */
static bool ask_all(lcomm_interpose_meeting_point *point, uint64_t seed, uint64_t *all, int *slot) {
  uint64_t mine = offer(seed), common = UINT64_MAX;
  bool here = lcomm_interpose_meeting_gather(point, &mine, all, sizeof(mine)) == 0;
  for (int i = 0; i < point->size; i++) {
    common &= here ? all[i] : 0;
  }
  *slot = lowest(common);
  settle(mine, *slot);
  return here;
}

bool lcomm_interpose_slot_take(lcomm_interpose_meeting_point *point, int *slot) {
  static const struct timespec moment = {0, 1000000};
  *slot = 0;
  if (!slots.open) {
    return true;
  }
  uint64_t *all = calloc((size_t)point->size, sizeof *all);
  bool here = all != NULL;
  for (uint64_t round = 0; here && *slot == 0 && round < ROUNDS; round++) {
    if (round > SOME) {
      nanosleep(&moment, NULL);
    }
    here = ask_all(point, point->number * ROUNDS + round, all, slot);
  }
  free(all);
  return *slot > 0;
}

void lcomm_interpose_slot_give_back(int slot) {
  if (slot <= 0 || slot > LCOMM_INTERPOSE_SLOTS) {
    return;
  }
  for (int found = 1; found;) {
    MPI_Message message;
    MPI_Status status;
    int size = 0;
    PMPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, slots.comms[slot], &found, &message, &status);
    if (found) {
      PMPI_Get_count(&status, MPI_BYTE, &size);
      void *bytes = malloc((size_t)size + 1);
      PMPI_Mrecv(bytes, bytes ? size : 0, MPI_BYTE, &message, &status);
      free(bytes);
    }
  }
  pthread_mutex_lock(&slots.lock);
  slots.taken &= ~(UINT64_C(1) << slot);
  pthread_mutex_unlock(&slots.lock);
}
