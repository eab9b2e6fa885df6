/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Each rank publishes its name. Rank 0 looks up all others and publishes a verdict, which the
 * others wait for. A rank that does not find rank 0 withdraws its name and looks once more: rank 0
 * publishes its name before it looks up others, so at least one of the two finds the other
 * missing, or both find each other. When all are present, rank 0 gathers the handshakes, compares
 * them and broadcasts its verdict. */

#include "libcomm/interpose/mpi/interpose_handshake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libcomm/interpose/mpi/interpose.h"

/* The waits are counted in look-ups, because a busy machine makes fewer of them. */
enum { LOOKUPS = 40, LOOKUPS_FOR_VERDICT = 3000, VERDICT = -1, NAME_MAX_BYTES = 96 };
static const double PAUSE_LEAST_S = 1e-3, PAUSE_MOST_S = 40e-3;

typedef enum presence {
  ALL_PRESENT,   /* each rank is in MPI_Init and stays there for collective calls */
  RANK_MISSING,  /* rank 0 has told all present ranks which one */
  FIRST_MISSING, /* rank 0 itself */
} presence;

/* ---------------------------------------------------------- the name service */

/* Tells apart the worlds that one launcher has started. */
static const char *job_name(void) {
  const char *name = lcomm_setting("PMIX_NAMESPACE");
  name = name ? name : lcomm_setting("PMI_JOBID");
  return name ? name : "";
}

