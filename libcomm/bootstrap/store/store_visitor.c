/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Who comes to the meeting at rank 0 is a visitor until it has said who it is.
 * Then it is let in, or refused with a reason. */

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libcomm/base/clock.h"
#include "libcomm/bootstrap/store/store_door.h"

static const double LEAVE_S = 1;     /* for one that was refused to read the reason */
static const double VANISHED_S = 20; /* a member whose host acknowledges nothing */

void lcomm_store_visitor_part(lcomm_store_visitor *it) {
  close(it->fd);
  it->fd = -1;
}

static void leave(lcomm_store_visitor *it) {
  shutdown(it->fd, SHUT_WR);
  it->leaving = true;
  it->until_s = lcomm_clock_s() + LEAVE_S;
}

static void refuse(lcomm_store_rendezvous *m, lcomm_store_visitor *it, lcomm_status status,
                   const char *why) {
  snprintf(m->refusal, sizeof(m->refusal), "%.*s", (int)sizeof(m->refusal) - 1, why);
  m->refused++;
  lcomm_store_say_reason(it->fd, LCOMM_STORE_REFUSED, status, why);
  leave(it);
}

/* There is no meeting: the reason goes to every rank that comes. */
static void apologize(lcomm_store_rendezvous *m, lcomm_store_visitor *it, int rank) {
  lcomm_store *store = m->store;
  lcomm_store_say_reason(it->fd, LCOMM_STORE_FAILED, store->status, store->sentence);
  leave(it);
  m->missing -= !store->peers[rank].told;
  store->peers[rank].told = true;
}

static void welcome(lcomm_store_rendezvous *m, lcomm_store_visitor *it,
                    const lcomm_store_handshake *handshake) {
  lcomm_store_peer *peer = &m->store->peers[handshake->rank];
  if (!lcomm_store_say(it->fd, LCOMM_STORE_WAIT)) {
    lcomm_store_visitor_part(it);
    return;
  }
  lcomm_socket_expect(it->fd, VANISHED_S);
  peer->fd = it->fd;
  peer->was_here = false;
  peer->process = handshake->process;
  peer->attempt = handshake->attempt;
  peer->port = handshake->port;
  memcpy(peer->host, handshake->host, sizeof(peer->host));
  it->fd = -1;
  m->missing--;
}

bool lcomm_store_expects(const lcomm_store *store, uint32_t rank) {
  return store->rank == 0 || lcomm_store_branch_below(&store->branch, (int)rank) > 0;
}

/* Is the place of this rank free? The one that has it may have gone, or greet
 * again: then its last greeting counts. */
static bool is_free(lcomm_store_rendezvous *m, const lcomm_store_handshake *handshake) {
  lcomm_store_peer *peer = &m->store->peers[handshake->rank];
  if (peer->fd >= 0 && handshake->process == peer->process && handshake->attempt > peer->attempt) {
    lcomm_store_member_lose(m, (int)handshake->rank);
  }
  if (peer->fd >= 0) {
    lcomm_store_member_check(m, (int)handshake->rank);
  }
  return peer->fd < 0;
}

/* A newcomer waits at a door; everybody else comes again later. */
static void greet_at_door(lcomm_store_rendezvous *m, lcomm_store_visitor *it,
                          const lcomm_store_handshake *handshake) {
  bool is_newcomer = handshake->rank == LCOMM_STORE_NEWCOMER;
  if (m->door && is_newcomer && lcomm_store_door_admit(m->door, it->fd, handshake)) {
    it->fd = -1;
    return;
  }
  refuse(m, it, LCOMM_ERR_TIMEOUT,
         !m->door      ? "the ranks of the job are meeting, and take no newcomer meanwhile"
         : is_newcomer ? "too many newcomers wait already"
                       : "the ranks of the job have met; a rank that is started anew joins them "
                         "with LCOMM_JOIN=on");
}

