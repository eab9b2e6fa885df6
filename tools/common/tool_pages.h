/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_COMMON_TOOL_PAGES_H
#define LCOMM_TOOLS_COMMON_TOOL_PAGES_H

#include <stddef.h>

/* Memory for measuring: zeros that begin at a multiple of 2 MiB, in huge pages
 * where the system has some, so that a kernel is measured and not the page
 * tables. At least `size` bytes; NULL when there are not so many. */
void *tool_pages_alloc(size_t size);

/* `size` as it was asked for; memory may be NULL. */
void tool_pages_free(void *memory, size_t size);

#endif
