/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How a communicator is made. Every rank says what it is and what it was
 * told; all ranks look at all answers and come to the same verdict, so either
 * all succeed or all return the same error.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/wire.h"
#include "libcomm/base/env.h"
#include "libcomm/capture.h"

static const double TIMEOUT_STANDARD_S = 300;

/* What a rank tells the others. Fixed size, no pointers. */
typedef struct hello {
  char magic[8];
  int32_t version, wire_version;
  int32_t status; /* of the rank's own preparation */
  int32_t nodes;
  char error[LCOMM_POLICY_ERROR_MAX];
  char policy[LCOMM_POLICY_MAX];
  lcomm_identity identity;
} hello;

/* ------------------------------------------------------- my own business */

static lcomm_status parse_positive(const char *text, double *value) {
  char *end = NULL;
  *value = strtod(text, &end);
  return end != text && *end == '\0' && *value > 0 && *value < 1e9 ? LCOMM_OK : LCOMM_ERR_ARGUMENT;
}

static lcomm_status find_timeout(const lcomm_config *config, double *timeout_s, char *error) {
  const char *text = lcomm_env_get(LCOMM_ENV_TIMEOUT_S);
  *timeout_s = config->timeout_s > 0 ? config->timeout_s : TIMEOUT_STANDARD_S;
  if (config->timeout_s > 0 || !text || parse_positive(text, timeout_s) == LCOMM_OK) {
    return LCOMM_OK;
  }
  snprintf(error, LCOMM_POLICY_ERROR_MAX,
           "LCOMM_TIMEOUT_S=%.40s is not a number of seconds above 0; for example 300", text);
  return LCOMM_ERR_ARGUMENT;
}

static lcomm_status find_nodes(const lcomm_config *config, int32_t *nodes, char *error) {
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
  snprintf(error, LCOMM_POLICY_ERROR_MAX,
           "LCOMM_NODES=%.40s is not a number of nodes from 1 up; leave it unset to use the real "
           "hosts",
           text);
  return LCOMM_ERR_ARGUMENT;
}

static lcomm_status find_kernels(lcomm_comm *comm, char *error) {
  const char *name = lcomm_env_get(LCOMM_ENV_ISA), *why = "";
  comm->kernels = name ? lcomm_kernels_by_name(name, &why) : lcomm_kernels_best();
  if (comm->kernels) {
    return LCOMM_OK;
  }
  snprintf(error, LCOMM_POLICY_ERROR_MAX,
           "LCOMM_ISA=%.40s cannot be used: %s; use scalar, avx2 or avx512, or leave it unset for "
           "the fastest",
           name, why);
  return LCOMM_ERR_UNSUPPORTED;
}

static lcomm_config take_config(const lcomm_config *config) {
  lcomm_config taken = LCOMM_CONFIG_INIT;
  if (config && config->struct_size > 0 && config->struct_size <= sizeof(taken)) {
    memcpy(&taken, config, config->struct_size);
  }
  return taken;
}

/* Fill in the hello; what goes wrong is said in it, not returned. */
static void prepare(lcomm_comm *comm, const lcomm_config *given, hello *mine) {
  lcomm_config config = take_config(given);
  const char *policy = config.policy ? config.policy : lcomm_env_get(LCOMM_ENV_POLICY);
  memset(mine, 0, sizeof(*mine));
  memcpy(mine->magic, "libcomm", 8);
  mine->version = lcomm_version();
  mine->wire_version = LCOMM_WIRE_VERSION;
  lcomm_identity_self(&mine->identity);
  lcomm_status status = LCOMM_OK;
  if (given && (given->struct_size == 0 || given->struct_size > sizeof(config))) {
    status = LCOMM_ERR_ARGUMENT;
    snprintf(mine->error, sizeof(mine->error),
             "the configuration was not begun with LCOMM_CONFIG_INIT");
  }
  if (status == LCOMM_OK) {
    status = lcomm_policy_parse(policy, &comm->policy, mine->error);
  }
  if (status == LCOMM_OK) {
    lcomm_policy_format(&comm->policy, mine->policy);
    status = find_timeout(&config, &comm->timeout_s, mine->error);
  }
  if (status == LCOMM_OK) {
    status = find_nodes(&config, &mine->nodes, mine->error);
  }
  if (status == LCOMM_OK) {
    status = find_kernels(comm, mine->error);
  }
  if (status == LCOMM_OK) {
    status = lcomm_capture_create(&comm->capture, mine->error);
  }
  mine->status = (int32_t)status;
}

