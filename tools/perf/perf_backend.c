/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm_interpose.h"

/* The codec that a word such as net= of a policy names; "" if there is none. */
static const char *codec_of(const char *policy, const char *key) {
  size_t length = strlen(key);
  for (const char *at = policy; (at = strstr(at, key)) != NULL; at += length) {
    if (at == policy || at[-1] == ' ') {
      return at + length;
    }
  }
  return "";
}

/* A lossless stage keeps every bit. */
static int is_none(const char *codec) {
  size_t length = strcspn(codec, " +");
  return length == 0 || (length == 4 && strncmp(codec, "none", 4) == 0);
}

/* int4, int2 and sign have it unless told otherwise, the others when told. */
static int has_feedback(const char *codec) {
  size_t length = strcspn(codec, " ");
  const char *end = codec + length;
  int is_standard = strstr(codec, "int4") == codec || strstr(codec, "int2") == codec ||
                    strstr(codec, "sign") == codec;
  const char *word = strstr(codec, is_standard ? "-ef" : "+ef");
  int is_said = word != NULL && word < end;
  return is_said != is_standard;
}

/* net=auto chooses such a codec where the data has an identity. */
static int may_choose_feedback(const char *codec) {
  static const char *const words[] = {"auto:int4", "auto:int2", "auto:sign", "auto:lowrank",
                                      "auto:topk"};
  size_t length = strcspn(codec, " ");
  int is_one = 0;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    is_one |= length == strlen(words[i]) && strncmp(codec, words[i], length) == 0;
  }
  return is_one;
}

int lcomm_perf_policy_has_feedback(const char *policy) {
  const char *net = codec_of(policy, "net=");
  return has_feedback(net) || may_choose_feedback(net);
}

int lcomm_perf_policy_is_exact(const char *policy, int is_plain) {
  const char *net = codec_of(policy, "net=");
  return is_none(codec_of(policy, "node=")) && (is_none(net) || (is_plain && has_feedback(net)));
}

/* Codecs act on sums of real numbers of up to 32 bits. */
static int can_be_lossy(const lcomm_perf_call *call) {
  int is_sum = call->op == LCOMM_SUM || call->op == LCOMM_AVG;
  int is_coded =
      call->dtype == LCOMM_FLOAT32 || call->dtype == LCOMM_FLOAT16 || call->dtype == LCOMM_BFLOAT16;
  return call->collective->reduces && is_sum && is_coded;
}

static lcomm_status failed(const lcomm_perf_backend *backend, const char *what, lcomm_status status,
                           char *error, size_t error_size) {
  const char *text = lcomm_last_error(backend->comm);
  snprintf(error, error_size, "%s under policy '%s' failed: %s", what, backend->label,
           text[0] != '\0' ? text : lcomm_status_string(status));
  return status;
}

static lcomm_status add_tensors(lcomm_perf_backend *backend, const lcomm_perf_call *call,
                                char *buffer, int count, char *error, size_t error_size) {
  size_t element = lcomm_dtype_size(call->dtype);
  uint64_t tensors = (uint64_t)count < call->count ? (uint64_t)count : call->count;
  backend->tensors = calloc(tensors, sizeof *backend->tensors);
  if (!backend->tensors) {
    return failed(backend, "making room for tensors", LCOMM_ERR_MEMORY, error, error_size);
  }
  for (uint64_t i = 0; i < tensors; i++) {
    char name[32];
    uint64_t first =
        call->count / tensors * i + (i < call->count % tensors ? i : call->count % tensors);
    uint64_t length = call->count / tensors + (i < call->count % tensors);
    snprintf(name, sizeof name, "gradient.%llu", (unsigned long long)i);
    lcomm_status status = lcomm_tensor_add(backend->comm, name, buffer + first * element, length,
                                           call->dtype, call->op, &backend->tensors[i]);
    if (status != LCOMM_OK) {
      return failed(backend, "lcomm_tensor_add", status, error, error_size);
    }
    backend->tensor_count++;
  }
  return LCOMM_OK;
}

lcomm_config lcomm_perf_config(const lcomm_perf_options *options, const char *policy) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = policy;
  config.transport = options->transport;
  config.progress = options->progress;
  return config;
}

lcomm_status lcomm_perf_backend_make(lcomm_perf_backend *backend, const lcomm_perf_world *world,
                                     const lcomm_perf_options *options, const char *policy,
                                     const lcomm_perf_call *call, lcomm_perf_place place,
                                     char *error, size_t error_size) {
  lcomm_config config = lcomm_perf_config(options, policy);
  *backend = (lcomm_perf_backend){.label = policy[0] != '\0' ? policy : "exact"};
  lcomm_status status = lcomm_perf_world_comm(world, &config, &backend->comm);
  if (status != LCOMM_OK) {
    backend->comm = NULL;
    snprintf(error, error_size, "%s", lcomm_perf_world_comm_error(world));
    return status;
  }
  const char *canonical = lcomm_policy_string(backend->comm);
  int feeds_back = lcomm_perf_policy_has_feedback(canonical) && can_be_lossy(call) &&
                   call->collective->kind == LCOMM_PERF_ALLREDUCE && call->in_place;
  int is_plain = !options->tensors && !feeds_back;
  backend->is_exact = !can_be_lossy(call) || lcomm_perf_policy_is_exact(canonical, is_plain);
  return is_plain
             ? LCOMM_OK
             : add_tensors(backend, call, place.receive, options->tensor_count, error, error_size);
}

