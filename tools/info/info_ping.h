/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_INFO_INFO_PING_H
#define LCOMM_TOOLS_INFO_INFO_PING_H

/* Messages between two ranks of a communicator, outside its operations, by the
 * transport that it uses between them. A failure is one of the communicator: all
 * its ranks hear of it, and lcomm_last_error() is the sentence. */

#include "libcomm/engine/engine.h"

enum { INFO_SHORT_SIZE = 8, INFO_LONG_SIZE = 8 << 20, INFO_PINGS_MAX = 256 };

/* Memory for messages to and from other ranks, INFO_LONG_SIZE bytes each. It lies
 * where the transports like it, and a failure leaves it in place: a peer may
 * still read it. */
typedef struct info_room {
  lcomm_comm *comm;
  uint8_t *out, *in;
  double patience_s, deadline_s;
} info_room;

lcomm_status info_room_open(lcomm_comm *comm, info_room *room);
void info_room_close(info_room *room);

/* From now on all messages together may take so long. */
void info_room_begin(info_room *room, double patience_s);

/* The first `size` bytes of out to a peer; so many of a peer's to in. */
lcomm_status info_send(const info_room *room, int peer, size_t size);
lcomm_status info_receive(const info_room *room, int peer, size_t size);

/* Messages that go back and forth; the first `warm_up` of them do not count. */
typedef struct info_pings {
  size_t size;
  int warm_up, count; /* count: 1..INFO_PINGS_MAX */
} info_pings;

/* *half_s: half of a round trip, the median. The peer calls info_pong. */
lcomm_status info_ping(const info_room *room, int peer, const info_pings *pings, double *half_s);
lcomm_status info_pong(const info_room *room, int peer, const info_pings *pings);

#endif
