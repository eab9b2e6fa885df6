/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How the interposer starts: as the environment says, when all ranks agree. Whatever fails, the
 * program runs on plain MPI, and rank 0 logs why. */

#include "libcomm/interpose/mpi/interpose.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "libcomm/interpose/interpose_report.h"
#include "libcomm/interpose/mpi/interpose_comm.h"
#include "libcomm/interpose/mpi/interpose_handshake.h"

static struct {
  int level; /* thread level that the program got; -1: not initialised through here */
  int rank, ranks, nodes;
  bool required; /* MPI_Init fails where the program would run on plain MPI */
  bool started;
  bool prints; /* this rank prints the report */
  char policy[LCOMM_INTERPOSE_POLICY_MAX];
} interposer = {.level = -1};

/* -------------------------------------------------------------- environment */

/* Without a policy the mode is off. */
static lcomm_interpose_mode wanted_mode(void) {
  lcomm_interpose_mode mode;
  return lcomm_interpose_mode_read(&mode) && lcomm_setting("LCOMM_POLICY") ? mode
                                                                           : LCOMM_INTERPOSE_OFF;
}

/* What is wrong with the environment; NULL: nothing. */
static const char *check_environment(void) {
  lcomm_interpose_mode mode;
  if (!lcomm_interpose_mode_read(&mode)) {
    return "LCOMM_INTERPOSE is none of on, require, off, blocking and report";
  }
  if (lcomm_interpose_is_required() && !lcomm_setting("LCOMM_POLICY")) {
    return "there is no LCOMM_POLICY";
  }
  return mode == LCOMM_INTERPOSE_REPORT && !lcomm_setting("LCOMM_POLICY")
             ? "LCOMM_INTERPOSE=report needs a policy to report on; set LCOMM_POLICY"
             : NULL;
}

int lcomm_interpose_thread_level_to_ask(int wanted) {
  return wanted_mode() == LCOMM_INTERPOSE_ON ? MPI_THREAD_MULTIPLE : wanted;
}

int lcomm_interpose_thread_level_to_tell(int wanted, int granted) {
  bool raised = lcomm_interpose_thread_level_to_ask(wanted) > wanted;
  interposer.level = raised && granted > wanted ? wanted : granted;
  return interposer.level;
}

int lcomm_interpose_thread_level(void) {
  return interposer.level;
}

/* ----------------------------------------------------------------- starting */

/* The program may not continue. MPI ends the job with the first rank that fails, so a pause lets
 * the others log their reason, too. */