/* It has said who it is. Nothing is told to those without the token. */
static void check_visitor(lcomm_store_rendezvous *m, lcomm_store_visitor *it) {
  const lcomm_launcher_env *launcher = m->store->launcher;
  const char *why = "";
  char text[256];
  lcomm_store_handshake handshake;
  lcomm_status status = lcomm_store_read_handshake(it->handshake, &handshake, &why);
  if (status != LCOMM_OK) {
    refuse(m, it, status, why);
    return;
  }
  if (!lcomm_store_same_token(handshake.token, (const uint8_t *)launcher->token)) {
    snprintf(text, sizeof(text),
             "the token is not that of rank 0, which has it from %s; it is another job, or "
             "LCOMM_TOKEN has to be the same on all ranks",
             launcher->token_from ? launcher->token_from : "nowhere: its token is empty");
    refuse(m, it, LCOMM_STORE_OTHER_JOB, text);
    return;
  }
  if (m->door || handshake.rank == LCOMM_STORE_NEWCOMER) {
    greet_at_door(m, it, &handshake);
    return;
  }
  if (m->any_world) {
    handshake.world_size = (uint32_t)launcher->world_size;
  }
  if (handshake.world_size == (uint32_t)launcher->world_size && handshake.rank > 0 &&
      handshake.rank < handshake.world_size && !lcomm_store_expects(m->store, handshake.rank)) {
    snprintf(text, sizeof(text), "rank %u is no child of rank %d in the tree", handshake.rank,
             m->store->rank);
    refuse(m, it, LCOMM_ERR_MISMATCH, text);
    return;
  }
  if (handshake.world_size != (uint32_t)launcher->world_size || handshake.rank == 0 ||
      handshake.rank >= handshake.world_size) {
    snprintf(text, sizeof(text),
             "it says it is rank %u of %u, and rank 0 expects ranks 1 to %d of a world of %s=%d; "
             "start all ranks with the same world size and ranks of their own",
             handshake.rank, handshake.world_size, launcher->world_size - 1, launcher->size_from,
             launcher->world_size);
    refuse(m, it, LCOMM_ERR_MISMATCH, text);
    return;
  }
  if (m->store->status != LCOMM_OK) {
    apologize(m, it, (int)handshake.rank);
    return;
  }
  if (!is_free(m, &handshake)) {
    snprintf(text, sizeof(text),
             "rank %u is here already, from host %s; start every rank once, with a number of its "
             "own",
             handshake.rank, m->store->peers[handshake.rank].host);
    refuse(m, it, LCOMM_ERR_MISMATCH, text);
    return;
  }
  welcome(m, it, &handshake);
}

/* Who has greeted waits. One that has gone meanwhile is no member: another
 * greeting of the same rank may be on its way. */
static void greeted(lcomm_store_rendezvous *m, lcomm_store_visitor *it) {
  if (lcomm_socket_is_silent(it->fd)) {
    check_visitor(m, it);
  } else {
    lcomm_store_visitor_part(it);
  }
}

void lcomm_store_visitor_receive(lcomm_store_rendezvous *m, lcomm_store_visitor *it) {
  uint8_t scrap[1024];
  size_t got = 0;
  lcomm_stream stream =
      it->leaving ? lcomm_socket_read(it->fd, scrap, sizeof(scrap), &got)
                  : lcomm_socket_read(it->fd, it->handshake, sizeof(it->handshake), &it->received);
  if (stream == LCOMM_STREAM_GONE) {
    lcomm_store_visitor_part(it);
  } else if (it->leaving || stream == LCOMM_STREAM_WAITS) {
    return;
  } else if (!lcomm_store_begins_handshake(it->handshake, it->received)) {
    refuse(m, it, LCOMM_ERR_WIRE, "what was sent is not a greeting of libcomm");
  } else if (!lcomm_store_knows_version(it->handshake, it->received)) {
    refuse(m, it, LCOMM_ERR_UNSUPPORTED, LCOMM_STORE_OTHER_VERSION);
  } else if (it->received == sizeof(it->handshake)) {
    greeted(m, it);
  }
}

void lcomm_store_visitor_mind_time(lcomm_store_rendezvous *m, lcomm_store_visitor *it) {
  if (it->fd < 0 || lcomm_clock_s() < it->until_s) {
    return;
  }
  if (it->leaving) {
    lcomm_store_visitor_part(it);
  } else {
    refuse(m, it, LCOMM_ERR_TIMEOUT, "it did not say in time who it is");
  }
}
