/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Every public function is given what must not be: NULL for each pointer, handles of
 * another communicator, of one that was destroyed, and none at all. It returns ARGUMENT,
 * the sentence is where the header says, and the communicator goes on. The table holds
 * every function of the public headers. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libcomm/include/libcomm_interpose.h"
#include "tests/support/unit_tests.h"

static float data[64], received[64];
static uint64_t counts[1] = {4}, bytes;
static lcomm_request request;
static lcomm_residual *residual;
static lcomm_channel *channel;
static lcomm_tensor *tensor, *made;
static lcomm_guard_figures figures;
static uint64_t calls;
static lcomm_comm *other;
static char text[64];
static int done;

#define F LCOMM_FLOAT32
#define S LCOMM_SUM

/* X(function, arguments behind the communicator, what is wrong: a word of the sentence). The
 * communicator is `c`. Calls of all ranks are made by a world of one. */
#define CALLS(X)                                                                                   \
  X(lcomm_split, (c, 0, 0, NULL, NULL), "lcomm_split")                                             \
  X(lcomm_shrink, (c, NULL), "lcomm_shrink")                                                       \
  X(lcomm_shrunk_get, (c, NULL), "lcomm_shrunk_get")                                               \
  X(lcomm_regroup, (c, NULL), "lcomm_regroup")                                                     \
  X(lcomm_regrouped_get, (c, NULL), "lcomm_regrouped_get")                                         \
  X(lcomm_changes_get, (c, NULL), "lcomm_changes_get")                                             \
  X(lcomm_allreduce, (c, NULL, received, 4, F, S), "all-reduce")                                   \
  X(lcomm_allreduce, (c, data, NULL, 4, F, S), "all-reduce")                                       \
  X(lcomm_iallreduce, (c, NULL, received, 4, F, S, &request), "all-reduce")                        \
  X(lcomm_iallreduce, (c, data, received, 4, F, S, NULL), "all-reduce")                            \
  X(lcomm_allreduce_scaled, (c, NULL, received, 4, F, S, 1, 1), "all-reduce")                      \
  X(lcomm_iallreduce_scaled, (c, data, received, 4, F, S, 1, 1, NULL), "all-reduce")               \
  X(lcomm_reduce_scatter, (c, data, NULL, 4, F, S), "reduce-scatter")                              \
  X(lcomm_ireduce_scatter, (c, data, received, 4, F, S, NULL), "reduce-scatter")                   \
  X(lcomm_reduce_scatterv, (c, data, received, NULL, F, S), "reduce-scatter")                      \
  X(lcomm_ireduce_scatterv, (c, data, received, counts, F, S, NULL), "reduce-scatter")             \
  X(lcomm_allgather, (c, NULL, received, 4, F), "all-gather")                                      \
  X(lcomm_iallgather, (c, data, received, 4, F, NULL), "all-gather")                               \
  X(lcomm_allgatherv, (c, data, received, NULL, F), "uneven all-gather")                           \
  X(lcomm_allgatherv, (c, data, NULL, counts, F), "uneven all-gather")                             \
  X(lcomm_iallgatherv, (c, data, received, counts, F, NULL), "uneven all-gather")                  \
  X(lcomm_alltoall, (c, NULL, received, 4, F), "all-to-all")                                       \
  X(lcomm_ialltoall, (c, data, received, 4, F, NULL), "all-to-all")                                \
  X(lcomm_broadcast, (c, NULL, 4, F, 0), "broadcast")                                              \
  X(lcomm_ibroadcast, (c, data, 4, F, 0, NULL), "broadcast")                                       \
  X(lcomm_ibarrier, (c, NULL), "barrier")                                                          \
  X(lcomm_test, (c, NULL, &done), "lcomm_test")                                                    \
  X(lcomm_test, (c, &request, NULL), "lcomm_test")                                                 \
  X(lcomm_wait, (c, NULL), "lcomm_wait")                                                           \
  X(lcomm_allreduce_on_stream, (c, NULL, received, 4, F, S, NULL), "all-reduce")                   \
  X(lcomm_reduce_scatter_on_stream, (c, NULL, received, 4, F, S, NULL), "reduce-scatter")          \
  X(lcomm_reduce_scatterv_on_stream, (c, data, received, NULL, F, S, NULL), "reduce-scatter")      \
  X(lcomm_allgatherv_on_stream, (c, data, received, NULL, F, NULL), "uneven all-gather")           \
  X(lcomm_allgather_on_stream, (c, NULL, received, 4, F, NULL), "all-gather")                      \
  X(lcomm_alltoall_on_stream, (c, NULL, received, 4, F, NULL), "all-to-all")                       \
  X(lcomm_broadcast_on_stream, (c, NULL, 4, F, 0, NULL), "broadcast")                              \
  X(lcomm_allreduce_scaled_on_stream, (c, NULL, received, 4, F, S, 1, 1, NULL), "all-reduce")      \
  X(lcomm_reduce_scatterv_scaled_on_stream, (c, data, received, NULL, F, S, 1, 1, NULL),           \
    "reduce-scatter")                                                                              \
  X(lcomm_allreduce_weighted_on_stream, (c, NULL, received, 4, F, 1, NULL), "all-reduce")          \
  X(lcomm_reduce_scatterv_weighted_on_stream, (c, data, received, NULL, F, 1, NULL),               \
    "reduce-scatter")                                                                              \
  X(lcomm_send, (c, NULL, 4, F, 0), "send")                                                        \
  X(lcomm_recv, (c, NULL, 4, F, 0), "receive")                                                     \
  X(lcomm_isend, (c, NULL, 4, F, 0, &request), "send")                                             \
  X(lcomm_isend, (c, data, 4, F, 0, NULL), "send")                                                 \
  X(lcomm_irecv, (c, NULL, 4, F, 0, &request), "receive")                                          \
  X(lcomm_irecv, (c, received, 4, F, 0, NULL), "receive")                                          \
  X(lcomm_channel_create, (c, 0, 4, NULL), "lcomm_channel_create")                                 \
  X(lcomm_channel_create, (c, 1, 4, &channel), "lcomm_channel_create")                             \
  X(lcomm_send_on_stream, (c, NULL, 4, F, 0, NULL), "send")                                        \
  X(lcomm_receive_on_stream, (c, NULL, 4, F, 0, NULL), "receive")                                  \
  X(lcomm_tensor_add, (c, NULL, data, 4, F, S, &made), "lcomm_tensor_add")                         \
  X(lcomm_tensor_add, (c, "t", NULL, 4, F, S, &made), "lcomm_tensor_add")                          \
  X(lcomm_tensor_add, (c, "t", received, 4, F, S, NULL), "lcomm_tensor_add")                       \
  X(lcomm_tensor_add_shaped, (c, NULL, data, 2, 2, F, S, &made), "lcomm_tensor_add")               \
  X(lcomm_tensor_add_shaped, (c, "t", NULL, 2, 2, F, S, &made), "lcomm_tensor_add")                \
  X(lcomm_tensor_add_shaped, (c, "t", received, 0, 2, F, S, &made), "lcomm_tensor_add_shaped")     \
  X(lcomm_tensor_add_shaped, (c, "t", received, 2, 2, F, S, NULL), "lcomm_tensor_add_shaped")      \
  X(lcomm_tensor_scale, (c, NULL, 1, 1), "lcomm_tensor_scale")                                     \
  X(lcomm_tensor_ready, (c, NULL), "lcomm_tensor_ready")                                           \
  X(lcomm_tensor_ready_on_stream, (c, NULL, NULL), "lcomm_tensor_ready_on_stream")                 \
  X(lcomm_tensor_residual, (c, NULL, received), "lcomm_tensor_residual")                           \
  X(lcomm_tensor_residual, (c, tensor, NULL), "lcomm_tensor_residual")                             \
  X(lcomm_tensor_guard, (c, NULL, &figures), "lcomm_tensor_guard")                                 \
  X(lcomm_tensor_guard, (c, tensor, NULL), "lcomm_tensor_guard")                                   \
  X(lcomm_state_save, (c, NULL), "lcomm_state_save")                                               \
  X(lcomm_state_load, (c, NULL), "lcomm_state_load")                                               \
  X(lcomm_state_size, (c, NULL), "lcomm_state_size")                                               \
  X(lcomm_state_write, (c, NULL, 8), "lcomm_state_write")                                          \
  X(lcomm_state_read, (c, NULL, 8), "lcomm_state_read")                                            \
  X(lcomm_policy_set, (c, NULL), "lcomm_policy_set")                                               \
  X(lcomm_tensor_test, (c, tensor, NULL), "lcomm_tensor_test")                                     \
  X(lcomm_tensors_next, (c, NULL), "lcomm_tensors_next")                                           \
  X(lcomm_tensors_sync, (c, NULL), "lcomm_tensors_sync")                                           \
  X(lcomm_tensors_momentum, (c, NULL), "lcomm_tensors_momentum")                                   \
  X(lcomm_create_part, (c, NULL, NULL, NULL, NULL, &other), "lcomm_create_part")                   \
  X(lcomm_stats_get, (c, NULL), "lcomm_stats_get")                                                 \
  X(lcomm_rack_stats_get, (c, NULL), "lcomm_rack_stats_get")                                       \
  X(lcomm_lateness_get, (c, 0, NULL), "lcomm_lateness_get")                                        \
  X(lcomm_staleness_get, (c, NULL), "lcomm_staleness_get")                                         \
  X(lcomm_behind, (c, NULL), "lcomm_behind")                                                       \
  X(lcomm_plan_print, (c, 4, F, 0, NULL, 9), "lcomm_plan_print")                                   \
  X(lcomm_plan_print, (c, 4, (lcomm_dtype)99, 0, text, sizeof(text)), "lcomm_plan_print")          \
  X(lcomm_call_bytes, (c, LCOMM_CALL_ALLREDUCE, 4, F, S, 0, NULL, &bytes), "lcomm_call_bytes")     \
  X(lcomm_call_bytes, (c, LCOMM_CALL_ALLREDUCE, 4, F, S, 0, &bytes, NULL), "lcomm_call_bytes")     \
  X(lcomm_policy_facts_get, (c, NULL), "lcomm_policy_facts_get")                                   \
  X(lcomm_name_set, (c, NULL), "lcomm_name_set")                                                   \
  X(lcomm_residual_create, (c, 4, S, NULL), "lcomm_residual_create")                               \
  X(lcomm_residual_create_named, (c, NULL, 4, S, &residual), "lcomm_residual_create_named")        \
  X(lcomm_residual_create_named, (c, "r", 4, S, NULL), "lcomm_residual_create_named")              \
  X(lcomm_residual_create_scatter, (c, NULL, NULL, S, &residual), "lcomm_residual_create_scatter")

