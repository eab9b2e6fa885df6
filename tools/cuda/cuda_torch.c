/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/cuda/cuda_torch.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { NUMBER_MAX = 24, LINE_MAX_BYTES = 256 };

/* Standard output of the child comes through the pipe, errors go where ours do. */
static int start(char *const *arguments, int pipe_ends[2], pid_t *child) {
  posix_spawn_file_actions_t actions;
  int error = posix_spawn_file_actions_init(&actions);
  if (error != 0) {
    return error;
  }
  error = posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  if (error == 0) {
    error = posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
  }
  if (error == 0) {
    error = posix_spawnp(child, arguments[0], &actions, NULL, arguments, environ);
  }
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

/* The first line of what the child prints; the rest is read and dropped. */
static void read_line(int file, char *line, size_t size) {
  FILE *stream = fdopen(file, "r");
  char rest[LINE_MAX_BYTES];
  line[0] = '\0';
  if (!stream) {
    close(file);
    return;
  }
  if (fgets(line, (int)size, stream) != NULL) {
    while (fgets(rest, sizeof rest, stream)) {
      continue;
    }
  }
  fclose(stream);
  line[strcspn(line, "\n")] = '\0';
}

static bool parse(lcomm_gpu_torch *torch, const char *line, int status) {
  tool_spread s = {0};
  bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (ended && sscanf(line, "%lf %lf %lf", &s.min, &s.median, &s.max) == 3 && s.min > 0.0) {
    torch->seconds = s;
    return torch->measured = true;
  }
  snprintf(torch->why, sizeof torch->why, "%s: %s", torch->script,
           line[0] != '\0' ? line : "it ended without a result");
  return false;
}

bool lcomm_gpu_torch_run(lcomm_gpu_torch *torch, uint64_t count, size_t samples, int device) {
  char numbers[3][NUMBER_MAX], line[LINE_MAX_BYTES], python[] = "python3", script[4096];
  int ends[2], status = 0;
  pid_t child = 0;
  snprintf(script, sizeof script, "%s", torch->script);
  snprintf(numbers[0], NUMBER_MAX, "%llu", (unsigned long long)count);
  snprintf(numbers[1], NUMBER_MAX, "%zu", samples);
  snprintf(numbers[2], NUMBER_MAX, "%d", device);
  char *const arguments[] = {python, script, numbers[0], numbers[1], numbers[2], NULL};
  torch->measured = false;
  int error = pipe(ends) == 0 ? 0 : errno;
  if (error == 0) {
    error = start(arguments, ends, &child);
    close(ends[1]);
    if (error != 0) {
      close(ends[0]);
    }
  }
  if (error != 0) {
    snprintf(torch->why, sizeof torch->why, "python3 cannot be started: %s", strerror(error));
    return false;
  }
  read_line(ends[0], line, sizeof line);
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return parse(torch, line, -1);
    }
  }
  return parse(torch, line, status);
}
