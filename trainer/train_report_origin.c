/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Where the figures of a log come from: its first record says it. */

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "libcomm_interpose.h"
#include "trainer/train_report.h"

enum { TEXT_SIZE = 256 };

/* Of the build: the commit. */
const char *build_revision(void);

/* Hosts the ranks are on; 0: not known, because ranks pose as nodes. */
static int count_hosts(const lcomm_comm *comm, const char *transports) {
  if (strcmp(transports, "shm") == 0 || lcomm_size(comm) == 1) {
    return 1;
  }
  return getenv("LCOMM_NODES") || getenv("LCOMM_HOSTID") ? 0 : lcomm_nodes(comm);
}

/* "2 x AMD EPYC 9B14, 7 GiB, Linux 6.18.5" */
static void describe_machine(char text[TEXT_SIZE]) {
  char line[TEXT_SIZE], processor[96] = "unknown processor";
  struct utsname system = {0};
  uname(&system);
  FILE *file = fopen("/proc/cpuinfo", "r");
  while (file && fgets(line, sizeof line, file)) {
    char *colon = strchr(line, ':');
    if (colon && strncmp(line, "model name", 10) == 0) {
      snprintf(processor, sizeof processor, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
      break;
    }
  }
  if (file) {
    fclose(file);
  }
  double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  snprintf(text, TEXT_SIZE, "%ld x %s, %.0f GiB, %.32s %.32s", sysconf(_SC_NPROCESSORS_ONLN),
           processor, memory / 1073741824.0, system.sysname, system.release);
}

static void put_known(FILE *file, const char *key, const char *text) {
  if (!text || !text[0] || strpbrk(text, "\"\\")) {
    fprintf(file, ",\"%s\":null", key);
  } else {
    fprintf(file, ",\"%s\":\"%s\"", key, text);
  }
}

void put_origin(FILE *file, const training *of) {
  char text[TEXT_SIZE];
  struct utsname system = {0};
  uname(&system);
  fprintf(file, ",\"origin\":{\"version\":\"%d.%d.%d\"", LCOMM_VERSION_MAJOR, LCOMM_VERSION_MINOR,
          LCOMM_VERSION_PATCH);
  put_known(file, "commit", build_revision());
  describe_machine(text);
  put_known(file, "machine", text);
  put_known(file, "host", system.nodename);
  put_known(file, "rate", getenv("CLUSTER_RATE"));
  const char *delay_ms = getenv("CLUSTER_DELAY_MS");
  if (delay_ms && delay_ms[0]) {
    fprintf(file, ",\"delay_ms\":%g", strtod(delay_ms, NULL));
  } else {
    fprintf(file, ",\"delay_ms\":null");
  }
  put_known(file, "transport", lcomm_transports(whole_comm(of), text, sizeof text));
  int hosts = count_hosts(whole_comm(of), text);
  fprintf(file, hosts > 0 ? ",\"hosts\":%d" : ",\"hosts\":null", hosts);
  put_known(file, "interface", lcomm_interfaces(whole_comm(of), text, sizeof text));
  fputc('}', file);
}
