/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_COMMON_TOOL_ORIGIN_H
#define LCOMM_TOOLS_COMMON_TOOL_ORIGIN_H

/* Where results come from, in every JSON document of the tools: {"version", "commit", "date",
 * "machine", "host", "hosts", "rate", "delay_ms", "transport", "interface"}. What is not known, or
 * not used, is null. */

#include <stddef.h>

#include "tools/common/tool_json.h"

enum { TOOL_ORIGIN_TEXT_MAX = 256 };

typedef struct tool_origin {
  int hosts;             /* that the ranks are on */
  const char *transport; /* what messages travelled by, as "shm,ucx"; NULL or "": nothing */
  const char *interface; /* network devices they travelled over, as "eth0,lo"; NULL or "": none */
} tool_origin;

/* A member "origin" of `parent`. The rate is that of an emulated cluster (CLUSTER_RATE), else what
 * the system says of the first network device. */
void tool_origin_put(tool_json *json, cJSON *parent, const tool_origin *of);

/* Of a program that runs on this host alone. */
void tool_origin_put_here(tool_json *json, cJSON *parent);

/* "2 x AMD EPYC 9B14, 7 GiB, Linux 6.18.5". Returns text (TOOL_ORIGIN_TEXT_MAX bytes). */
const char *tool_origin_machine(char *text);

/* This moment in UTC: "2026-01-31T23:59:59Z". Returns text (TOOL_ORIGIN_TEXT_MAX bytes). */
const char *tool_origin_date(char *text);

/* The version of the library, "0.1.0". */
const char *tool_origin_version(void);

/* The commit the program was built from, as tools/build/revision has it. Its file is made by the
 * build. */
const char *build_revision(void);

#endif
