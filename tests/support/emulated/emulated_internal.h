/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_INTERNAL_H
#define LCOMM_TESTS_SUPPORT_EMULATED_EMULATED_INTERNAL_H

/* What the parts of the emulated devices offer to each other. */

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "tests/support/emulated/emulated_device.h"

/* Numbers as CUDA has them. */
enum {
  EMULATED_INVALID_VALUE = 1,
  EMULATED_OUT_OF_MEMORY = 2,
  EMULATED_INVALID_DEVICE = 101,
  EMULATED_INVALID_CONTEXT = 201,
  EMULATED_ALREADY_MAPPED = 208,
  EMULATED_INVALID_HANDLE = 400,
  EMULATED_NOT_SUPPORTED = 801,
  EMULATED_CAPTURE_UNSUPPORTED = 900,
  EMULATED_CAPTURE_INVALIDATED = 901,
  EMULATED_CAPTURE_MERGE = 902,
  EMULATED_CAPTURE_UNJOINED = 904,
  EMULATED_CAPTURE_ISOLATION = 905,
  EMULATED_CAPTURED_EVENT = 907,
};

/* Everything but the task in work is behind one lock, and whoever waits for streams
 * waits for `changed`. */
typedef struct emulated_world {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  emulated_setup setup;
  _Atomic bool ending; /* streams wait for nothing any more, and do nothing */
  unsigned waiting;    /* threads that wait for `changed` */
} emulated_world;

extern emulated_world emulated;

/* ---------------------------------------------------------------- emulated_order.c */

void emulated_lock(void);
void emulated_unlock(void);
/* With the lock: until something has changed, or for a while; that something has. */
void emulated_wait(pthread_cond_t *changed);
void emulated_wait_for(pthread_cond_t *changed, double seconds);
void emulated_tell(void);
/* What this thread did before before(x) is over when after(x) returns elsewhere.
 * Only for ThreadSanitizer, which cannot know that from the lock. */
void emulated_before(const void *what);
void emulated_after(const void *what);

/* --------------------------------------------------------------- emulated_device.c */

/* The device in use by this thread. */
int emulated_current(void);

/* ----------------------------------------------------------------- emulated_call.c */

/* At the head of each function of the table, without the lock: counts the call, waits while
 * another thread waits for the whole device, and for all streams if the call does that. */
void emulated_enter(emulated_call call);
/* The same for what waits only now and then; counts nothing. */
void emulated_need_device(const char *what);

/* --------------------------------------------------------------- emulated_stream.c */

enum { EMULATED_TEXT_MAX = 160 };

/* Something for a stream to do, the first member of what it needs for that. With the lock, but
 * for run. */
typedef struct emulated_task {
  struct emulated_task *next, *next_in_queue;
  struct emulated_stream *stream;
  void (*run)(struct emulated_task *task);
  /* What it holds, given back whether it has run or not; or NULL. */
  void (*drop)(struct emulated_task *task);
  /* Can it begin? NULL: always. And of such a task: what it waits for, as text. */
  bool (*is_ready)(const struct emulated_task *task);
  void (*describe)(const struct emulated_task *task, char text[EMULATED_TEXT_MAX]);
  size_t size; /* of all of it */
} emulated_task;

/* A task of `size` zero bytes; NULL: no memory. */
void *emulated_task_new(size_t size, void (*run)(emulated_task *task));

/* Queue it; it belongs to the stream, or is freed. */
int emulated_put(void *stream, emulated_task *task);
/* The device of a stream, -1 when there is no such stream. */
int emulated_stream_device(void *stream);
/* A number that no other stream of this host has, and its part in this process. */
uint64_t emulated_stream_identity(void *stream);

/* Of the library: it waits for numbers of `stream.numbers` only. */
bool emulated_stream_is_work(void *stream);
bool emulated_stream_is_captured(void *stream);

int emulated_stream_create(void **stream);
int emulated_work_stream_create(void **stream);
int emulated_stream_captured(void *stream, uint64_t *capture);
int emulated_stream_retain(void *stream, void (*released)(void *data), void *data);
int emulated_stream_destroy(void *stream);
int emulated_stream_finish(void *stream);
/* Until all is over that is in a stream now: counts no call. */
int emulated_finish(void *stream);
/* With the lock: that of all streams, or of those of a device. `what` is for people. */
void emulated_finish_all(const char *what, int device);
/* The ends of the parts say how many objects were left. */
int emulated_streams_end(void);

/* ----------------------------------------------------------------- emulated_work.c */

int emulated_copy(void *destination, const void *source, size_t size, void *stream);
int emulated_copy_in(void *destination, const void *source, size_t size, void *stream);
int emulated_set(void *memory, int byte, size_t size, void *stream);
int emulated_stream_numbers(void *stream, const lcomm_device_number *list, uint32_t count);
int emulated_stream_gates(void *stream, const lcomm_device_gate *list, uint32_t count);

/* --------------------------------------------------------------- emulated_memory.c */

lcomm_memory_location emulated_locate(const void *pointer);
lcomm_memory_location emulated_place(const void *pointer); /* the same; counts no call */
/* Are these bytes inside one piece of memory of this kind? KIND_COUNT: of any that
 * a device can reach. */
bool emulated_holds(lcomm_memory_kind kind, const void *pointer, size_t size);
int emulated_memory_get(size_t size, void **memory);
int emulated_pinned_get(size_t size, void **memory);
int emulated_memory_free(void *memory);
int emulated_pinned_free(void *memory);
int emulated_pin(void *memory, size_t size);
int emulated_unpin(void *memory);
int emulated_ipc_get(const void *pointer, lcomm_device_ipc *ipc);
int emulated_ipc_open(const lcomm_device_ipc *ipc, void **allocation);
int emulated_ipc_close(void *allocation);
int emulated_memory_end(void);

/* ---------------------------------------------------------------- emulated_ipc.c */

/* What a handle says: a memory file that a process has open. */
typedef struct emulated_handle {
  uint64_t magic;
  uint64_t inode, size;
  int32_t pid, file, device;
} emulated_handle;

/* Make such a file and describe it; false: no memory. */
bool emulated_file_create(size_t size, emulated_handle *handle);
/* Open that of another process, checked; -1 and an error in *error. */
int emulated_file_open(const uint8_t bytes[LCOMM_DEVICE_IPC_SIZE], emulated_handle *handle,
                       int *error);

/* ---------------------------------------------------------------- emulated_event.c */

int emulated_event_create(bool for_processes, void **event);
int emulated_event_destroy(void *event);
int emulated_event_record(void *event, void *stream);
/* The same of no program: they count no call. */
int emulated_mark(void *event, void *stream);
int emulated_follow(void *stream, void *event);
int emulated_look(void *event, bool *over);
int emulated_event_make(void **event);
int emulated_event_drop(void *event);
int emulated_event_query(void *event, bool *over);
int emulated_stream_wait(void *stream, void *event);
int emulated_event_ipc_get(void *event, uint8_t handle[LCOMM_DEVICE_IPC_SIZE]);
int emulated_event_ipc_open(const uint8_t handle[LCOMM_DEVICE_IPC_SIZE], void **event);
int emulated_events_end(void);

#endif
