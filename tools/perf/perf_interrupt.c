/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_interrupt.h"

#include <signal.h>
#include <stddef.h>

static const int watched[] = {SIGINT, SIGTERM};
enum { WATCHED = sizeof watched / sizeof watched[0] };

static volatile sig_atomic_t noted;

static void note(int number) {
  noted = number;
  for (int i = 0; i < WATCHED; i++) {
    signal(watched[i], SIG_DFL);
  }
}

void lcomm_perf_interrupt_watch(void) {
  for (int i = 0; i < WATCHED; i++) {
    struct sigaction now, noting = {.sa_handler = note, .sa_flags = SA_RESTART};
    sigemptyset(&noting.sa_mask);
    if (sigaction(watched[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) {
      sigaction(watched[i], &noting, NULL);
    }
  }
}

int lcomm_perf_interrupt_signal(void) {
  return noted;
}
