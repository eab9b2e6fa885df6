/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/launching/launch_job.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "tools/launching/launch_port.h"

enum { EXIT_TROUBLE = 2, SIGNAL_BASE = 128, ERROR_SIZE = 1024, FOR_EVER = -1 };

/* Ranks that are asked to end have so long. */
#define PATIENCE_S 10.0

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void say(const char *sentence) {
  fflush(stdout);
  fprintf(stderr, "launch: %s\n", sentence);
}

/* ------------------------------------------------------------------------ ends */

static void signal_all(const launch_job *job, int number) {
  for (int i = 0; i < job->order->size; i++) {
    launch_rank_signal(&job->ranks[i], number);
  }
}

/* The status of the job is settled. */
static void end_all(launch_job *job, int status) {
  if (job->ending) {
    return;
  }
  job->ending = true;
  job->status = status;
  job->kill_at_s = now_s() + PATIENCE_S;
  signal_all(job, SIGTERM);
}

static void kill_all(launch_job *job) {
  for (int i = 0; i < job->order->size; i++) {
    launch_rank_kill(&job->ranks[i]);
  }
}

/* The others are there to join, and that is wanted. */
static bool may_start_anew(const launch_job *job) {
  return job->restarts > 0 && job->running > 0;
}

static void say_lost(const launch_job *job, const launch_rank *lost) {
  char words[LAUNCH_WORDS_SIZE];
  launch_rank_describe(lost, words);
  fflush(stdout);
  fprintf(stderr, "launch: %s%s\n", words,
          job->running == 0                       ? ""
          : may_start_anew(job)                   ? "; it is started anew"
          : job->order->on_loss == LAUNCH_GOES_ON ? "; the others go on"
                                                  : "; the others are ended");
}

static void start_anew(launch_job *job, launch_rank *rank) {
  char error[ERROR_SIZE];
  job->restarts--;
  rank->joins = job->hosts;
  if (launch_rank_start(rank, error, sizeof error)) {
    say(error);
  } else {
    job->running++;
  }
}

/* Who was asked to end by a signal is no loss. */
static void take_end(launch_job *job, launch_rank *ended) {
  job->running--;
  if (job->ending) {
    return;
  }
  if (job->asked) {
    job->status = job->status ? job->status : ended->status;
    return;
  }
  job->status = ended->status;
  if (ended->status == 0) {
    return;
  }
  say_lost(job, ended);
  if (may_start_anew(job)) {
    start_anew(job, ended);
  } else if (job->order->on_loss == LAUNCH_ENDS) {
    end_all(job, ended->status);
  }
}

static void look_for_ends(launch_job *job) {
  for (int i = 0; i < job->order->size; i++) {
    if (launch_rank_has_ended(&job->ranks[i])) {
      take_end(job, &job->ranks[i]);
    }
  }
}

/* --------------------------------------------------------------------- signals */

/* The first one is the ranks' own to follow, in the time that they need; the second is an end. */
static void pass_on(launch_job *job, int number) {
  if (job->asked || job->ending) {
    end_all(job, SIGNAL_BASE + number);
    kill_all(job);
    return;
  }
  job->asked = number;
  job->status = 0;
  signal_all(job, number);
}

/* Without its terminal, or without a reader, nobody wants the job any more. */
static void take_signal(launch_job *job, int number) {
  if (number == SIGHUP) {
    end_all(job, SIGNAL_BASE + number);
  } else if (number != SIGCHLD) {
    pass_on(job, number);
  }
}

