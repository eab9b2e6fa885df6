/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Calls that nothing in this process can make: each returns ncclInvalidUsage, and says why. */

#include <stdarg.h>
#include <stdio.h>

#include "libcomm/interpose/interpose_log.h"
#include "libcomm/interpose/nccl/nccl_calls.h"

void lcomm_nccl_log(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  lcomm_interpose_log_line("libcomm-nccl", format, arguments);
  va_end(arguments);
}

/* ----------------------------------------------------------------- errors */

static _Thread_local struct {
  char text[2 * LCOMM_NCCL_SENTENCE_MAX];
  bool is_news;
} failure;

ncclResult_t lcomm_nccl_fail(ncclResult_t result, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(failure.text, sizeof(failure.text), format, arguments);
  va_end(arguments);
  failure.is_news = true;
  return result;
}

const char *lcomm_nccl_last_failure(void) {
  bool is_news = failure.is_news;
  failure.is_news = false;
  return is_news ? failure.text : NULL;
}

/* `said` is the function's: its refusal is logged the first time. */
static void refuse(const char *function, atomic_flag *said) {
  lcomm_nccl_fail(ncclInvalidUsage, "%s: %s", function, lcomm_nccl_now()->reason);
  if (!atomic_flag_test_and_set(said)) {
    lcomm_nccl_log("%s", failure.text);
  }
}

const char *lcomm_nccl_error_string(ncclResult_t result) {
  static const char *const texts[] = {[ncclSuccess] = "no error",
                                      [ncclUnhandledCudaError] = "a call of CUDA failed",
                                      [ncclSystemError] = "a call of the system failed",
                                      [ncclInternalError] = "internal error, please report it",
                                      [ncclInvalidArgument] = "invalid argument",
                                      [ncclInvalidUsage] = "invalid usage, see ncclGetLastError",
                                      [ncclRemoteError] = "another rank failed, or was lost",
                                      [ncclInProgress] = "still in progress",
                                      [ncclTimeout] = "a rank did not answer in time"};
  return (size_t)result < sizeof(texts) / sizeof *texts ? texts[result] : "unknown result";
}

static const char *last_error(ncclComm_t comm) {
  (void)comm;
  const char *sentence = lcomm_nccl_last_failure();
  return sentence ? sentence : "";
}

/* --------------------------------------------------------------- refusals */

/* These two answer always. */
#define refuse_GetErrorString lcomm_nccl_error_string
#define refuse_GetLastError last_error

#define REFUSE(name, kind, n, ...) REFUSE_##kind(name, n, __VA_ARGS__)
#define REFUSE_text(name, n, ...)
#define REFUSE_result(name, n, ...) FUNCTION(name, result, ncclInvalidUsage, n, __VA_ARGS__)
#define REFUSE_number(name, n, ...) FUNCTION(name, number, -1, n, __VA_ARGS__)
#define REFUSE_team(name, n, ...) FUNCTION(name, team, no_team, n, __VA_ARGS__)
#define REFUSE_nothing(name, n, ...) FUNCTION(name, nothing, , n, __VA_ARGS__)

#define FUNCTION(name, kind, returned, n, ...)                                                     \
  static LCOMM_NCCL_RETURNS(kind) refuse_##name LCOMM_NCCL_UNUSED(n, __VA_ARGS__) {                \
    static atomic_flag said = ATOMIC_FLAG_INIT;                                                    \
    refuse("nccl" #name, &said);                                                                   \
    return returned;                                                                               \
  }

static const ncclTeam_t no_team;
LCOMM_NCCL_LIST(REFUSE)

#define REFUSAL(name, kind, n, ...) .name = refuse_##name,
const lcomm_nccl_calls lcomm_nccl_refusing = {LCOMM_NCCL_LIST(REFUSAL)};

const lcomm_nccl_choice lcomm_nccl_while_opening = {
    .calls = {LCOMM_NCCL_LIST(REFUSAL)},
    .reason = "a constructor of the NCCL that is being opened, or of what that needs, calls it"};

const lcomm_nccl_choice lcomm_nccl_without_memory = {
    .calls = {LCOMM_NCCL_LIST(REFUSAL)}, .reason = "there is no memory left to look for NCCL"};
