/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_FEEDBACK_H
#define LCOMM_TOOLS_CODEC_CODEC_FEEDBACK_H

#include "tools/codec/codec_results.h"
#include "tools/common/tool_progress.h"

/* What is left of a codec's error when many steps are applied one after the
 * other: for every stream the sum of what arrived in options.steps steps against
 * the sum of what was given, and the bytes of all steps. A captured stream
 * takes its own steps in turn, and begins again when there are more to do; any
 * other one repeats its only step. With error feedback the error stays that of
 * a few steps; without it, it grows with their number. Each step has a seed of
 * its own. With beta1 of a codec (adam= of its policy) what is given is the
 * momentum of the gradients, as after the warm-up. Statuses as of lcomm_survey_run. */
lcomm_status lcomm_feedback_run(lcomm_results *results, tool_progress *progress);

/* Its units of progress. */
uint64_t lcomm_feedback_units(const lcomm_results *results);

#endif
