/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DEVICE_DEVICE_H
#define LCOMM_DEVICE_DEVICE_H

/* A kind of accelerator as the engine sees it: memory, streams, events, copies
 * and kernels, as one table. CUDA's is in libcomm-cuda.so, which is opened at run
 * time, so that libcomm itself runs where there is no driver.
 *
 * Functions that return int return 0, or a number that explain() turns into a
 * sentence; they leave no error behind in CUDA. `stream` is a cudaStream_t, NULL
 * being the legacy default stream, and `device` is a CUDA ordinal of this process.
 * Streams, events and memory belong to the device that is in use when they are
 * made. Thread-safe, but for one object at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda.h"
#include "libcomm/base/error.h"
#include "libcomm/device/memory_location.h"

/* A function that returns such a number ends with that of a call that failed. */
#define LCOMM_DEVICE_TRY(call)                                                                     \
  do {                                                                                             \
    int tried_ = (call);                                                                           \
    if (tried_ != 0) {                                                                             \
      return tried_;                                                                               \
    }                                                                                              \
  } while (0)

/* See stream.captured. */
#define LCOMM_DEVICE_CAPTURE_OTHER UINT64_MAX

enum { LCOMM_DEVICE_NAME_MAX = 64, LCOMM_DEVICE_IPC_SIZE = 64, LCOMM_DEVICE_NONE = -1 };

typedef struct lcomm_device_facts {
  char name[LCOMM_DEVICE_NAME_MAX]; /* for people */
  char pci[16];                     /* "0000:3b:00.0", lower case */
  uint8_t uuid[16];
  int major, minor; /* compute capability */
  uint64_t memory_size;
  bool waits_for_values; /* its streams do; else kernels do that for stream.numbers */
  bool shares_memory;    /* ipc_* work */
} lcomm_device_facts;

/* A piece of device memory for another process of this host. */
typedef struct lcomm_device_ipc {
  uint8_t handle[LCOMM_DEVICE_IPC_SIZE];
  uint64_t allocation; /* a number of the allocation: equal handles have equal numbers */
  uint64_t base;       /* its address in the process that has it */
  uint64_t offset;     /* of the address in its allocation */
  uint64_t size;       /* of the allocation */
} lcomm_device_ipc;

typedef struct lcomm_device_memory {
  int (*get)(size_t size, void **memory);
  int (*free)(void *memory);
  /* Host and device see it at the same address; free frees it. */
  int (*managed_get)(size_t size, void **memory);
  int (*pinned_get)(size_t size, void **memory); /* readable and writable by host and device */
  int (*pinned_free)(void *memory);
  /* Memory of the host that others have made, that processes share say: whole pages of it become
   * pinned memory, at the same address, until unpin, and stay their owner's. */
  int (*pin)(void *memory, size_t size);
  int (*unpin)(void *memory);
} lcomm_device_memory;

/* What a stream does with a number in pinned memory, which the host and other streams change, too.
 */
typedef enum lcomm_device_number_task {
  LCOMM_DEVICE_AWAIT, /* wait until it reaches `number`, counting on past 2^32 */
  LCOMM_DEVICE_WRITE  /* write `number`: whoever reads it sees all that the stream did before */
} lcomm_device_number_task;

typedef struct lcomm_device_number {
  lcomm_device_number_task task;
  uint32_t *place; /* aligned */
  uint32_t number;
} lcomm_device_number;

/* The same of a number that changes between launches of a graph: it is read, in pinned memory, when
 * the stream comes to it. Nobody waits where `passed`, in pinned memory, is not 0. */
typedef struct lcomm_device_gate {
  lcomm_device_number_task task;
  uint32_t *place; /* aligned */
  const uint32_t *number, *passed;
} lcomm_device_gate;

typedef struct lcomm_device_stream {
  /* Streams as programs make them; they do not wait for the legacy default stream. */
  int (*create)(void **stream);
  /* Streams of ours, which can wait for numbers. A device has few queues for its streams, and a
   * stream that waits stops those in its queue; these have others than a program's. */
  int (*work_create)(void **stream);
  int (*destroy)(void *stream);
  int (*finish)(void *stream); /* until all that is in it is over */
  /* Is it captured into a graph now, in place of being done? *capture is a number of that capture,
   * 0 where there is none; LCOMM_DEVICE_CAPTURE_OTHER for the legacy stream, which is never
   * captured, but cannot be used either while another stream of its device is. */
  int (*captured)(void *stream, uint64_t *capture);
  /* Of a stream that is captured: once its graph and all that was made of it are gone, and what was
   * launched of that is over, released(data) is called, in any thread. It calls nothing of a table.
   */
  int (*retain)(void *stream, void (*released)(void *data), void *data);
  int (*wait)(void *stream, void *event);
  /* Of streams of work_create: `count` tasks, one after the other, in one call of the driver where
   * they are few; by kernels of one thread where streams cannot wait for values. Memory may come
   * and go meanwhile, because nobody but the host and other devices has to write what is awaited;
   * what waits for the whole device waits for that, too. The list is copied. In
   * a stream that is captured each launch of the graph does the same again. */
  int (*numbers)(void *stream, const lcomm_device_number *list, uint32_t count);
  /* The same of gates, by kernels of one thread. */
  int (*gates)(void *stream, const lcomm_device_gate *list, uint32_t count);
} lcomm_device_stream;

