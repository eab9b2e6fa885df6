/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Ids of communicators: where their ranks meet. The 128 bytes of an ncclUniqueId, which programs
 * carry to all ranks:
 *
 *   0 "lcommid1"   8 port u16, little-endian   10 zeros   16 address, text   80 token, text
 *
 * Texts end with a zero. */

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libcomm/interpose/nccl/nccl_address.h"
#include "libcomm/interpose/nccl/nccl_comm.h"

enum { PORT_AT = 8, ADDRESS_AT = 16, TOKEN_AT = ADDRESS_AT + LCOMM_NCCL_ADDRESS_MAX };
static const char magic[8] = {'l', 'c', 'o', 'm', 'm', 'i', 'd', '1'};

_Static_assert(TOKEN_AT + LCOMM_NCCL_TOKEN_MAX <= (int)sizeof(ncclUniqueId), "an id holds a place");

void lcomm_nccl_id_write(const lcomm_nccl_place *place, ncclUniqueId *id) {
  memset(id, 0, sizeof *id);
  memcpy(id->internal, magic, sizeof(magic));
  id->internal[PORT_AT] = (char)(place->port & 0xff);
  id->internal[PORT_AT + 1] = (char)(place->port >> 8);
  memcpy(id->internal + ADDRESS_AT, place->address, LCOMM_NCCL_ADDRESS_MAX);
  memcpy(id->internal + TOKEN_AT, place->token, LCOMM_NCCL_TOKEN_MAX);
}

/* A text with an end, of characters that can be shown, at least one. */
static bool is_text(const char *text, size_t size) {
  size_t length = strnlen(text, size);
  for (size_t i = 0; i < length; i++) {
    if (text[i] <= ' ' || text[i] >= 127) {
      return false;
    }
  }
  return length > 0 && length < size;
}

bool lcomm_nccl_id_read(const ncclUniqueId *id, lcomm_nccl_place *place) {
  const unsigned char *port = (const unsigned char *)id->internal + PORT_AT;
  place->port = (uint16_t)(port[0] | port[1] << 8);
  memcpy(place->address, id->internal + ADDRESS_AT, LCOMM_NCCL_ADDRESS_MAX);
  memcpy(place->token, id->internal + TOKEN_AT, LCOMM_NCCL_TOKEN_MAX);
  return memcmp(id->internal, magic, sizeof(magic)) == 0 && place->port > 0 &&
         is_text(place->address, sizeof(place->address)) &&
         is_text(place->token, sizeof(place->token));
}

/* --------------------------------------------------------------- new places */

/* Ports of ids whose communicators are not made yet. Their sockets stay open, so that the system
 * gives the ports to no connection; rank 0 may listen there all the same (SO_REUSEADDR). Of many
 * ids that are never used the oldest are forgotten. */
enum { RESERVED_MAX = 64 };
static struct {
  pthread_mutex_t lock;
  struct {
    int fd; /* 0: none */
    uint16_t port;
  } at[RESERVED_MAX];
  size_t next;
} reserved = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void reserve(int fd, uint16_t port) {
  pthread_mutex_lock(&reserved.lock);
  size_t i = reserved.next++ % RESERVED_MAX;
  if (reserved.at[i].fd > 0) {
    close(reserved.at[i].fd);
  }
  reserved.at[i].fd = fd;
  reserved.at[i].port = port;
  pthread_mutex_unlock(&reserved.lock);
}

void lcomm_nccl_place_release(const lcomm_nccl_place *place) {
  pthread_mutex_lock(&reserved.lock);
  for (size_t i = 0; i < RESERVED_MAX; i++) {
    if (reserved.at[i].fd > 0 && reserved.at[i].port == place->port) {
      close(reserved.at[i].fd);
      reserved.at[i].fd = 0;
    }
  }
  pthread_mutex_unlock(&reserved.lock);
}

/* A port that nobody listens at; 0 with errno. */
static uint16_t find_port(int *listener) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
  socklen_t size = sizeof(address);
  int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd > 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
      bind(fd, (struct sockaddr *)&address, size) == 0 &&
      getsockname(fd, (struct sockaddr *)&address, &size) == 0) {
    *listener = fd;
    return ntohs(address.sin_port);
  }
  int error = errno;
  if (fd >= 0) {
    close(fd);
  }
  errno = error;
  return 0;
}

ncclResult_t lcomm_nccl_place_find(lcomm_nccl_place *place, int *listener) {
  unsigned char lot[(LCOMM_NCCL_TOKEN_MAX - 1) / 2];
  memset(place, 0, sizeof *place);
  *listener = -1;
  ncclResult_t result = lcomm_nccl_address_find(place->address, sizeof(place->address));
  if (result != ncclSuccess) {
    return result;
  }
  if (getrandom(lot, sizeof(lot), 0) == (ssize_t)sizeof(lot)) {
    place->port = find_port(listener);
  }
  if (place->port == 0) {
    return lcomm_nccl_fail(ncclSystemError, "ncclGetUniqueId: no TCP port could be had: %s",
                           strerror(errno));
  }
  for (size_t i = 0; i < sizeof(lot); i++) {
    snprintf(place->token + 2 * i, 3, "%02x", lot[i]);
  }
  return ncclSuccess;
}

ncclResult_t lcomm_nccl_place_guess(lcomm_nccl_place *place) {
  int listener = -1;
  ncclResult_t result = lcomm_nccl_place_find(place, &listener);
  if (listener >= 0) {
    close(listener);
  }
  return result;
}

ncclResult_t lcomm_nccl_id_get(ncclUniqueId *id) {
  lcomm_nccl_place place;
  int listener = -1;
  if (!id) {
    return lcomm_nccl_fail(ncclInvalidArgument, "ncclGetUniqueId: uniqueId is NULL");
  }
  ncclResult_t result = lcomm_nccl_place_find(&place, &listener);
  if (result == ncclSuccess) {
    reserve(listener, place.port);
    lcomm_nccl_id_write(&place, id);
    lcomm_device_free_deferred(); /* of communicators before */
  }
  return result;
}
