/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sources of saved states: the files of a folder, or blocks in memory. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/feedback/checkpoint.h"

/* ------------------------------------------------------------------ names */

const char *lcomm_state_file(int rank, int ranks, char name[LCOMM_STATE_FILE_MAX]) {
  snprintf(name, LCOMM_STATE_FILE_MAX, "rank-%05d-of-%05d.lcs", rank, ranks);
  return name;
}

int lcomm_state_file_ranks(const char *name) {
  char again[LCOMM_STATE_FILE_MAX];
  int rank = -1, ranks = 0;
  if (sscanf(name, "rank-%9d-of-%9d.lcs", &rank, &ranks) != 2 || rank < 0 || rank >= ranks) {
    return 0;
  }
  return strcmp(lcomm_state_file(rank, ranks, again), name) == 0 ? ranks : 0;
}

lcomm_status lcomm_state_source_fail(const lcomm_state_source *source, lcomm_status status,
                                     int rank, int ranks, const char *phrase, lcomm_why *why) {
  char name[LCOMM_STATE_FILE_MAX];
  if (!source->folder) {
    return lcomm_why_set(why, status, "the block of rank %d of %d: %s", rank, ranks, phrase);
  }
  return lcomm_why_set(why, status, "%.300s/%s: %s", source->folder,
                       lcomm_state_file(rank, ranks, name), phrase);
}

/* ----------------------------------------------------------------- folders */

static lcomm_status ranks_of_folder(const char *path, int *ranks, lcomm_why *why) {
  int all = 0, other = 0;
  DIR *folder = opendir(path);
  if (!folder) {
    return lcomm_why_set(why, LCOMM_ERR_SYSTEM, "%.300s: %s", path, strerror(errno));
  }
  for (struct dirent *entry = readdir(folder); entry && !other; entry = readdir(folder)) {
    int found = lcomm_state_file_ranks(entry->d_name);
    other = found > 0 && all > 0 && found != all ? found : 0;
    all = found > 0 ? found : all;
  }
  closedir(folder);
  if (all == 0) {
    return lcomm_why_set(why, LCOMM_ERR_SYSTEM, "%.300s: there is no saved state in this folder",
                         path);
  }
  if (other > 0) {
    return lcomm_why_set(why, LCOMM_ERR_WIRE,
                         "%.300s: files of more than one number of ranks are mixed here; remove "
                         "those of one",
                         path);
  }
  *ranks = all;
  return LCOMM_OK;
}

/* ------------------------------------------------------------------ blocks */

typedef struct walk {
  const uint8_t *bytes;
  size_t left;
  lcomm_state_block block;
  int number; /* of the block, from 1 */
} walk;

/* The next block; at the end its number is 0. */
static lcomm_status next_block(walk *it, lcomm_why *why) {
  const char *phrase = "";
  it->bytes += it->block.size;
  it->left -= it->block.size;
  it->number++;
  if (it->left == 0) {
    it->number = 0;
    return LCOMM_OK;
  }
  lcomm_status status = lcomm_state_block_find(it->bytes, it->left, &it->block, &phrase);
  if (status != LCOMM_OK) {
    return lcomm_why_set(why, status, "block %d of the bytes: %s", it->number, phrase);
  }
  return LCOMM_OK;
}

static lcomm_status ranks_of_blocks(const lcomm_state_source *source, int *ranks, lcomm_why *why) {
  walk it = {.bytes = source->bytes, .left = source->size};
  if (!source->bytes && source->size > 0) {
    return lcomm_why_set(why, LCOMM_ERR_ARGUMENT, "`bytes` is NULL, and `size` %zu", source->size);
  }
  lcomm_status status = next_block(&it, why);
  if (status == LCOMM_OK && it.number == 0) {
    return lcomm_why_set(why, LCOMM_ERR_WIRE, "no bytes were given");
  }
  *ranks = (int)it.block.ranks;
  while (status == LCOMM_OK && it.number > 0) {
    if ((int)it.block.ranks != *ranks) {
      return lcomm_why_set(why, LCOMM_ERR_WIRE,
                           "blocks of %d and of %u ranks are mixed; give those of one save", *ranks,
                           it.block.ranks);
    }
    status = next_block(&it, why);
  }
  return status;
}

static lcomm_status take_block(const lcomm_state_source *source, int rank, int ranks,
                               const uint8_t **bytes, size_t *size, lcomm_why *why) {
  walk it = {.bytes = source->bytes, .left = source->size};
  int given = 0;
  lcomm_status status = next_block(&it, why);
  for (; status == LCOMM_OK && it.number > 0; status = next_block(&it, why)) {
    given = it.number;
    if ((int)it.block.rank == rank) {
      *bytes = it.bytes;
      *size = it.block.size;
      return LCOMM_OK;
    }
  }
  if (status != LCOMM_OK) {
    return status;
  }
  return lcomm_why_set(
      why, LCOMM_ERR_ARGUMENT,
      "the block of rank %d is not among the %d given; ranks, nodes or buckets are not as "
      "they were when it was written, so every rank needs the blocks of all %d ranks, one "
      "after the other",
      rank, given, ranks);
}

/* -------------------------------------------------------------------- both */

lcomm_status lcomm_state_source_ranks(const lcomm_state_source *source, int *ranks,
                                      lcomm_why *why) {
  return source->folder ? ranks_of_folder(source->folder, ranks, why)
                        : ranks_of_blocks(source, ranks, why);
}

lcomm_status lcomm_state_source_take(const lcomm_state_source *source, int rank, int ranks,
                                     const uint8_t **bytes, size_t *size, lcomm_why *why) {
  char name[LCOMM_STATE_FILE_MAX];
  uint8_t *read = NULL;
  if (source->bring) {
    lcomm_status brought = source->bring(source->context, rank, bytes, size);
    return brought == LCOMM_OK
               ? LCOMM_OK
               : lcomm_why_set(why, brought, "the block of rank %d of %d did not come", rank,
                               ranks);
  }
  if (!source->folder) {
    return take_block(source, rank, ranks, bytes, size, why);
  }
  lcomm_state_file(rank, ranks, name);
  lcomm_status status = lcomm_file_read(source->folder, name, &read, size, why);
  *bytes = read;
  return status;
}

void lcomm_state_source_done(const lcomm_state_source *source, const uint8_t *bytes) {
  if (source->folder) {
    free((void *)(uintptr_t)bytes);
  }
}