/* Calls whose only pointer is the communicator, or that have another way to be right. */
#define CALLS_WITHOUT(X)                                                                           \
  X(lcomm_barrier, (c), "barrier")                                                                 \
  X(lcomm_group_begin, (c), "lcomm_group_begin")                                                   \
  X(lcomm_group_end, (c), "lcomm_group_end")                                                       \
  X(lcomm_progress, (c), "lcomm_progress")                                                         \
  X(lcomm_abort, (c, "why"), "lcomm_abort")                                                        \
  X(lcomm_tensors_wait, (c), "lcomm_tensors_wait")                                                 \
  X(lcomm_tensors_discard, (c), "lcomm_tensors_discard")                                           \
  X(lcomm_server_run, (c, NULL, NULL), "lcomm_server_run")                                         \
  X(lcomm_server_end, (c), "lcomm_server_end")                                                     \
  X(lcomm_guard_set, (c, NULL, NULL), "lcomm_guard_set")                                           \
  X(lcomm_stats_reset, (c), "lcomm_stats_reset")                                                   \
  X(lcomm_device_step_by_step, (c), "lcomm_device_step_by_step")

/* Calls with a residual say it in its communicator's sentence, where there is one. */
#define RESIDUALS(X)                                                                               \
  X(lcomm_allreduce_ef, (r, data, received))                                                       \
  X(lcomm_iallreduce_ef, (r, data, received, &request))                                            \
  X(lcomm_allreduce_ef_on_stream, (r, data, received, NULL))                                       \
  X(lcomm_reduce_scatter_ef, (r, data, received))                                                  \
  X(lcomm_ireduce_scatter_ef, (r, data, received, &request))                                       \
  X(lcomm_reduce_scatter_ef_on_stream, (r, data, received, NULL))                                  \
  X(lcomm_reduce_scatter_flush, (r, data, received))                                               \
  X(lcomm_ireduce_scatter_flush, (r, data, received, &request))                                    \
  X(lcomm_reduce_scatter_flush_on_stream, (r, data, received, NULL))                               \
  X(lcomm_allreduce_flush, (r, data, received))                                                    \
  X(lcomm_iallreduce_flush, (r, data, received, &request))                                         \
  X(lcomm_allreduce_flush_on_stream, (r, data, received, NULL))                                    \
  X(lcomm_residual_get, (r, received))                                                             \
  X(lcomm_residual_guard, (r, &figures))                                                           \
  X(lcomm_residual_calls, (r, &calls))                                                             \
  X(lcomm_residual_counts, (r, &calls))                                                            \
  X(lcomm_residual_discard, (r))                                                                   \
  X(lcomm_residual_destroy, (r))

