/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Saving a state: into this rank's file of a folder, or into memory of the caller. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libcomm/engine/entry.h"
#include "libcomm/tensor/saved_state.h"

/* A file of another number of ranks would make what is saved here unloadable. */
static lcomm_status check_folder(const lcomm_comm *comm, const char *folder, lcomm_why *why) {
  int other = 0;
  char name[LCOMM_STATE_FILE_MAX] = "";
  DIR *opened = opendir(folder);
  if (!opened) { /* whatever is wrong with it, making the file will say */
    return LCOMM_OK;
  }
  for (struct dirent *entry = readdir(opened); entry && !other; entry = readdir(opened)) {
    int ranks = lcomm_state_file_ranks(entry->d_name);
    other = ranks > 0 && ranks != comm->size ? ranks : 0;
    snprintf(name, sizeof(name), "%.*s", LCOMM_STATE_FILE_MAX - 1, entry->d_name);
  }
  closedir(opened);
  if (other == 0) {
    return LCOMM_OK;
  }
  return lcomm_why_set(
      why, LCOMM_ERR_ARGUMENT,
      "%.300s/%s is there, of a save by %d ranks; these are %d ranks, and files of both could "
      "not be loaded. Save into a new folder, or remove that save first",
      folder, name, other, comm->size);
}

/* ------------------------------------------------------------------- both */

/* Between two steps, on a communicator that has not failed. */
static lcomm_status check_now(lcomm_comm *comm, const char *call) {
  LCOMM_TRY(lcomm_control_receive(comm));
  if (comm->changes.held) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "%s: newcomers have joined, and what ranks remember is shared out by the "
                        "next step, or call with a residual; save after that",
                        call);
  }
  if (atomic_load(&comm->deferred.open)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE, "%s: a step is in flight; call it between the steps",
                        call);
  }
  return lcomm_saved_state_check_calls(comm, call);
}

/* What is to be done with the scratch that the bytes need. */
typedef lcomm_status saver(const lcomm_ef_list *list, void *context, float *scratch,
                           lcomm_why *why);

static lcomm_status save_now(lcomm_comm *comm, const char *call, saver *save, void *context) {
  lcomm_why why = {"out of memory"};
  float *scratch = NULL;
  lcomm_ef_list list;
  LCOMM_TRY(check_now(comm, call));
  lcomm_status status = lcomm_saved_state_list(comm, &list);
  if (status == LCOMM_OK) {
    status = lcomm_state_scratch(&list, &scratch);
  }
  if (status == LCOMM_OK) {
    status = save(&list, context, scratch, &why);
  }
  free(scratch);
  free(list.items);
  if (status != LCOMM_OK) {
    return lcomm_refuse(comm, status, "%s: %s", call, why.text);
  }
  return LCOMM_OK;
}

static lcomm_status enter_and_save(lcomm_comm *comm, const char *call, saver *save, void *context) {
  lcomm_status status = lcomm_enter(comm);
  if (status != LCOMM_OK) {
    return status;
  }
  status = save_now(comm, call, save, context);
  lcomm_exit(comm);
  return status;
}

/* ----------------------------------------------------------------- folders */

static lcomm_status save_file(const lcomm_ef_list *list, void *context, float *scratch,
                              lcomm_why *why) {
  const lcomm_comm *comm = list->comm;
  const char *folder = context;
  lcomm_file file;
  lcomm_state_sink sink = {.file = &file};
  char name[LCOMM_STATE_FILE_MAX];
  if (!folder || !folder[0]) {
    return lcomm_why_set(why, LCOMM_ERR_ARGUMENT, "no folder was given");
  }
  LCOMM_TRY(lcomm_folder_make(folder, why));
  LCOMM_TRY(check_folder(comm, folder, why));
  LCOMM_TRY(lcomm_file_begin(&file, folder, lcomm_state_file(comm->rank, comm->size, name), why));
  lcomm_state_write_to(list, scratch, &sink);
  return lcomm_file_finish(&file, why);
}

lcomm_status lcomm_state_save(lcomm_comm *comm, const char *folder) {
  if (!comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_state_save: no communicator was given");
  }
  return enter_and_save(comm, "lcomm_state_save", save_file, (void *)(uintptr_t)folder);
}

/* ------------------------------------------------------------------ memory */

typedef struct block {
  void *bytes;
  size_t size;
} block;

static lcomm_status measure(const lcomm_ef_list *list, void *context, float *scratch,
                            lcomm_why *why) {
  uint64_t size = lcomm_state_written_size(list, scratch);
  if (size > SIZE_MAX) {
    return lcomm_why_set(why, LCOMM_ERR_MEMORY, "the state is larger than any memory");
  }
  *(size_t *)context = (size_t)size;
  return LCOMM_OK;
}

static lcomm_status write_block(const lcomm_ef_list *list, void *context, float *scratch,
                                lcomm_why *why) {
  const block *to = context;
  lcomm_state_sink sink = {.bytes = to->bytes};
  uint64_t size = lcomm_state_written_size(list, scratch);
  if (to->size < size) {
    return lcomm_why_set(
        why, LCOMM_ERR_ARGUMENT,
        "%zu bytes are too few for the state, which takes %llu now; ask lcomm_state_size", to->size,
        (unsigned long long)size);
  }
  lcomm_state_write_to(list, scratch, &sink);
  lcomm_state_put_checksum(XXH3_64bits(sink.bytes, sink.at), sink.bytes + sink.at);
  return LCOMM_OK;
}

lcomm_status lcomm_state_size(lcomm_comm *comm, size_t *size) {
  if (!comm || !size) {
    return lcomm_refuse_null(comm, "lcomm_state_size", "size");
  }
  return enter_and_save(comm, "lcomm_state_size", measure, size);
}

lcomm_status lcomm_state_write(lcomm_comm *comm, void *bytes, size_t size) {
  if (!comm || !bytes) {
    return lcomm_refuse_null(comm, "lcomm_state_write", "bytes");
  }
  block to = {bytes, size};
  return enter_and_save(comm, "lcomm_state_write", write_block, &to);
}
