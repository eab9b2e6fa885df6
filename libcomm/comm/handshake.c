/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The handshake of this rank: its configuration and its environment. */

#include "libcomm/comm/handshake.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/wire.h"
#include "libcomm/base/clock.h"
#include "libcomm/base/env.h"
#include "libcomm/base/log.h"
#include "libcomm/base/settings.h"
#include "libcomm/comm/create.h"
#include "libcomm/engine/device_turn.h"
#include "libcomm/observe/capture.h"
#include "libcomm/plan/number.h"
#include "libcomm/topo/topo_file.h"

static const double TIMEOUT_STANDARD_S = 300;

/* What timeout_s and LCOMM_TIMEOUT_S may be: above 0 and below this. */
static const double TIMEOUT_BOUND_S = 1e9;

static lcomm_status parse_positive(const char *text, double *value) {
  char *end = NULL;
  *value = strtod(text, &end);
  return end != text && *end == '\0' && *value > 0 && *value < TIMEOUT_BOUND_S ? LCOMM_OK
                                                                               : LCOMM_ERR_ARGUMENT;
}

static lcomm_status find_timeout(const lcomm_config *config, double *timeout_s, lcomm_why *why) {
  const char *text = lcomm_env_get(LCOMM_ENV_TIMEOUT_S);
  double given_s = config->timeout_s;
  bool given = given_s < 0 || given_s > 0 || isnan(given_s); /* 0: the environment says */
  *timeout_s = given ? given_s : TIMEOUT_STANDARD_S;
  if (given && !(given_s > 0 && given_s < TIMEOUT_BOUND_S)) {
    return lcomm_why_set(
        why, LCOMM_ERR_ARGUMENT,
        "timeout_s of the configuration is %g; it must be above 0 and below %g seconds, or 0 "
        "for that of LCOMM_TIMEOUT_S",
        given_s, TIMEOUT_BOUND_S);
  }
  if (given || !text || parse_positive(text, timeout_s) == LCOMM_OK) {
    return LCOMM_OK;
  }
  return lcomm_why_set(
      why, LCOMM_ERR_ARGUMENT,
      "LCOMM_TIMEOUT_S=%.40s is not a number of seconds above 0 and below %g; for example 300",
      text, TIMEOUT_BOUND_S);
}

static lcomm_status find_nodes(const lcomm_config *config, int32_t *nodes, lcomm_why *why) {
  const char *text = lcomm_env_get(LCOMM_ENV_NODES);
  double value = 0;
  *nodes = config->nodes;
  if (config->nodes != 0 || !text) {
    return LCOMM_OK;
  }
  if (parse_positive(text, &value) == LCOMM_OK && value == (double)(int32_t)value) {
    *nodes = (int32_t)value;
    return LCOMM_OK;
  }
  return lcomm_why_set(
      why, LCOMM_ERR_ARGUMENT,
      "LCOMM_NODES=%.40s is not a number of nodes from 1 up; leave it unset to use the real "
      "hosts",
      text);
}

static lcomm_status find_kernels(lcomm_comm *comm, lcomm_why *why) {
  const char *name = lcomm_env_get(LCOMM_ENV_ISA), *reason = "";
  comm->kernels = name ? lcomm_kernels_by_name(name, &reason) : lcomm_kernels_best();
  if (comm->kernels) {
    return LCOMM_OK;
  }
  return lcomm_why_set(
      why, LCOMM_ERR_UNSUPPORTED,
      "LCOMM_ISA=%.40s cannot be used: %s; use scalar, avx2 or avx512, or leave it unset for "
      "the fastest",
      name, reason);
}

static lcomm_status find_transport(const lcomm_config *config, lcomm_handshake *mine,
                                   lcomm_why *why) {
  const char *names = config->transport ? config->transport : lcomm_env_get(LCOMM_ENV_TRANSPORT);
  lcomm_why wrong;
  names = names ? names : "auto";
  if (strlen(names) < sizeof(mine->transport) && lcomm_links_parse(names, &wrong) == LCOMM_OK) {
    snprintf(mine->transport, sizeof(mine->transport), "%s", names);
    return LCOMM_OK;
  }
  return lcomm_why_set(
      why, LCOMM_ERR_ARGUMENT, "the transports '%.80s' (LCOMM_TRANSPORT): %s", names,
      strlen(names) < sizeof(mine->transport) ? wrong.text : "the list is too long");
}

