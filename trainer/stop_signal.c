/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/stop_signal.h"

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

void stop_signal_watch(void) {
  for (int i = 0; i < WATCHED; i++) {
    struct sigaction now, noting = {.sa_handler = note, .sa_flags = SA_RESTART};
    sigemptyset(&noting.sa_mask);
    if (sigaction(watched[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) {
      sigaction(watched[i], &noting, NULL);
    }
  }
}

int stop_signal_noted(void) {
  return noted != 0;
}

lcomm_status stop_signal_ask(lcomm_comm *comm, stop_signal *asked) {
  asked->mine = noted;
  return lcomm_iallreduce(comm, &asked->mine, &asked->agreed, 1, LCOMM_INT32, LCOMM_MAX,
                          &asked->request);
}

lcomm_status stop_signal_wait(lcomm_comm *comm, stop_signal *asked) {
  return lcomm_wait(comm, &asked->request);
}
