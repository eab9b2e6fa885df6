/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/info/info_device.h"

#include <stdio.h>

#include "libcomm/device/device.h"

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

void info_print_device(void) {
  char why[LCOMM_DEVICE_WHY_MAX];
  const lcomm_device_table *table = lcomm_device_get(why);
  int count = 0, driver = 0, runtime = 0;
  printf("\ndevice\n");
  if (!table) {
    printf("  %-10s off: %s\n", "CUDA", why);
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
