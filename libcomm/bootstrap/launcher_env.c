/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/bootstrap/launcher_env.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "libcomm/base/env.h"
#include "libcomm/base/error.h"
#include "libcomm/plan/number.h"

enum { WORLD_MAX = 1 << 20, PORT_MAX = 65535 };

/* The variables of one launcher. */
typedef struct launcher {
  lcomm_launcher rank, size;
  lcomm_launcher local;  /* ranks on this host, or hosts of the job: see counts_hosts */
  lcomm_launcher job;    /* an id of the job, the same on all its ranks */
  bool counts_hosts;     /* local is a number of hosts */
  bool size_means_ranks; /* the size alone says that there are ranks */
} launcher;

/* The first one that is there counts. What torchrun sets comes first, because
 * it is often started by one of the others, as one process per host. */
static const launcher launchers[] = {
    {LCOMM_LAUNCHER_RANK, LCOMM_LAUNCHER_WORLD_SIZE, LCOMM_LAUNCHER_LOCAL_WORLD_SIZE,
     LCOMM_LAUNCHER_RUN_ID, false, true},
    {LCOMM_LAUNCHER_OMPI_RANK, LCOMM_LAUNCHER_OMPI_SIZE, LCOMM_LAUNCHER_OMPI_LOCAL_SIZE,
     LCOMM_LAUNCHER_PMIX_NAMESPACE, false, true},
    {LCOMM_LAUNCHER_PMI_RANK, LCOMM_LAUNCHER_PMI_SIZE, LCOMM_LAUNCHER_PMI_LOCAL_SIZE,
     LCOMM_LAUNCHER_PMI_JOBID, false, true},
    /* An allocation without a job step has SLURM_NTASKS, too. */
    {LCOMM_LAUNCHER_SLURM_PROCID, LCOMM_LAUNCHER_SLURM_NTASKS, LCOMM_LAUNCHER_SLURM_STEP_NODES,
     LCOMM_LAUNCHER_SLURM_JOB_ID, true, false},
};

static const char *name_of(lcomm_launcher variable) {
  return lcomm_launcher_table[variable].variable;
}

/* Digits only, from `lowest` to `highest`. */
static bool parse_number(const char *text, int lowest, int highest, int *number) {
  uint64_t value = 0;
  bool overflow = false;
  size_t digits = lcomm_read_integer(text, strlen(text), &value, &overflow);
  if (text[digits] != '\0' || overflow || value < (uint64_t)lowest || value > (uint64_t)highest) {
    return false;
  }
  *number = (int)value;
  return true;
}

static lcomm_status read_number(lcomm_launcher variable, int lowest, int highest,
                                const char *example, int *number, lcomm_why *why) {
  const char *text = lcomm_launcher_get(variable);
  if (text && parse_number(text, lowest, highest, number)) {
    return LCOMM_OK;
  }
  return lcomm_why_set(why, LCOMM_ERR_ARGUMENT,
                       "%s=%.40s is no number from %d to %d; for example %s=%s", name_of(variable),
                       text ? text : "", lowest, highest, name_of(variable), example);
}

/* ------------------------------------------------------- rank and world size */

static bool is_there(const launcher *it) {
  return lcomm_launcher_get(it->rank) || (it->size_means_ranks && lcomm_launcher_get(it->size));
}

static const launcher *find_launcher(void) {
  for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
    if (is_there(&launchers[i])) {
      return &launchers[i];
    }
  }
  return NULL;
}

/* One of two variables that go together is missing. */
static lcomm_status miss(lcomm_launcher there, lcomm_launcher missing, const char *example,
                         lcomm_why *why) {
  return lcomm_why_set(why, LCOMM_ERR_ARGUMENT,
                       "%s=%.40s is set and %s is not; set both, for example %s=%s, or neither",
                       name_of(there), lcomm_launcher_get(there), name_of(missing),
                       name_of(missing), example);
}

