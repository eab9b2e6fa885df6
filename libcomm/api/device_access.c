/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Devices, for libraries that call no CUDA themselves. */

#include "libcomm/base/error.h"
#include "libcomm/device/device.h"
#include "libcomm/device/device_deferred.h"
#include "libcomm/engine/entry.h"
#include "libcomm/include/libcomm_interpose.h"

/* The table, or NULL with the thread's sentence. */
static const lcomm_device_table *find(const char *call) {
  lcomm_why why;
  const lcomm_device_table *table = lcomm_device_get(&why);
  if (!table) {
    (void)lcomm_error_thread(LCOMM_ERR_SYSTEM, "%s: %s", call, why.text);
  }
  return table;
}

static lcomm_status ended(const lcomm_device_table *table, const char *call, int error) {
  return error == 0 ? LCOMM_OK
                    : lcomm_error_thread(LCOMM_ERR_SYSTEM, "%s: %s", call, table->explain(error));
}

static lcomm_status is_null(const char *call) {
  return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "%s: a pointer is NULL", call);
}

lcomm_status lcomm_device_use(int device) {
  const lcomm_device_table *table = find("lcomm_device_use");
  return table ? ended(table, "lcomm_device_use", table->use(device)) : LCOMM_ERR_SYSTEM;
}

lcomm_status lcomm_device_current(int *device) {
  if (!device) {
    return is_null("lcomm_device_current");
  }
  const lcomm_device_table *table = find("lcomm_device_current");
  return table ? ended(table, "lcomm_device_current", table->current(device)) : LCOMM_ERR_SYSTEM;
}

int lcomm_device_is_loaded(void) {
  return lcomm_device_in_use() != NULL;
}

int lcomm_device_holds(const void *memory) {
  return memory && lcomm_memory_is_on_device(lcomm_memory_location_of(memory, 1));
}

int lcomm_device_noted(void) {
  return lcomm_device_note();
}

void lcomm_device_defer_thread(int device) {
  lcomm_device_defer(device < 0 ? LCOMM_DEVICE_NONE : device);
}

void lcomm_device_free_deferred(void) {
  lcomm_device_do_deferred();
}

lcomm_status lcomm_device_memory_alloc(size_t size, void **memory) {
  if (!memory) {
    return is_null("lcomm_device_memory_alloc");
  }
  const lcomm_device_table *table = find("lcomm_device_memory_alloc");
  void *got = NULL;
  lcomm_status status = LCOMM_ERR_SYSTEM;
  if (table) {
    status = ended(table, "lcomm_device_memory_alloc", table->memory.get(size, &got));
  }
  if (status == LCOMM_OK) {
    *memory = got;
  }
  return status;
}

lcomm_status lcomm_device_memory_free(void *memory) {
  if (!memory) {
    return LCOMM_OK;
  }
  const lcomm_device_table *table = find("lcomm_device_memory_free");
  return table ? ended(table, "lcomm_device_memory_free", table->memory.free(memory))
               : LCOMM_ERR_SYSTEM;
}

lcomm_status lcomm_device_captured(void *stream, int *captured) {
  static const char call[] = "lcomm_device_captured";
  uint64_t capture = 0;
  if (!captured) {
    return is_null(call);
  }
  const lcomm_device_table *table = find(call);
  if (!table) {
    return LCOMM_ERR_SYSTEM;
  }
  LCOMM_TRY(ended(table, call, table->stream.captured(stream, &capture)));
  *captured = capture != 0;
  return LCOMM_OK;
}

/* The host cannot wait for a stream that is captured. */
static lcomm_status check_not_captured(const lcomm_device_table *table, const char *call,
                                       void *stream) {
  uint64_t capture = 0;
  LCOMM_TRY(ended(table, call, table->stream.captured(stream, &capture)));
  return capture == 0
             ? LCOMM_OK
             : lcomm_error_thread(
                   LCOMM_ERR_ARGUMENT,
                   "%s: the stream is captured into a graph, so nothing of it is done", call);
}