static lcomm_status find_progress(const lcomm_config *config, lcomm_handshake *mine,
                                  lcomm_why *why) {
  static const char *const names[] = {[LCOMM_PROGRESS_CALLS] = "calls",
                                      [LCOMM_PROGRESS_THREAD] = "thread",
                                      [LCOMM_PROGRESS_AUTO] = "auto"};
  const char *text = lcomm_env_get(LCOMM_ENV_PROGRESS);
  mine->progress = (int32_t)config->progress;
  if (config->progress < LCOMM_PROGRESS_DEFAULT || config->progress > LCOMM_PROGRESS_AUTO) {
    return lcomm_why_set(why, LCOMM_ERR_ARGUMENT, "%d is no progress mode", (int)config->progress);
  }
  if (config->progress != LCOMM_PROGRESS_DEFAULT) {
    return LCOMM_OK;
  }
  mine->progress = text ? 0 : LCOMM_PROGRESS_AUTO;
  for (int i = LCOMM_PROGRESS_CALLS; text && i <= LCOMM_PROGRESS_AUTO; i++) {
    mine->progress = strcmp(text, names[i]) == 0 ? i : mine->progress;
  }
  if (mine->progress > 0) {
    return LCOMM_OK;
  }
  return lcomm_why_set(why, LCOMM_ERR_ARGUMENT,
                       "LCOMM_PROGRESS=%.40s is none of auto, calls and thread", text);
}

static lcomm_status check_elastic(lcomm_why *why) {
  const char *text = lcomm_env_get(LCOMM_ENV_ELASTIC);
  if (!text || strcmp(text, "on") == 0 || strcmp(text, "off") == 0) {
    return LCOMM_OK;
  }
  return lcomm_why_set(why, LCOMM_ERR_ARGUMENT, "LCOMM_ELASTIC=%.40s is neither on nor off", text);
}

static lcomm_status find_run_cache(lcomm_handshake *mine, lcomm_why *why) {
  const char *text = lcomm_env_get(LCOMM_ENV_RUN_CACHE);
  bool overflow = false;
  mine->run_cache_bytes = LCOMM_RUN_CACHE_STANDARD;
  if (!text) {
    return LCOMM_OK;
  }
  size_t used = lcomm_read_size(text, strlen(text), &mine->run_cache_bytes, &overflow);
  if (used > 0 && text[used] == '\0' && !overflow) {
    return LCOMM_OK;
  }
  return lcomm_why_set(
      why, LCOMM_ERR_ARGUMENT,
      "LCOMM_RUN_CACHE=%.40s is not a number of bytes; K, M and G are powers of 1024, for "
      "example 256M",
      text);
}

static lcomm_status read_topology(lcomm_topo *topo, lcomm_handshake *mine, lcomm_why *why) {
  lcomm_why error;
  const char *path = lcomm_env_get(LCOMM_ENV_TOPO_FILE);
  if (!path) {
    return LCOMM_OK;
  }
  lcomm_status status = lcomm_topo_file_load(path, topo, &error);
  snprintf(mine->topo_file, sizeof(mine->topo_file), "%s", path);
  mine->topo_hash = lcomm_topo_hash(topo);
  if (status == LCOMM_OK) {
    return LCOMM_OK;
  }
  return lcomm_why_set(
      why, status,
      "LCOMM_TOPO_FILE=%.95s: %.300s; `libcomm-info --measure` under mpirun writes such a file",
      path, error.text);
}

/* The number of a communicator: of the process and the time it was made. */
static uint64_t draw_number(const lcomm_handshake *mine) {
  uint64_t now_ns = (uint64_t)(lcomm_clock_s() * 1e9);
  return mine->identity.host_hash ^ mine->identity.pid << 40 ^ now_ns;
}