static lcomm_status read_rank(const launcher *it, lcomm_launcher_env *launcher_env,
                              lcomm_why *why) {
  if (!lcomm_launcher_get(it->rank)) {
    return miss(it->size, it->rank, "0", why);
  }
  if (!lcomm_launcher_get(it->size)) {
    return miss(it->rank, it->size, "4", why);
  }
  LCOMM_TRY(read_number(it->size, 1, WORLD_MAX, "4", &launcher_env->world_size, why));
  LCOMM_TRY(read_number(it->rank, 0, WORLD_MAX, "0", &launcher_env->rank, why));
  if (launcher_env->rank >= launcher_env->world_size) {
    return lcomm_why_set(
        why, LCOMM_ERR_ARGUMENT,
        "%s=%d is outside a world of %s=%d ranks, which are numbered from 0; for example "
        "%s=%d for the last one",
        name_of(it->rank), launcher_env->rank, name_of(it->size), launcher_env->world_size,
        name_of(it->rank), launcher_env->world_size - 1);
  }
  launcher_env->size_from = name_of(it->size);
  return LCOMM_OK;
}

static lcomm_status read_locality(const launcher *it, lcomm_launcher_env *launcher_env,
                                  lcomm_why *why) {
  int local = 0;
  if (!lcomm_launcher_get(it->local)) {
    return LCOMM_OK;
  }
  LCOMM_TRY(read_number(it->local, 1, WORLD_MAX, "1", &local, why));
  if (local > launcher_env->world_size) {
    return lcomm_why_set(
        why, LCOMM_ERR_ARGUMENT,
        "%s=%d is more than %s=%d; they come from different launchers, so unset the one that "
        "is left over from another job",
        name_of(it->local), local, name_of(it->size), launcher_env->world_size);
  }
  launcher_env->one_host = local == (it->counts_hosts ? 1 : launcher_env->world_size);
  return LCOMM_OK;
}

/* ------------------------------------------------------ address, port, token */

static lcomm_status read_address(const launcher *it, lcomm_launcher_env *launcher_env,
                                 lcomm_why *why) {
  const char *text = lcomm_launcher_get(LCOMM_LAUNCHER_MASTER_ADDR);
  bool known = lcomm_launcher_get(it->local) != NULL;
  if (!text && known && !launcher_env->one_host) {
    return lcomm_why_set(
        why, LCOMM_ERR_ARGUMENT,
        "MASTER_ADDR is not set, and %s says that not all %d ranks share a host; set it to "
        "the name or address of rank 0's host, for example MASTER_ADDR=node1",
        name_of(it->local), launcher_env->world_size);
  }
  launcher_env->one_host |= !text;
  text = text ? text : "127.0.0.1";
  if (strlen(text) >= sizeof(launcher_env->address)) {
    return lcomm_why_set(
        why, LCOMM_ERR_ARGUMENT,
        "MASTER_ADDR=%.40s... has more than %d characters; for example MASTER_ADDR=node1", text,
        LCOMM_ADDRESS_MAX - 1);
  }
  snprintf(launcher_env->address, sizeof(launcher_env->address), "%s", text);
  return LCOMM_OK;
}

/* torchrun listens at MASTER_PORT itself, so there the next port is ours. */
static lcomm_status read_port(lcomm_launcher_env *launcher_env, lcomm_why *why) {
  const char *own = lcomm_env_get(LCOMM_ENV_PORT);
  const char *agent = lcomm_launcher_get(LCOMM_LAUNCHER_AGENT_STORE);
  launcher_env->port = 0;
  if (own) {
    if (!parse_number(own, 0, PORT_MAX, &launcher_env->port)) {
      return lcomm_why_set(why, LCOMM_ERR_ARGUMENT,
                           "LCOMM_PORT=%.40s is no port from 0 to %d; for example LCOMM_PORT=%d",
                           own, PORT_MAX, LCOMM_PORT_STANDARD);
    }
  } else if (lcomm_launcher_get(LCOMM_LAUNCHER_MASTER_PORT)) {
    LCOMM_TRY(
        read_number(LCOMM_LAUNCHER_MASTER_PORT, 0, PORT_MAX, "29600", &launcher_env->port, why));
    if (launcher_env->port > 0 && agent && strcmp(agent, "True") == 0) {
      launcher_env->port += launcher_env->port < PORT_MAX ? 1 : -1;
    }
  }
  launcher_env->port = launcher_env->port > 0 ? launcher_env->port : LCOMM_PORT_STANDARD;
  return LCOMM_OK;
}

