/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_settings.h"

#include "libcomm/base/env.h"
#include "libcomm/base/log.h"
#include "libcomm/base/settings.h"
#include "libcomm/comm/handshake.h"
#include "tests/support/fuzz_comm.h"
#include "tests/support/fuzz_promise.h"

/* Those that are read without a file of their own. */
static const lcomm_env read_ones[] = {
    LCOMM_ENV_POLICY, LCOMM_ENV_TRANSPORT, LCOMM_ENV_PROGRESS, LCOMM_ENV_NODES,
    LCOMM_ENV_ISA,    LCOMM_ENV_TIMEOUT_S, LCOMM_ENV_CUDA,     LCOMM_ENV_CUDA_IPC,
    LCOMM_ENV_STATS,  LCOMM_ENV_RUN_CACHE, LCOMM_ENV_LOG,      LCOMM_ENV_TRACE_STEPS};

enum {
  READ_ONES = sizeof(read_ones) / sizeof(read_ones[0]),
  NAME = READ_ONES,
  LOG_FILE,
  KINDS,
  VALUE_MAX = 2048
};

static void check_name(const char *name) {
  const char *nearest = lcomm_settings_nearest(name), *now = lcomm_settings_renamed(name);
  bool is_ucx = strncmp(name, "LCOMM_UCX_", strlen("LCOMM_UCX_")) == 0;
  fuzz_require(!nearest || lcomm_settings_known(nearest), "the nearest name is one of libcomm's");
  fuzz_require(!now || lcomm_settings_known(now), "a former name has a name of now");
  fuzz_require(!lcomm_settings_known(name) || is_ucx || (nearest && strcmp(nearest, name) == 0),
               "a known name is the nearest to itself");
}

static void check_log_file(const char *pattern) {
  enum { ROOM = 64 };
  char *path = fuzz_allocate(ROOM);
  if (lcomm_log_path(pattern, 12, "host", path, ROOM)) {
    fuzz_require(strnlen(path, ROOM) < ROOM, "a path ends");
    fuzz_require(strchr(pattern, '%') || strcmp(pattern, path) == 0, "a plain name stays");
  }
  free(path);
}

/* Variables stay in the environment where they lie; setenv would keep each value for ever. */
static void take(int kind, const char *value, int length) {
  static char texts[KINDS][VALUE_MAX];
  const char *variable = kind < READ_ONES ? lcomm_env_table[read_ones[kind]].variable : "";
  snprintf(texts[kind], VALUE_MAX, "%s%s%.*s", variable, kind < READ_ONES ? "=" : "", length,
           value);
  if (kind < READ_ONES) {
    fuzz_require(putenv(texts[kind]) == 0, "the environment has room");
  } else if (kind == NAME) {
    check_name(texts[kind]);
  } else {
    check_log_file(texts[kind]);
  }
}

static void take_all(const uint8_t *data, size_t size) {
  while (size > 0) {
    size_t length = strnlen((const char *)data + 1, size - 1);
    take(data[0] % KINDS, (const char *)data + 1, (int)length);
    size_t taken = 1 + length + (length + 1 < size);
    data += taken;
    size -= taken;
  }
}

/* What this environment has itself goes, and what the input has brought. */
static void clear(void) {
  for (int i = 0; i < LCOMM_ENV_COUNT; i++) {
    unsetenv(lcomm_env_table[i].variable);
  }
}

static void check_accepted(const lcomm_comm *comm, const lcomm_handshake *mine) {
  lcomm_policy again;
  lcomm_why error;
  fuzz_require(comm->settings.timeout_s > 0 && comm->settings.timeout_s < 1e9, "a time-out is one");
  fuzz_require(mine->nodes >= 0, "a number of nodes is one");
  fuzz_require(mine->progress > LCOMM_PROGRESS_DEFAULT && mine->progress <= LCOMM_PROGRESS_AUTO,
               "a progress mode is one");
  fuzz_require(comm->kernels != NULL, "there are kernels");
  fuzz_require(lcomm_policy_parse(mine->policy, &again, &error) == LCOMM_OK,
               "the others can read the policy");
}

void lcomm_fuzz_settings(const uint8_t *data, size_t size) {
  lcomm_comm *comm = fuzz_allocate(sizeof *comm);
  lcomm_handshake *mine = fuzz_allocate(sizeof *mine);
  lcomm_topo topo = {0};
  lcomm_summary_mode summary = {0};
  comm->size = 2;
  comm->rank = 1; /* rank 0 warns of names, once in a process */
  clear();
  take_all(data, size);
  lcomm_handshake_prepare(comm, NULL, &summary, &topo, mine);
  fuzz_check_text(mine->policy, sizeof(mine->policy));
  fuzz_require(strnlen(mine->error, sizeof(mine->error)) < sizeof(mine->error) &&
                   strnlen(mine->transport, sizeof(mine->transport)) < sizeof(mine->transport),
               "texts end");
  fuzz_require((mine->status == LCOMM_OK) == (mine->error[0] == '\0'), "a refusal has a sentence");
  if (mine->status == LCOMM_OK) {
    check_accepted(comm, mine);
  }
  clear();
  free(mine);
  free(comm);
}
