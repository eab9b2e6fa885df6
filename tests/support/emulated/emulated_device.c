/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/emulated/emulated_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/emulated/emulated_blocks.h"
#include "tests/support/emulated/emulated_churn.h"
#include "tests/support/emulated/emulated_stream.h"

emulated_world emulated = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Thread_local int in_use = LCOMM_DEVICE_NONE;
static atomic_bool loaded[EMULATED_DEVICES_MAX];
static lcomm_emulated_hooks hooks_before;
static lcomm_device_table table;

int emulated_current(void) {
  return in_use >= 0 && in_use < emulated.setup.devices ? in_use : 0;
}

/* ---------------------------------------------------------------- questions */

static int count(int *devices) {
  emulated_enter(EMULATED_CALL_COUNT_DEVICES);
  *devices = emulated.setup.devices;
  return 0;
}

static const char *explain(int error) {
  emulated_enter(EMULATED_CALL_EXPLAIN);
  switch (error) {
  case 0:
    return "no error";
  case EMULATED_INVALID_VALUE:
    return "invalid argument";
  case EMULATED_OUT_OF_MEMORY:
    return "out of memory";
  case EMULATED_INVALID_DEVICE:
    return "invalid device ordinal";
  case EMULATED_INVALID_CONTEXT:
    return "not in the process that made it";
  case EMULATED_ALREADY_MAPPED:
    return "already opened";
  case EMULATED_INVALID_HANDLE:
    return "invalid stream or event, or one of another device";
  case EMULATED_NOT_SUPPORTED:
    return "operation not supported";
  case EMULATED_CAPTURE_UNSUPPORTED:
    return "operation not permitted when stream is capturing";
  case EMULATED_CAPTURE_INVALIDATED:
    return "operation failed due to a previous error during capture";
  case EMULATED_CAPTURE_MERGE:
    return "operation would result in a merge of separate capture sequences";
  case EMULATED_CAPTURE_UNJOINED:
    return "capturing stream has unjoined work";
  case EMULATED_CAPTURE_ISOLATION:
    return "dependency created on uncaptured work in another stream";
  case EMULATED_CAPTURED_EVENT:
    return "operation not permitted on an event last recorded in a capturing stream";
  default:
    return "unrecognized error code";
  }
}

static int facts(int device, lcomm_device_facts *its) {
  emulated_enter(EMULATED_CALL_FACTS);
  memset(its, 0, sizeof *its);
  if (device < 0 || device >= emulated.setup.devices) {
    return EMULATED_INVALID_DEVICE;
  }
  snprintf(its->name, sizeof(its->name), "emulated device %d", device);
  snprintf(its->pci, sizeof(its->pci), "0000:e%u:00.0", (unsigned)device % 10);
  memset(its->uuid, 0xe0 + device, sizeof(its->uuid));
  its->major = 9;
  its->memory_size = emulated.setup.memory_size;
  its->waits_for_values = !emulated.setup.without_waits;
  its->shares_memory = !emulated.setup.without_sharing;
  return 0;
}

static int version(int *driver, int *runtime) {
  emulated_enter(EMULATED_CALL_VERSION);
  *driver = *runtime = 13000;
  return 0;
}

static int current(int *device) {
  emulated_enter(EMULATED_CALL_CURRENT);
  *device = in_use < 0 ? LCOMM_DEVICE_NONE : emulated_current();
  return 0;
}

static int use(int device) {
  emulated_enter(EMULATED_CALL_USE);
  if (device < LCOMM_DEVICE_NONE || device >= emulated.setup.devices) {
    return EMULATED_INVALID_DEVICE;
  }
  in_use = device;
  return 0;
}

static int peer_access(int device, int peer, bool *possible) {
  int devices = emulated.setup.devices;
  emulated_enter(EMULATED_CALL_PEER_ACCESS);
  *possible = false;
  if (device < 0 || device >= devices || peer < 0 || peer >= devices) {
    return EMULATED_INVALID_DEVICE;
  }
  *possible = device == peer || !emulated.setup.without_peers;
  return 0;
}

/* ------------------------------------------------------------------ kernels */

typedef struct launch_task {
  emulated_task base;
  lcomm_emulated_kernel *kernel;
  uint32_t blocks, threads;
  const char *name;
  /* Aligned as any structure may ask. */
  _Alignas(max_align_t) unsigned char args[];
} launch_task;

static void run_launch(emulated_task *base) {
  launch_task *task = (launch_task *)base;
  (void)lcomm_emulated_run(task->kernel, task->args, task->blocks, task->threads, task->name);
}

static int load(void) {
  emulated_enter(EMULATED_CALL_LOAD);
  atomic_store(&loaded[emulated_current()], true);
  return 0;
}

