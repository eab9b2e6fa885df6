/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A TCP store is the bootstrap while a communicator is made. lcomm_create_at: the program says
 * where. */

#include "libcomm/bootstrap/store_bootstrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/descriptors.h"
#include "libcomm/base/env.h"
#include "libcomm/base/error.h"
#include "libcomm/bootstrap/elastic/reunion.h"
#include "libcomm/bootstrap/store/store_internal.h"
#include "libcomm/comm/create.h"

static const double TIMEOUT_STANDARD_S = 300;

/* A bad value is named on all ranks once they have met. */
double lcomm_meeting_timeout_s(const lcomm_config *config) {
  const char *text = lcomm_env_get(LCOMM_ENV_TIMEOUT_S);
  double given_s = lcomm_config_take(config).timeout_s;
  double value = given_s > 0 || !text ? given_s : strtod(text, NULL);
  return value > 0 && value < 1e9 ? value : TIMEOUT_STANDARD_S;
}

static int gather_alone(void *context, const void *send, void *receive, size_t size) {
  (void)context;
  if (size > 0) {
    memmove(receive, send, size);
  }
  return 0;
}

static lcomm_status create_alone(const lcomm_config *config, lcomm_comm **comm) {
  lcomm_bootstrap bootstrap = {.rank = 0, .world_size = 1, .allgather = gather_alone};
  return lcomm_create(&bootstrap, config, comm);
}

static bool is_elastic(void) {
  const char *text = lcomm_env_get(LCOMM_ENV_ELASTIC);
  return text && strcmp(text, "on") == 0;
}

/* Without MPI, which may end with the first rank that dies. */
static lcomm_status create_elastic(const lcomm_bootstrap *bootstrap, lcomm_reunion_making *making,
                                   const lcomm_config *config, lcomm_comm **comm) {
  LCOMM_TRY(lcomm_bootstrap_check(bootstrap, comm));
  lcomm_bootstrap_object object = {.base = *bootstrap};
  lcomm_reunion_prepare(&object, making);
  return lcomm_create_over(&object, config, comm);
}

/* The store knows better than anybody above it why it failed. */
static lcomm_status create_over(lcomm_store *store, const lcomm_launcher_env *launcher,
                                const lcomm_config *config, lcomm_comm **comm) {
  const char *sentence = "";
  lcomm_reunion_making making = {.store = store, .launcher = launcher};
  lcomm_bootstrap bootstrap = {.rank = launcher->rank,
                               .world_size = launcher->world_size,
                               .context = store,
                               .allgather = lcomm_store_allgather};
  lcomm_status status = is_elastic() ? create_elastic(&bootstrap, &making, config, comm)
                                     : lcomm_create(&bootstrap, config, comm);
  lcomm_status failure = lcomm_store_failure(store, &sentence);
  if (status != LCOMM_OK && failure != LCOMM_OK) {
    status = lcomm_error_thread(failure, "%s", sentence);
  }
  return status;
}

/* Where newcomers come to, which a launcher need not say of one rank alone. */
static lcomm_status find_place(const lcomm_launcher_env *launcher, lcomm_launcher_env *place) {
  lcomm_why why;
  *place = *launcher;
  if (launcher->port > 0) {
    return LCOMM_OK;
  }
  lcomm_status status = lcomm_launcher_env_read_place(place, &why);
  return status == LCOMM_OK ? LCOMM_OK
                            : lcomm_error_thread(status, "lcomm_create_env: %s", why.text);
}

/* It has a reunion, over a store of its own. */
static lcomm_status create_elastic_alone(const lcomm_launcher_env *launcher,
                                         const lcomm_config *config, lcomm_comm **comm) {
  lcomm_store *store = NULL;
  lcomm_launcher_env place;
  LCOMM_TRY(find_place(launcher, &place));
  LCOMM_TRY(lcomm_store_star(0, 1, NULL, lcomm_meeting_timeout_s(config), &store));
  lcomm_status status = create_over(store, &place, config, comm);
  lcomm_store_close(store);
  return status;
}

lcomm_status lcomm_create_met(const lcomm_launcher_env *launcher, const lcomm_config *config,
                              lcomm_comm **comm) {
  lcomm_store *store = NULL;
  lcomm_descriptors_raise(); /* before the meeting, which takes one for each rank */
  if (launcher->world_size == 1) {
    return is_elastic() ? create_elastic_alone(launcher, config, comm) : create_alone(config, comm);
  }
  lcomm_status status = lcomm_store_meet(launcher, lcomm_meeting_timeout_s(config), &store);
  if (status == LCOMM_OK) {
    status = create_over(store, launcher, config, comm);
    lcomm_store_close(store);
  }
  return status;
}

/* What is wrong with it; NULL: nothing. */
static const char *check_meeting(const lcomm_meeting *meeting) {
  if (meeting->world_size < 1) {
    return "world_size is below 1";
  }
  if (meeting->rank < 0 || meeting->rank >= meeting->world_size) {
    return "rank is not between 0 and world_size - 1";
  }
  if (!meeting->address || !meeting->address[0] || strlen(meeting->address) >= LCOMM_ADDRESS_MAX) {
    return "address is no text of 1 to 255 bytes";
  }
  if (meeting->port < 1 || meeting->port > 65535) {
    return "port is not between 1 and 65535";
  }
  return meeting->token && strlen(meeting->token) >= LCOMM_TOKEN_MAX
             ? "token is longer than 255 bytes"
             : NULL;
}

lcomm_status lcomm_create_at(const lcomm_meeting *meeting, const lcomm_config *config,
                             lcomm_comm **comm) {
  if (!meeting || !comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_create_at: a pointer is NULL");
  }
  const char *why = check_meeting(meeting);
  if (why) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_create_at: %s", why);
  }
  lcomm_launcher_env place = {.rank = meeting->rank,
                              .world_size = meeting->world_size,
                              .size_from = "lcomm_meeting",
                              .port = meeting->port,
                              .token_from = meeting->token ? "lcomm_meeting" : NULL};
  snprintf(place.address, sizeof(place.address), "%s", meeting->address);
  snprintf(place.token, sizeof(place.token), "%s", meeting->token ? meeting->token : "");
  return lcomm_create_met(&place, config, comm);
}