/* Calls with a channel, without the communicator. */
#define CHANNELS(X)                                                                                \
  X(lcomm_channel_send, (h, data))                                                                 \
  X(lcomm_channel_isend, (h, data, &request))                                                      \
  X(lcomm_channel_send_on_stream, (h, data, NULL))                                                 \
  X(lcomm_channel_get, (h, received))                                                              \
  X(lcomm_channel_destroy, (h))

/* Calls with a tensor. */
#define TENSORS(X)                                                                                 \
  X(lcomm_tensor_scale, (c, t, 1, 1))                                                              \
  X(lcomm_tensor_ready, (c, t))                                                                    \
  X(lcomm_tensor_ready_on_stream, (c, t, NULL))                                                    \
  X(lcomm_tensor_residual, (c, t, received))                                                       \
  X(lcomm_tensor_guard, (c, t, &figures))                                                          \
  X(lcomm_tensor_data_set, (c, t, data))                                                           \
  X(lcomm_tensor_codec, (c, t, LCOMM_LINK_NET, (char *)received, 8))                               \
  X(lcomm_tensor_freeze, (c, t))                                                                   \
  X(lcomm_tensor_unfreeze, (c, t))                                                                 \
  X(lcomm_tensor_test, (c, t, &done))                                                              \
  X(lcomm_tensor_wait, (c, t))

