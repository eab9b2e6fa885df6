/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/bootstrap/store/store_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libcomm/base/clock.h"

int lcomm_poll_ms(double until_s) {
  double left_ms = (until_s - lcomm_clock_s()) * 1000;
  return left_ms <= 0 ? 0 : left_ms >= 999 ? 1000 : (int)left_ms + 1;
}

/* ----------------------------------------------------------------- bytes */

static _Thread_local uint64_t moved_bytes;

uint64_t lcomm_socket_bytes(void) {
  return moved_bytes;
}

static lcomm_stream result_of(ssize_t moved, size_t *done) {
  if (moved > 0) {
    *done += (size_t)moved;
    moved_bytes += (uint64_t)moved;
    return LCOMM_STREAM_MOVED;
  }
  bool later = moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  return later ? LCOMM_STREAM_WAITS : LCOMM_STREAM_GONE;
}

lcomm_stream lcomm_socket_read(int fd, void *bytes, size_t size, size_t *done) {
  return result_of(recv(fd, (char *)bytes + *done, size - *done, 0), done);
}

lcomm_stream lcomm_socket_write(int fd, const void *bytes, size_t size, size_t *done) {
  return result_of(send(fd, (const char *)bytes + *done, size - *done, MSG_NOSIGNAL), done);
}

lcomm_stream lcomm_socket_write_parts(int fd, const void *head, size_t head_size, const void *body,
                                      size_t body_size, size_t *done) {
  lcomm_stream stream = LCOMM_STREAM_MOVED;
  while (stream == LCOMM_STREAM_MOVED && *done < head_size + body_size) {
    if (*done < head_size) {
      stream = lcomm_socket_write(fd, head, head_size, done);
    } else {
      size_t of_body = *done - head_size;
      stream = lcomm_socket_write(fd, body, body_size, &of_body);
      *done = head_size + of_body;
    }
  }
  return stream;
}

bool lcomm_socket_is_silent(int fd) {
  char byte;
  size_t got = 0;
  return lcomm_socket_read(fd, &byte, 1, &got) == LCOMM_STREAM_WAITS;
}

int lcomm_socket_poll(struct pollfd *sockets, int count, int wait_ms) {
  int ready = poll(sockets, (nfds_t)count, wait_ms);
  return ready < 0 && errno == EINTR ? 0 : ready;
}

void lcomm_socket_expect(int fd, double acknowledged_s) {
  unsigned limit_ms = (unsigned)(acknowledged_s * 1000);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof(limit_ms));
}

/* Small messages leave at once. */
void lcomm_socket_hurry(int fd) {
  int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

/* --------------------------------------------------------------- parting */

/* Is the other side done? One that never stops talking is not listened to. */
static bool drain(int fd) {
  char bytes[4096];
  lcomm_stream stream = LCOMM_STREAM_MOVED;
  for (int times = 0; stream == LCOMM_STREAM_MOVED && times < 256; times++) {
    size_t done = 0;
    stream = lcomm_socket_read(fd, bytes, sizeof(bytes), &done);
  }
  return stream == LCOMM_STREAM_GONE;
}

void lcomm_socket_part(struct pollfd *sockets, int count, double limit_s) {
  double until_s = lcomm_clock_s() + limit_s;
  int left = 0;
  for (int i = 0; i < count; i++) {
    shutdown(sockets[i].fd, SHUT_WR);
    sockets[i].events = POLLIN;
    left++;
  }
  while (left > 0 && lcomm_clock_s() < until_s) {
    int ready = poll(sockets, (nfds_t)count, lcomm_poll_ms(until_s));
    for (int i = 0; ready > 0 && i < count; i++) {
      if (sockets[i].fd >= 0 && sockets[i].revents != 0 && drain(sockets[i].fd)) {
        close(sockets[i].fd);
        sockets[i].fd = -1; /* which poll passes over */
        left--;
      }
    }
  }
  for (int i = 0; i < count; i++) {
    if (sockets[i].fd >= 0) {
      close(sockets[i].fd);
    }
  }
}
