/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/experiment/experiment_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/tool_timing.h"

#define GRACE_S 10.0
enum { POLL_NS = 20000000 };

static volatile sig_atomic_t stopped;

static void note(int number) {
  (void)number;
  stopped = 1;
}

void experiment_process_watch(void) {
  struct sigaction action = {.sa_handler = note};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

bool experiment_process_is_stopped(void) {
  return stopped != 0;
}

/* In the child. errno travels by a pipe that exec closes. */
static void become(const experiment_process *of, int complaints) {
  int in = open("/dev/null", O_RDONLY);
  int out = open(of->out, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  int err = open(of->err, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  setpgid(0, 0);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  for (size_t i = 0; of->set && of->set[i]; i++) {
    putenv((char *)(uintptr_t)of->set[i]);
  }
  if (in >= 0 && out >= 0 && err >= 0 && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 &&
      dup2(err, 2) >= 0) {
    execvp(of->command[0], of->command);
  }
  int error = errno;
  ssize_t ignored = write(complaints, &error, sizeof error);
  (void)ignored;
  _exit(127);
}

/* The process number; -1 and *error when it did not start. */
static pid_t start(const experiment_process *of, int *error) {
  int pipes[2];
  *error = 0;
  if (pipe2(pipes, O_CLOEXEC) != 0) {
    *error = errno;
    return -1;
  }
  pid_t child = fork();
  if (child == 0) {
    become(of, pipes[1]);
  }
  *error = child < 0 ? errno : 0;
  close(pipes[1]);
  if (child > 0) {
    setpgid(child, child);
    if (read(pipes[0], error, sizeof *error) == (ssize_t)sizeof *error) {
      waitpid(child, NULL, 0);
      child = -1;
    }
  }
  close(pipes[0]);
  return child;
}

static void rest(void) {
  nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
}

/* SIGTERM, some seconds later SIGKILL, to all of its group. */
static void finish(pid_t child) {
  double begin_s = tool_now_s();
  bool gone = false;
  kill(-child, SIGTERM);
  while (!gone && tool_now_s() - begin_s < GRACE_S) {
    gone = waitpid(child, NULL, WNOHANG) != 0;
    rest();
  }
  kill(-child, SIGKILL);
  if (!gone) {
    waitpid(child, NULL, 0);
  }
}

experiment_outcome experiment_process_run(const experiment_process *of, void (*tick)(void *),
                                          void *context) {
  int error, status = 0;
  double begin_s = tool_now_s();
  pid_t child = start(of, &error);
  if (child < 0) {
    return (experiment_outcome){EXPERIMENT_NO_START, error, 0.0};
  }
  while (waitpid(child, &status, WNOHANG) == 0) {
    bool late = tool_now_s() - begin_s > of->limit_s;
    if (late || stopped) {
      finish(child);
      return (experiment_outcome){late ? EXPERIMENT_LATE : EXPERIMENT_STOPPED, 0,
                                  tool_now_s() - begin_s};
    }
    if (tick) {
      tick(context);
    }
    rest();
  }
  double seconds = tool_now_s() - begin_s;
  return WIFEXITED(status) ? (experiment_outcome){EXPERIMENT_EXITED, WEXITSTATUS(status), seconds}
                           : (experiment_outcome){EXPERIMENT_KILLED, WTERMSIG(status), seconds};
}
