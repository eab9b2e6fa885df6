/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The word guard= of a policy: STEPS[,limit=ERROR][,residual=NORMS][,report], or report alone. */

#include "libcomm/plan/number.h"
#include "libcomm/plan/policy_internal.h"

static const lcomm_guard_policy standard = {.steps = 100, .limit = 0.5, .residual = 100};

static lcomm_status read_steps(lcomm_policy_reader *r, lcomm_span piece,
                               lcomm_guard_policy *guard) {
  if (lcomm_policy_read_whole(piece, UINT64_MAX, &guard->steps) && guard->steps > 0) {
    return LCOMM_OK;
  }
  return lcomm_policy_refuse(r, "", piece,
                             " is no number of steps between two checks; expected "
                             "STEPS[,limit=ERROR][,residual=NORMS][,report], or report");
}

static lcomm_status read_limit(lcomm_policy_reader *r, lcomm_span piece, size_t name,
                               double *limit) {
  lcomm_span text = lcomm_span_after(piece, name);
  size_t length = lcomm_read_decimal(text.text, text.length, limit);
  if (length > 0 && length == text.length && *limit > 0 && *limit <= LCOMM_DECIMAL_MAX) {
    return LCOMM_OK;
  }
  return lcomm_policy_refuse(r, "", piece,
                             " names no limit; expected a decimal number above 0, up to 1e9");
}

/* What stands behind the steps. */
static lcomm_status read_option(lcomm_policy_reader *r, lcomm_span piece,
                                lcomm_guard_policy *guard) {
  if (lcomm_span_is(piece, "report")) {
    guard->report = true;
    return LCOMM_OK;
  }
  if (lcomm_span_begins(piece, "limit=")) {
    return read_limit(r, piece, strlen("limit="), &guard->limit);
  }
  if (lcomm_span_begins(piece, "residual=")) {
    return read_limit(r, piece, strlen("residual="), &guard->residual);
  }
  return lcomm_policy_refuse(r, "unknown option ", piece,
                             "; expected limit=ERROR, residual=NORMS or report");
}

lcomm_status lcomm_policy_read_guard(lcomm_policy_reader *r, lcomm_span value,
                                     lcomm_guard_policy *guard) {
  lcomm_span piece = lcomm_span_before(value, ",");
  *guard = standard;
  lcomm_status status =
      lcomm_span_is(piece, "report") ? read_option(r, piece, guard) : read_steps(r, piece, guard);
  while (status == LCOMM_OK && piece.length < value.length) {
    value = lcomm_span_after(value, piece.length + 1);
    piece = lcomm_span_before(value, ",");
    status = read_option(r, piece, guard);
  }
  return status;
}

static void write_limit(lcomm_writer *w, const char *name, double limit, double usual) {
  char text[LCOMM_DECIMAL_TEXT_MAX];
  if (limit < usual || limit > usual) {
    lcomm_format_decimal(limit, text, sizeof text);
    lcomm_write(w, ",%s=%s", name, text);
  }
}

void lcomm_policy_write_guard(lcomm_writer *w, const lcomm_guard_policy *guard) {
  if (guard->steps == 0) {
    return;
  }
  lcomm_write(w, " guard=%llu", (unsigned long long)guard->steps);
  write_limit(w, "limit", guard->limit, standard.limit);
  write_limit(w, "residual", guard->residual, standard.residual);
  if (guard->report) {
    lcomm_write(w, ",report");
  }
}