/* NULL is an answer's "nothing" here, or is what is asked for; no sentence. */
static const char *const harmless[] = {"lcomm_log_set",
                                       "lcomm_version",
                                       "lcomm_last_error",
                                       "lcomm_destroy",
                                       "lcomm_rank",
                                       "lcomm_is_server",
                                       "lcomm_size",
                                       "lcomm_node",
                                       "lcomm_nodes",
                                       "lcomm_local_rank",
                                       "lcomm_policy_string",
                                       "lcomm_memory_free",
                                       "lcomm_device_use",
                                       "lcomm_device_memory_free",
                                       "lcomm_device_noted",
                                       "lcomm_device_is_loaded",
                                       "lcomm_device_holds",
                                       "lcomm_device_reads_awaited",
                                       "lcomm_device_defer_thread",
                                       "lcomm_device_free_deferred",
                                       "lcomm_link_name",
                                       "lcomm_request_not_finite",
                                       "lcomm_policy_query",
                                       "lcomm_call_name",
                                       "lcomm_setting",
                                       "lcomm_settings_warn_unknown",
                                       "lcomm_dtype_size",
                                       "lcomm_dtype_name",
                                       "lcomm_status_name",
                                       "lcomm_status_string",
                                       "lcomm_tensors_not_finite",
                                       "lcomm_travels_over",
                                       "lcomm_transports",
                                       "lcomm_interfaces",
                                       "lcomm_stats_hide",
                                       "lcomm_is_busy",
                                       "lcomm_retire",
                                       "lcomm_release",
                                       "lcomm_preview_destroy",
                                       "lcomm_preview_name_set",
                                       "lcomm_preview_query",
                                       "lcomm_preview_facts",
                                       "lcomm_preview_policy",
                                       "lcomm_preview_nodes"};

/* Their sentence is the thread's. */
static const char *const outside[] = {"lcomm_create",          "lcomm_create_env",
                                      "lcomm_create_at",       "lcomm_memory_alloc",
                                      "lcomm_device_current",  "lcomm_device_memory_alloc",
                                      "lcomm_device_copy",     "lcomm_device_copy_on_stream",
                                      "lcomm_device_read",     "lcomm_device_finish",
                                      "lcomm_device_captured", "lcomm_preview_create",
                                      "lcomm_preview_bytes"};

static int gather_alone(void *context, const void *send, void *receive, size_t size) {
  (void)context;
  memmove(receive, send, size);
  return 0;
}

static lcomm_comm *make_alone(void) {
  lcomm_bootstrap boot = {.world_size = 1, .allgather = gather_alone};
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.transport = "shm";
  assert_int_equal(lcomm_create(&boot, &config, &comm), LCOMM_OK);
  return comm;
}

