/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_COMMON_TOOL_PAGES_H
#define LCOMM_TOOLS_COMMON_TOOL_PAGES_H

#include <stddef.h>

/* Huge ones, so that a kernel is measured and not the page tables; or those that the system gives
 * programs which ask for nothing, so that all is measured that such a program waits for. */
typedef enum tool_pages_kind { TOOL_PAGES_HUGE, TOOL_PAGES_USUAL } tool_pages_kind;

/* Of all memory from now on, HUGE at first. Call it before there are threads. */
void tool_pages_choose(tool_pages_kind kind);

/* Memory for measuring: zeros that begin at a multiple of 2 MiB, in huge pages
 * where they are chosen and the system has some. At least `size` bytes; NULL
 * when there are not so many. */
void *tool_pages_alloc(size_t size);

/* `size` as it was asked for; memory may be NULL. */
void tool_pages_free(void *memory, size_t size);

#endif