/* --------------------------------------------------- judging all answers */

static lcomm_status complain(int rank, const lcomm_identity *identity, lcomm_status status,
                             const char *sentence) {
  return lcomm_error_thread(status, "rank %d (host %.63s): %s", rank, identity->host, sentence);
}

/* A rank that could not prepare itself stops all; the lowest one is named. */
static lcomm_status judge_preparations(const hello *all, int size, int rank) {
  char sentence[LCOMM_POLICY_ERROR_MAX + 160];
  for (int i = 0; i < size; i++) {
    if (memcmp(all[i].magic, "libcomm", 8) != 0) {
      snprintf(sentence, sizeof(sentence), "rank %d does not speak libcomm's handshake", i);
      return complain(rank, &all[rank].identity, LCOMM_ERR_MISMATCH, sentence);
    }
  }
  for (int i = 0; i < size; i++) {
    if (all[i].status == LCOMM_OK) {
      continue;
    }
    snprintf(sentence, sizeof(sentence), "%.*s", (int)sizeof(all[i].error) - 1, all[i].error);
    if (i != rank) {
      snprintf(sentence, sizeof(sentence), "rank %d (host %.63s) reports: %.*s", i,
               all[i].identity.host, (int)sizeof(all[i].error) - 1, all[i].error);
    }
    return complain(rank, &all[rank].identity, (lcomm_status)all[i].status, sentence);
  }
  return LCOMM_OK;
}

/* The first rank that differs from rank 0 is named, with both values. */
static lcomm_status judge_equality(const hello *all, int size, int rank) {
  char sentence[2 * LCOMM_POLICY_MAX + 160];
  for (int i = 1; i < size; i++) {
    if (all[i].version != all[0].version || all[i].wire_version != all[0].wire_version) {
      snprintf(sentence, sizeof(sentence),
               "rank 0 runs libcomm %d (wire %d), rank %d runs %d (wire %d); install the same "
               "libcomm on all hosts",
               all[0].version, all[0].wire_version, i, all[i].version, all[i].wire_version);
      return complain(rank, &all[rank].identity, LCOMM_ERR_MISMATCH, sentence);
    }
    if (memcmp(all[i].policy, all[0].policy, sizeof(all[0].policy)) != 0) {
      snprintf(sentence, sizeof(sentence),
               "the policy of rank 0 is \"%.300s\", that of rank %d is \"%.300s\"; give all ranks "
               "the same policy",
               all[0].policy, i, all[i].policy);
      return complain(rank, &all[rank].identity, LCOMM_ERR_MISMATCH, sentence);
    }
    if (all[i].nodes != all[0].nodes) {
      snprintf(sentence, sizeof(sentence),
               "rank 0 poses as %d nodes, rank %d as %d; give all ranks the same LCOMM_NODES",
               all[0].nodes, i, all[i].nodes);
      return complain(rank, &all[rank].identity, LCOMM_ERR_MISMATCH, sentence);
    }
  }
  return LCOMM_OK;
}

static lcomm_status make_topology(lcomm_comm *comm, const hello *all) {
  char error[LCOMM_TOPO_ERROR_MAX] = "out of memory";
  lcomm_identity *identities = calloc((size_t)comm->size, sizeof(*identities));
  if (!identities) {
    return complain(comm->rank, &all[comm->rank].identity, LCOMM_ERR_MEMORY, error);
  }
  for (int i = 0; i < comm->size; i++) {
    identities[i] = all[i].identity;
  }
  lcomm_status status = lcomm_topo_create(identities, comm->size, all[0].nodes, &comm->topo, error);
  free(identities);
  return status == LCOMM_OK ? LCOMM_OK
                            : complain(comm->rank, &all[comm->rank].identity, status, error);
}

