/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/contender.h"

#include <stdio.h>
#include <string.h>

#include "libcomm_mpi.h"

/* Does a canonical policy compress anything? Its words net= and node= say so. */
static int is_exact(const char *policy) {
  static const char *const keys[] = {"net=", "node="};
  for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
    size_t length = strlen(keys[k]);
    for (const char *at = policy; (at = strstr(at, keys[k])) != NULL; at += length) {
      int is_word = at == policy || at[-1] == ' ';
      const char *codec = at + length;
      if (is_word && strcspn(codec, " ") > 0 &&
          !(strncmp(codec, "none", 4) == 0 && strcspn(codec, " ") == 4)) {
        return 0;
      }
    }
  }
  return 1;
}

static int failed(const perf_contender *contender, const char *what, lcomm_status status,
                  char *error, size_t error_size) {
  const char *text = lcomm_last_error(contender->comm);
  snprintf(error, error_size, "%s under policy '%s' failed: %s", what, contender->label,
           text[0] != '\0' ? text : lcomm_status_string(status));
  return 0;
}

int perf_contender_policy(perf_contender *contender, const char *policy,
                          const perf_options *options, void *buffer, uint64_t count, char *error,
                          size_t error_size) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = policy;
  *contender = (perf_contender){policy[0] != '\0' ? policy : "exact", NULL, NULL, 0};
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, &config, &contender->comm);
  if (status != LCOMM_OK) {
    return failed(contender, "lcomm_create_mpi", status, error, error_size);
  }
  contender->is_exact = is_exact(lcomm_policy_string(contender->comm));
  if (!options->tensors && strstr(policy, "+ef") == NULL) {
    return 1;
  }
  status = lcomm_tensor_add(contender->comm, "gradient", buffer, count, options->dtype, options->op,
                            &contender->tensor);
  return status == LCOMM_OK || failed(contender, "lcomm_tensor_add", status, error, error_size);
}

perf_contender perf_contender_mpi(void) {
  return (perf_contender){"MPI_Allreduce", NULL, NULL, 1};
}

static lcomm_status reduce_tensor(perf_contender *contender) {
  lcomm_status status = lcomm_tensor_ready(contender->comm, contender->tensor);
  return status == LCOMM_OK ? lcomm_tensors_wait(contender->comm) : status;
}

/* MPI counts in int, and has no average. */
static void reduce_mpi(lcomm_op op, float *buffer, uint64_t count) {
  const uint64_t part = UINT64_C(1) << 30;
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (uint64_t at = 0; at < count; at += part) {
    uint64_t rest = count - at;
    MPI_Allreduce(MPI_IN_PLACE, buffer + at, (int)(rest < part ? rest : part), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  }
  for (uint64_t i = 0; op == LCOMM_AVG && i < count; i++) {
    buffer[i] /= (float)ranks;
  }
}

int perf_contender_run(perf_contender *contender, const perf_options *options, void *buffer,
                       uint64_t count, char *error, size_t error_size) {
  if (contender->comm == NULL) {
    reduce_mpi(options->op, buffer, count);
    return 1;
  }
  lcomm_status status =
      contender->tensor != NULL
          ? reduce_tensor(contender)
          : lcomm_allreduce(contender->comm, buffer, buffer, count, options->dtype, options->op);
  return status == LCOMM_OK || failed(contender, "the all-reduce", status, error, error_size);
}

void perf_contender_destroy(perf_contender *contender) {
  (void)lcomm_destroy(contender->comm); /* what failed was reported already */
  contender->comm = NULL;
}
