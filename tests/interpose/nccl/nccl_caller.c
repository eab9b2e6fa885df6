/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A program that calls NCCL: linked with it, or by looking it up, as Python does, after opening the
 * libraries that its arguments name. Prints the version, or the result and the sentence. */

#include <dlfcn.h>
#include <stdio.h>

extern int ncclGetVersion(int *version) __attribute__((weak));
extern const char *ncclGetLastError(void *comm) __attribute__((weak));

static int told(int (*version)(int *), const char *(*sentence)(void *)) {
  int number = 0, result = version(&number);
  if (result == 0) {
    printf("version %d\n", number);
  } else {
    printf("result %d: %s\n", result, sentence(NULL));
  }
  return result;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (!dlopen(argv[i], RTLD_NOW)) {
      printf("%s\n", dlerror());
      return 99;
    }
  }
  if (ncclGetVersion) {
    return told(ncclGetVersion, ncclGetLastError);
  }
  void *handle = dlopen("libnccl.so.2", RTLD_NOW);
  if (!handle) {
    printf("%s\n", dlerror());
    return 99;
  }
  return told((int (*)(int *))dlsym(handle, "ncclGetVersion"),
              (const char *(*)(void *))dlsym(handle, "ncclGetLastError"));
}
