/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A meeting of survivors: the lowest seat that lives hosts it. All look for it in the same order,
 * so they find the same one; where it dies meanwhile they look again. */

#include <poll.h>
#include <stdlib.h>

#include "libcomm/base/clock.h"
#include "libcomm/bootstrap/elastic/reunion.h"

bool lcomm_reunion_suffices(int survivors, int count, int dead, bool has_lowest) {
  int alive = count - dead; /* perhaps */
  return 2 * survivors > alive || (2 * survivors == alive && has_lowest);
}

static bool contains(const int *seats, int count, int seat) {
  int i = 0;
  while (i < count && seats[i] != seat) {
    i++;
  }
  return i < count;
}

bool lcomm_reunion_list_suffices(const lcomm_reunion_list *list, const int *members, int count) {
  int here = 0, dead = 0, lowest = -1;
  bool has_lowest = false;
  for (int i = 0; i < count; i++) {
    bool survives = contains(list->seats, list->survivors, members[i]);
    bool is_dead = contains(list->seats + list->survivors, list->dead, members[i]);
    here += survives;
    dead += is_dead;
    if (lowest < 0 && !is_dead) {
      lowest = members[i];
      has_lowest = survives;
    }
  }
  return lcomm_reunion_suffices(here, count, dead, has_lowest);
}

/* How often the connection with a seat has broken; from GIVEN_UP on it is not asked again: it is
 * silent, or another program has its port. */
enum { GIVEN_UP = 100, PAUSE_MS = 20 };

/* The answer of the first seat that has one. */
static lcomm_reunion_answer ask_lower(lcomm_reunion *reunion, double timeout_s, double until_s,
                                      int *breaks, lcomm_survivors *found, lcomm_status *status) {
  for (int i = 0; reunion->members[i] != reunion->seat; i++) {
    if (breaks[i] < GIVEN_UP) {
      lcomm_reunion_answer answer =
          lcomm_reunion_call(reunion, reunion->members[i], timeout_s, until_s, found, status);
      breaks[i] =
          answer == LCOMM_REUNION_SILENT ? GIVEN_UP : breaks[i] + (answer == LCOMM_REUNION_AGAIN);
      if (answer != LCOMM_REUNION_DEAD && answer != LCOMM_REUNION_SILENT) {
        return answer;
      }
    }
  }
  return LCOMM_REUNION_DEAD;
}

static lcomm_status meet(lcomm_reunion *reunion, double timeout_s, double until_s, int *breaks,
                         lcomm_survivors *found) {
  for (;;) {
    lcomm_status status = LCOMM_OK;
    lcomm_reunion_answer answer = ask_lower(reunion, timeout_s, until_s, breaks, found, &status);
    if (answer == LCOMM_REUNION_DEAD) {
      return lcomm_reunion_host(reunion, timeout_s, until_s, found);
    }
    if (answer != LCOMM_REUNION_AGAIN) {
      return status;
    }
    if (lcomm_clock_s() >= until_s) {
      return lcomm_error_thread(LCOMM_ERR_TIMEOUT,
                                "the survivors did not come together in time; see whether the "
                                "network between the hosts is down, or raise LCOMM_TIMEOUT_S");
    }
    poll(NULL, 0, PAUSE_MS);
  }
}

lcomm_status lcomm_reunion_meet(lcomm_reunion *reunion, double timeout_s, double until_s,
                                lcomm_survivors *found) {
  int *breaks = calloc((size_t)reunion->count, sizeof *breaks);
  if (!breaks) {
    return lcomm_error_thread(LCOMM_ERR_MEMORY, "lcomm_shrink: out of memory");
  }
  lcomm_status status = meet(reunion, timeout_s, until_s, breaks, found);
  free(breaks);
  return status;
}
