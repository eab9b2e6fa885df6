/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_SPEED_H
#define LCOMM_TOOLS_CODEC_CODEC_SPEED_H

#include "tools/codec/codec_results.h"
#include "tools/common/tool_progress.h"

/* The speed of every codec at every size of the options, by every kernel
 * table: encode, decode, decode and add. All tables, a roofline and memcpy take
 * turns. Also the comparisons that the options ask for. A codec that cannot do it
 * gets a refusal; MEMORY and SYSTEM end it. */
lcomm_status lcomm_speed_run(lcomm_results *results, tool_progress *progress);

/* Its units of progress. */
uint64_t lcomm_speed_units(const lcomm_results *results);

#endif
