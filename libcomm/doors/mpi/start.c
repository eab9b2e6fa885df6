/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How the door opens: by the environment, when all ranks agree. Whatever goes wrong,
 * the program runs on plain MPI, and rank 0 says why. */

#include "libcomm/doors/mpi/start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libcomm/doors/mpi/comms.h"
#include "libcomm/doors/mpi/control.h"
#include "libcomm/doors/mpi/hello.h"
#include "libcomm/doors/mpi/report.h"

enum { TABLE_MAX_BYTES = 65536 };

static struct {
  int level; /* that the program was told */
  int rank, ranks, nodes;
  bool required; /* MPI_Init fails where the program would run on plain MPI */
  bool open;
  bool shows; /* this rank prints the table */
  char policy[LCOMM_DOOR_POLICY_MAX];
} door = {.level = -1};

/* ------------------------------------------------------------ what was asked */

/* The words of LCOMM_DOOR. */
static const struct {
  const char *word;
  lcomm_door_mode mode;
} words[] = {{"on", LCOMM_DOOR_OPEN},
             {"require", LCOMM_DOOR_OPEN},
             {"off", LCOMM_DOOR_SHUT},
             {"blocking", LCOMM_DOOR_BLOCKING},
             {"report", LCOMM_DOOR_REPORT}};

static bool read_word(lcomm_door_mode *mode) {
  const char *text = lcomm_setting("LCOMM_DOOR");
  *mode = LCOMM_DOOR_OPEN;
  for (size_t i = 0; text && i < sizeof(words) / sizeof *words; i++) {
    *mode = words[i].mode;
    if (strcmp(text, words[i].word) == 0) {
      return true;
    }
  }
  return !text;
}

static bool is_required(void) {
  const char *text = lcomm_setting("LCOMM_DOOR");
  return text && strcmp(text, "require") == 0;
}

/* What is asked for. Without a policy there is nothing to do. */
static lcomm_door_mode wanted_mode(void) {
  lcomm_door_mode mode;
  return read_word(&mode) && lcomm_setting("LCOMM_POLICY") ? mode : LCOMM_DOOR_SHUT;
}

/* What is wrong with what was asked for, NULL if nothing. */
static const char *odd_wish(void) {
  lcomm_door_mode mode;
  if (!read_word(&mode)) {
    return "LCOMM_DOOR is none of on, require, off, blocking and report";
  }
  if (is_required() && !lcomm_setting("LCOMM_POLICY")) {
    return "there is no LCOMM_POLICY";
  }
  return mode == LCOMM_DOOR_REPORT && !lcomm_setting("LCOMM_POLICY")
             ? "LCOMM_DOOR=report needs a policy to report on; set LCOMM_POLICY"
             : NULL;
}

int lcomm_door_level_to_ask(int wanted) {
  return wanted_mode() == LCOMM_DOOR_OPEN ? MPI_THREAD_MULTIPLE : wanted;
}

int lcomm_door_level_to_tell(int wanted, int granted) {
  bool raised = lcomm_door_level_to_ask(wanted) > wanted;
  door.level = raised && granted > wanted ? wanted : granted;
  return door.level;
}

int lcomm_door_level(void) {
  return door.level;
}

/* ------------------------------------------------------------------ opening */

/* The program may not go on. MPI ends the job at the first rank that says so: the others
 * have a moment to give their reason, too. */
