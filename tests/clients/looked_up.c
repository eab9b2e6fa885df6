/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A program that looks MPI's functions up in a library by name, as foreign-function
 * interfaces do: looked_up LIBRARY. Status 77 when the library is not there. */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int (*init_function)(int *, char ***);
typedef int (*end_function)(void);

/* A pointer to data may not be made one to a function by a cast. */
static void look_up(void *library, const char *name, void *function) {
  void *address = dlsym(library, name);
  memcpy(function, &address, sizeof(address));
}

int main(int argc, char **argv) {
  init_function begin = NULL;
  end_function end = NULL;
  void *library = dlopen(argc > 1 ? argv[1] : NULL, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    return 77;
  }
  look_up(library, "MPI_Init", &begin);
  look_up(library, "MPI_Finalize", &end);
  if (!begin || !end) {
    return 77;
  }
  int code = begin(NULL, NULL);
  puts("begun");
  return code == 0 ? end() : code;
}