static void set_thread_error(void) {
  assert_int_equal(lcomm_memory_alloc(1, NULL), LCOMM_ERR_ARGUMENT);
}

/* On the communicator, or on the thread where there is none. */
static void is_refused(const lcomm_comm *c, const char *function, lcomm_status status,
                       const char *word) {
  const char *sentence = lcomm_last_error(c);
  if (status != LCOMM_ERR_ARGUMENT || !strstr(sentence, word)) {
    fail_msg("%s: %s, '%s'", function, lcomm_status_name(status), sentence);
  }
  if (c && !strstr(lcomm_last_error(NULL), "lcomm_memory_alloc")) {
    fail_msg("%s: the sentence is the thread's: %s", function, lcomm_last_error(NULL));
  }
}

#define IS_REFUSED(function, arguments, word) is_refused(c, #function, function arguments, word);

static void null_is_refused_with_the_communicators_sentence(void **state) {
  (void)state;
  lcomm_comm *c = make_alone();
  assert_int_equal(lcomm_tensor_add(c, "weight", &data[32], 4, F, S, &tensor), LCOMM_OK);
  assert_int_equal(lcomm_residual_create(c, 4, S, &residual), LCOMM_OK);
  set_thread_error();
  CALLS(IS_REFUSED)
  is_refused(c, "lcomm_allreduce_ef", lcomm_allreduce_ef(residual, NULL, received), "all-reduce");
  is_refused(c, "lcomm_residual_get", lcomm_residual_get(residual, NULL), "lcomm_residual_get");
  is_refused(c, "lcomm_residual_guard", lcomm_residual_guard(residual, NULL),
             "lcomm_residual_guard");
  is_refused(c, "lcomm_residual_calls", lcomm_residual_calls(residual, NULL),
             "lcomm_residual_calls");
  is_refused(c, "lcomm_residual_counts", lcomm_residual_counts(residual, NULL),
             "lcomm_residual_counts");
  is_refused(c, "lcomm_residual_counts", lcomm_residual_counts(residual, &calls), "all-reduces");
  assert_int_equal(lcomm_barrier(c), LCOMM_OK);
  assert_int_equal(lcomm_destroy(c), LCOMM_OK);
}

static void no_communicator_is_refused_with_the_threads_sentence(void **state) {
  (void)state;
  lcomm_comm *c = NULL;
  CALLS(IS_REFUSED)
  CALLS_WITHOUT(IS_REFUSED)
  assert_int_equal(lcomm_create(NULL, NULL, &other), LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_create_env(NULL, NULL), LCOMM_ERR_ARGUMENT);
  assert_non_null(strstr(lcomm_last_error(NULL), "lcomm_create_env"));
  assert_int_equal(lcomm_create_at(NULL, NULL, &other), LCOMM_ERR_ARGUMENT);
  assert_non_null(strstr(lcomm_last_error(NULL), "lcomm_create_at"));
  assert_int_equal(lcomm_device_current(NULL), LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_device_memory_alloc(4, NULL), LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_device_copy(NULL, data, 4), LCOMM_ERR_ARGUMENT);
  assert_non_null(strstr(lcomm_last_error(NULL), "lcomm_device_copy"));
  assert_int_equal(lcomm_device_copy_on_stream(NULL, data, 4, NULL), LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_device_read(data, NULL, 4, NULL), LCOMM_ERR_ARGUMENT);
  assert_non_null(strstr(lcomm_last_error(NULL), "lcomm_device_read"));
  assert_int_equal(lcomm_device_finish(NULL, NULL), LCOMM_ERR_ARGUMENT);
  assert_non_null(strstr(lcomm_last_error(NULL), "lcomm_device_finish"));
  assert_int_equal(lcomm_device_captured(NULL, NULL), LCOMM_ERR_ARGUMENT);
}

#define IS_FOREIGN(function, arguments) is_refused(c, #function, function arguments, #function);

