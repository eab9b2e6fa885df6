/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which file would be this process's NCCL if this library had not its name. The loader cannot be
 * asked: a library of the name libnccl.so.2 is loaded. But it says where it looks. */

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/interpose/nccl/nccl_calls.h"

#define NCCL_FILE "libnccl.so.2"

enum { OBJECTS_MAX = 2048 };

/* A loaded library, or the program, whose path is "". */
typedef struct object {
  char *path;
  bool needs_nccl;
} object;

typedef struct objects {
  object *all;
  size_t count;
} objects;

/* ------------------------------------------------------------ loaded objects */

static bool needs_nccl(const struct dl_phdr_info *info) {
  const ElfW(Dyn) *dynamic = NULL, *it;
  uintptr_t strings = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
  }
  for (it = dynamic; it && it->d_tag != DT_NULL; it++) {
    strings = it->d_tag == DT_STRTAB ? it->d_un.d_ptr : strings;
  }
  /* Some loaders leave the address as it is in the file. */
  strings += strings < info->dlpi_addr ? info->dlpi_addr : 0;
  for (it = dynamic; it && strings && it->d_tag != DT_NULL; it++) {
    if (it->d_tag == DT_NEEDED &&
        strcmp((const char *)(strings + it->d_un.d_val), NCCL_FILE) == 0) {
      return true;
    }
  }
  return false;
}

/* Only notes them: the loader holds a lock meanwhile. */
static int record(struct dl_phdr_info *info, size_t size, void *context) {
  objects *loaded = context;
  (void)size;
  char *path = info->dlpi_name && loaded->count < OBJECTS_MAX ? strdup(info->dlpi_name) : NULL;
  if (path) {
    loaded->all[loaded->count++] = (object){.path = path, .needs_nccl = needs_nccl(info)};
  }
  return 0;
}

static void forget(objects *loaded) {
  for (size_t i = 0; i < loaded->count; i++) {
    free(loaded->all[i].path);
  }
  free(loaded->all);
}

/* ----------------------------------------------------------------- places */

static bool visit_file(const char *folder, size_t length, const char *below, lcomm_nccl_visit visit,
                       void *context) {
  char path[LCOMM_NCCL_PATH_MAX];
  int needed = snprintf(path, sizeof(path), "%.*s%s", (int)length, folder, below);
  return needed > 0 && (size_t)needed < sizeof(path) && access(path, R_OK) == 0 &&
         visit(context, path);
}

/* The loader's places on behalf of one object: its RPATH, LD_LIBRARY_PATH, its RUNPATH, the
 * system's; NULL where it does not say. The caller frees it. */
static Dl_serinfo *places_of(const object *on) {
  void *handle = dlopen(on->path[0] ? on->path : NULL, RTLD_LAZY | RTLD_NOLOAD);
  Dl_serinfo size = {0}, *places = NULL;
  if (handle && dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) == 0) {
    places = calloc(1, size.dls_size);
  }
  if (places && (dlinfo(handle, RTLD_DI_SERINFOSIZE, places) != 0 ||
                 dlinfo(handle, RTLD_DI_SERINFO, places) != 0)) {
    free(places);
    places = NULL;
  }
  if (handle) {
    dlclose(handle);
  }
  return places;
}

static bool visit_places(const object *on, lcomm_nccl_visit visit, void *context) {
  Dl_serinfo *places = places_of(on);
  bool found = false;
  for (unsigned i = 0; places && i < places->dls_cnt && !found; i++) {
    const char *folder = places->dls_serpath[i].dls_name;
    found = visit_file(folder, strlen(folder), "/" NCCL_FILE, visit, context);
  }
  free(places);
  return found;
}

/* Wheels are unpacked side by side, and one of them is NCCL. */
static bool visit_package(const object *on, lcomm_nccl_visit visit, void *context) {
  static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
  bool found = false;
  for (size_t i = 0; i < sizeof(folders) / sizeof *folders && !found; i++) {
    const char *at = strstr(on->path, folders[i]);
    size_t length = at ? (size_t)(at - on->path) + strlen(folders[i]) : 0;
    found = at && visit_file(on->path, length, "nvidia/nccl/lib/" NCCL_FILE, visit, context);
  }
  return found;
}

bool lcomm_nccl_search(lcomm_nccl_visit visit, void *context) {
  objects loaded = {.all = calloc(OBJECTS_MAX, sizeof *loaded.all)};
  bool found = false;
  if (!loaded.all) {
    return false;
  }
  dl_iterate_phdr(record, &loaded);
  for (size_t i = 0; i < loaded.count && !found; i++) {
    found = loaded.all[i].needs_nccl && visit_places(&loaded.all[i], visit, context);
  }
  for (size_t i = 0; i < loaded.count && !found; i++) {
    found = visit_package(&loaded.all[i], visit, context);
  }
  /* A program that opens NCCL by its name: the places of the program. */
  for (size_t i = 0; i < loaded.count && !found; i++) {
    found = !loaded.all[i].path[0] && visit_places(&loaded.all[i], visit, context);
  }
  forget(&loaded);
  return found;
}