/* What was ignored stays ignored, as under nohup. */
static int watch_signals(void) {
  static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++) {
    struct sigaction now;
    if (sigaction(watched[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) {
      sigaddset(&set, watched[i]);
    }
  }
  signal(SIGPIPE, SIG_IGN);
  sigprocmask(SIG_BLOCK, &set, NULL);
  return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void read_signals(launch_job *job) {
  struct signalfd_siginfo came;
  while (read(job->signals, &came, sizeof came) == sizeof came) {
    take_signal(job, (int)came.ssi_signo);
  }
}

/* -------------------------------------------------------------------- the loop */

static void read_lines(launch_job *job) {
  for (int i = 0; i < job->order->size; i++) {
    bool taken = launch_lines_read(&job->ranks[i].out);
    if (!launch_lines_read(&job->ranks[i].err) || !taken) {
      end_all(job, SIGNAL_BASE + SIGPIPE);
    }
  }
}

/* Milliseconds until ranks are killed. */
static int patience_of(const launch_job *job) {
  double left_s = job->kill_at_s - now_s();
  if (!job->ending) {
    return FOR_EVER;
  }
  return left_s > 0.0 ? (int)(1e3 * left_s) + 1 : 0;
}

/* The descriptors of all ranks, and that of signals; those that are closed are -1, which poll()
 * passes over. */
static void wait_for_something(const launch_job *job, struct pollfd *seen) {
  nfds_t count = 0;
  seen[count++] = (struct pollfd){.fd = job->signals, .events = POLLIN};
  for (int i = 0; i < job->order->size; i++) {
    seen[count++] = (struct pollfd){.fd = job->ranks[i].out.from, .events = POLLIN};
    seen[count++] = (struct pollfd){.fd = job->ranks[i].err.from, .events = POLLIN};
  }
  poll(seen, count, patience_of(job));
}

/* Those that have been there from the beginning, or have ended, are none that wait to join. */
static bool all_may_wait_to_join(const launch_job *job) {
  int joining = 0;
  for (int i = 0; i < job->order->size; i++) {
    joining += job->ranks[i].process > 0 && job->ranks[i].joins;
  }
  return joining > 0 && joining == job->running;
}

/* When the others have ended well, and nobody lets newcomers in any more, who still waits to join
 * does so in vain. Of other hosts nobody here knows: there the time-out ends the wait. */
static void end_who_joins(launch_job *job) {
  if (!job->ending && !job->asked && job->status == 0 && all_may_wait_to_join(job) &&
      job->order->port > 0 && launch_port_is_free(job->order->port)) {
    job->ending = true;
    job->kill_at_s = now_s() + PATIENCE_S;
  }
}

static void run(launch_job *job, struct pollfd *seen) {
  while (job->running > 0) {
    wait_for_something(job, seen);
    read_signals(job);
    read_lines(job);
    look_for_ends(job);
    end_who_joins(job);
    if (job->ending && now_s() >= job->kill_at_s) {
      kill_all(job);
      job->kill_at_s = now_s() + PATIENCE_S;
    }
  }
}

/* ----------------------------------------------------------------------- start */

/* "[ 3] ", so that lines of all ranks begin in one column. */
static void set_prefix(const launch_job *job, launch_rank *rank) {
  char last[16];
  int width = snprintf(last, sizeof last, "%d", job->order->size - 1);
  snprintf(rank->out.prefix, sizeof rank->out.prefix, "[%*d] ", width, rank->number);
  memcpy(rank->err.prefix, rank->out.prefix, sizeof rank->err.prefix);
}

static void prepare(launch_job *job) {
  for (int i = 0; i < job->order->size; i++) {
    job->ranks[i] = (launch_rank){.number = i,
                                  .place = &job->order->places[i],
                                  .program = job->order->program,
                                  .control = -1,
                                  .out = {.from = -1, .to = stdout},
                                  .err = {.from = -1, .to = stderr}};
    set_prefix(job, &job->ranks[i]);
  }
}

static void start(launch_job *job) {
  char error[ERROR_SIZE];
  for (int i = 0; i < job->order->size && !job->ending; i++) {
    if (launch_rank_start(&job->ranks[i], error, sizeof error)) {
      say(error);
      end_all(job, EXIT_TROUBLE);
      return;
    }
    job->running++;
  }
}

/* Three descriptors for each rank may be more than this process has at first. */
static void allow_files(void) {
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
}

int launch_job_run(const launch_order *order) {
  launch_job job = {.order = order,
                    .ranks = calloc((size_t)order->size, sizeof *job.ranks),
                    .hosts = launch_places_list(order->places, order->size),
                    .restarts = order->restarts,
                    .signals = watch_signals()};
  struct pollfd *seen = calloc(2 * (size_t)order->size + 1, sizeof *seen);
  if (!job.ranks || !job.hosts || !seen || job.signals < 0) {
    say("no memory, or no descriptors, for so many ranks");
    job.status = EXIT_TROUBLE;
  } else {
    allow_files();
    prepare(&job);
    start(&job);
    run(&job, seen);
  }
  free(job.ranks);
  free(job.hosts);
  free(seen);
  return job.status;
}