static void a_tensor_of_another_communicator_is_refused(void **state) {
  (void)state;
  lcomm_comm *c = make_alone(), *owner = make_alone();
  lcomm_tensor *t = NULL, *here = NULL;
  assert_int_equal(lcomm_tensor_add(owner, "weight", data, 4, F, S, &t), LCOMM_OK);
  assert_int_equal(lcomm_tensor_add(c, "weight", data, 4, F, S, &here), LCOMM_OK);
  set_thread_error();
  TENSORS(IS_FOREIGN)
  assert_non_null(strstr(lcomm_last_error(c), "communicator"));
  assert_int_equal(lcomm_destroy(owner), LCOMM_OK);
  TENSORS(IS_FOREIGN) /* its memory is gone */
  t = (lcomm_tensor *)(void *)&bytes;
  TENSORS(IS_FOREIGN) /* it was never one */
  assert_int_equal(lcomm_tensor_ready(c, here), LCOMM_OK);
  assert_int_equal(lcomm_tensors_wait(c), LCOMM_OK);
  assert_int_equal(lcomm_destroy(c), LCOMM_OK);
}

#define IS_NO_RESIDUAL(function, arguments)                                                        \
  assert_int_equal(function arguments, LCOMM_ERR_ARGUMENT);                                        \
  assert_non_null(strstr(lcomm_last_error(NULL), "residual"));

static void a_residual_that_is_gone_is_refused(void **state) {
  (void)state;
  lcomm_comm *c = make_alone();
  lcomm_residual *r = NULL;
  RESIDUALS(IS_NO_RESIDUAL)
  assert_int_equal(lcomm_residual_create(c, 4, S, &r), LCOMM_OK);
  assert_int_equal(lcomm_residual_destroy(r), LCOMM_OK);
  RESIDUALS(IS_NO_RESIDUAL)
  assert_int_equal(lcomm_residual_create(c, 4, S, &r), LCOMM_OK);
  assert_int_equal(lcomm_destroy(c), LCOMM_OK);
  RESIDUALS(IS_NO_RESIDUAL)
}

#define IS_NO_CHANNEL(function, arguments)                                                         \
  assert_int_equal(function arguments, LCOMM_ERR_ARGUMENT);                                        \
  assert_non_null(strstr(lcomm_last_error(NULL), #function));

static void a_channel_that_is_gone_is_refused(void **state) {
  (void)state;
  lcomm_comm *c = make_alone();
  lcomm_channel *h = NULL;
  CHANNELS(IS_NO_CHANNEL)
  assert_int_equal(lcomm_channel_create(c, 0, 4, &h), LCOMM_OK);
  set_thread_error();
  is_refused(c, "lcomm_channel_send", lcomm_channel_send(h, NULL), "send");
  is_refused(c, "lcomm_channel_get", lcomm_channel_get(h, NULL), "lcomm_channel_get");
  assert_int_equal(lcomm_channel_destroy(h), LCOMM_OK);
  CHANNELS(IS_NO_CHANNEL)
  assert_int_equal(lcomm_channel_create(c, 0, 0, &h), LCOMM_OK);
  assert_int_equal(lcomm_destroy(c), LCOMM_OK);
  CHANNELS(IS_NO_CHANNEL)
}

static void tensors_are_sums_with_a_buffer_of_their_own(void **state) {
  (void)state;
  lcomm_comm *c = make_alone();
  lcomm_tensor *t = NULL;
  assert_int_equal(lcomm_tensor_add(c, "least", data, 4, F, LCOMM_MIN, &t), LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_tensor_add(c, "most", data, 4, F, LCOMM_MAX, &t), LCOMM_ERR_ARGUMENT);
  assert_non_null(strstr(lcomm_last_error(c), "LCOMM_AVG"));
  assert_int_equal(lcomm_tensor_add(c, "one", data + 4, 4, F, S, &t), LCOMM_OK);
  for (int at = 1; at < 8; at++) { /* from one element before it to its last */
    assert_int_equal(lcomm_tensor_add(c, "two", data + at, 4, F, S, &t), LCOMM_ERR_ARGUMENT);
    assert_non_null(strstr(lcomm_last_error(c), "overlaps that of tensor one"));
  }
  assert_int_equal(lcomm_tensor_add(c, "two", data, 4, F, S, &t), LCOMM_OK);
  assert_int_equal(lcomm_tensor_add(c, "three", data + 8, 4, F, S, &t), LCOMM_OK);
  assert_int_equal(lcomm_tensor_add(c, "empty", data + 5, 0, F, S, &t), LCOMM_OK);
  assert_int_equal(lcomm_destroy(c), LCOMM_OK);
}

static lcomm_status create_with_timeout(double timeout_s) {
  lcomm_bootstrap boot = {.world_size = 1, .allgather = gather_alone};
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.timeout_s = timeout_s;
  lcomm_status status = lcomm_create(&boot, &config, &comm);
  lcomm_destroy(comm);
  return status;
}

static void a_timeout_that_is_none_is_refused_with_its_bounds(void **state) {
  (void)state;
  static const double bad[] = {-1, -0.5, (double)NAN, (double)INFINITY, -(double)INFINITY, 1e9};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    assert_int_equal(create_with_timeout(bad[i]), LCOMM_ERR_ARGUMENT);
    assert_non_null(strstr(lcomm_last_error(NULL), "above 0 and below 1e+09 seconds"));
  }
  assert_int_equal(create_with_timeout(0), LCOMM_OK);
  assert_int_equal(create_with_timeout(1e8), LCOMM_OK);
  static const char *const texts[] = {"-1", "0", "nan", "inf", "1e9", "5 s"};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    setenv("LCOMM_TIMEOUT_S", texts[i], 1);
    assert_int_equal(create_with_timeout(0), LCOMM_ERR_ARGUMENT);
    assert_non_null(strstr(lcomm_last_error(NULL), "above 0 and below 1e+09"));
  }
  unsetenv("LCOMM_TIMEOUT_S");
}