/* A job id tells jobs apart; it is no secret. */
static void take_job_id(const launcher *it, lcomm_launcher_env *launcher_env) {
  lcomm_launcher from[] = {it->job, LCOMM_LAUNCHER_PMIX_NAMESPACE, LCOMM_LAUNCHER_SLURM_JOB_ID};
  const char *step = lcomm_launcher_get(LCOMM_LAUNCHER_SLURM_STEP_ID);
  for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
    const char *id = lcomm_launcher_get(from[i]);
    if (id) {
      bool in_step = it->job == LCOMM_LAUNCHER_SLURM_JOB_ID && step && i == 0;
      snprintf(launcher_env->token, sizeof(launcher_env->token), "%s%s%s", id, in_step ? "." : "",
               in_step ? step : "");
      launcher_env->token_from = name_of(from[i]);
      return;
    }
  }
}

static lcomm_status read_token(const launcher *it, lcomm_launcher_env *launcher_env,
                               lcomm_why *why) {
  const char *token = lcomm_env_get(LCOMM_ENV_TOKEN);
  if (!token) {
    take_job_id(it, launcher_env);
    return LCOMM_OK;
  }
  if (strlen(token) >= sizeof(launcher_env->token)) {
    return lcomm_why_set(
        why, LCOMM_ERR_ARGUMENT,
        "LCOMM_TOKEN has %zu characters, at most %d are possible; for example the output of "
        "'openssl rand -hex 16'",
        strlen(token), LCOMM_TOKEN_MAX - 1);
  }
  memcpy(launcher_env->token, token, strlen(token));
  launcher_env->token_from = "LCOMM_TOKEN";
  return LCOMM_OK;
}

lcomm_status lcomm_launcher_env_read(lcomm_launcher_env *launcher_env, lcomm_why *why) {
  const launcher *it = find_launcher();
  *launcher_env = (lcomm_launcher_env){.world_size = 1, .one_host = true};
  if (!it) {
    return LCOMM_OK;
  }
  launcher_env->one_host = false;
  lcomm_status status = read_rank(it, launcher_env, why);
  if (status != LCOMM_OK || launcher_env->world_size == 1) {
    launcher_env->one_host = true;
    return status;
  }
  LCOMM_TRY(read_locality(it, launcher_env, why));
  LCOMM_TRY(read_address(it, launcher_env, why));
  LCOMM_TRY(read_port(launcher_env, why));
  return read_token(it, launcher_env, why);
}

lcomm_status lcomm_launcher_env_read_place(lcomm_launcher_env *launcher_env, lcomm_why *why) {
  const launcher *found = find_launcher(), *it = found ? found : &launchers[0];
  *launcher_env = (lcomm_launcher_env){.world_size = 1,
                                       .one_host = !lcomm_launcher_get(LCOMM_LAUNCHER_MASTER_ADDR)};
  why->text[0] = '\0';
  LCOMM_TRY(read_address(it, launcher_env, why));
  LCOMM_TRY(read_port(launcher_env, why));
  return read_token(it, launcher_env, why);
}

const char *lcomm_launcher_env_supposed(void) {
  return lcomm_launcher_get(LCOMM_LAUNCHER_MASTER_ADDR)
             ? ""
             : "; MASTER_ADDR is not set, so rank 0 was taken to be on this host: set it to the "
               "name or address of rank 0's host where there are several";
}
