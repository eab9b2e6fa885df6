/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Ranks of a program that meet by lcomm_create_env(), started here or on the hosts of a list: for
 * those who have neither torchrun nor srun, and do not want the job to end with a rank, as mpirun
 * ends it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tools/common/tool_options.h"
#include "tools/launching/launch_job.h"
#include "tools/launching/launch_port.h"

enum { EXIT_TROUBLE = 2, RANKS_MAX = 1 << 16, TOKEN_BYTES = 16, PORT_TRIES = 100 };

/* Below the ports that systems give to connections. */
enum { PORT_FIRST = 20000, PORT_COUNT = 12000 };

static const char usage[] =
    "usage: launch -n RANKS [OPTIONS] -- PROGRAM [ARGUMENT...]\n"
    "Start a program on many ranks, here or on other hosts, without MPI.\n"
    "  -n, --ranks N    so many ranks\n"
    "  --hosts FILE     on the hosts of this list, by ssh: a host a line, NAME or NAME slots=N,\n"
    "                   rank 0 on the first one; else all ranks are here\n"
    "  --elastic        set LCOMM_ELASTIC=on, so that the others can go on when a rank is lost;\n"
    "                   implies --keep-going\n"
    "  --restarts N     start a lost rank anew, up to N times in all, with LCOMM_JOIN=on, so that "
    "it\n"
    "                   joins the others; implies --elastic\n"
    "  --keep-going     let the others live when a rank is lost; else they are ended\n"
    "  --port N         at which rank 0 listens (MASTER_PORT, else a random one)\n"
    "  --version\n"
    "  --help\n"
    "Each rank has RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and\n"
    "LCOMM_TOKEN, a secret that is drawn where there is none. To other hosts travel these, all\n"
    "LCOMM_*, OMP_NUM_THREADS and OPENBLAS_NUM_THREADS; program and folder have the same place\n"
    "there. What ranks write comes with the rank before each line. They read nothing.\n"
    "SIGINT and SIGTERM go to all ranks, a second one kills them; whatever ends launch, they do\n"
    "not outlive it.\n"
    "Exit status: 0 all ranks ended with 0; else that of the rank that did not, 128 + N after\n"
    "signal N; where the others go on, that of the rank that ended last; 2 bad usage.\n"
    "Environment: LCOMM_LAUNCH_SSH, in the place of ssh.\n";

typedef struct launch_options {
  int ranks, port, restarts;
  const char *hosts;
  bool elastic, keeps_going;
  char *const *program;
} launch_options;

static void help(void) {
  fputs(usage, stdout);
}

static tool_parse read_options(int argc, char **argv, launch_options *o, char *error) {
  static const tool_option known[] = {
      TOOL_INT('n', "ranks", offsetof(launch_options, ranks), 1, RANKS_MAX),
      TOOL_NAME(0, "hosts", offsetof(launch_options, hosts)),
      TOOL_FLAG(0, "elastic", offsetof(launch_options, elastic), true),
      TOOL_INT(0, "restarts", offsetof(launch_options, restarts), 0, 1 << 20),
      TOOL_FLAG(0, "keep-going", offsetof(launch_options, keeps_going), true),
      TOOL_INT(0, "port", offsetof(launch_options, port), 1, 65535),
      {0}};
  tool_command_line line = {.argc = argc, .argv = argv, .options = o, .error = error};
  *o = (launch_options){0};
  tool_parse parse = tool_options_parse(&line, known);
  if (parse != TOOL_RUN) {
    return parse;
  }
  o->program = line.operands;
  o->elastic |= o->restarts > 0;
  if (o->ranks == 0) {
    tool_refuse(&line, "the number of ranks is missing, such as -n 4");
    return TOOL_USAGE;
  }
  if (line.operand_count == 0) {
    tool_refuse(&line, "the program is missing, such as -- ./train");
    return TOOL_USAGE;
  }
  return TOOL_RUN;
}

/* ----------------------------------------------------------- the environment */

static bool draw(void *bytes, size_t size) {
  return getrandom(bytes, size, 0) == (ssize_t)size;
}

/* Of rank 0's host; of another one nobody here knows which are free. */
static bool draw_port(int *port) {
  for (int i = 0; i < PORT_TRIES; i++) {
    uint32_t number = 0;
    if (!draw(&number, sizeof number)) {
      return false;
    }
    *port = PORT_FIRST + (int)(number % PORT_COUNT);
    if (launch_port_is_free(*port)) {
      return true;
    }
  }
  return false;
}

static bool set_port(int port) {
  char text[16];
  if (port == 0 && getenv("MASTER_PORT")) {
    return true;
  }
  if (port == 0 && !draw_port(&port)) {
    return false;
  }
  snprintf(text, sizeof text, "%d", port);
  return setenv("MASTER_PORT", text, 1) == 0;
}

static bool set_token(void) {
  unsigned char bytes[TOKEN_BYTES];
  char text[2 * TOKEN_BYTES + 1];
  const char *given = getenv("LCOMM_TOKEN");
  if (given && *given) {
    return true;
  }
  if (!draw(bytes, sizeof bytes)) {
    return false;
  }
  for (int i = 0; i < TOKEN_BYTES; i++) {
    snprintf(text + 2 * i, 3, "%02x", bytes[i]);
  }
  return setenv("LCOMM_TOKEN", text, 1) == 0;
}

/* What all ranks have in common. */
static bool set_environment(const launch_options *o, const launch_place *first) {
  char text[16], address[LAUNCH_HOST_MAX] = "127.0.0.1";
  snprintf(text, sizeof text, "%d", o->ranks);
  if (launch_place_is_remote(first)) {
    launch_place_name(first, address);
  }
  unsetenv("TORCHELASTIC_USE_AGENT_STORE"); /* of a torchrun that has started this one */
  return setenv("WORLD_SIZE", text, 1) == 0 && setenv("MASTER_ADDR", address, 1) == 0 &&
         (!o->elastic || setenv("LCOMM_ELASTIC", "on", 1) == 0) && set_port(o->port) && set_token();
}

/* At which rank 0 of this machine listens as long as the job runs; 0: not known. */
static int port_of(const launch_options *o) {
  const char *port = getenv("MASTER_PORT");
  return o->hosts || getenv("LCOMM_PORT") || !port ? 0 : atoi(port);
}

int main(int argc, char **argv) {
  char error[TOOL_ERROR_MAX] = "no memory for so many ranks";
  launch_options options;
  tool_parse parse = read_options(argc, argv, &options, error);
  if (parse != TOOL_RUN) {
    return tool_answer("launch", parse, help, error);
  }
  launch_place *places = options.hosts
                             ? launch_places_read(options.hosts, options.ranks, error, sizeof error)
                             : launch_places_here(options.ranks);
  if (!places) {
    fprintf(stderr, "launch: %s\n", error);
    return EXIT_TROUBLE;
  }
  int status = EXIT_TROUBLE;
  if (set_environment(&options, &places[0])) {
    launch_order order = {.size = options.ranks,
                          .places = places,
                          .program = options.program,
                          .on_loss =
                              options.elastic || options.keeps_going ? LAUNCH_GOES_ON : LAUNCH_ENDS,
                          .restarts = options.restarts,
                          .port = port_of(&options)};
    status = launch_job_run(&order);
  } else {
    fputs("launch: cannot set the environment of the ranks, for lack of memory, ports or random "
          "numbers\n",
          stderr);
  }
  free(places);
  return status;
}
