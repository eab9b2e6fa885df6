/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* lcomm_create_env: the launcher's variables say who we are, and where the ranks meet. */

#include "libcomm/base/error.h"
#include "libcomm/bootstrap/elastic/join.h"
#include "libcomm/bootstrap/store_bootstrap.h"

lcomm_status lcomm_create_env(const lcomm_config *config, lcomm_comm **comm) {
  lcomm_why why;
  lcomm_launcher_env launcher;
  if (!comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_create_env: a pointer is NULL");
  }
  bool joins = false;
  LCOMM_TRY(lcomm_join_is_asked(&joins));
  if (joins) {
    return lcomm_join(config, comm);
  }
  lcomm_status status = lcomm_launcher_env_read(&launcher, &why);
  if (status != LCOMM_OK) {
    return lcomm_error_thread(status, "lcomm_create_env: %s", why.text);
  }
  return lcomm_create_met(&launcher, config, comm);
}
