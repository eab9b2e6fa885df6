/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* lcomm_create_env: the launcher's variables say who we are, and a TCP store
 * is the bootstrap while the communicator is made. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/base/descriptors.h"
#include "libcomm/base/env.h"
#include "libcomm/base/error.h"
#include "libcomm/bootstrap/launcher_env.h"
#include "libcomm/bootstrap/store/store.h"
#include "libcomm/comm/create.h"
#include "libcomm/include/libcomm.h"

static const double TIMEOUT_STANDARD_S = 300;

/* A bad value is named on all ranks once they have met. */
static double find_timeout_s(const lcomm_config *config) {
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

/* The store knows better than anybody above it why it failed. */
static lcomm_status create_over(lcomm_store *store, const lcomm_launcher_env *launcher,
                                const lcomm_config *config, lcomm_comm **comm) {
  const char *sentence = "";
  lcomm_bootstrap bootstrap = {.rank = launcher->rank,
                               .world_size = launcher->world_size,
                               .context = store,
                               .allgather = lcomm_store_allgather};
  lcomm_status status = lcomm_create(&bootstrap, config, comm);
  lcomm_status failure = lcomm_store_failure(store, &sentence);
  if (status != LCOMM_OK && failure != LCOMM_OK) {
    status = lcomm_error_thread(failure, "%s", sentence);
  }
  return status;
}

lcomm_status lcomm_create_env(const lcomm_config *config, lcomm_comm **comm) {
  lcomm_why why;
  lcomm_launcher_env launcher;
  lcomm_store *store = NULL;
  if (!comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_create_env: a pointer is NULL");
  }
  lcomm_status status = lcomm_launcher_env_read(&launcher, &why);
  if (status != LCOMM_OK) {
    return lcomm_error_thread(status, "lcomm_create_env: %s", why.text);
  }
  lcomm_descriptors_raise(); /* before the meeting, which takes one for each rank */
  if (launcher.world_size == 1) {
    return create_alone(config, comm);
  }
  status = lcomm_store_meet(&launcher, find_timeout_s(config), &store);
  if (status == LCOMM_OK) {
    status = create_over(store, &launcher, config, comm);
    lcomm_store_close(store);
  }
  return status;
}
