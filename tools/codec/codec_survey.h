/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_SURVEY_H
#define LCOMM_TOOLS_CODEC_CODEC_SURVEY_H

#include "tools/codec/codec_results.h"
#include "tools/common/tool_progress.h"

/* The accuracy of every codec on every source, bucket by bucket, and when the
 * options ask for it on every tensor alone. Residuals are empty each time. A
 * codec that cannot do it gets a refusal; MEMORY and INTERNAL end the survey. */
lcomm_status lcomm_survey_run(lcomm_results *results, tool_progress *progress);

/* Its units of progress. */
uint64_t lcomm_survey_units(const lcomm_results *results);

#endif
