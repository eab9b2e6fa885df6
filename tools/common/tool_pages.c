/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/common/tool_pages.h"

#include <stdint.h>
#include <sys/mman.h>

static const size_t huge_page = (size_t)2 << 20;
static tool_pages_kind chosen = TOOL_PAGES_HUGE;

void tool_pages_choose(tool_pages_kind kind) {
  chosen = kind;
}

/* Never 0. */
static size_t whole_pages(size_t size) {
  return size == 0 ? huge_page : (size + huge_page - 1) / huge_page * huge_page;
}

void *tool_pages_alloc(size_t size) {
  if (size > SIZE_MAX / 2) {
    return NULL;
  }
  size_t wanted = whole_pages(size);
  uint8_t *mapped =
      mmap(NULL, wanted + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return NULL;
  }
  size_t before = (huge_page - (uintptr_t)mapped % huge_page) % huge_page;
  if (before > 0) {
    munmap(mapped, before);
  }
  if (before < huge_page) {
    munmap(mapped + before + wanted, huge_page - before);
  }
  if (chosen == TOOL_PAGES_HUGE) {
    madvise(mapped + before, wanted, MADV_HUGEPAGE); /* a hint; small pages work, too */
  }
  return mapped + before;
}

void tool_pages_free(void *memory, size_t size) {
  if (memory) {
    munmap(memory, whole_pages(size));
  }
}
