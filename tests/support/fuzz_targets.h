/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_FUZZ_TARGETS_H
#define LCOMM_TESTS_SUPPORT_FUZZ_TARGETS_H

/* Every reader of bytes from a peer or a file, fed with any bytes. A target
 * aborts when a promise of the reader's header is broken; sanitizers find the
 * rest. tests/fuzz/fuzz_NAME.c gives one target to libFuzzer, and
 * tests/fuzz/test_fuzz_corpus.c runs all of them over tests/fuzz/corpus/NAME. */

#include "tests/support/target_checkpoint.h"
#include "tests/support/target_control.h"
#include "tests/support/target_dense.h"
#include "tests/support/target_devices.h"
#include "tests/support/target_dialogue.h"
#include "tests/support/target_experiment.h"
#include "tests/support/target_handshake.h"
#include "tests/support/target_idx.h"
#include "tests/support/target_interposer.h"
#include "tests/support/target_launcher.h"
#include "tests/support/target_lossless.h"
#include "tests/support/target_memory_handle.h"
#include "tests/support/target_nccl_id.h"
#include "tests/support/target_pair_frame.h"
#include "tests/support/target_pair_header.h"
#include "tests/support/target_policy.h"
#include "tests/support/target_settings.h"
#include "tests/support/target_shard_header.h"
#include "tests/support/target_shm.h"
#include "tests/support/target_simulate.h"
#include "tests/support/target_sources.h"
#include "tests/support/target_split.h"
#include "tests/support/target_state.h"
#include "tests/support/target_store.h"
#include "tests/support/target_text.h"
#include "tests/support/target_topk.h"
#include "tests/support/target_topo.h"
#include "tests/support/target_trace.h"
#include "tests/support/target_ucx_addresses.h"

typedef struct lcomm_fuzz_target {
  const char *name;
  void (*run)(const uint8_t *data, size_t size);
} lcomm_fuzz_target;

void lcomm_fuzz_wire(const uint8_t *data, size_t size);

/* All targets, ended by a NULL name. */
extern const lcomm_fuzz_target lcomm_fuzz_targets[];

/* What libFuzzer calls; defined by each fuzz_NAME.c. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
