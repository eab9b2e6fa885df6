/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* CUDA's table on the devices of this host. */

#include <sys/wait.h>
#include <unistd.h>

#include "tests/device/device_order.h"
#include "tests/device/device_sharing.h"

static const lcomm_device_table *sharing_open(void) {
  return lcomm_device_get(NULL);
}

static int sharing_close(void) {
  return 0;
}

/* Not at the start of the program: what the driver has begun does not survive the
 * forks of the first tests. */
static int open_device(void **state) {
  (void)state;
  device = lcomm_device_get(NULL);
  return device ? device->use(0) : 0;
}

static void table_is_that_of_cuda(void **state) {
  (void)state;
  need_device();
  assert_string_equal(device->name, "cuda");
  assert_non_null(device->kernels);
}

/* In a process of its own, for the same reason. */
static bool is_there_a_device(void) {
  lcomm_why why;
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    bool found = lcomm_device_get(&why) != NULL;
    if (!found) {
      printf("SKIP cuda_device: %s\n", why.text);
      fflush(stdout);
    }
    _exit(!found);
  }
  waitpid(child, &status, 0);
  return !WIFEXITED(status) || WEXITSTATUS(status) == 0;
}

#define ON_DEVICE(test) cmocka_unit_test_setup(test, open_device)

int main(void) {
  const struct CMUnitTest tests[] = {
      DEVICE_SHARING,
      ON_DEVICE(table_is_that_of_cuda),
      DEVICE_PROPERTIES(ON_DEVICE),
      DEVICE_ORDER(ON_DEVICE),
  };
  return is_there_a_device() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