static lcomm_status copy(const char *call, void *to, const void *from, size_t size, void *stream,
                         int waits) {
  if (size == 0) {
    return LCOMM_OK;
  }
  if (!to || !from) {
    return is_null(call);
  }
  const lcomm_device_table *table = find(call);
  if (!table) {
    return LCOMM_ERR_SYSTEM;
  }
  LCOMM_TRY(waits ? check_not_captured(table, call, stream) : LCOMM_OK);
  int error = table->copy(to, from, size, stream);
  error = error || !waits ? error : table->stream.finish(stream);
  return ended(table, call, error);
}

lcomm_status lcomm_device_copy_on_stream(void *to, const void *from, size_t size, void *stream) {
  return copy("lcomm_device_copy_on_stream", to, from, size, stream, 0);
}

lcomm_status lcomm_device_read(void *to, const void *from, size_t size, void *stream) {
  return copy("lcomm_device_read", to, from, size, stream, 1);
}

/* The device that a copy has to do with; 0, where CUDA itself finds out. */
static int device_of(const void *to, const void *from) {
  lcomm_memory_location there = lcomm_memory_location_of(to, 1);
  there = lcomm_memory_is_on_device(there) ? there : lcomm_memory_location_of(from, 1);
  return lcomm_memory_is_on_device(there) ? there.device : 0;
}

lcomm_status lcomm_device_copy(void *to, const void *from, size_t size) {
  static const char call[] = "lcomm_device_copy";
  if (size == 0) {
    return LCOMM_OK;
  }
  if (!to || !from) {
    return is_null(call);
  }
  const lcomm_device_table *table = find(call);
  return table ? ended(table, call, lcomm_device_copy_apart(device_of(to, from), to, from, size))
               : LCOMM_ERR_SYSTEM;
}

/* ------------------------------------------------------------------- waiting */

/* With the memory's device in use. */
static lcomm_status finish(const lcomm_device_table *table, void *stream) {
  static const char call[] = "lcomm_device_finish";
  LCOMM_TRY(check_not_captured(table, call, stream));
  return ended(table, call, table->stream.finish(stream));
}

lcomm_status lcomm_device_finish(const void *memory, void *stream) {
  static const char call[] = "lcomm_device_finish";
  const lcomm_device_table *table = memory ? find(call) : NULL;
  if (!table) {
    return memory ? LCOMM_ERR_SYSTEM : is_null(call);
  }
  lcomm_memory_location there = table->locate(memory);
  if (!lcomm_memory_is_on_device(there)) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "%s: the memory is the host's", call);
  }
  int before = there.device;
  LCOMM_TRY(ended(table, call, lcomm_device_enter(table, there.device, &before)));
  lcomm_status status = finish(table, stream);
  (void)table->use(before);
  return status;
}

int lcomm_device_reads_awaited(lcomm_comm *comm) {
  if (!comm || lcomm_enter(comm) != LCOMM_OK) {
    return 0;
  }
  bool awaited = comm->runs.reads_awaited > 0;
  lcomm_exit(comm);
  return awaited;
}

static lcomm_status go_step_by_step(lcomm_comm *comm) {
  bool was_used = comm->operations.next[LCOMM_SEQUENCE_SPACE_CALLS] != 0;
  if (was_used || comm->progress.thread) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE, "lcomm_device_step_by_step: %s",
                        was_used ? "the communicator has been used; call it before its first "
                                   "operation"
                                 : "a thread moves its messages; make it with "
                                   "LCOMM_PROGRESS_CALLS");
  }
  comm->progress.allows_thread = comm->progress.wants_thread = false;
  return LCOMM_OK;
}

lcomm_status lcomm_device_step_by_step(lcomm_comm *comm) {
  LCOMM_TRY(lcomm_enter_given(comm, "lcomm_device_step_by_step"));
  lcomm_status status = go_step_by_step(comm);
  lcomm_exit(comm);
  return status;
}