static int refuse_to_start(const char *why) {
  const struct timespec pause = {.tv_sec = 1};
  lcomm_interpose_log("rank %d: %s. LCOMM_INTERPOSE=require: the program may not run on plain MPI",
                      interposer.rank, why);
  nanosleep(&pause, NULL);
  PMPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

/* No communicator is made that would warn, although a name that is misspelt may be the reason. */
static void warn_of_misspelt_variables(void) {
  if (interposer.rank == 0) {
    lcomm_settings_warn_unknown();
  }
}

/* Returns the result of MPI_Init. All ranks have the same reason. */
static int use_plain_mpi(const char *why) {
  warn_of_misspelt_variables();
  if (interposer.required) {
    return refuse_to_start(why);
  }
  if (interposer.rank == 0) {
    lcomm_interpose_log("%s. The program runs on plain MPI", why);
  }
  return MPI_SUCCESS;
}

/* True: all ranks are present with the same settings. False: *code is the result of MPI_Init. */
static bool all_agree(lcomm_interpose_mode mode, int level, int *code) {
  char sentence[LCOMM_INTERPOSE_SENTENCE_MAX];
  lcomm_interpose_handshake mine;
  const char *policy = lcomm_setting("LCOMM_POLICY");
  lcomm_interpose_handshake_init(&mine);
  mine.mode = (int32_t)mode;
  mine.level = level;
  mine.controlled = lcomm_interpose_control_wanted();
  mine.required = interposer.required;
  snprintf(mine.policy, sizeof(mine.policy), "%s", policy ? policy : "");
  lcomm_interpose_agreement agreement = lcomm_interpose_agree(&mine, sentence);
  if (agreement == LCOMM_INTERPOSE_REFUSED ||
      (agreement == LCOMM_INTERPOSE_UNHEARD && interposer.required)) {
    *code = use_plain_mpi(sentence);
  } else if (agreement == LCOMM_INTERPOSE_UNHEARD &&
             (interposer.rank & (interposer.rank - 1)) == 0) {
    /* Rank 0 does not answer, so ranks 1, 2, 4, 8 ... log instead. */
    lcomm_interpose_log("%s. Rank %d runs on plain MPI", sentence, interposer.rank);
  }
  return agreement == LCOMM_INTERPOSE_AGREED;
}

/* LCOMM_STATS was checked when the world's communicator was created. */
static void decide_on_report(lcomm_interpose_mode mode) {
  lcomm_interpose_tables wanted = lcomm_interpose_tables_wanted(mode);
  lcomm_interpose_recording = wanted.recorded;
  interposer.prints = wanted.of_all || (wanted.of_rank_0 && interposer.rank == 0);
}

static const char one_host[] =
    "all ranks are on one host, where nothing is compressed (LCOMM_NODES=2 lets them pose as two)";
static const char few_threads[] =
    "MPI gives no MPI_THREAD_MULTIPLE, so calls that do not block stay MPI's";

static int fail_to_start(const char *why) {
  char sentence[LCOMM_INTERPOSE_SENTENCE_MAX];
  snprintf(sentence, sizeof(sentence), "libcomm cannot start: %s", why);
  lcomm_interpose_comms_close();
  return use_plain_mpi(sentence);
}

static int start_in(lcomm_interpose_mode mode) {
  const char *why = lcomm_interpose_comms_open();
  if (why) {
    return fail_to_start(why);
  }
  lcomm_policy_facts facts;
  lcomm_policy_facts_get(lcomm_interpose_world(), &facts);
  snprintf(interposer.policy, sizeof(interposer.policy), "%s",
           lcomm_policy_string(lcomm_interpose_world()));
  interposer.nodes = lcomm_nodes(lcomm_interpose_world());
  interposer.started = true;
  lcomm_interpose_report_begin(interposer.policy);
  decide_on_report(mode);
  lcomm_interpose_min_bytes = lcomm_interpose_control_wanted() ? 0 : facts.min_bytes;
  bool useless = interposer.nodes == 1 && !facts.inside_nodes;
  if (useless && interposer.required) {
    return refuse_to_start(one_host);
  }
  if (useless && interposer.rank == 0) {
    lcomm_interpose_log("%s", one_host);
  }
  atomic_store(&lcomm_interpose_mode_now, (int)mode);
  return MPI_SUCCESS;
}

/* MPI calls this when it ends in another way than by MPI_Finalize of this library. */
static int on_end(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)comm;
  (void)keyval;
  (void)value;
  (void)extra;
  lcomm_interpose_stop();
  return MPI_SUCCESS;
}

static void call_on_end(void) {
  int keyval = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_end, &keyval, NULL);
  PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
  PMPI_Comm_free_keyval(&keyval);
}

int lcomm_interpose_start(void) {
  if (lcomm_mpi_other()) {
    return MPI_SUCCESS; /* interpose_init.c has logged that */
  }
  lcomm_interpose_mode mode = wanted_mode();
  int granted = MPI_THREAD_SINGLE, code = MPI_SUCCESS;
  interposer.required = lcomm_interpose_is_required();
  PMPI_Query_thread(&granted);
  PMPI_Comm_rank(MPI_COMM_WORLD, &interposer.rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &interposer.ranks);
  const char *trouble = check_environment();
  if (trouble) {
    return use_plain_mpi(trouble);
  }
  if (mode == LCOMM_INTERPOSE_OFF) {
    warn_of_misspelt_variables();
    return MPI_SUCCESS;
  }
  if (!all_agree(mode, granted, &code)) {
    return code;
  }
  if (mode == LCOMM_INTERPOSE_ON && granted < MPI_THREAD_MULTIPLE && interposer.required) {
    return refuse_to_start(few_threads);
  }
  if (mode == LCOMM_INTERPOSE_ON && granted < MPI_THREAD_MULTIPLE) {
    mode = LCOMM_INTERPOSE_BLOCKING;
    if (interposer.rank == 0) {
      lcomm_interpose_log("%s", few_threads);
    }
  }
  call_on_end();
  return start_in(mode);
}

/* ------------------------------------------------------------------ stopping */

static void print_report(bool report_only) {
  if (interposer.prints) {
    lcomm_interpose_report_show((lcomm_interpose_report_about){.report_only = report_only,
                                                               .rank = interposer.rank,
                                                               .ranks = interposer.ranks,
                                                               .nodes = interposer.nodes,
                                                               .policy = interposer.policy,
                                                               .library = "libcomm-mpi",
                                                               .other = "MPI"});
  }
}

void lcomm_interpose_stop(void) {
  if (!interposer.started) {
    return;
  }
  interposer.started = false;
  int mode = atomic_exchange(&lcomm_interpose_mode_now, LCOMM_INTERPOSE_OFF);
  print_report(mode == LCOMM_INTERPOSE_REPORT);
  lcomm_interpose_comms_close();
  lcomm_interpose_queue_stop();
  lcomm_device_free_deferred();
  lcomm_interpose_report_clear();
}
