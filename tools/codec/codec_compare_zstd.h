/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_COMPARE_ZSTD_H
#define LCOMM_TOOLS_CODEC_CODEC_COMPARE_ZSTD_H

#include "tools/codec/codec_results.h"
#include "tools/codec/codec_workers.h"

/* The duel of the lossless stage with zstd, see duel.h; nothing for codecs
 * whose codes have no exponent plane. MEMORY, SYSTEM. */
lcomm_status lcomm_duel_zstd(const lcomm_results *results, lcomm_lanes *lanes,
                             lcomm_result *result);

#endif
