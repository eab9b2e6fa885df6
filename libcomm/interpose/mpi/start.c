/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How the interposer opens: by the environment, when all ranks agree. Whatever goes wrong,
 * the program runs on plain MPI, and rank 0 says why. */

#include "libcomm/interpose/mpi/start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libcomm/interpose/mpi/comms.h"
#include "libcomm/interpose/mpi/control.h"
#include "libcomm/interpose/mpi/hello.h"
#include "libcomm/interpose/mpi/report.h"

enum { TABLE_MAX_BYTES = 65536 };

static struct {
  int level; /* that the program was told */
  int rank, ranks, nodes;
  bool required; /* MPI_Init fails where the program would run on plain MPI */
  bool open;
  bool shows; /* this rank prints the table */
  char policy[LCOMM_INTERPOSE_POLICY_MAX];
} interposer = {.level = -1};

/* ------------------------------------------------------------ what was asked */

/* The words of LCOMM_INTERPOSE. */
static const struct {
  const char *word;
  lcomm_interpose_mode mode;
} words[] = {{"on", LCOMM_INTERPOSE_OPEN},
             {"require", LCOMM_INTERPOSE_OPEN},
             {"off", LCOMM_INTERPOSE_SHUT},
             {"blocking", LCOMM_INTERPOSE_BLOCKING},
             {"report", LCOMM_INTERPOSE_REPORT}};

static bool read_word(lcomm_interpose_mode *mode) {
  const char *text = lcomm_setting("LCOMM_INTERPOSE");
  *mode = LCOMM_INTERPOSE_OPEN;
  for (size_t i = 0; text && i < sizeof(words) / sizeof *words; i++) {
    *mode = words[i].mode;
    if (strcmp(text, words[i].word) == 0) {
      return true;
    }
  }
  return !text;
}

static bool is_required(void) {
  const char *text = lcomm_setting("LCOMM_INTERPOSE");
  return text && strcmp(text, "require") == 0;
}

/* What is asked for. Without a policy there is nothing to do. */
static lcomm_interpose_mode wanted_mode(void) {
  lcomm_interpose_mode mode;
  return read_word(&mode) && lcomm_setting("LCOMM_POLICY") ? mode : LCOMM_INTERPOSE_SHUT;
}

/* What is wrong with what was asked for, NULL if nothing. */
static const char *odd_wish(void) {
  lcomm_interpose_mode mode;
  if (!read_word(&mode)) {
    return "LCOMM_INTERPOSE is none of on, require, off, blocking and report";
  }
  if (is_required() && !lcomm_setting("LCOMM_POLICY")) {
    return "there is no LCOMM_POLICY";
  }
  return mode == LCOMM_INTERPOSE_REPORT && !lcomm_setting("LCOMM_POLICY")
             ? "LCOMM_INTERPOSE=report needs a policy to report on; set LCOMM_POLICY"
             : NULL;
}

int lcomm_interpose_level_to_ask(int wanted) {
  return wanted_mode() == LCOMM_INTERPOSE_OPEN ? MPI_THREAD_MULTIPLE : wanted;
}

int lcomm_interpose_level_to_tell(int wanted, int granted) {
  bool raised = lcomm_interpose_level_to_ask(wanted) > wanted;
  interposer.level = raised && granted > wanted ? wanted : granted;
  return interposer.level;
}

int lcomm_interpose_level(void) {
  return interposer.level;
}

/* ------------------------------------------------------------------ opening */

/* The program may not go on. MPI ends the job at the first rank that says so: the others
 * have a moment to give their reason, too. */
