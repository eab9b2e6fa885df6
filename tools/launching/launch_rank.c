/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/launching/launch_rank.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/launching/launch_remote.h"

enum { EXIT_CANNOT_RUN = 127, SSH_FAILED = 255, SIGNAL_BASE = 128, SIGNALS_MAX = 64 };

/* ----------------------------------------------------------------------- start */

static void set_number(const char *name, int number) {
  char text[16];
  snprintf(text, sizeof text, "%d", number);
  setenv(name, text, 1);
}

static void set_place(const launch_rank *self) {
  set_number("RANK", self->number);
  set_number("LOCAL_RANK", self->place->local_rank);
  set_number("LOCAL_WORLD_SIZE", self->place->local_size);
  if (self->joins) {
    setenv("LCOMM_JOIN", "on", 1);
    setenv("MASTER_ADDR", self->joins, 1);
  }
}

/* The child's side: no signal is blocked or ignored for the program, and it does not outlive the
 * launcher. */
_Noreturn static void become(const launch_rank *self, char *const *words, const int ends[3],
                             pid_t launcher) {
  sigset_t none;
  sigemptyset(&none);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  dup2(ends[0], STDIN_FILENO);
  dup2(ends[1], STDOUT_FILENO);
  dup2(ends[2], STDERR_FILENO);
  if (getppid() == launcher) {
    execvp(words[0], words);
    dprintf(STDERR_FILENO, "launch: rank %d: cannot run %s: %s\n", self->number, words[0],
            strerror(errno));
  }
  _exit(EXIT_CANNOT_RUN);
}

/* The rank's ends of three pipes, and those of the launcher. */
typedef struct plumbing {
  int rank[3], launcher[3];
} plumbing;

static void close_all(int ends[3]) {
  for (int i = 0; i < 3; i++) {
    if (ends[i] >= 0) {
      close(ends[i]);
    }
    ends[i] = -1;
  }
}

/* A rank of this machine reads nothing. */
static int make_pipes(const launch_rank *self, plumbing *made) {
  *made = (plumbing){{-1, -1, -1}, {-1, -1, -1}};
  for (int i = 0; i < 3; i++) {
    int ends[2] = {-1, -1};
    if (i == 0 && !launch_place_is_remote(self->place)) {
      made->rank[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    } else if (pipe2(ends, O_CLOEXEC) == 0) {
      made->rank[i] = ends[i == 0 ? 0 : 1];
      made->launcher[i] = ends[i == 0 ? 1 : 0];
    }
    if (made->rank[i] < 0) {
      close_all(made->rank);
      close_all(made->launcher);
      return -1;
    }
  }
  return 0;
}

static void take_pipes(launch_rank *self, const plumbing *made) {
  launch_lines *lines[] = {&self->out, &self->err};
  self->control = made->launcher[0];
  for (int i = 0; i < 2; i++) {
    lines[i]->from = made->launcher[1 + i];
    lines[i]->used = 0;
    fcntl(lines[i]->from, F_SETFL, O_NONBLOCK);
  }
}

static int fork_rank(launch_rank *self, char *const *words, plumbing *pipes) {
  pid_t launcher = getpid();
  fflush(NULL);
  self->process = fork();
  if (self->process == 0) {
    become(self, words, pipes->rank, launcher);
  }
  close_all(pipes->rank);
  if (self->process < 0) {
    self->process = 0;
    close_all(pipes->launcher);
    return -1;
  }
  setpgid(self->process, self->process); /* whichever of the two comes first */
  take_pipes(self, pipes);
  return 0;
}

static int fail(const launch_rank *self, const char *what, char *error, size_t size) {
  snprintf(error, size, "cannot start rank %d: %s: %s", self->number, what, strerror(errno));
  return -1;
}

int launch_rank_start(launch_rank *self, char *error, size_t size) {
  plumbing pipes;
  bool remote = launch_place_is_remote(self->place);
  char **words = remote ? launch_remote_command(self->place->host, self->program) : NULL;
  if (remote && !words) {
    return fail(self, "the command for its host", error, size);
  }
  set_place(self);
  int result = make_pipes(self, &pipes);
  if (result == 0) {
    result = fork_rank(self, remote ? words : self->program, &pipes);
  }
  launch_remote_free(words);
  if (result) {
    return fail(self, "a process and its pipes", error, size);
  }
  if (remote) {
    (void)launch_remote_send_environment(self->control); /* who is gone already has a status */
  }
  return 0;
}

/* --------------------------------------------------------------------- signals */

void launch_rank_signal(const launch_rank *self, int number) {
  if (self->process == 0) {
    return;
  }
  if (launch_place_is_remote(self->place)) {
    dprintf(self->control, "%d\n", number);
  } else {
    kill(-self->process, number);
  }
}

/* The shell of another host kills the rank when its input ends; ssh has a moment for that. */
void launch_rank_kill(launch_rank *self) {
  if (self->process == 0) {
    return;
  }
  if (self->control >= 0) {
    close(self->control);
    self->control = -1;
  } else {
    kill(-self->process, SIGKILL);
  }
}

/* ------------------------------------------------------------------------- end */

static int status_of(const siginfo_t *how) {
  return how->si_code == CLD_EXITED ? how->si_status : SIGNAL_BASE + how->si_status;
}

/* The group is killed before its leader is given back, so its number is of no other. */
bool launch_rank_has_ended(launch_rank *self) {
  siginfo_t how = {0};
  if (self->process == 0 ||
      waitid(P_PID, (id_t)self->process, &how, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      how.si_pid == 0) {
    return false;
  }
  kill(-self->process, SIGKILL);
  waitid(P_PID, (id_t)self->process, &how, WEXITED);
  self->process = 0;
  self->status = status_of(&how);
  launch_lines_end(&self->out);
  launch_lines_end(&self->err);
  if (self->control >= 0) {
    close(self->control);
  }
  self->control = -1;
  return true;
}

void launch_rank_describe(const launch_rank *self, char text[LAUNCH_WORDS_SIZE]) {
  char host[LAUNCH_HOST_MAX];
  int number = self->status - SIGNAL_BASE;
  launch_place_name(self->place, host);
  size_t used = (size_t)snprintf(text, LAUNCH_WORDS_SIZE, "rank %d (host %s) ", self->number, host);
  if (number > 0 && number <= SIGNALS_MAX) {
    snprintf(text + used, LAUNCH_WORDS_SIZE - used, "was ended by signal %d (%s)", number,
             strsignal(number));
  } else {
    snprintf(text + used, LAUNCH_WORDS_SIZE - used, "ended with status %d%s", self->status,
             launch_place_is_remote(self->place) && self->status == SSH_FAILED
                 ? ", as ssh does when it does not reach a host"
                 : "");
  }
}
