/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The first call of the process decides who makes all of them. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_over.h"
#include "libcomm_interpose.h"

_Atomic(const lcomm_nccl_choice *) lcomm_nccl_in_force;

/* ---------------------------------------------------------------- versions */

/* "2.28.9" or "22809"; 0: neither. */
static int parse_version(const char *text) {
  int major, minor, patch = 0, end = 0;
  if (sscanf(text, "%2d.%2d.%2d%n", &major, &minor, &patch, &end) == 3 && !text[end]) {
    return major >= 2 && minor >= 9 ? major * 10000 + minor * 100 + patch : 0;
  }
  char *rest;
  long code = strtol(text, &rest, 10);
  return !*rest && code >= 20900 && code < 1000000 ? (int)code : 0;
}

int lcomm_nccl_version_to_tell(void) {
  const char *text = lcomm_setting("LCOMM_NCCL_VERSION");
  int version = text ? parse_version(text) : 0;
  if (text && version == 0) {
    lcomm_nccl_log(
        "LCOMM_NCCL_VERSION=%.40s is no version, such as 2.28.9; ncclGetVersion tells that "
        "of the NCCL below",
        text);
  }
  return version;
}

/* ---------------------------------------------------------------- decision */

typedef enum mode { ANY, OVER, ALONE, NONE } mode;

static mode wanted_mode(void) {
  const char *text = lcomm_setting("LCOMM_NCCL");
  return !text ? ANY : strcmp(text, "over") == 0 ? OVER : strcmp(text, "alone") == 0 ? ALONE : NONE;
}

/* Who names a library means it. */
static bool may_be_alone(mode wanted) {
  return wanted == ALONE || (wanted == ANY && !lcomm_setting("LCOMM_NCCL_LIBRARY"));
}

/* False: all calls are refused. */
static bool decide(lcomm_nccl_choice *choice) {
  mode wanted = wanted_mode();
  choice->calls = choice->below = lcomm_nccl_refusing;
  if (wanted == NONE) {
    snprintf(choice->reason, sizeof(choice->reason), "LCOMM_NCCL is neither over nor alone");
    return false;
  }
  if (wanted != ALONE && lcomm_nccl_over(choice)) {
    return lcomm_nccl_over_policy(choice);
  }
  return may_be_alone(wanted) && lcomm_nccl_alone(choice);
}

/* What the user would not notice else. */
static void tell(const lcomm_nccl_choice *choice, bool makes_calls) {
  if (!makes_calls) {
    lcomm_nccl_log("every call of NCCL is refused: %s", choice->reason);
  } else if (choice->is_alone && wanted_mode() == ANY) {
    lcomm_nccl_log(
        "no NCCL was found, so libcomm makes NCCL's calls; LCOMM_NCCL_LIBRARY=PATH names "
        "one, LCOMM_NCCL=alone says that it is meant so");
  }
}

/* Several threads may decide at a time, all alike; the first one counts, and tells the user. */
static const lcomm_nccl_choice *decide_and_publish(void) {
  lcomm_nccl_choice *choice = calloc(1, sizeof *choice);
  const lcomm_nccl_choice *before = NULL;
  if (!choice) {
    return &lcomm_nccl_without_memory;
  }
  bool makes_calls = decide(choice);
  if (!atomic_compare_exchange_strong(&lcomm_nccl_in_force, &before, choice)) {
    free(choice);
    return before;
  }
  tell(choice, makes_calls);
  return choice;
}

const lcomm_nccl_choice *lcomm_nccl_start(void) {
  static _Thread_local bool opening;
  if (opening) {
    return &lcomm_nccl_while_opening;
  }
  opening = true;
  const lcomm_nccl_choice *choice = decide_and_publish();
  opening = false;
  return choice;
}
