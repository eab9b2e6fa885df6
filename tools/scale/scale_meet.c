/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/scale/scale_meet.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "libcomm/base/descriptors.h"
#include "libcomm/bootstrap/store/store.h"
#include "libcomm/bootstrap/store/store_socket.h"
#include "libcomm/comm/handshake.h"
#include "libcomm/transport/shm/shm_internal.h"
#include "libcomm/transport/ucx/ucx_addresses.h"
#include "tools/common/tool_timing.h"

static const double PATIENCE_S = 300;
enum { STACK = 1 << 20, DESCRIPTORS_OF_A_RANK = 6 };

static const size_t said[] = {sizeof(lcomm_handshake_brief), sizeof(lcomm_shm_offer),
                              sizeof(lcomm_links_uniform), LCOMM_UCX_OFFER_SIZE,
                              sizeof(lcomm_links_uniform)};

enum { SAID = sizeof(said) / sizeof(said[0]) };

typedef struct participant {
  pthread_t thread;
  lcomm_launcher_env place;
  bool good;
  uint64_t bytes;
  double processor_s;
} participant;

static int free_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool found = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
               getsockname(fd, (struct sockaddr *)&address, &size) == 0;
  if (fd >= 0) {
    close(fd);
  }
  return found ? ntohs(address.sin_port) : 0;
}

static bool gather(lcomm_store *store, int ranks, size_t size) {
  void *mine = calloc(1, size), *all = calloc((size_t)ranks, size);
  bool good = mine && all && lcomm_store_allgather(store, mine, all, size) == 0;
  free(all);
  free(mine);
  return good;
}

static void *take_part(void *argument) {
  participant *it = argument;
  lcomm_store *store = NULL;
  struct timespec used;
  it->good = lcomm_store_meet(&it->place, PATIENCE_S, &store) == LCOMM_OK;
  for (size_t i = 0; it->good && i < SAID; i++) {
    it->good = gather(store, it->place.world_size, said[i]);
  }
  lcomm_store_close(store);
  it->bytes = lcomm_socket_bytes();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  it->processor_s = (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
  return NULL;
}

static bool start(participant *all, int ranks, int port) {
  pthread_attr_t small;
  bool good = true;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, STACK);
  for (int i = 0; i < ranks; i++) {
    all[i].place = (lcomm_launcher_env){.rank = i,
                                        .world_size = ranks,
                                        .size_from = "--meet",
                                        .one_host = true,
                                        .address = "127.0.0.1",
                                        .port = port};
    good = good && pthread_create(&all[i].thread, &small, take_part, &all[i]) == 0;
  }
  pthread_attr_destroy(&small);
  return good;
}

/* Without all threads the others wait for the time-out, so the process ends. */
const char *scale_meet(int ranks, scale_meeting *found) {
  lcomm_descriptors_raise();
  if (lcomm_descriptors_limit() < DESCRIPTORS_OF_A_RANK * ranks) {
    return "too few file descriptors for so many ranks in one process; raise `ulimit -n`";
  }
  participant *all = calloc((size_t)ranks, sizeof *all);
  double begun_s = tool_now_s();
  if (!all || !start(all, ranks, free_port())) {
    return "no memory, or no thread, for so many ranks";
  }
  bool good = true;
  *found = (scale_meeting){0};
  for (int i = 0; i < ranks; i++) {
    pthread_join(all[i].thread, NULL);
    good = good && all[i].good;
    found->most_bytes = all[i].bytes > found->most_bytes ? all[i].bytes : found->most_bytes;
  }
  for (size_t i = 0; i < SAID; i++) {
    found->said_bytes += said[i];
  }
  found->meet_s = tool_now_s() - begun_s;
  found->root_bytes = all[0].bytes;
  found->root_processor_s = all[0].processor_s;
  free(all);
  return good ? NULL : "some ranks have not met; LCOMM_LOG=error says why";
}
