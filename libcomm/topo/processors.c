/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/topo/processors.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

_Static_assert(CPU_SETSIZE >= LCOMM_PROCESSORS_MAX, "all bits can be asked for");

enum { WORDS = LCOMM_PROCESSORS_MAX / 64 };

/* The boot id tells machines apart, not the containers on one. */
static uint64_t find_machine(uint64_t host) {
  char boot_id[64];
  int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t got = file >= 0 ? read(file, boot_id, sizeof(boot_id)) : -1;
  if (file >= 0) {
    close(file);
  }
  return got > 0 ? XXH3_64bits(boot_id, (size_t)got) : host;
}

void lcomm_processors_self(uint64_t host, lcomm_processors *mine) {
  cpu_set_t allowed;
  memset(mine, 0, sizeof *mine);
  CPU_ZERO(&allowed);
  bool known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  for (int i = 0; known && i < LCOMM_PROCESSORS_MAX; i++) {
    mine->allowed[i / 64] |= (uint64_t)(CPU_ISSET(i, &allowed) != 0) << (i % 64);
  }
  mine->host = host;
  mine->machine = find_machine(host);
  mine->quota_percent = lcomm_cgroup_quota("");
}

static uint64_t count_bits(const lcomm_processors *of) {
  uint64_t count = 0;
  for (int i = 0; i < WORDS; i++) {
    count += (uint64_t)__builtin_popcountll(of->allowed[i]);
  }
  return count;
}

static bool overlap(const lcomm_processors *a, const lcomm_processors *b) {
  uint64_t both = 0;
  for (int i = 0; i < WORDS; i++) {
    both |= a->allowed[i] & b->allowed[i];
  }
  return both != 0;
}

static uint64_t share_of(const lcomm_processors *all, int size, int rank) {
  const lcomm_processors *mine = &all[rank];
  uint64_t beside = 0, of_host = 0;
  for (int i = 0; i < size; i++) {
    bool here = all[i].machine == mine->machine;
    beside += here && overlap(&all[i], mine);
    of_host += here && all[i].host == mine->host;
  }
  uint64_t share = beside > 0 ? 100 * count_bits(mine) / beside : 0;
  uint64_t quota = of_host > 0 ? mine->quota_percent / of_host : 0;
  return mine->quota_percent > 0 && quota < share ? quota : share;
}

uint64_t lcomm_processors_share(const lcomm_processors *all, int size, int rank) {
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < size; i++) {
    if (all[i].machine == all[rank].machine) {
      uint64_t share = share_of(all, size, i);
      least = share < least ? share : least;
    }
  }
  return least;
}