/* -------------------------------------------------------- the whole interface */

#define NAME3(function, arguments, word) #function,
#define NAME2(function, arguments) #function,

static bool is_in(const char *const *names, size_t count, const char *name) {
  for (size_t i = 0; i < count; i++) {
    if (strcmp(names[i], name) == 0) {
      return true;
    }
  }
  return false;
}

static bool is_covered(const char *name) {
  static const char *const tried[] = {CALLS(NAME3) CALLS_WITHOUT(NAME3) RESIDUALS(NAME2)
                                          CHANNELS(NAME2) TENSORS(NAME2)};
  return is_in(tried, sizeof(tried) / sizeof(tried[0]), name) ||
         is_in(harmless, sizeof(harmless) / sizeof(harmless[0]), name) ||
         is_in(outside, sizeof(outside) / sizeof(outside[0]), name);
}

/* The names behind LCOMM_API; returns how many there are. */
static int check_header(const char *path) {
  static char bytes_of_it[1 << 17];
  int found = 0;
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  size_t size = fread(bytes_of_it, 1, sizeof(bytes_of_it) - 1, file);
  assert_true(size < sizeof(bytes_of_it) - 1);
  bytes_of_it[size] = '\0';
  fclose(file);
  for (char *at = strstr(bytes_of_it, "\nLCOMM_API "); at; at = strstr(at + 1, "\nLCOMM_API ")) {
    char name[64];
    const char *open = strchr(at, '('), *begin = open;
    while (begin > at && begin[-1] != ' ' && begin[-1] != '*' && begin[-1] != '\n') {
      begin--;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(open - begin), begin);
    if (!is_covered(name)) {
      fail_msg("%s: %s is in none of the tables of this test", path, name);
    }
    found++;
  }
  return found;
}

static void every_public_function_is_in_a_table(void **state) {
  (void)state;
  assert_true(check_header("libcomm/include/libcomm.h") > 12);
  assert_true(check_header("libcomm/include/libcomm_collectives.h") > 25);
  assert_true(check_header("libcomm/include/libcomm_pairs.h") > 13);
  assert_true(check_header("libcomm/include/libcomm_stats.h") > 2);
  assert_true(check_header("libcomm/include/libcomm_tensors.h") > 15);
  assert_true(check_header("libcomm/include/libcomm_interpose.h") > 10);
  assert_true(check_header("libcomm/include/libcomm_residuals.h") > 10);
  assert_true(check_header("libcomm/include/libcomm_servers.h") > 2);
  assert_true(check_header("libcomm/include/libcomm_types.h") > 3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(null_is_refused_with_the_communicators_sentence),
    cmocka_unit_test(no_communicator_is_refused_with_the_threads_sentence),
    cmocka_unit_test(a_tensor_of_another_communicator_is_refused),
    cmocka_unit_test(a_residual_that_is_gone_is_refused),
    cmocka_unit_test(a_channel_that_is_gone_is_refused),
    cmocka_unit_test(tensors_are_sums_with_a_buffer_of_their_own),
    cmocka_unit_test(a_timeout_that_is_none_is_refused_with_its_bounds),
    cmocka_unit_test(every_public_function_is_in_a_table),
};
RUN_TESTS(tests)
