/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "libcomm/base/env.h"
#include "libcomm/topo/topo_internal.h"

/* Everything that tells hosts apart, hashed as bytes. The boot id alone does
 * not tell containers of one host apart, and they can share memory only if
 * their /dev/shm is the same device. */
typedef struct host_facts {
  char name[256];
  char boot_id[64];
  uint64_t shm_device;
} host_facts;

void lcomm_host_copy(char host[LCOMM_HOST_MAX], const char *name, size_t length) {
  size_t i = 0;
  memset(host, 0, LCOMM_HOST_MAX);
  for (; i < length && i < LCOMM_HOST_MAX - 1 && name[i] != '\0'; i++) {
    host[i] = name[i] > 0x20 && name[i] < 0x7f ? name[i] : '?';
  }
  if (i == 0) {
    host[0] = '?';
  }
}

void lcomm_rack_copy(char rack[LCOMM_RACK_MAX], const char *name, size_t length) {
  char host[LCOMM_HOST_MAX];
  memset(rack, 0, LCOMM_RACK_MAX);
  if (length > 0 && name[0] != '\0') {
    lcomm_host_copy(host, name, length);
    memcpy(rack, host, LCOMM_RACK_MAX - 1);
  }
}

lcomm_status lcomm_identity_rack(lcomm_identity *identity, lcomm_why *error) {
  const char *name = lcomm_env_get(LCOMM_ENV_RACK);
  lcomm_rack_copy(identity->rack, name ? name : "", name ? strlen(name) : 0);
  if (!name || strcmp(identity->rack, name) == 0) {
    return LCOMM_OK;
  }
  memset(identity->rack, 0, sizeof identity->rack);
  return lcomm_why_set(error, LCOMM_ERR_ARGUMENT,
                       "LCOMM_RACK=%.40s is no name of a rack; use 1 to %d visible ASCII "
                       "characters without spaces, such as r07",
                       name, LCOMM_RACK_MAX - 1);
}

static void read_boot_id(char *boot_id, size_t size) {
  int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return;
  }
  ssize_t got = read(file, boot_id, size);
  close(file);
  if (got < 0) {
    memset(boot_id, 0, size);
  }
}

void lcomm_identity_self(lcomm_identity *identity) {
  memset(identity, 0, sizeof *identity);
  identity->pid = (uint64_t)getpid();

  const char *id = lcomm_env_get(LCOMM_ENV_HOSTID);
  if (id) {
    lcomm_host_copy(identity->host, id, strlen(id));
    identity->host_hash = XXH3_64bits(id, strlen(id));
    return;
  }

  host_facts facts;
  struct stat shm;
  memset(&facts, 0, sizeof facts);
  if (gethostname(facts.name, sizeof facts.name - 1) != 0) {
    memset(facts.name, 0, sizeof facts.name);
  }
  read_boot_id(facts.boot_id, sizeof facts.boot_id);
  if (stat("/dev/shm", &shm) == 0) {
    facts.shm_device = (uint64_t)shm.st_dev;
  }
  lcomm_host_copy(identity->host, facts.name, sizeof facts.name);
  identity->host_hash = XXH3_64bits(&facts, sizeof facts);
}

int lcomm_topo_processors(void) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  int count = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  return count > 0 ? count : 1;
}