/* Measured through MPI, MPI itself has only one name left. */
lcomm_perf_backend lcomm_perf_backend_against(const lcomm_perf_options *options,
                                              const lcomm_perf_call *call) {
  const lcomm_perf_collective *collective = call->collective;
  return (lcomm_perf_backend){.label = options->through_mpi ? collective->pmpi_name
                                                            : collective->mpi_name,
                              .mpi = options->through_mpi ? LCOMM_PERF_PMPI : LCOMM_PERF_MPI,
                              .is_baseline = 1,
                              .is_exact = 1};
}

lcomm_perf_backend lcomm_perf_backend_through(const lcomm_perf_call *call) {
  const char *policy = lcomm_setting("LCOMM_POLICY");
  return (lcomm_perf_backend){.label = call->collective->mpi_name,
                              .mpi = LCOMM_PERF_MPI,
                              .is_exact = !policy || !can_be_lossy(call) ||
                                          lcomm_perf_policy_is_exact(policy, 0)};
}

void lcomm_perf_backend_destroy(lcomm_perf_backend *backend) {
  (void)lcomm_destroy(backend->comm); /* what failed was reported already */
  backend->comm = NULL;
  free(backend->tensors);
  backend->tensors = NULL;
}

static lcomm_status run_plain(lcomm_comm *comm, const lcomm_perf_call *call,
                              lcomm_perf_place place) {
  switch (call->collective->kind) {
  case LCOMM_PERF_ALLREDUCE:
    return lcomm_allreduce(comm, place.send, place.receive, call->count, call->dtype, call->op);
  case LCOMM_PERF_REDUCE_SCATTER:
    return lcomm_reduce_scatter(comm, place.send, place.receive, call->count, call->dtype,
                                call->op);
  case LCOMM_PERF_ALLGATHER:
    return lcomm_allgather(comm, place.send, place.receive, call->count, call->dtype);
  case LCOMM_PERF_BROADCAST:
    return lcomm_broadcast(comm, place.receive, call->count, call->dtype, call->root);
  default:
    return lcomm_alltoall(comm, place.send, place.receive, call->count, call->dtype);
  }
}

lcomm_status lcomm_perf_backend_run(lcomm_perf_backend *backend, const lcomm_perf_call *call,
                                    lcomm_perf_place place) {
  if (!backend->comm) {
    lcomm_perf_mpi_call(backend->mpi, call, place, LCOMM_PERF_MPI_PART);
    return LCOMM_OK;
  }
  if (!backend->tensors) {
    return run_plain(backend->comm, call, place);
  }
  lcomm_status status = lcomm_perf_backend_ready(backend, 1.0);
  return status == LCOMM_OK ? lcomm_perf_backend_finish(backend) : status;
}

static lcomm_status start_plain(lcomm_comm *comm, const lcomm_perf_call *call,
                                lcomm_perf_place place, lcomm_request *request) {
  switch (call->collective->kind) {
  case LCOMM_PERF_ALLREDUCE:
    return lcomm_iallreduce(comm, place.send, place.receive, call->count, call->dtype, call->op,
                            request);
  case LCOMM_PERF_REDUCE_SCATTER:
    return lcomm_ireduce_scatter(comm, place.send, place.receive, call->count, call->dtype,
                                 call->op, request);
  case LCOMM_PERF_ALLGATHER:
    return lcomm_iallgather(comm, place.send, place.receive, call->count, call->dtype, request);
  case LCOMM_PERF_BROADCAST:
    return lcomm_ibroadcast(comm, place.receive, call->count, call->dtype, call->root, request);
  default:
    return lcomm_ialltoall(comm, place.send, place.receive, call->count, call->dtype, request);
  }
}

lcomm_status lcomm_perf_backend_start(lcomm_perf_backend *backend, const lcomm_perf_call *call,
                                      lcomm_perf_place place) {
  if (backend->tensors) {
    return lcomm_perf_backend_ready(backend, 0.0);
  }
  return start_plain(backend->comm, call, place, &backend->request);
}

/* The first tensor is due at the beginning: what came before it is not part of
 * the computation. */
lcomm_status lcomm_perf_backend_ready(lcomm_perf_backend *backend, double share) {
  for (; backend->ready_count < backend->tensor_count; backend->ready_count++) {
    if (backend->ready_count > share * backend->tensor_count) {
      return LCOMM_OK;
    }
    lcomm_status status = lcomm_tensor_ready(backend->comm, backend->tensors[backend->ready_count]);
    if (status != LCOMM_OK) {
      return status;
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_perf_backend_finish(lcomm_perf_backend *backend) {
  if (!backend->tensors) {
    return lcomm_wait(backend->comm, &backend->request);
  }
  lcomm_status status = lcomm_perf_backend_ready(backend, 1.0);
  backend->ready_count = 0;
  return status == LCOMM_OK ? lcomm_tensors_wait(backend->comm) : status;
}

const void *lcomm_perf_backend_result(const lcomm_perf_backend *backend,
                                      const lcomm_perf_call *call, lcomm_perf_place place) {
  return backend->comm ? place.receive : lcomm_perf_mpi_result(call, place, LCOMM_PERF_MPI_PART);
}