/* A short name of plain characters. who: a rank, or VERDICT. */
static void write_name(int who, char *name) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (const char *it = job_name(); *it; it++) {
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

static void withdraw(int who, const char *text) {
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

/* Repeat until the name is published. *lookups: how many are left; false: none. */
static bool wait_for_name(int who, unsigned *lookups, char *text) {
  double pause_s = PAUSE_LEAST_S;
  while (!look_up(who, text)) {
    if (*lookups == 0) {
      return false;
    }
    --*lookups;
    struct timespec pause = {.tv_nsec = (long)(1e9 * pause_s)};
    nanosleep(&pause, NULL);
    pause_s = 2 * pause_s < PAUSE_MOST_S ? 2 * pause_s : PAUSE_MOST_S;
  }
  return true;
}

/* ------------------------------------------------------------------ presence */

/* Rank 0. */
static lcomm_interpose_presence_word find_all(int size, const char *mine) {
  char text[LCOMM_INTERPOSE_WORD_TEXT_MAX];
  unsigned lookups = LOOKUPS;
  for (int rank = 1; rank < size; rank++) {
    if (!wait_for_name(rank, &lookups, text)) {
      return (lcomm_interpose_presence_word){LCOMM_INTERPOSE_LACKS, rank};
    }
    if (strcmp(text, mine) != 0) {
      return (lcomm_interpose_presence_word){LCOMM_INTERPOSE_DIFFERS, rank};
    }
  }
  return (lcomm_interpose_presence_word){LCOMM_INTERPOSE_ALL, size};
}

/* The other ranks. False: rank 0 is missing. */
static bool wait_for_verdict(int rank, const char *mine, lcomm_interpose_presence_word *verdict) {
  char text[LCOMM_INTERPOSE_WORD_TEXT_MAX];
  unsigned lookups = LOOKUPS;
  if (!wait_for_name(VERDICT, &lookups, text)) {
    if (!look_up(0, text)) {
      withdraw(rank, mine);
    }
    lookups = look_up(0, text) ? LOOKUPS_FOR_VERDICT : 0;
    if (!wait_for_name(VERDICT, &lookups, text)) {
      return false;
    }
  }
  return lcomm_interpose_presence_word_read(text, verdict);
}

static presence find_by_name(int rank, int size, const char *mine, char *sentence) {
  char text[LCOMM_INTERPOSE_WORD_TEXT_MAX];
  lcomm_interpose_presence_word verdict = {LCOMM_INTERPOSE_LACKS, 0};
  if (rank > 0 && !wait_for_verdict(rank, mine, &verdict)) {
    lcomm_interpose_presence_word_explain(&verdict, sentence);
    return FIRST_MISSING;
  }
  if (rank == 0) {
    verdict = find_all(size, mine);
    lcomm_interpose_presence_word_write(&verdict, text);
    publish(VERDICT, text);
  }
  lcomm_interpose_presence_word_explain(&verdict, sentence);
  return verdict.kind == LCOMM_INTERPOSE_ALL ? ALL_PRESENT : RANK_MISSING;
}

/* Without a name service. A barrier cannot be withdrawn, so the job ends where a rank is missing.
 */
static presence find_by_barrier(int rank) {
  static const double TIMEOUT_S = 20;
  const struct timespec pause = {.tv_nsec = 1000000};
  double end_s = PMPI_Wtime() + TIMEOUT_S;
  MPI_Request request = MPI_REQUEST_NULL;
  int all = 0;
  PMPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (PMPI_Test(&request, &all, MPI_STATUS_IGNORE) == MPI_SUCCESS && !all) {
    if (PMPI_Wtime() > end_s) {
      lcomm_interpose_log(
          "rank %d has waited 20 s in MPI_Init for ranks that run without the preload, "
          "without LCOMM_POLICY or with LCOMM_INTERPOSE=off, and the launcher has no name "
          "service to ask which. Give all ranks the same environment, or unset "
          "LCOMM_POLICY. The job ends",
          rank);
      PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    nanosleep(&pause, NULL);
  }
  return ALL_PRESENT;
}

/* A spawned world shares the name service with the world that spawned it. */
static bool may_share_names(void) {
  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_get_parent(&parent);
  return parent != MPI_COMM_NULL && !*job_name();
}

/* A name that is not published is an error for MPI, but not for the program. */
typedef struct kept_handlers {
  MPI_Errhandler world, self;
} kept_handlers;

static kept_handlers silence_errors(void) {
  kept_handlers kept;
  PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &kept.world);
  PMPI_Comm_get_errhandler(MPI_COMM_SELF, &kept.self);
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  PMPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  return kept;
}

static void restore_errors(kept_handlers *kept) {
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, kept->world);
  PMPI_Comm_set_errhandler(MPI_COMM_SELF, kept->self);
  PMPI_Errhandler_free(&kept->world);
  PMPI_Errhandler_free(&kept->self);
}

static void write_mine(char *text) {
  const lcomm_interpose_presence_word here = {LCOMM_INTERPOSE_HERE, lcomm_version()};
  lcomm_interpose_presence_word_write(&here, text);
}

static presence find_ranks(int rank, int size, char *sentence) {
  char mine[LCOMM_INTERPOSE_WORD_TEXT_MAX];
  sentence[0] = '\0';
  if (size == 1) {
    return ALL_PRESENT;
  }
  write_mine(mine);
  kept_handlers kept = silence_errors();
  presence found = may_share_names() || !publish(rank, mine)
                       ? find_by_barrier(rank)
                       : find_by_name(rank, size, mine, sentence);
  restore_errors(&kept);
  return found;
}

/* All ranks are present and have exchanged handshakes, so nobody looks up names any more. */
static void withdraw_names(int rank, int size) {
  char text[LCOMM_INTERPOSE_WORD_TEXT_MAX];
  if (size == 1 || may_share_names()) {
    return;
  }
  kept_handlers kept = silence_errors();
  write_mine(text);
  withdraw(rank, text);
  if (rank == 0) {
    const lcomm_interpose_presence_word all = {LCOMM_INTERPOSE_ALL, size};
    lcomm_interpose_presence_word_write(&all, text);
    withdraw(VERDICT, text);
  }
  restore_errors(&kept);
}

/* ---------------------------------------------------------------- handshakes */

/* The verdict names the lowest rank that differs. */
static void compare(const lcomm_interpose_handshake *all, int size, lcomm_interpose_verdict *v) {
  lcomm_interpose_verdict_init(v);
  v->good = 1;
  for (int rank = 1; rank < size && v->good; rank++) {
    v->good = !lcomm_interpose_handshake_differs(&all[0], &all[rank], rank, v->sentence);
  }
}

/* All ranks are present, so these collective calls match no others. */
static lcomm_interpose_agreement shake_hands(const lcomm_interpose_handshake *mine,
                                             lcomm_interpose_handshake *all, int rank, int size,
                                             lcomm_interpose_verdict *v) {
  PMPI_Gather(mine, sizeof *mine, MPI_BYTE, all, sizeof *mine, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    compare(all, size, v);
  }
  PMPI_Bcast(v, sizeof *v, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (!lcomm_interpose_verdict_check(v)) {
    snprintf(v->sentence, sizeof(v->sentence),
             "rank 0 preloads another version of libcomm-mpi.so; install the same one on all "
             "hosts");
    return LCOMM_INTERPOSE_UNHEARD;
  }
  return v->good ? LCOMM_INTERPOSE_AGREED : LCOMM_INTERPOSE_REFUSED;
}

static lcomm_interpose_agreement agree(const lcomm_interpose_handshake *mine,
                                       lcomm_interpose_handshake *all, int rank, int size,
                                       lcomm_interpose_verdict *v) {
  switch (find_ranks(rank, size, v->sentence)) {
  case RANK_MISSING:
    return LCOMM_INTERPOSE_REFUSED;
  case FIRST_MISSING:
    return LCOMM_INTERPOSE_UNHEARD;
  case ALL_PRESENT:
    break;
  }
  lcomm_interpose_agreement agreement = shake_hands(mine, all, rank, size, v);
  withdraw_names(rank, size);
  return agreement;
}

lcomm_interpose_agreement lcomm_interpose_agree(const lcomm_interpose_handshake *mine,
                                                char *sentence) {
  int rank = 0, size = 1;
  lcomm_interpose_agreement agreement = LCOMM_INTERPOSE_UNHEARD; /* as the others find this rank */
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  lcomm_interpose_verdict *v = calloc(1, sizeof *v);
  lcomm_interpose_handshake *all = calloc(rank == 0 ? (size_t)size : 1, sizeof *all);
  snprintf(sentence, LCOMM_INTERPOSE_SENTENCE_MAX, "out of memory");
  if (v && all) {
    agreement = agree(mine, all, rank, size, v);
    memcpy(sentence, v->sentence, sizeof(v->sentence));
  }
  free(all);
  free(v);
  return agreement;
}
