/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Who is there? Each rank publishes its name, rank 0 looks for those of all others and
 * publishes a verdict, which the others wait for. A rank that finds no name of rank 0 takes
 * its own back and looks again: rank 0 publishes its name before it looks for others, so at
 * least one of the two finds the other missing, or both find each other. */

#include "libcomm/interpose/mpi/presence.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "libcomm/interpose/mpi/greeting.h"
#include "libcomm/interpose/mpi/interpose.h"

/* Patience is counted in looks, of which a busy machine makes fewer. */
enum { LOOKS = 40, LOOKS_FOR_VERDICT = 3000, VERDICT = -1, NAME_MAX_BYTES = 96 };

static const double PAUSE_LEAST_S = 1e-3, PAUSE_MOST_S = 40e-3;

/* ------------------------------------------------------------ the name service */

/* What tells worlds apart that one launcher started. */
static const char *name_of_job(void) {
  const char *name = lcomm_setting("PMIX_NAMESPACE");
  name = name ? name : lcomm_setting("PMI_JOBID");
  return name ? name : "";
}

/* Names are short and of plain characters. who: a rank, or VERDICT. */
static void write_name(int who, char *name) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (const char *it = name_of_job(); *it; it++) {
    hash = (hash ^ (unsigned char)*it) * UINT64_C(0x100000001b3);
  }
  if (who == VERDICT) {
    snprintf(name, NAME_MAX_BYTES, "libcomm-mpi-%016llx-verdict", (unsigned long long)hash);
  } else {
    snprintf(name, NAME_MAX_BYTES, "libcomm-mpi-%016llx-%d", (unsigned long long)hash, who);
  }
}

static bool publish(int who, const char *text) {
  char name[NAME_MAX_BYTES];
  write_name(who, name);
  return PMPI_Publish_name(name, MPI_INFO_NULL, text) == MPI_SUCCESS;
}

static void take_back(int who, const char *text) {
  char name[NAME_MAX_BYTES];
  write_name(who, name);
  (void)PMPI_Unpublish_name(name, MPI_INFO_NULL, text);
}

static bool look_up(int who, char *text) {
  char name[NAME_MAX_BYTES], port[MPI_MAX_PORT_NAME + 1] = "";
  write_name(who, name);
  if (PMPI_Lookup_name(name, MPI_INFO_NULL, port) != MPI_SUCCESS) {
    return false;
  }
  port[MPI_MAX_PORT_NAME] = '\0';
  snprintf(text, LCOMM_INTERPOSE_WORD_TEXT_MAX, "%.*s", LCOMM_INTERPOSE_WORD_TEXT_MAX - 1, port);
  return true;
}

/* Look until it is there, or looks are used up. */
static bool look_up_for(int who, unsigned *looks, char *text) {
  double pause_s = PAUSE_LEAST_S;
  while (!look_up(who, text)) {
    if (*looks == 0) {
      return false;
    }
    --*looks;
    struct timespec pause = {.tv_nsec = (long)(1e9 * pause_s)};
    nanosleep(&pause, NULL);
    pause_s = 2 * pause_s < PAUSE_MOST_S ? 2 * pause_s : PAUSE_MOST_S;
  }
  return true;
}

/* ---------------------------------------------------------------- both sides */

static lcomm_interpose_word judge(int size, const char *mine) {
  char text[LCOMM_INTERPOSE_WORD_TEXT_MAX];
  unsigned looks = LOOKS;
  for (int rank = 1; rank < size; rank++) {
    if (!look_up_for(rank, &looks, text)) {
      return (lcomm_interpose_word){LCOMM_INTERPOSE_LACKS, rank};
    }
    if (strcmp(text, mine) != 0) {
      return (lcomm_interpose_word){LCOMM_INTERPOSE_DIFFERS, rank};
    }
  }
  return (lcomm_interpose_word){LCOMM_INTERPOSE_ALL, size};
}

/* False: rank 0 is missing. */
static bool hear_verdict(int rank, const char *mine, lcomm_interpose_word *verdict) {
  char text[LCOMM_INTERPOSE_WORD_TEXT_MAX];
  unsigned looks = LOOKS;
  if (!look_up_for(VERDICT, &looks, text)) {
    if (!look_up(0, text)) {
      take_back(rank, mine);
    }
    looks = look_up(0, text) ? LOOKS_FOR_VERDICT : 0;
    if (!look_up_for(VERDICT, &looks, text)) {
      return false;
    }
  }
  return lcomm_interpose_word_read(text, verdict);
}

