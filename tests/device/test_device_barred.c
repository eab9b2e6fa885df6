/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Every function of CUDA's table refuses a thread that is barred from devices, before it calls
 * CUDA: so this needs neither a device nor a driver, only the module of this build. */

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/cuda/cuda_bar.h"
#include "libcomm/device/module.h"
#include "tests/support/unit_tests.h"

static const lcomm_device_table *table;

static int open_module(void **state) {
  lcomm_why why;
  (void)state;
  const struct lcomm_device_module *module = lcomm_device_module_open(&why);
  if (module && module->table && strcmp(module->table->name, "cuda") == 0) {
    (void)lcomm_device_module_check(module, &why); /* which fails where there is no driver */
    table = module->table;
  }
  return 0;
}

static void need_module(void) {
  if (!table) {
    skip(); /* built without nvcc */
  }
}

#define REFUSED(call) assert_int_equal(call, LCOMM_CUDA_BARRED)

static void refuse_devices(void) {
  int number = 0;
  lcomm_device_facts facts;
  REFUSED(table->count(&number));
  REFUSED(table->facts(0, &facts));
  REFUSED(table->version(&number, &number));
  REFUSED(table->current(&number));
  REFUSED(table->use(0));
  REFUSED(table->use(LCOMM_DEVICE_NONE));
  REFUSED(table->load());
}

static void refuse_memory(void) {
  void *memory = NULL;
  uint8_t bytes[2] = {0};
  REFUSED(table->memory.get(1, &memory));
  REFUSED(table->memory.free(bytes));
  REFUSED(table->memory.managed_get(1, &memory));
  REFUSED(table->memory.pinned_get(1, &memory));
  REFUSED(table->memory.pinned_free(bytes));
  REFUSED(table->memory.pin(bytes, 1));
  REFUSED(table->memory.unpin(bytes));
  REFUSED(table->copy(bytes, bytes + 1, 1, NULL));
  REFUSED(table->set(bytes, 0, 1, NULL));
}

static void released(void *data) {
  (void)data;
}

static void refuse_streams(void) {
  uint64_t capture = 0;
  uint32_t places[3] = {0};
  bool over = false;
  void *made = NULL, *some = places; /* nobody looks */
  lcomm_device_number number = {LCOMM_DEVICE_WRITE, places, 1};
  lcomm_device_gate gate = {LCOMM_DEVICE_WRITE, places, places + 1, places + 2};
  REFUSED(table->stream.create(&made));
  REFUSED(table->stream.work_create(&made));
  REFUSED(table->stream.destroy(some));
  REFUSED(table->stream.finish(some));
  REFUSED(table->stream.captured(some, &capture));
  REFUSED(table->stream.retain(some, released, NULL));
  REFUSED(table->stream.wait(some, some));
  REFUSED(table->stream.numbers(some, &number, 1));
  REFUSED(table->stream.gates(some, &gate, 1));
  REFUSED(table->event.create(false, &made));
  REFUSED(table->event.destroy(some));
  REFUSED(table->event.record(some, some));
  REFUSED(table->event.query(some, &over));
}

static void refuse_processes(void) {
  lcomm_device_ipc ipc = {.size = 1};
  uint8_t handle[LCOMM_DEVICE_IPC_SIZE] = {0};
  void *made = NULL;
  bool possible = false;
  REFUSED(table->ipc.get(&ipc, &ipc));
  REFUSED(table->ipc.open(&ipc, &made));
  REFUSED(table->ipc.close(&ipc));
  REFUSED(table->ipc.event_get(&ipc, handle));
  REFUSED(table->ipc.event_open(handle, &made));
  REFUSED(table->ipc.peer_access(0, 1, &possible));
}

/* All kernels are launched in one way. */
static void refuse_kernels(void) {
  float values[4] = {0};
  uint64_t found = 0;
  uint32_t places[3] = {0};
  lcomm_cuda_number number = {places, 1, false};
  lcomm_cuda_gate gate = {places, places + 1, places + 2, false};
  REFUSED(table->kernels->numbers(&number, 1, NULL));
  REFUSED(table->kernels->gates(&gate, 1, NULL));
  REFUSED(table->kernels->fold(values, values, values, 4, NULL));
  REFUSED(table->kernels->count_not_finite(values, 4, &found, NULL));
}

static void a_barred_thread_calls_nothing_of_cuda(void **state) {
  (void)state;
  need_module();
  bool before = lcomm_device_bar();
  refuse_devices();
  refuse_memory();
  refuse_streams();
  refuse_processes();
  refuse_kernels();
  lcomm_device_unbar(before);
}

static void the_refusal_is_explained(void **state) {
  (void)state;
  need_module();
  bool before = lcomm_device_bar();
  assert_non_null(strstr(table->explain(LCOMM_CUDA_BARRED), "never may"));
  lcomm_device_unbar(before);
}

static void other_threads_are_not_refused(void **state) {
  int number = 0;
  (void)state;
  need_module();
  bool before = lcomm_device_bar();
  lcomm_device_unbar(before);
  assert_int_not_equal(table->count(&number), LCOMM_CUDA_BARRED);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(a_barred_thread_calls_nothing_of_cuda, open_module),
    cmocka_unit_test(the_refusal_is_explained),
    cmocka_unit_test(other_threads_are_not_refused),
};
RUN_TESTS(tests)