static int refuse_to_start(const char *why) {
  const struct timespec moment = {.tv_sec = 1};
  lcomm_interpose_say("rank %d: %s. LCOMM_INTERPOSE=require: the program may not run on plain MPI",
                      interposer.rank, why);
  nanosleep(&moment, NULL);
  PMPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

/* What MPI_Init returns. All ranks have the same reason. */
static int give_up(const char *why) {
  if (interposer.required) {
    return refuse_to_start(why);
  }
  if (interposer.rank == 0) {
    lcomm_interpose_say("%s. The program runs on plain MPI", why);
  }
  return MPI_SUCCESS;
}

/* Are all ranks here, and want the same? *code is what MPI_Init returns where not. */
static bool all_agree(lcomm_interpose_mode mode, int level, int *code) {
  char sentence[LCOMM_INTERPOSE_SENTENCE_MAX];
  lcomm_interpose_hello mine;
  const char *policy = lcomm_setting("LCOMM_POLICY");
  lcomm_interpose_hello_begin(&mine);
  mine.mode = (int32_t)mode;
  mine.level = level;
  mine.controlled = lcomm_interpose_control_wanted();
  mine.required = interposer.required;
  snprintf(mine.policy, sizeof(mine.policy), "%s", policy ? policy : "");
  lcomm_interpose_meeting meeting = lcomm_interpose_meet(&mine, sentence);
  if (meeting == LCOMM_INTERPOSE_REFUSED ||
      (meeting == LCOMM_INTERPOSE_UNHEARD && interposer.required)) {
    *code = give_up(sentence);
  } else if (meeting == LCOMM_INTERPOSE_UNHEARD && (interposer.rank & (interposer.rank - 1)) == 0) {
    /* Ranks 0, 1, 2, 4, 8 ...: not all of them, but some of those that are left. */
    lcomm_interpose_say("%s. Rank %d runs on plain MPI", sentence, interposer.rank);
  }
  return meeting == LCOMM_INTERPOSE_AGREED;
}

/* A table at the end? LCOMM_STATS was checked when the world's communicator was made. */
static void decide_on_table(lcomm_interpose_mode mode) {
  const char *stats = lcomm_setting("LCOMM_STATS");
  stats = stats && strcmp(stats, "none") == 0 ? NULL : stats;
  lcomm_interpose_noting = mode == LCOMM_INTERPOSE_REPORT || stats;
  interposer.shows =
      lcomm_interpose_noting && (interposer.rank == 0 || (stats && strcmp(stats, "exit:all") == 0));
}

static const char one_host[] =
    "all ranks are on one host, where nothing is compressed (LCOMM_NODES=2 lets them pose as two)";
static const char few_threads[] =
    "MPI gives no MPI_THREAD_MULTIPLE, so calls that do not block stay MPI's";

static int give_up_on_libcomm(const char *why) {
  char sentence[LCOMM_INTERPOSE_SENTENCE_MAX];
  snprintf(sentence, sizeof(sentence), "libcomm cannot start: %s", why);
  lcomm_interpose_comms_close();
  return give_up(sentence);
}

static int open_for(lcomm_interpose_mode mode) {
  const char *why = lcomm_interpose_comms_open();
  if (why) {
    return give_up_on_libcomm(why);
  }
  lcomm_policy_facts facts;
  lcomm_policy_facts_get(lcomm_interpose_world(), &facts);
  snprintf(interposer.policy, sizeof(interposer.policy), "%s",
           lcomm_policy_string(lcomm_interpose_world()));
  interposer.nodes = lcomm_nodes(lcomm_interpose_world());
  interposer.open = true;
  lcomm_interpose_report_begin(interposer.policy);
  decide_on_table(mode);
  lcomm_interpose_least_bytes = lcomm_interpose_control_wanted() ? 0 : facts.min_bytes;
  bool useless = interposer.nodes == 1 && !facts.inside_nodes;
  if (useless && interposer.required) {
    return refuse_to_start(one_host);
  }
  if (useless && interposer.rank == 0) {
    lcomm_interpose_say("%s", one_host);
  }
  atomic_store(&lcomm_interpose_mode_now, (int)mode);
  return MPI_SUCCESS;
}

/* MPI ends in some way that is not our MPI_Finalize. */
static int world_ends(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)comm;
  (void)keyval;
  (void)value;
  (void)extra;
  lcomm_interpose_shut();
  return MPI_SUCCESS;
}

static void watch_the_end(void) {
  int keyval = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, world_ends, &keyval, NULL);
  PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
  PMPI_Comm_free_keyval(&keyval);
}

int lcomm_interpose_open(void) {
  if (lcomm_mpi_other()) {
    return MPI_SUCCESS; /* other_mpi.c has said so */
  }
  lcomm_interpose_mode mode = wanted_mode();
  int granted = MPI_THREAD_SINGLE, code = MPI_SUCCESS;
  interposer.required = is_required();
  PMPI_Query_thread(&granted);
  PMPI_Comm_rank(MPI_COMM_WORLD, &interposer.rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &interposer.ranks);
  const char *trouble = odd_wish();
  if (trouble) {
    return give_up(trouble);
  }
  if (mode == LCOMM_INTERPOSE_SHUT || !all_agree(mode, granted, &code)) {
    return code;
  }
  if (mode == LCOMM_INTERPOSE_OPEN && granted < MPI_THREAD_MULTIPLE && interposer.required) {
    return refuse_to_start(few_threads);
  }
  if (mode == LCOMM_INTERPOSE_OPEN && granted < MPI_THREAD_MULTIPLE) {
    mode = LCOMM_INTERPOSE_BLOCKING;
    if (interposer.rank == 0) {
      lcomm_interpose_say("%s", few_threads);
    }
  }
  watch_the_end();
  return open_for(mode);
}

/* ---------------------------------------------------------------- the end */

static void show_table(bool report_only) {
  char host[256] = "";
  char *text = interposer.shows ? malloc(TABLE_MAX_BYTES) : NULL;
  if (!text) {
    return;
  }
  gethostname(host, sizeof(host) - 1);
  lcomm_interpose_report_about about = {.report_only = report_only,
                                        .rank = interposer.rank,
                                        .ranks = interposer.ranks,
                                        .nodes = interposer.nodes,
                                        .host = host,
                                        .policy = interposer.policy};
  size_t length = lcomm_interpose_report_print(&about, text, TABLE_MAX_BYTES);
  length = length < TABLE_MAX_BYTES ? length : TABLE_MAX_BYTES - 1;
  ssize_t written = write(STDERR_FILENO, text, length);
  (void)written;
  free(text);
}

void lcomm_interpose_shut(void) {
  if (!interposer.open) {
    return;
  }
  interposer.open = false;
  int mode = atomic_exchange(&lcomm_interpose_mode_now, LCOMM_INTERPOSE_SHUT);
  show_table(mode == LCOMM_INTERPOSE_REPORT);
  lcomm_interpose_comms_close();
  lcomm_interpose_queue_stop();
  lcomm_interpose_report_clear();
}