/* Everything that can go wrong, in the order in which people look for it. */
static lcomm_status read_settings(lcomm_comm *comm, const lcomm_config *config,
                                  lcomm_summary_mode *summary, lcomm_handshake *mine,
                                  lcomm_why *why) {
  const char *policy = config->policy ? config->policy : lcomm_env_get(LCOMM_ENV_POLICY);
  LCOMM_TRY(lcomm_log_begin(comm->rank, mine->identity.host, why));
  if (comm->rank == 0) {
    lcomm_settings_warn_unknown();
  }
  LCOMM_TRY(lcomm_settings_check(why));
  LCOMM_TRY(lcomm_policy_parse(policy, &comm->settings.policy, why));
  comm->settings.policy.undo |= comm->bootstrap.elastic; /* a step may be broken off */
  lcomm_policy_format(&comm->settings.policy, mine->policy);
  LCOMM_TRY(find_timeout(config, &comm->settings.timeout_s, why));
  LCOMM_TRY(find_nodes(config, &mine->nodes, why));
  LCOMM_TRY(lcomm_identity_rack(&mine->identity, why));
  LCOMM_TRY(find_kernels(comm, why));
  LCOMM_TRY(find_transport(config, mine, why));
  LCOMM_TRY(find_progress(config, mine, why));
  LCOMM_TRY(find_run_cache(mine, why));
  LCOMM_TRY(check_elastic(why));
  memcpy(comm->settings.transport, mine->transport, sizeof(comm->settings.transport));
  comm->settings.poses = mine->nodes != 0;
  comm->settings.progress = (lcomm_progress_mode)mine->progress;
  return lcomm_summary_parse(lcomm_env_get(LCOMM_ENV_STATS), summary, why);
}

/* A run goes on without a trace. */
static lcomm_status open_files(lcomm_comm *comm, lcomm_handshake *mine, lcomm_why *why) {
  lcomm_trace_steps steps;
  why->text[0] = '\0'; /* nothing so far */
  LCOMM_TRY(lcomm_trace_steps_parse(lcomm_env_get(LCOMM_ENV_TRACE_STEPS), &steps, why));
  LCOMM_TRY(lcomm_capture_create(&comm->observers.capture, why));
  lcomm_status status =
      lcomm_trace_create(comm->rank, comm->size, mine->identity.host, &comm->observers.trace, why);
  mine->traced = comm->observers.trace != NULL;
  return status == LCOMM_ERR_MEMORY ? status : LCOMM_OK;
}

static lcomm_status prepare(lcomm_comm *comm, const lcomm_config *given,
                            lcomm_summary_mode *summary, lcomm_topo *topo_file,
                            lcomm_handshake *mine, lcomm_why *why) {
  lcomm_config config = lcomm_config_take(given);
  if (config.struct_size == 0) {
    return lcomm_why_set(why, LCOMM_ERR_ARGUMENT,
                         "the configuration was not begun with LCOMM_CONFIG_INIT");
  }
  LCOMM_TRY(read_settings(comm, &config, summary, mine, why));
  LCOMM_TRY(read_topology(topo_file, mine, why));
  return open_files(comm, mine, why);
}

static void ask_device(const lcomm_comm *comm, lcomm_identity *identity) {
  lcomm_comm *inside = comm->bootstrap.inside;
  unsigned depth = inside ? lcomm_turn_give(inside) : 0;
  lcomm_identity_device(identity);
  if (inside) {
    lcomm_turn_take(inside, depth);
  }
}

void lcomm_handshake_prepare(lcomm_comm *comm, const lcomm_config *given,
                             lcomm_summary_mode *summary, lcomm_topo *topo_file,
                             lcomm_handshake *mine) {
  lcomm_why why = {.text = ""};
  memcpy(mine->magic, "libcomm", 8);
  mine->version = lcomm_version();
  mine->wire_version = LCOMM_WIRE_VERSION;
  mine->mpi = comm->bootstrap.mpi != NULL;
  mine->elastic = comm->bootstrap.elastic;
  mine->world = comm->bootstrap.world;
  lcomm_identity_self(&mine->identity);
  ask_device(comm, &mine->identity);
  lcomm_processors_self(mine->identity.host_hash, &mine->processors);
  lcomm_links_introduce(&mine->introduction);
  mine->number = draw_number(mine);
  mine->status = (int32_t)prepare(comm, given, summary, topo_file, mine, &why);
  snprintf(mine->error, sizeof(mine->error), "%s", why.text);
}
