/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/fidelity/fidelity_jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/common/tool_progress.h"

typedef struct jobs {
  const fidelity_options *options;
  const task *data;
  int running;
  size_t failed;
  tool_progress shown;
} jobs;

static void say(const fidelity_cell *cell, const char *why) {
  char name[FIDELITY_KEY_MAX];
  fidelity_cell_name(cell, name);
  fprintf(stderr, "fidelity_bench: %s: %s\n", name, why);
}

/* The child. */
_Noreturn static void train(const jobs *self, const fidelity_cell *cell) {
  fidelity_outcome outcome;
  failure why = {0};
  int failed = fidelity_train(cell, self->data, &outcome, &why);
  if (!failed) {
    failed = fidelity_store_append(self->options->results, cell, &outcome, &why);
  }
  if (failed) {
    say(cell, why.text);
  }
  fflush(NULL);
  _exit(failed ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void await_one(jobs *self) {
  int status = 0;
  while (wait(&status) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    fprintf(stderr, "fidelity_bench: a training was ended by signal %d (%s)\n", WTERMSIG(status),
            strsignal(WTERMSIG(status)));
  }
  self->failed += !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS;
  self->running--;
  tool_progress_add(&self->shown, 1);
}

static void start(jobs *self, const fidelity_cell *cell) {
  char name[FIDELITY_KEY_MAX];
  if (self->running == self->options->jobs) {
    await_one(self);
  }
  fidelity_cell_name(cell, name);
  tool_progress_next(&self->shown, name);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    train(self, cell);
  }
  if (child < 0) {
    say(cell, strerror(errno));
    self->failed++;
    return;
  }
  self->running++;
}

size_t fidelity_jobs_run(const fidelity_options *options, const fidelity_store *store,
                         const task *data) {
  size_t count = fidelity_cell_count(&options->grid), missing = 0;
  for (size_t i = 0; i < count; i++) {
    fidelity_cell cell = fidelity_cell_at(&options->grid, i);
    missing += !fidelity_store_find(store, &cell);
  }
  fprintf(stderr, "fidelity_bench: %zu trainings, %zu of them are in %s\n", count, count - missing,
          options->results);
  jobs self = {.options = options, .data = data, .shown = tool_progress_begin(missing)};
  for (size_t i = 0; i < count; i++) {
    fidelity_cell cell = fidelity_cell_at(&options->grid, i);
    if (!fidelity_store_find(store, &cell)) {
      start(&self, &cell);
    }
  }
  while (self.running > 0) {
    tool_progress_next(&self.shown, "the last ones");
    await_one(&self);
  }
  tool_progress_end(&self.shown);
  return self.failed;
}
