/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Linked into sanitizer builds only. Open MPI closes its components before the
 * leak checker looks at them, and an address in a closed module has no name
 * that tests/support/lsan.supp could forgive. So modules stay open. */

__attribute__((visibility("default"))) int dlclose(void *handle);

int dlclose(void *handle) {
  (void)handle;
  return 0;
}
