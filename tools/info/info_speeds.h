/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_INFO_INFO_SPEEDS_H
#define LCOMM_TOOLS_INFO_INFO_SPEEDS_H

/* What the codecs of a plan cost on this machine, measured now on one core. */

#include "libcomm/plan/cost.h"

/* Some milliseconds for each codec that was not measured before in this process. What
 * cannot be measured (no memory) counts nothing. */
lcomm_codec_speeds info_codec_speeds(const lcomm_plan *plan);

/* The same of all codecs among which net=auto chooses, into a topology for plans. */
void info_codec_costs(lcomm_topo *topo);

#endif
