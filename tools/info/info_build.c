/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/info/info_build.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "codecs/codec.h"
#include "kernels/kernels.h"
#include "libcomm/base/env.h"
#include "libcomm/transport/transport.h"
#include "tools/info/info_device.h"
#include "tools/info/info_ranks.h"

static void print_kernels(void) {
  const char *isa = lcomm_env_get(LCOMM_ENV_ISA);
  const lcomm_kernels *used = isa ? lcomm_kernels_by_name(isa, NULL) : lcomm_kernels_best();
  printf("\nkernels\n");
  for (int i = 0; lcomm_kernels_list[i]; i++) {
    const lcomm_kernels *table = lcomm_kernels_list[i], *next = lcomm_kernels_list[i + 1];
    if (next && strcmp(next->name, table->name) == 0 && lcomm_kernels_runs(next)) {
      continue; /* a better version of the same table */
    }
    bool runs = lcomm_kernels_runs(table);
    printf("  %-10s %s\n", table->name,
           table == used ? "in use"
           : runs        ? "runs here"
                         : "not on this processor or system");
    i += next && strcmp(next->name, table->name) == 0;
  }
  if (!used) {
    printf("  LCOMM_ISA=%s is none of those that run here\n", isa);
  }
}

void info_print_build(void) {
  const char *ucx = lcomm_ucx_version();
  printf("libcomm %d.%d.%d\n", LCOMM_VERSION_MAJOR, LCOMM_VERSION_MINOR, LCOMM_VERSION_PATCH);
  printf("\nbuild\n  compiler   %s\n  MPI        %s\n  UCX        %s\n", __VERSION__,
         info_mpi_name(), ucx ? ucx : "none that can be loaded");
  printf("\ntransports\n");
  for (int i = 0; lcomm_transport_list[i]; i++) {
    printf("  %-10s %s\n", lcomm_transport_list[i]->name, lcomm_transport_list[i]->summary);
  }
  printf("\ncodecs       bits/value\n");
  for (int i = 0; lcomm_codec_list[i]; i++) {
    const lcomm_codec *codec = lcomm_codec_list[i];
    printf("  %-10s ", codec->name);
    lcomm_format format = lcomm_format_of(codec);
    printf("%10.2f  %s\n", lcomm_format_bits(&format), codec->summary);
  }
  print_kernels();
  info_print_device();
}
