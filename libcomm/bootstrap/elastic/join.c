/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* lcomm_join(): a newcomer waits at the door of a job that is under way, until the others regroup
 * with it. Where that fails for a rank that was lost meanwhile, it comes again: with another port,
 * so that nobody takes it for one that went on. */

#include "libcomm/bootstrap/elastic/join.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/base/descriptors.h"
#include "libcomm/base/env.h"
#include "libcomm/bootstrap/elastic/shrink.h"
#include "libcomm/bootstrap/store_bootstrap.h"

static const double PATIENCE_S = 5; /* with another job that has the port, at most, ... */
enum { PATIENCE = 10 };             /* ... and the time-out by so many */
enum { PAUSE_MS = 100 };            /* before it comes again */

typedef struct joining {
  lcomm_launcher_env place; /* its address is a list of hosts */
  double timeout_s, until_s, patience_s;
  unsigned attempts;
  lcomm_why why; /* the last attempt failed */
  lcomm_comm *joined;
} joining;

static lcomm_status say_later(joining *it, const char *why) {
  lcomm_why_set(&it->why, LCOMM_ERR_TRANSPORT, "%.200s", why);
  return LCOMM_OK;
}

/* With the list in hand: the others make a communicator with this rank. */
static lcomm_status arrive(joining *it, lcomm_shrinking *arriving) {
  bool over = false;
  LCOMM_TRY(lcomm_shrink_arrive(arriving, &over));
  if (!over) {
    return say_later(it, "a rank was lost while this one was admitted");
  }
  it->joined = arriving->base;
  arriving->reunion = NULL; /* the communicator's */
  return LCOMM_OK;
}

/* A job that is meeting, or has no room, may have some later. */
static lcomm_status take_refusal(joining *it, lcomm_status status) {
  bool is_patient = status == LCOMM_ERR_MISMATCH && lcomm_clock_s() < it->patience_s;
  return status == LCOMM_ERR_TIMEOUT || is_patient ? say_later(it, lcomm_error_thread_text())
                                                   : status;
}

static lcomm_status knock(joining *it, lcomm_shrinking *arriving, int fd) {
  lcomm_status status = LCOMM_OK;
  int port = 0;
  arriving->reunion->listener = lcomm_socket_listen_beside(fd, it->place.one_host, &port);
  switch (lcomm_reunion_knock(arriving->reunion, fd, it->until_s, &arriving->found, &status)) {
  case LCOMM_REUNION_LISTED:
    return arrive(it, arriving);
  case LCOMM_REUNION_ENDED:
    return take_refusal(it, status);
  case LCOMM_REUNION_SILENT:
    return say_later(it, "it was not admitted: the others call lcomm_regroup() for that");
  default:
    return say_later(it, "who listens there hung up");
  }
}

/* At one host. LCOMM_OK: it has joined, or may come again. */
static lcomm_status attempt(joining *it, const char *host) {
  unsigned addresses = 0;
  lcomm_launcher_env there = it->place;
  int fd =
      lcomm_socket_connect(host, it->place.port, it->attempts++, it->until_s, &addresses, &it->why);
  if (fd < 0) {
    return LCOMM_OK;
  }
  snprintf(there.address, sizeof(there.address), "%s", host);
  lcomm_shrinking arriving = {.call = "lcomm_join",
                              .reunion = lcomm_reunion_of_newcomer(&there),
                              .timeout_s = it->timeout_s,
                              .until_s = it->until_s,
                              .kept = 1};
  lcomm_status status = arriving.reunion ? knock(it, &arriving, fd)
                                         : lcomm_error_thread(LCOMM_ERR_MEMORY, "out of memory");
  lcomm_reunion_free(arriving.reunion);
  free(arriving.prepared.members);
  free(arriving.found.list.seats);
  free(arriving.blocks);
  return status;
}

/* At all hosts of the list, one after the other. */
static lcomm_status attempt_all(joining *it) {
  char hosts[LCOMM_ADDRESS_MAX], *rest = NULL;
  snprintf(hosts, sizeof(hosts), "%s", it->place.address);
  for (char *host = strtok_r(hosts, ", ", &rest); host && !it->joined;
       host = strtok_r(NULL, ", ", &rest)) {
    LCOMM_TRY(attempt(it, host));
  }
  return LCOMM_OK;
}

static lcomm_status join(joining *it) {
  for (;;) {
    lcomm_status status = attempt_all(it);
    if (status != LCOMM_OK) {
      char sentence[LCOMM_ERROR_MAX - 64];
      snprintf(sentence, sizeof(sentence), "%s", lcomm_error_thread_text());
      return lcomm_error_thread(status, "lcomm_join: %s", sentence);
    }
    if (it->joined) {
      return LCOMM_OK;
    }
    if (lcomm_clock_s() + PAUSE_MS / 1e3 >= it->until_s) {
      return lcomm_error_thread(
          LCOMM_ERR_TIMEOUT,
          "lcomm_join: cannot join the job at MASTER_ADDR %s port %d within %g s: %s. See whether "
          "the job runs with LCOMM_ELASTIC=on, and where its rank 0 is, or raise LCOMM_TIMEOUT_S",
          it->place.address, it->place.port, it->timeout_s, it->why.text);
    }
    poll(NULL, 0, PAUSE_MS);
  }
}

lcomm_status lcomm_join_is_asked(bool *asked) {
  const char *text = lcomm_env_get(LCOMM_ENV_JOIN);
  *asked = text && strcmp(text, "on") == 0;
  return !text || *asked || strcmp(text, "off") == 0
             ? LCOMM_OK
             : lcomm_error_thread(LCOMM_ERR_ARGUMENT,
                                  "lcomm_create_env: LCOMM_JOIN=%.40s is neither on nor off", text);
}

lcomm_status lcomm_join(const lcomm_config *config, lcomm_comm **comm) {
  lcomm_why why;
  if (!comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_join: a pointer is NULL");
  }
  double timeout_s = lcomm_meeting_timeout_s(config), now_s = lcomm_clock_s();
  double patience_s = timeout_s / PATIENCE < PATIENCE_S ? timeout_s / PATIENCE : PATIENCE_S;
  joining it = {
      .timeout_s = timeout_s, .until_s = now_s + timeout_s, .patience_s = now_s + patience_s};
  lcomm_status status = lcomm_launcher_env_read_place(&it.place, &why);
  if (status != LCOMM_OK) {
    return lcomm_error_thread(status, "lcomm_join: %s", why.text);
  }
  lcomm_descriptors_raise();
  LCOMM_TRY(join(&it));
  *comm = it.joined;
  return LCOMM_OK;
}