typedef struct lcomm_device_event {
  int (*create)(bool for_processes, void **event);
  int (*destroy)(void *event);
  int (*record)(void *event, void *stream);
  int (*query)(void *event, bool *over); /* over too when never recorded */
} lcomm_device_event;

/* Memory and events of other processes. get fails for memory that cannot be
 * shared: that of pools, and of the host. An allocation is opened once, and
 * closed by what open gave. A device may need peer access first. */
typedef struct lcomm_device_processes {
  int (*get)(const void *pointer, lcomm_device_ipc *ipc);
  int (*open)(const lcomm_device_ipc *ipc, void **allocation);
  int (*close)(void *allocation);
  int (*event_get)(void *event, uint8_t handle[LCOMM_DEVICE_IPC_SIZE]);
  int (*event_open)(const uint8_t handle[LCOMM_DEVICE_IPC_SIZE], void **event);
  int (*peer_access)(int device, int peer, bool *possible); /* and switches it on */
} lcomm_device_processes;

typedef struct lcomm_device_table {
  const char *name; /* "cuda" */
  const lcomm_cuda_kernels *kernels;

  int (*count)(int *count);
  const char *(*explain)(int error); /* static text */
  int (*facts)(int device, lcomm_device_facts *facts);
  int (*version)(int *driver, int *runtime); /* as CUDA counts, 13000 is 13.0 */
  /* The device in use by this thread; LCOMM_DEVICE_NONE when it has not come to use
   * one. To use that again leaves it without, as before. */
  int (*current)(int *device);
  int (*use)(int device); /* for this thread */
  /* All kernels are on the device in use. The first launch of one would bring it
   * there, and wait for the whole device. */
  int (*load)(void);
  /* Never fails: what nobody knows is HOST. */
  lcomm_memory_location (*locate)(const void *pointer);

  lcomm_device_memory memory;
  lcomm_device_stream stream;
  lcomm_device_event event;
  lcomm_device_processes ipc;

  /* Between any two places, in order with the stream. Host memory that is not
   * pinned may make it wait. */
  int (*copy)(void *destination, const void *source, size_t size, void *stream);
  int (*set)(void *memory, int byte, size_t size, void *stream);
} lcomm_device_table;

/* The table of this machine; NULL where there is none, and then `why` (may be
 * NULL) says what was missing and what to do. The
 * module is opened once in a process and stays open. LCOMM_CUDA=off: none.
 * A thread that defers gets one of its own (device_deferred.h). */
const lcomm_device_table *lcomm_device_get(lcomm_why *why);

/* Use a device of the table for a while. The answer is that of use(); *before is what to use()
 * again at the end, whatever the answer is. */
int lcomm_device_enter(const lcomm_device_table *of, int ordinal, int *before);

/* Memory of a device by memory.get or memory.pinned_get of this machine's table, whichever device
 * is in use; NULL: there is none. */
void *lcomm_device_memory_of(int ordinal, size_t size, int (*get)(size_t size, void **memory));

/* A stream of a device, and a copy in one, for which this waits; of this machine's table, whichever
 * device is in use. What CUDA has against it, or 0. */
int lcomm_device_stream_of(int ordinal, void **stream);
int lcomm_device_copy_now(int ordinal, void *to, const void *from, size_t size, void *stream);

/* The same in a stream that is made for it, whose queue no stream of the program shares. */
int lcomm_device_copy_apart(int ordinal, void *to, const void *from, size_t size);

/* The same as lcomm_device_get for a program that may use no device at all, and is spared the start
 * of CUDA then: NULL, too, as long as nothing has loaded CUDA's driver into this process, because
 * no address can be one of a device before. */
const lcomm_device_table *lcomm_device_in_use(void);

/* A thread that must not come to wait for a device, because the device waits for it: from bar to
 * unbar, which takes bar's answer, it calls no function of a table but explain. CUDA's table
 * answers an error to one that does, before it calls CUDA, and locate HOST; the emulated device
 * ends its process. Threads that move messages are barred for good, and those that make and end
 * communicators for the NCCL interposer (device_deferred.h). */
bool lcomm_device_bar(void);
void lcomm_device_unbar(bool before);
bool lcomm_device_is_barred(void);

/* For tests: the table that lcomm_device_get() gives from now on; NULL: none. */
void lcomm_device_replace(const lcomm_device_table *table);

/* What libcomm-cuda.so exports: a constant that has the name of its type, which is
 * why the type is no typedef. */
struct lcomm_device_module {
  uint32_t size;    /* LCOMM_DEVICE_MODULE_SIZE: another build may have other tables */
  uint32_t version; /* lcomm_version() of libcomm.so: both come from one build */
  const lcomm_device_table *table;
  bool (**is_barred)(void); /* what its table asks (lcomm_device_bar), set by who opens it; NULL: it
                             * asks nothing */
};

/* Of the structure and the tables behind it. */
#define LCOMM_DEVICE_MODULE_SIZE                                                                   \
  ((uint32_t)(sizeof(struct lcomm_device_module) + sizeof(lcomm_device_table) +                    \
              sizeof(lcomm_cuda_kernels)))

#endif