static lcomm_interpose_presence ask_around(int rank, int size, const char *mine, char *sentence) {
  char text[LCOMM_INTERPOSE_WORD_TEXT_MAX];
  lcomm_interpose_word verdict = {LCOMM_INTERPOSE_LACKS, 0};
  if (rank > 0 && !hear_verdict(rank, mine, &verdict)) {
    lcomm_interpose_word_explain(&verdict, sentence);
    return LCOMM_INTERPOSE_FIRST_MISSING;
  }
  if (rank == 0) {
    verdict = judge(size, mine);
    lcomm_interpose_word_write(&verdict, text);
    publish(VERDICT, text);
  }
  lcomm_interpose_word_explain(&verdict, sentence);
  return verdict.kind == LCOMM_INTERPOSE_ALL ? LCOMM_INTERPOSE_ALL_PRESENT
                                             : LCOMM_INTERPOSE_RANK_MISSING;
}

/* ------------------------------------------------------- without a name service */

/* A barrier that is left alone cannot be taken back: the job ends. */
static lcomm_interpose_presence wait_for_all(int rank) {
  static const double PATIENCE_S = 20;
  const struct timespec pause = {.tv_nsec = 1000000};
  double end_s = PMPI_Wtime() + PATIENCE_S;
  MPI_Request request = MPI_REQUEST_NULL;
  int all = 0;
  PMPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (PMPI_Test(&request, &all, MPI_STATUS_IGNORE) == MPI_SUCCESS && !all) {
    if (PMPI_Wtime() > end_s) {
      lcomm_interpose_say(
          "rank %d has waited 20 s in MPI_Init for ranks that run without the preload, "
          "without LCOMM_POLICY or with LCOMM_INTERPOSE=off, and the launcher has no name "
          "service to ask which. Give all ranks the same environment, or unset "
          "LCOMM_POLICY. The job ends",
          rank);
      PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    nanosleep(&pause, NULL);
  }
  return LCOMM_INTERPOSE_ALL_PRESENT;
}

/* A world that was spawned shares the names of its launcher. */
static bool may_share_names(void) {
  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_get_parent(&parent);
  return parent != MPI_COMM_NULL && !*name_of_job();
}

/* ---------------------------------------------------------------- from outside */

/* What is not found is an error for MPI, and not for us. */
typedef struct kept_handlers {
  MPI_Errhandler world, self;
} kept_handlers;

static kept_handlers silence(void) {
  kept_handlers kept;
  PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &kept.world);
  PMPI_Comm_get_errhandler(MPI_COMM_SELF, &kept.self);
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  PMPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  return kept;
}

static void restore(kept_handlers *kept) {
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, kept->world);
  PMPI_Comm_set_errhandler(MPI_COMM_SELF, kept->self);
  PMPI_Errhandler_free(&kept->world);
  PMPI_Errhandler_free(&kept->self);
}

static void write_mine(char *text) {
  const lcomm_interpose_word here = {LCOMM_INTERPOSE_HERE, lcomm_version()};
  lcomm_interpose_word_write(&here, text);
}

lcomm_interpose_presence lcomm_interpose_presence_find(int rank, int size, char *sentence) {
  char mine[LCOMM_INTERPOSE_WORD_TEXT_MAX];
  sentence[0] = '\0';
  if (size == 1) {
    return LCOMM_INTERPOSE_ALL_PRESENT;
  }
  write_mine(mine);
  kept_handlers kept = silence();
  lcomm_interpose_presence presence = may_share_names() || !publish(rank, mine)
                                          ? wait_for_all(rank)
                                          : ask_around(rank, size, mine, sentence);
  restore(&kept);
  return presence;
}

void lcomm_interpose_presence_end(int rank, int size) {
  char text[LCOMM_INTERPOSE_WORD_TEXT_MAX];
  if (size == 1 || may_share_names()) {
    return;
  }
  kept_handlers kept = silence();
  write_mine(text);
  take_back(rank, text);
  if (rank == 0) {
    const lcomm_interpose_word all = {LCOMM_INTERPOSE_ALL, size};
    lcomm_interpose_word_write(&all, text);
    take_back(VERDICT, text);
  }
  restore(&kept);
}
