/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/common/tool_origin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "libcomm/include/libcomm.h"

enum { LINE_SIZE = 512 };

/* The value of the first "key : value" of a file of the system, cut and without blanks around. */
static void find_value(const char *path, const char *key, char *value, size_t size) {
  char line[LINE_SIZE];
  FILE *file = fopen(path, "re");
  while (file && value[0] == '\0' && fgets(line, sizeof line, file)) {
    char *colon = strchr(line, ':');
    if (strncmp(line, key, strlen(key)) == 0 && colon) {
      colon += 1 + strspn(colon + 1, " \t");
      snprintf(value, size, "%.*s", (int)strcspn(colon, "\n"), colon);
    }
  }
  if (file) {
    fclose(file);
  }
}

const char *tool_origin_machine(char *text) {
  char model[96] = "", memory[64] = "";
  struct utsname system = {0};
  find_value("/proc/cpuinfo", "model name", model, sizeof model);
  find_value("/proc/meminfo", "MemTotal", memory, sizeof memory);
  uname(&system);
  snprintf(text, TOOL_ORIGIN_TEXT_MAX, "%ld x %s, %.0f GiB, %.32s %.32s",
           sysconf(_SC_NPROCESSORS_ONLN), model[0] ? model : "unknown processor",
           strtod(memory, NULL) / 1048576.0, system.sysname, system.release);
  return text;
}

const char *tool_origin_date(char *text) {
  time_t now = time(NULL);
  struct tm parts;
  gmtime_r(&now, &parts);
  strftime(text, TOOL_ORIGIN_TEXT_MAX, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

const char *tool_origin_version(void) {
  static char text[32];
  snprintf(text, sizeof text, "%d.%d.%d", LCOMM_VERSION_MAJOR, LCOMM_VERSION_MINOR,
           LCOMM_VERSION_PATCH);
  return text;
}

static void put_known(tool_json *json, cJSON *parent, const char *key, const char *text) {
  if (text && text[0] != '\0') {
    tool_json_text(json, parent, key, text);
  } else {
    tool_json_null(json, parent, key);
  }
}

/* What the system says of the first of the devices, "10000mbit"; "" when it says nothing. */
static const char *device_rate(const char *devices, char *text) {
  char path[LINE_SIZE];
  long mbit = 0;
  snprintf(path, sizeof path, "/sys/class/net/%.*s/speed", (int)strcspn(devices, ","), devices);
  FILE *file = devices[0] != '\0' && !strchr(devices, '/') ? fopen(path, "re") : NULL;
  bool known = file && fscanf(file, "%9ld", &mbit) == 1 && mbit > 0;
  if (file) {
    fclose(file);
  }
  text[0] = '\0';
  if (known) {
    snprintf(text, TOOL_ORIGIN_TEXT_MAX, "%ldmbit", mbit);
  }
  return text;
}

static void put_link(tool_json *json, cJSON *object, const tool_origin *of) {
  char text[TOOL_ORIGIN_TEXT_MAX];
  const char *rate = getenv("CLUSTER_RATE"), *delay_ms = getenv("CLUSTER_DELAY_MS");
  put_known(json, object, "rate",
            rate ? rate : device_rate(of->interface ? of->interface : "", text));
  if (delay_ms && delay_ms[0] != '\0') {
    tool_json_number(json, object, "delay_ms", strtod(delay_ms, NULL));
  } else {
    tool_json_null(json, object, "delay_ms");
  }
}

void tool_origin_put(tool_json *json, cJSON *parent, const tool_origin *of) {
  char text[TOOL_ORIGIN_TEXT_MAX];
  struct utsname system = {0};
  uname(&system);
  cJSON *object = tool_json_object(json, parent, "origin");
  tool_json_text(json, object, "version", tool_origin_version());
  tool_json_text(json, object, "commit", build_revision());
  tool_json_text(json, object, "date", tool_origin_date(text));
  tool_json_text(json, object, "machine", tool_origin_machine(text));
  tool_json_text(json, object, "host", system.nodename);
  tool_json_number(json, object, "hosts", of->hosts);
  put_link(json, object, of);
  put_known(json, object, "transport", of->transport);
  put_known(json, object, "interface", of->interface);
}

void tool_origin_put_here(tool_json *json, cJSON *parent) {
  tool_origin_put(json, parent, &(tool_origin){.hosts = 1});
}