/* ---------------------------------------------------------------- making */

static lcomm_status gather(const lcomm_boot *boot, const void *send, void *receive, size_t size) {
  if (boot->allgather(boot->context, send, receive, size) == 0) {
    return LCOMM_OK;
  }
  return lcomm_error_thread(LCOMM_ERR_TRANSPORT,
                            "rank %d: the bootstrap could not exchange %zu bytes with the others",
                            boot->rank, size);
}

static lcomm_status shake_hands(lcomm_comm *comm, const lcomm_boot *boot,
                                const lcomm_config *config) {
  hello *all = calloc((size_t)comm->size + 1, sizeof(*all));
  if (!all) {
    return lcomm_error_thread(LCOMM_ERR_MEMORY, "rank %d: out of memory", boot->rank);
  }
  hello *mine = &all[comm->size];
  prepare(comm, config, mine);
  lcomm_status status = gather(boot, mine, all, sizeof(*mine));
  status = status == LCOMM_OK ? judge_preparations(all, comm->size, comm->rank) : status;
  status = status == LCOMM_OK ? judge_equality(all, comm->size, comm->rank) : status;
  status = status == LCOMM_OK ? make_topology(comm, all) : status;
  if (status == LCOMM_OK) {
    memcpy(comm->policy_text, mine->policy, sizeof(comm->policy_text));
  }
  free(all);
  return status;
}

/* Open the transport everywhere or nowhere. */
static lcomm_status open_transport(lcomm_comm *comm, const lcomm_boot *boot,
                                   lcomm_transport_opener open, void *context) {
  const char *why = "unknown reason";
  int32_t mine = (int32_t)open(context, &comm->transport, &why);
  int32_t *all = calloc((size_t)comm->size, sizeof(*all));
  lcomm_status status = all ? gather(boot, &mine, all, sizeof(mine)) : LCOMM_ERR_MEMORY;
  for (int i = 0; status == LCOMM_OK && i < comm->size; i++) {
    if (all[i] != LCOMM_OK) {
      status = lcomm_error_thread((lcomm_status)all[i],
                                  "rank %d (host %s): no transport on rank %d (host %s)%s%s",
                                  comm->rank, comm->topo.host[comm->rank], i, comm->topo.host[i],
                                  i == comm->rank ? ": " : "", i == comm->rank ? why : "");
    }
  }
  free(all);
  if (status != LCOMM_OK && mine == LCOMM_OK) {
    comm->transport->table->close(comm->transport, false);
  }
  return status;
}

static lcomm_status check_boot(const lcomm_boot *boot, lcomm_comm *const *comm) {
  if (!boot || !comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_create: a pointer is NULL");
  }
  if (boot->world_size < 1 || boot->rank < 0 || boot->rank >= boot->world_size ||
      !boot->allgather) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT,
                              "lcomm_create: rank %d of %d ranks is no place, or there is no "
                              "allgather function",
                              boot->rank, boot->world_size);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_comm_create(const lcomm_boot *boot, const lcomm_config *config,
                               lcomm_transport_opener open, void *context, lcomm_comm **comm) {
  lcomm_status status = check_boot(boot, comm);
  if (status != LCOMM_OK) {
    return status;
  }
  lcomm_comm *made = calloc(1, sizeof(*made));
  if (!made) {
    return lcomm_error_thread(LCOMM_ERR_MEMORY, "rank %d: out of memory", boot->rank);
  }
  made->rank = boot->rank;
  made->size = boot->world_size;
  pthread_mutex_init(&made->lock, NULL);
  status = shake_hands(made, boot, config);
  if (status == LCOMM_OK) {
    status = open_transport(made, boot, open, context);
  }
  if (status != LCOMM_OK) {
    lcomm_capture_free(made->capture);
    lcomm_topo_free(&made->topo);
    pthread_mutex_destroy(&made->lock);
    free(made);
    return status;
  }
  *comm = made;
  return LCOMM_OK;
}
