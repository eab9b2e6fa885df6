/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_ENV_H
#define LCOMM_BASE_ENV_H

/* Every environment variable libcomm reads, in one table: the only place that
 * calls getenv, and the source of `libcomm-info --env`.
 * X(id, variable, default shown to people, help) */
#define LCOMM_ENV_LIST(X)                                                                          \
  X(LCOMM_ENV_POLICY, "LCOMM_POLICY", "net=none", "policy when the program sets none")             \
  X(LCOMM_ENV_NODES, "LCOMM_NODES", "real hosts", "pose as this many nodes, ranks split evenly")   \
  X(LCOMM_ENV_HOSTID, "LCOMM_HOSTID", "this host", "identity of this rank's host, any text")       \
  X(LCOMM_ENV_TIMEOUT_S, "LCOMM_TIMEOUT_S", "300", "seconds without progress until an error")      \
  X(LCOMM_ENV_ISA, "LCOMM_ISA", "the fastest",                                                     \
    "kernels to use: scalar, avx2 or avx512; the results are the same")                            \
  X(LCOMM_ENV_LOG, "LCOMM_LOG", "none",                                                            \
    "none, error, or info: errors and plans, on standard error")                                   \
  X(LCOMM_ENV_CAPTURE, "LCOMM_CAPTURE", "none",                                                    \
    "folder for the gradients of some steps, as this rank saw them")                               \
  X(LCOMM_ENV_CAPTURE_STEPS, "LCOMM_CAPTURE_STEPS", "0,10,100,1000",                               \
    "which steps LCOMM_CAPTURE is for, counted from 0")                                            \
  X(LCOMM_ENV_DATA, "LCOMM_DATA", "./data", "folder with data sets, for the trainer")

typedef enum lcomm_env {
#define LCOMM_ENV_ENUM(id, variable, standard, help) id,
  LCOMM_ENV_LIST(LCOMM_ENV_ENUM)
#undef LCOMM_ENV_ENUM
      LCOMM_ENV_COUNT
} lcomm_env;

typedef struct lcomm_env_entry {
  const char *variable, *standard, *help;
} lcomm_env_entry;

extern const lcomm_env_entry lcomm_env_table[LCOMM_ENV_COUNT];

/* The variable's value, NULL when it is unset or empty. */
const char *lcomm_env_get(lcomm_env variable);

#endif