/* As on a device, a stream's device must be in use. */
static int launch(lcomm_emulated_kernel *kernel, const void *args, size_t args_size,
                  uint32_t blocks, uint32_t threads, void *stream, const char *name) {
  emulated_enter(EMULATED_CALL_LAUNCH);
  if (emulated_stream_device(stream) != emulated_current()) {
    return EMULATED_INVALID_HANDLE;
  }
  if (!atomic_load(&loaded[emulated_current()])) {
    emulated_need_device("launching a kernel that is not loaded");
  }
  launch_task *task = emulated_task_new(sizeof *task + args_size, run_launch);
  if (!task) {
    return EMULATED_OUT_OF_MEMORY;
  }
  task->kernel = kernel;
  task->blocks = blocks;
  task->threads = threads;
  task->name = name;
  memcpy(task->args, args, args_size);
  return emulated_put(stream, &task->base);
}

static int set_zeros(void *memory, size_t size, void *stream) {
  return emulated_set(memory, 0, size, stream);
}

/* ------------------------------------------------------------ begin and end */

/* What a test leaves open, whoever runs it may choose. */
static int number_from_environment(const char *name) {
  const char *text = getenv(name);
  return text ? (int)strtol(text, NULL, 10) : 0;
}

static void complete(emulated_setup *setup) {
  static const double PATIENCE_S = 240;
  setup->memory_size = setup->memory_size ? setup->memory_size : UINT64_C(1) << 30;
  setup->pause_us_max = setup->pause_us_max ? setup->pause_us_max : 200;
  int patience_s = number_from_environment("EMULATED_PATIENCE_S");
  setup->patience_s = setup->patience_s > 0 ? setup->patience_s
                      : patience_s > 0      ? patience_s
                                            : PATIENCE_S;
  setup->without_waits |= number_from_environment("EMULATED_WITHOUT_WAITS") != 0;
  setup->apart |= number_from_environment("EMULATED_APART") != 0;
  setup->queues = setup->queues ? setup->queues : number_from_environment("EMULATED_QUEUES");
  setup->churn = setup->churn ? setup->churn : (uint64_t)number_from_environment("EMULATED_CHURN");
  setup->turns = setup->turns ? setup->turns : (uint64_t)number_from_environment("EMULATED_TURNS");
  setup->queues = setup->queues > EMULATED_QUEUES_MAX ? EMULATED_QUEUES_MAX : setup->queues;
}

const lcomm_device_table *emulated_begin(const emulated_setup *setup) {
  emulated.setup = *setup;
  complete(&emulated.setup);
  emulated_turn_begin();
  emulated_calls_reset();
  atomic_store(&emulated.ending, false);
  for (int i = 0; i < EMULATED_DEVICES_MAX; i++) {
    atomic_store(&loaded[i], false);
  }
  hooks_before = lcomm_emulated;
  lcomm_emulated = (lcomm_emulated_hooks){launch, set_zeros, emulated_copy_in};
  table.kernels = setup->kernels;
  if (emulated.setup.churn != 0) {
    emulated_churn_begin(emulated.setup.churn);
  }
  return &table;
}

const lcomm_device_table *emulated_table(void) {
  return &table;
}

int emulated_end(void) {
  int left = emulated.setup.churn != 0 && emulated_churn_end() < 0;
  left += emulated_executables_left() + emulated_graphs_end();
  left += emulated_streams_end();
  left += emulated_events_end();
  left += emulated_memory_end();
  lcomm_emulated = hooks_before;
  return left;
}

static int managed_get(size_t size, void **memory) {
  *memory = size ? emulated_managed_get(size) : NULL;
  return size && !*memory ? EMULATED_OUT_OF_MEMORY : 0;
}

static lcomm_device_table table = {
    .name = "emulated",
    .count = count,
    .explain = explain,
    .facts = facts,
    .version = version,
    .current = current,
    .use = use,
    .load = load,
    .locate = emulated_locate,
    .memory.get = emulated_memory_get,
    .memory.free = emulated_memory_free,
    .memory.managed_get = managed_get,
    .memory.pinned_get = emulated_pinned_get,
    .memory.pinned_free = emulated_pinned_free,
    .memory.pin = emulated_pin,
    .memory.unpin = emulated_unpin,
    .stream.create = emulated_stream_create,
    .stream.work_create = emulated_work_stream_create,
    .stream.destroy = emulated_stream_destroy,
    .stream.finish = emulated_stream_finish,
    .stream.captured = emulated_stream_captured,
    .stream.retain = emulated_stream_retain,
    .event.create = emulated_event_create,
    .event.destroy = emulated_event_destroy,
    .event.record = emulated_event_record,
    .event.query = emulated_event_query,
    .stream.wait = emulated_stream_wait,
    .stream.numbers = emulated_stream_numbers,
    .stream.gates = emulated_stream_gates,
    .copy = emulated_copy,
    .set = emulated_set,
    .ipc.get = emulated_ipc_get,
    .ipc.open = emulated_ipc_open,
    .ipc.close = emulated_ipc_close,
    .ipc.event_get = emulated_event_ipc_get,
    .ipc.event_open = emulated_event_ipc_open,
    .ipc.peer_access = peer_access,
};
