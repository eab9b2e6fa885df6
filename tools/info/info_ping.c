/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/info/info_ping.h"
#include "tools/common/tool_timing.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/clock.h"

enum { PING_TAG = LCOMM_TAG_CONTROL | 16 };

/* ---------------------------------------------------------------- memory */

lcomm_status info_room_open(lcomm_comm *comm, info_room *room) {
  const size_t size = 2 * (size_t)INFO_LONG_SIZE;
  room->comm = comm;
  room->out = lcomm_links_memory_get(&comm->links, size);
  if (!room->out) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY,
                      "no memory for the %zu bytes of a measurement; free some on this host", size);
  }
  memset(room->out, 1, size); /* pages come now, not in the first message */
  room->in = room->out + INFO_LONG_SIZE;
  info_room_begin(room, comm->settings.timeout_s);
  return LCOMM_OK;
}

void info_room_close(info_room *room) {
  if (room->out) {
    lcomm_links_memory_free(&room->comm->links, room->out);
  }
  room->out = room->in = NULL;
}

void info_room_begin(info_room *room, double patience_s) {
  room->patience_s = patience_s;
  room->deadline_s = lcomm_clock_s() + patience_s;
}

/* -------------------------------------------------------------- messages */

static lcomm_status broken(lcomm_comm *comm, int peer, lcomm_status status) {
  char who[96];
  const lcomm_transport *link = lcomm_comm_link(comm, peer);
  return lcomm_fail(comm, status, "measuring the link to %s: %s",
                    lcomm_comm_who(comm, peer, who, sizeof(who)), link->why);
}

/* What a wait does now and then: hear what others say, and look at the clock. */
static lcomm_status look_around(const info_room *room, int peer) {
  char who[96];
  lcomm_comm *comm = room->comm;
  lcomm_status status = lcomm_control_receive(comm);
  if (status != LCOMM_OK || lcomm_clock_s() < room->deadline_s) {
    return status;
  }
  return lcomm_fail(comm, LCOMM_ERR_TIMEOUT,
                    "measuring the link to %s: it has not done its part in %g s. It may be dead or "
                    "stopped, or the "
                    "link slow; a longer LCOMM_TIMEOUT_S leaves it more time.",
                    lcomm_comm_who(comm, peer, who, sizeof(who)), room->patience_s);
}

/* Until a message is over. A processor that others want, too, is offered to them
 * as often as operations do it. */
static lcomm_status finish(const info_room *room, int peer, lcomm_transfer *transfer,
                           size_t *size) {
  enum { POLLS_BETWEEN_LOOKS = 256 };
  lcomm_comm *comm = room->comm;
  const unsigned spins = comm->waiting.crowded ? 4 : 64;
  lcomm_transport *link = lcomm_comm_link(comm, peer);
  lcomm_status status = LCOMM_OK;
  bool over = false;
  for (unsigned polls = 1; status == LCOMM_OK; polls++) {
    lcomm_links_progress(&comm->links);
    status = link->table->test(link, transfer, &over, size);
    if (status != LCOMM_OK) {
      status = broken(comm, peer, status);
    } else if (over) {
      return LCOMM_OK;
    } else if (polls % POLLS_BETWEEN_LOOKS == 0) {
      status = look_around(room, peer);
    }
    if (polls > spins) {
      sched_yield();
    }
  }
  link->table->cancel(link, transfer);
  return status;
}

lcomm_status info_send(const info_room *room, int peer, size_t size) {
  lcomm_transport *link = lcomm_comm_link(room->comm, peer);
  lcomm_transfer transfer;
  lcomm_status status = link->table->send(link, peer, PING_TAG, room->out, size, &transfer);
  return status == LCOMM_OK ? finish(room, peer, &transfer, NULL)
                            : broken(room->comm, peer, status);
}

static lcomm_status begin_receive(const info_room *room, int peer, size_t size,
                                  lcomm_transfer *transfer) {
  lcomm_transport *link = lcomm_comm_link(room->comm, peer);
  lcomm_status status = link->table->receive(link, peer, PING_TAG, room->in, size, transfer);
  return status == LCOMM_OK ? LCOMM_OK : broken(room->comm, peer, status);
}

static lcomm_status finish_receive(const info_room *room, int peer, size_t size,
                                   lcomm_transfer *transfer) {
  char who[96];
  size_t arrived = 0;
  lcomm_status status = finish(room, peer, transfer, &arrived);
  if (status != LCOMM_OK || arrived == size) {
    return status;
  }
  return lcomm_fail(room->comm, LCOMM_ERR_WIRE,
                    "measuring the link to %s: it sends %zu bytes where %zu belong; install the "
                    "same libcomm on all hosts",
                    lcomm_comm_who(room->comm, peer, who, sizeof(who)), arrived, size);
}

lcomm_status info_receive(const info_room *room, int peer, size_t size) {
  lcomm_transfer transfer;
  LCOMM_TRY(begin_receive(room, peer, size, &transfer));
  return finish_receive(room, peer, size, &transfer);
}

/* ------------------------------------------------------------- ping-pong */

/* The answer finds its receive already there. */
static lcomm_status there_and_back(const info_room *room, int peer, size_t size) {
  lcomm_transfer answer;
  LCOMM_TRY(begin_receive(room, peer, size, &answer));
  lcomm_status status = info_send(room, peer, size);
  if (status != LCOMM_OK) {
    lcomm_transport *link = lcomm_comm_link(room->comm, peer);
    link->table->cancel(link, &answer);
    return status;
  }
  return finish_receive(room, peer, size, &answer);
}

lcomm_status info_ping(const info_room *room, int peer, const info_pings *pings, double *half_s) {
  double taken_s[INFO_PINGS_MAX] = {0};
  int count = pings->count < INFO_PINGS_MAX ? pings->count : INFO_PINGS_MAX;
  for (int i = -pings->warm_up; i < count; i++) {
    double begun_s = lcomm_clock_s();
    LCOMM_TRY(there_and_back(room, peer, pings->size));
    taken_s[i < 0 ? 0 : i] = lcomm_clock_s() - begun_s;
  }
  *half_s = tool_median(taken_s, (size_t)count) / 2;
  return LCOMM_OK;
}

lcomm_status info_pong(const info_room *room, int peer, const info_pings *pings) {
  int count = pings->count < INFO_PINGS_MAX ? pings->count : INFO_PINGS_MAX;
  for (int i = -pings->warm_up; i < count; i++) {
    LCOMM_TRY(info_receive(room, peer, pings->size));
    LCOMM_TRY(info_send(room, peer, pings->size));
  }
  return LCOMM_OK;
}