static int refuse_to_start(const char *why) {
  const struct timespec moment = {.tv_sec = 1};
  lcomm_door_say("rank %d: %s. LCOMM_DOOR=require: the program may not run on plain MPI", door.rank,
                 why);
  nanosleep(&moment, NULL);
  PMPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

/* What MPI_Init returns. All ranks have the same reason. */
static int give_up(const char *why) {
  if (door.required) {
    return refuse_to_start(why);
  }
  if (door.rank == 0) {
    lcomm_door_say("%s. The program runs on plain MPI", why);
  }
  return MPI_SUCCESS;
}

/* Are all ranks here, and want the same? *code is what MPI_Init returns where not. */
static bool all_agree(lcomm_door_mode mode, int level, int *code) {
  char sentence[LCOMM_DOOR_SENTENCE_MAX];
  lcomm_door_hello mine;
  const char *policy = lcomm_setting("LCOMM_POLICY");
  lcomm_door_hello_begin(&mine);
  mine.mode = (int32_t)mode;
  mine.level = level;
  mine.controlled = lcomm_door_control_wanted();
  mine.required = door.required;
  snprintf(mine.policy, sizeof(mine.policy), "%s", policy ? policy : "");
  lcomm_door_meeting meeting = lcomm_door_meet(&mine, sentence);
  if (meeting == LCOMM_DOOR_REFUSED || (meeting == LCOMM_DOOR_UNHEARD && door.required)) {
    *code = give_up(sentence);
  } else if (meeting == LCOMM_DOOR_UNHEARD && (door.rank & (door.rank - 1)) == 0) {
    /* Ranks 0, 1, 2, 4, 8 ...: not all of them, but some of those that are left. */
    lcomm_door_say("%s. Rank %d runs on plain MPI", sentence, door.rank);
  }
  return meeting == LCOMM_DOOR_AGREED;
}

/* A table at the end? LCOMM_STATS was checked when the world's communicator was made. */
static void decide_on_table(lcomm_door_mode mode) {
  const char *stats = lcomm_setting("LCOMM_STATS");
  stats = stats && strcmp(stats, "none") == 0 ? NULL : stats;
  lcomm_door_noting = mode == LCOMM_DOOR_REPORT || stats;
  door.shows = lcomm_door_noting && (door.rank == 0 || (stats && strcmp(stats, "exit:all") == 0));
}

static const char one_host[] =
    "all ranks are on one host, where nothing is compressed (LCOMM_NODES=2 lets them pose as two)";
static const char few_threads[] =
    "MPI gives no MPI_THREAD_MULTIPLE, so calls that do not block stay MPI's";

static int give_up_on_libcomm(const char *why) {
  char sentence[LCOMM_DOOR_SENTENCE_MAX];
  snprintf(sentence, sizeof(sentence), "libcomm cannot start: %s", why);
  lcomm_door_comms_close();
  return give_up(sentence);
}

static int open_for(lcomm_door_mode mode) {
  const char *why = lcomm_door_comms_open();
  if (why) {
    return give_up_on_libcomm(why);
  }
  lcomm_policy_facts facts;
  lcomm_policy_facts_get(lcomm_door_world(), &facts);
  snprintf(door.policy, sizeof(door.policy), "%s", lcomm_policy_string(lcomm_door_world()));
  door.nodes = lcomm_nodes(lcomm_door_world());
  door.open = true;
  lcomm_door_report_begin(door.policy);
  decide_on_table(mode);
  lcomm_door_least_bytes = lcomm_door_control_wanted() ? 0 : facts.min_bytes;
  bool useless = door.nodes == 1 && !facts.inside_nodes;
  if (useless && door.required) {
    return refuse_to_start(one_host);
  }
  if (useless && door.rank == 0) {
    lcomm_door_say("%s", one_host);
  }
  atomic_store(&lcomm_door_mode_now, (int)mode);
  return MPI_SUCCESS;
}

/* MPI ends in some way that is not our MPI_Finalize. */
static int world_ends(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)comm;
  (void)keyval;
  (void)value;
  (void)extra;
  lcomm_door_shut();
  return MPI_SUCCESS;
}

static void watch_the_end(void) {
  int keyval = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, world_ends, &keyval, NULL);
  PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
  PMPI_Comm_free_keyval(&keyval);
}

int lcomm_door_open(void) {
  if (lcomm_mpi_other()) {
    return MPI_SUCCESS; /* other_mpi.c has said so */
  }
  lcomm_door_mode mode = wanted_mode();
  int granted = MPI_THREAD_SINGLE, code = MPI_SUCCESS;
  door.required = is_required();
  PMPI_Query_thread(&granted);
  PMPI_Comm_rank(MPI_COMM_WORLD, &door.rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &door.ranks);
  const char *trouble = odd_wish();
  if (trouble) {
    return give_up(trouble);
  }
  if (mode == LCOMM_DOOR_SHUT || !all_agree(mode, granted, &code)) {
    return code;
  }
  if (mode == LCOMM_DOOR_OPEN && granted < MPI_THREAD_MULTIPLE && door.required) {
    return refuse_to_start(few_threads);
  }
  if (mode == LCOMM_DOOR_OPEN && granted < MPI_THREAD_MULTIPLE) {
    mode = LCOMM_DOOR_BLOCKING;
    if (door.rank == 0) {
      lcomm_door_say("%s", few_threads);
    }
  }
  watch_the_end();
  return open_for(mode);
}

/* ---------------------------------------------------------------- the end */

static void show_table(bool report_only) {
  char host[256] = "";
  char *text = door.shows ? malloc(TABLE_MAX_BYTES) : NULL;
  if (!text) {
    return;
  }
  gethostname(host, sizeof(host) - 1);
  lcomm_door_report_about about = {.report_only = report_only,
                                   .rank = door.rank,
                                   .ranks = door.ranks,
                                   .nodes = door.nodes,
                                   .host = host,
                                   .policy = door.policy};
  size_t length = lcomm_door_report_print(&about, text, TABLE_MAX_BYTES);
  length = length < TABLE_MAX_BYTES ? length : TABLE_MAX_BYTES - 1;
  ssize_t written = write(STDERR_FILENO, text, length);
  (void)written;
  free(text);
}

void lcomm_door_shut(void) {
  if (!door.open) {
    return;
  }
  door.open = false;
  int mode = atomic_exchange(&lcomm_door_mode_now, LCOMM_DOOR_SHUT);
  show_table(mode == LCOMM_DOOR_REPORT);
  lcomm_door_comms_close();
  lcomm_door_queue_stop();
  lcomm_door_report_clear();
}
