/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* All-to-all under several policies and by MPI, timed in turn in one run, with the
 * bytes that travelled and the quality of the results. Uses the public
 * interface only. */

#include "tools/perf/perf_main.h"

int main(int argc, char **argv) {
  return lcomm_perf_main(argc, argv, LCOMM_PERF_ALLTOALL);
}
