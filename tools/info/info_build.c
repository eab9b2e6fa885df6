/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/info/info_build.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/codec.h"
#include "kernels/kernels.h"
#include "libcomm/base/env.h"
#include "libcomm/device/device.h"
#include "libcomm/topo/processors.h"
#include "libcomm/topo/topo.h"
#include "libcomm/transport/transport.h"
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

static void print_one(const lcomm_device_table *table, int ordinal) {
  lcomm_device_facts facts;
  int error = table->facts(ordinal, &facts);
  if (error != 0) {
    printf("  %s:%-5d says nothing of itself: %s\n", table->name, ordinal, table->explain(error));
    return;
  }
  printf("  %s:%-5d %s at %s, %.1f GiB, compute capability %d.%d%s%s\n", table->name, ordinal,
         facts.name, facts.pci, (double)facts.memory_size / (1 << 30), facts.major, facts.minor,
         facts.waits_for_values ? "" : ", cannot wait for values",
         facts.shares_memory ? "" : ", cannot share memory");
}

static void print_device(void) {
  lcomm_why why;
  const lcomm_device_table *table = lcomm_device_get(&why);
  int count = 0, driver = 0, runtime = 0;
  printf("\ndevice\n");
  if (!table) {
    printf("  %-10s off: %s\n", "CUDA", why.text);
    return;
  }
  if (table->version(&driver, &runtime) == 0) {
    printf("  %-10s on: driver %d.%d, runtime %d.%d\n", "CUDA", driver / 1000, driver % 1000 / 10,
           runtime / 1000, runtime % 1000 / 10);
  }
  if (table->count(&count) == 0) {
    for (int i = 0; i < count; i++) {
      print_one(table, i);
    }
  }
}

/* What is wrong with a system for those whose ranks compute between sums, if its files say so. */
static void print_tcp(void) {
  FILE *file = fopen("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "r");
  if (!file) {
    return; /* not Linux, or a container that hides it */
  }
  if (fgetc(file) == '1') {
    printf("  %-10s begins slowly again on each connection that was idle for 0.2 s; "
           "'sysctl -w net.ipv4.tcp_slow_start_after_idle=0' on every host ends that\n",
           "TCP");
  }
  fclose(file);
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
  print_tcp();
  printf("\ncodecs       bits/value\n");
  for (int i = 0; lcomm_codec_list[i]; i++) {
    const lcomm_codec *codec = lcomm_codec_list[i];
    printf("  %-10s ", codec->name);
    lcomm_format format = lcomm_format_of(codec);
    printf("%10.2f  %s\n", lcomm_format_bits(&format), codec->summary);
  }
  print_kernels();
  print_device();
}

/* -------------------------------------------------------------- progress */

uint64_t info_processors_share(void) {
  int size = info_ranks();
  lcomm_identity identity;
  lcomm_processors mine;
  lcomm_identity_self(&identity);
  lcomm_processors_self(identity.host_hash, &mine);
  lcomm_processors *all = calloc((size_t)size, sizeof *all);
  if (!all) {
    info_ranks_abort(1);
    return 0;
  }
  info_gather(&mine, all, sizeof(mine));
  uint64_t share = lcomm_processors_share(all, size, info_rank());
  free(all);
  return share;
}

void info_print_progress(uint64_t share, int ranks) {
  bool thread = ranks > 1 && share >= LCOMM_PROCESSORS_ENOUGH;
  printf("\nprogress     auto: %s; %llu.%02llu processors for each rank, a thread needs 2\n",
         thread      ? "by a thread, from the first call that does not block"
         : ranks > 1 ? "in calls"
                     : "in calls, as a single rank has nobody to wait for",
         (unsigned long long)(share / 100), (unsigned long long)(share % 100));
}
