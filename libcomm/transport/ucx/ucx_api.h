/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_UCX_UCX_API_H
#define LCOMM_TRANSPORT_UCX_UCX_API_H

/* UCX, opened at run time: libcomm.so needs it neither to link nor to start,
 * and the environment that UCX reads while it loads can be arranged first.
 */

#include <ucp/api/ucp.h>

#include "libcomm/base/error.h"
#include "libcomm/include/libcomm_types.h"

#define LCOMM_UCX_FUNCTIONS(X)                                                                     \
  X(ucp_get_version)                                                                               \
  X(ucp_get_version_string)                                                                        \
  X(ucp_config_read)                                                                               \
  X(ucp_config_release)                                                                            \
  X(ucp_init_version)                                                                              \
  X(ucp_context_print_info)                                                                        \
  X(ucp_cleanup)                                                                                   \
  X(ucp_worker_create)                                                                             \
  X(ucp_worker_destroy)                                                                            \
  X(ucp_worker_query)                                                                              \
  X(ucp_worker_release_address)                                                                    \
  X(ucp_worker_get_efd)                                                                            \
  X(ucp_worker_arm)                                                                                \
  X(ucp_worker_progress)                                                                           \
  X(ucp_ep_create)                                                                                 \
  X(ucp_ep_close_nbx)                                                                              \
  X(ucp_ep_flush_nbx)                                                                              \
  X(ucp_ep_print_info)                                                                             \
  X(ucp_tag_send_nbx)                                                                              \
  X(ucp_tag_recv_nbx)                                                                              \
  X(ucp_tag_recv_request_test)                                                                     \
  X(ucp_request_check_status)                                                                      \
  X(ucp_request_cancel)                                                                            \
  X(ucp_request_free)                                                                              \
  X(ucs_status_string)

typedef struct lcomm_ucx_api {
#define LCOMM_UCX_FIELD(function) __typeof__(function) *function;
  LCOMM_UCX_FUNCTIONS(LCOMM_UCX_FIELD)
#undef LCOMM_UCX_FIELD
} lcomm_ucx_api;

/* The functions of the library; all NULL before lcomm_ucx_load succeeded. */
extern lcomm_ucx_api lcomm_ucx;

/* What is opened: "libucp.so.0". Tests put another name here before the first
 * load; the library is loaded once per process, or never. */
extern const char *lcomm_ucx_library;

/* Load the library if that has not been tried. UNSUPPORTED, with a phrase in
 * why. Any thread may call it. */
lcomm_status lcomm_ucx_load(lcomm_why *why);

/* How many entries a folder has; those of this folder are the devices that read memory by
 * themselves. */
#define LCOMM_UCX_RDMA_DEVICES "/sys/class/infiniband"
int lcomm_ucx_count_entries(const char *folder);

/* The version that was loaded ("1.13.1"), loading it if necessary; NULL where
 * there is none. Static. */
const char *lcomm_ucx_version(void);

#endif
