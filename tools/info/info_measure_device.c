/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/info/info_measure_device.h"
#include "tools/common/tool_timing.h"

#include <stdio.h>
#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/base/env.h"
#include "libcomm/device/device.h"

enum { WARM_UP = 2, COPIES = 10 };

/* What the exporting rank sends. */
typedef struct offer {
  int32_t good;           /* 0: no memory is exported, */
  char why[INFO_WHY_MAX]; /* because of this */
  lcomm_device_ipc memory;
} offer;

_Static_assert(sizeof(offer) <= INFO_LONG_SIZE, "an offer fits");

void info_make_visible(char *text, size_t size) {
  text[size - 1] = '\0';
  for (char *c = text; *c; c++) {
    *c = *c < ' ' || *c > '~' ? '?' : *c;
  }
}

/* The table of this rank's device, or why it neither reads nor exports. */
static const lcomm_device_table *usable(const lcomm_comm *comm, int peer, char *why) {
  const char *mode = lcomm_env_get(LCOMM_ENV_CUDA_IPC);
  const lcomm_device_table *table = lcomm_device_in_use();
  if (comm->topo.node[comm->rank] != comm->topo.node[peer]) {
    snprintf(why, INFO_WHY_MAX, "they are on different hosts");
  } else if (!table) {
    snprintf(why, INFO_WHY_MAX, "rank %d uses no device", comm->rank);
  } else if (mode && strcmp(mode, "off") == 0) {
    snprintf(why, INFO_WHY_MAX, "rank %d has LCOMM_CUDA_IPC=off", comm->rank);
  } else {
    return table;
  }
  return NULL;
}

static void cannot(char *why, const lcomm_comm *comm, const char *what,
                   const lcomm_device_table *table, int error) {
  snprintf(why, INFO_WHY_MAX, "the device of rank %d cannot %s: %.80s", comm->rank, what,
           table->explain(error));
}

/* ------------------------------------------------------------------ export */

/* Memory to export, described in the offer; NULL with the reason in it. */
static void *make_offer(const lcomm_comm *comm, const lcomm_device_table *table, offer *it) {
  void *memory = NULL;
  int error = table->memory.get(INFO_LONG_SIZE, &memory);
  if (error) {
    cannot(it->why, comm, "give memory", table, error);
    return NULL;
  }
  error = table->set(memory, 1, INFO_LONG_SIZE, NULL);
  error = error ? error : table->stream.finish(NULL);
  error = error ? error : table->ipc.get(memory, &it->memory);
  if (error) {
    cannot(it->why, comm, "share memory", table, error);
    (void)table->memory.free(memory);
    return NULL;
  }
  it->good = 1;
  return memory;
}

lcomm_status info_device_export(const info_room *room, int peer) {
  offer it;
  memset(&it, 0, sizeof(it));
  const lcomm_device_table *table = usable(room->comm, peer, it.why);
  void *memory = table ? make_offer(room->comm, table, &it) : NULL;
  memcpy(room->out, &it, sizeof(it));
  LCOMM_TRY(info_send(room, peer, sizeof(it)));
  LCOMM_TRY(info_receive(room, peer, INFO_SHORT_SIZE));
  if (memory) { /* not before: the peer reads it */
    (void)table->memory.free(memory);
  }
  return LCOMM_OK;
}

/* -------------------------------------------------------------------- read */

/* A peer's numbers are checked before they are used. */
static bool fits(const lcomm_device_ipc *memory) {
  return memory->offset <= memory->size && INFO_LONG_SIZE <= memory->size - memory->offset;
}

static int time_copies(const lcomm_device_table *table, void *here, const void *there, void *stream,
                       double *taken_s) {
  double times_s[COPIES] = {0};
  for (int i = -WARM_UP; i < COPIES; i++) {
    double begun_s = lcomm_clock_s();
    int error = table->copy(here, there, INFO_LONG_SIZE, stream);
    error = error ? error : table->stream.finish(stream);
    if (error) {
      return error;
    }
    times_s[i < 0 ? 0 : i] = lcomm_clock_s() - begun_s;
  }
  *taken_s = tool_median(times_s, COPIES);
  return 0;
}

static int copy_to_own(const lcomm_device_table *table, const void *there, double *taken_s) {
  void *here = NULL, *stream = NULL;
  int error = table->memory.get(INFO_LONG_SIZE, &here);
  if (error) {
    return error;
  }
  error = table->stream.create(&stream);
  if (!error) {
    error = time_copies(table, here, there, stream, taken_s);
    (void)table->stream.destroy(stream);
  }
  (void)table->memory.free(here);
  return error;
}

static void take(const lcomm_comm *comm, const lcomm_device_table *table,
                 const lcomm_device_ipc *memory, double *taken_s, char *why) {
  void *allocation = NULL;
  if (!fits(memory)) {
    snprintf(why, INFO_WHY_MAX, "the memory that is lent is too small");
    return;
  }
  int error = table->ipc.open(memory, &allocation);
  if (error) {
    cannot(why, comm, "open its peer's memory", table, error);
    return;
  }
  error = copy_to_own(table, (const uint8_t *)allocation + memory->offset, taken_s);
  if (error) {
    cannot(why, comm, "copy from its peer's memory", table, error);
  }
  (void)table->ipc.close(allocation);
}

lcomm_status info_device_read(const info_room *room, int peer, double *taken_s, char *why) {
  offer it;
  *taken_s = 0;
  lcomm_status status = info_receive(room, peer, sizeof(it));
  if (status != LCOMM_OK) {
    return status;
  }
  memcpy(&it, room->in, sizeof(it));
  info_make_visible(it.why, sizeof(it.why));
  const lcomm_device_table *table = usable(room->comm, peer, why);
  if (!it.good) {
    memcpy(why, it.why, sizeof(it.why));
  } else if (table) {
    take(room->comm, table, &it.memory, taken_s, why);
  }
  return info_send(room, peer, INFO_SHORT_SIZE);
}
