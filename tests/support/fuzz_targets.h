/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_FUZZ_TARGETS_H
#define LCOMM_TESTS_SUPPORT_FUZZ_TARGETS_H

/* Every reader of bytes from a peer or a file, fed with any bytes. A target
 * aborts when a promise of the reader's header is broken; sanitizers find the
 * rest. tests/fuzz/fuzz_NAME.c gives one target to libFuzzer, and
 * tests/fuzz/test_fuzz_corpus.c runs all of them over tests/fuzz/corpus/NAME. */

#include "tests/support/fuzz_dense.h"
#include "tests/support/fuzz_devices.h"
#include "tests/support/fuzz_dialogue.h"
#include "tests/support/fuzz_handshake.h"
#include "tests/support/fuzz_idx.h"
#include "tests/support/fuzz_interposer.h"
#include "tests/support/fuzz_launcher.h"
#include "tests/support/fuzz_lossless.h"
#include "tests/support/fuzz_notice.h"
#include "tests/support/fuzz_paper.h"
#include "tests/support/fuzz_policy.h"
#include "tests/support/fuzz_shm.h"
#include "tests/support/fuzz_sources.h"
#include "tests/support/fuzz_split.h"
#include "tests/support/fuzz_state.h"
#include "tests/support/fuzz_store.h"
#include "tests/support/fuzz_topk.h"
#include "tests/support/fuzz_topo.h"
#include "tests/support/fuzz_trace.h"
#include "tests/support/fuzz_ucx_addresses.h"

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
