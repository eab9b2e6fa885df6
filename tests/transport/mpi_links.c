/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Which transport reaches whom is as asked, what cannot be is explained on every
 * rank, and different calls are named whatever carries the messages. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/engine/engine.h"
#include "tests/support/mpi_property.h"

/* Every other rank says that it is on a second host. */
static void pose_as_hosts(void) {
  setenv("LCOMM_HOSTID", mpi_rank % 2 == 0 ? "even" : "odd", 1);
}

static lcomm_comm *make_over(const char *transport) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = "net=none";
  config.transport = transport;
  config.timeout_s = 30;
  return make_comm_if_possible(&config);
}

/* One sentence, with `word`, that begins with who says it. */
static void require_sentence(const char *sentence, const char *word) {
  char who[32];
  snprintf(who, sizeof(who), "rank %d (host ", mpi_rank);
  require(strncmp(sentence, who, strlen(who)) == 0, "does not say who speaks: %s", sentence);
  require(strstr(sentence, word) != NULL, "no '%s' in: %s", word, sentence);
  require(!strchr(sentence, '\n'), "more than one line: %s", sentence);
}

static void require_no_comm(const lcomm_config *config, lcomm_status wanted, const char *word) {
  lcomm_comm *comm = NULL;
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, config, &comm);
  require(status == wanted, "%s instead of %s: %s", lcomm_status_name(status),
          lcomm_status_name(wanted), lcomm_last_error(NULL));
  require(!comm, "a communicator was made");
  require(equal_everywhere(status), "the ranks end with different errors");
  require_sentence(lcomm_last_error(NULL), word);
}

/* ------------------------------------------------------------------- names */

static void names_that_are_no_transports_are_explained_on_every_rank(void) {
  static const char long_list[] = "mpi,mpi,mpi,mpi,mpi,mpi,mpi,mpi,mpi,mpi,mpi,mpi,mpi,mpi,mpi,mpi,"
                                  "mpi,mpi,mpi,mpi,mpi,mpi";
  static const struct {
    const char *names, *word;
  } wrong[] = {{"tcp", "'tcp' is no transport"},
               {"shm,quic", "'quic'"},
               {"", "empty"},
               {",,", "empty"},
               {"mpi ", "'mpi '"},
               {"MPI", "'MPI'"},
               {"auto,mpi", "'auto' is no transport"},
               {long_list, "too long"}};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    lcomm_config config = LCOMM_CONFIG_INIT;
    config.transport = wrong[i].names;
    require_no_comm(&config, LCOMM_ERR_ARGUMENT, wrong[i].word);
    require(strstr(lcomm_last_error(NULL), "LCOMM_TRANSPORT") != NULL, "%s",
            lcomm_last_error(NULL));
  }
  setenv("LCOMM_TRANSPORT", "pigeons", 1);
  require_no_comm(NULL, LCOMM_ERR_ARGUMENT, "pigeons");
  unsetenv("LCOMM_TRANSPORT");
}

static void a_wrong_name_on_one_rank_stops_all(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.transport = mpi_rank == mpi_size - 1 ? "pigeons" : "auto";
  require_no_comm(&config, LCOMM_ERR_ARGUMENT, "pigeons");
}

static void names_that_differ_between_ranks_are_both_named(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.transport = mpi_rank == 1 ? "mpi" : "auto";
  require_no_comm(&config, LCOMM_ERR_MISMATCH, "'mpi'");
  require_sentence(lcomm_last_error(NULL), "'auto'");
  require_sentence(lcomm_last_error(NULL), "rank 1");
}

static void ranks_that_nothing_reaches_are_named_with_the_reason(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.transport = "shm";
  lcomm_comm *comm = make_over("shm"); /* where it works at all */
  if (!comm) {
    return;
  }
  lcomm_destroy(comm);
  pose_as_hosts();
  require_no_comm(&config, LCOMM_ERR_TRANSPORT, "rank 0 (host even) has no link to rank 1");
  require_sentence(lcomm_last_error(NULL), "shm: ");
  unsetenv("LCOMM_HOSTID");
}

/* ------------------------------------------------------------------ choice */

static const char *link_of(const lcomm_comm *comm, int peer) {
  const lcomm_transport *link = lcomm_comm_link(comm, peer);
  return link ? link->table->name : "none";
}

/* Links are `near` to ranks of the own host, `far` to the others. */
static void require_links(const char *names, bool hosts, const char *near, const char *far) {
  if (hosts) {
    pose_as_hosts();
  }
  lcomm_comm *comm = make_over(names);
  unsetenv("LCOMM_HOSTID");
  int kinds = 0;
  for (int peer = 0; comm && peer < mpi_size; peer++) {
    bool far_away = hosts && peer % 2 != mpi_rank % 2;
    const char *wanted = peer == mpi_rank ? "none" : far_away ? far : near;
    require(strcmp(link_of(comm, peer), wanted) == 0, "%s: %s reaches rank %d, not %s", names,
            link_of(comm, peer), peer, wanted);
  }
  kinds += comm && lcomm_links_use(&comm->links, near);
  kinds += comm && strcmp(near, far) != 0 && lcomm_links_use(&comm->links, far);
  require(!comm || comm->links.count == kinds, "%s: %d transports are open, %d are needed", names,
          comm ? comm->links.count : 0, kinds);
  lcomm_destroy(comm);
}

/* If not, the property is skipped. */
static bool works(const char *transport) {
  lcomm_comm *comm = make_over(transport);
  return comm && lcomm_destroy(comm) == LCOMM_OK;
}

static bool works_shm(void) {
  return works("shm");
}

static bool works_ucx(void) {
  return works("ucx");
}

static void each_pair_gets_the_cheapest_transport_that_was_allowed(void) {
  require_links("auto", false, "shm", "shm");
  require_links("shm", false, "shm", "shm");
  require_links("mpi", false, "mpi", "mpi");
  require_links("mpi", true, "mpi", "mpi");
  require_links("shm,mpi", false, "shm", "shm");
  require_links("shm,mpi", true, "shm", "mpi");
  require_links("mpi,shm", true, "shm", "mpi"); /* the order of the names says nothing */
}

static void ucx_is_taken_between_hosts_where_it_is_there(void) {
  require_links("ucx", false, "ucx", "ucx");
  require_links("shm,ucx,mpi", true, "shm", "ucx");
  require_links("auto", true, "shm", "ucx");
}

/* MPI was begun by MPI_Init here, without threads. */
static void a_progress_thread_over_mpi_needs_threads_of_mpi(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  if (mpi_threads >= MPI_THREAD_MULTIPLE) {
    skip_property("this MPI gives MPI_THREAD_MULTIPLE without being asked");
    return;
  }
  config.progress = LCOMM_PROGRESS_THREAD;
  config.transport = "mpi";
  require_no_comm(&config, LCOMM_ERR_UNSUPPORTED, "MPI_THREAD_MULTIPLE");
  config.progress = mpi_rank == 1 ? LCOMM_PROGRESS_THREAD : LCOMM_PROGRESS_CALLS;
  require_no_comm(&config, LCOMM_ERR_UNSUPPORTED, "rank");
  config.progress = LCOMM_PROGRESS_THREAD;
  config.transport = "shm";
  lcomm_comm *comm = make_comm_if_possible(&config);
  require(!comm || lcomm_barrier(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
  lcomm_destroy(comm);
}

/* -------------------------------------------------------- different calls */

static float buffer[8 * 70000];
static uint64_t parts[8];

static lcomm_status sum(lcomm_comm *comm, uint64_t count, lcomm_dtype dtype, lcomm_op op) {
  return lcomm_allreduce(comm, buffer, buffer, count, dtype, op);
}

/* Pairs of calls: of rank 1, or of rank 0 where the case says so, and of the others. */
static lcomm_status call(lcomm_comm *comm, int which, bool odd) {
  uint64_t long_count = odd ? 70000 : 69999;
  switch (which) {
  case 0:
    return odd ? lcomm_broadcast(comm, buffer, 100, LCOMM_FLOAT32, mpi_rank)
               : sum(comm, 100, LCOMM_FLOAT32, LCOMM_SUM);
  case 1:
    return odd ? lcomm_broadcast(comm, buffer, 70000, LCOMM_FLOAT32, mpi_rank)
               : sum(comm, 70000, LCOMM_FLOAT32, LCOMM_SUM);
  case 2:
    return sum(comm, odd ? 0 : 70000, LCOMM_FLOAT32, LCOMM_SUM);
  case 3:
    return sum(comm, odd ? 0 : 5, LCOMM_FLOAT32, LCOMM_SUM);
  case 4:
    return sum(comm, 5, LCOMM_FLOAT32, odd ? LCOMM_AVG : LCOMM_SUM);
  case 5:
    return sum(comm, 70000, LCOMM_FLOAT32, odd ? LCOMM_AVG : LCOMM_SUM);
  case 6:
    return sum(comm, 70000, LCOMM_FLOAT32, odd ? LCOMM_MIN : LCOMM_MAX);
  case 7:
    return sum(comm, 300, odd ? LCOMM_INT32 : LCOMM_FLOAT32, LCOMM_SUM);
  case 8:
    return lcomm_allreduce_scaled(comm, buffer, buffer, 300, LCOMM_FLOAT32, LCOMM_SUM,
                                  odd ? 0.5 : 0.25, 1);
  case 9:
    return lcomm_allreduce_scaled(comm, buffer, buffer, 70000, LCOMM_FLOAT32, LCOMM_SUM, 1,
                                  odd ? 0.5 : 0.25);
  case 10: /* the same sum of counts */
    for (int i = 0; i < mpi_size; i++) {
      parts[i] = 1000 + (odd ? (i == 0 ? 8 : i == 1 ? -8 : 0) : 0);
    }
    return lcomm_allgatherv(comm, buffer + 4 * 70000, buffer, parts, LCOMM_FLOAT32);
  case 11:
    return odd ? lcomm_barrier(comm) : sum(comm, 1, LCOMM_FLOAT32, LCOMM_SUM);
  case 12:
    return odd ? lcomm_barrier(comm) : sum(comm, 70000, LCOMM_FLOAT32, LCOMM_SUM);
  case 13:
    return odd ? lcomm_allgather(comm, buffer, buffer + 4 * 70000, 10, LCOMM_FLOAT32)
               : lcomm_alltoall(comm, buffer, buffer + 4 * 70000, 10, LCOMM_FLOAT32);
  case 14:
    return lcomm_broadcast(comm, buffer, 100, LCOMM_FLOAT32, odd ? 1 : 0);
  case 15:
    return odd ? lcomm_reduce_scatter(comm, buffer, buffer + 4 * 70000, 70, LCOMM_FLOAT32,
                                      LCOMM_SUM)
               : sum(comm, 70 * (uint64_t)mpi_size, LCOMM_FLOAT32, LCOMM_SUM);
  default:
    return sum(comm, long_count, LCOMM_FLOAT32, LCOMM_SUM);
  }
}

enum { CALLS = 17 };

static void require_mismatches(const char *transport) {
  for (int i = 0; i < 2 * CALLS; i++) {
    int which = i / 2, odd_rank = i % 2;
    lcomm_comm *comm = make_over(transport);
    if (!comm) {
      return;
    }
    lcomm_status status = call(comm, which, mpi_rank == odd_rank);
    if (status == LCOMM_OK) { /* it may be through before another one complains */
      status = lcomm_barrier(comm);
    }
    require(status == LCOMM_ERR_MISMATCH, "case %d of rank %d: %s (%s)", which, odd_rank,
            lcomm_status_name(status), lcomm_last_error(comm));
    require(equal_everywhere(status), "case %d: the ranks end with different errors", which);
    require_sentence(lcomm_last_error(comm), "the same");
    require(lcomm_destroy(comm) == LCOMM_ERR_MISMATCH, "destroy forgot the error");
  }
}

static void different_calls_are_named_on_every_rank_over_mpi(void) {
  require_mismatches("mpi");
}

static void different_calls_are_named_on_every_rank_over_shm(void) {
  require_mismatches("shm");
}

static void different_calls_are_named_on_every_rank_over_ucx(void) {
  require_mismatches("ucx");
}

static const mpi_property properties[] = {
    PROPERTY(names_that_are_no_transports_are_explained_on_every_rank),
    PROPERTY(a_wrong_name_on_one_rank_stops_all),
    PROPERTY_OF(2, names_that_differ_between_ranks_are_both_named),
    PROPERTY_OF(2, ranks_that_nothing_reaches_are_named_with_the_reason),
    PROPERTY_WHERE(works_shm, each_pair_gets_the_cheapest_transport_that_was_allowed),
    PROPERTY_WHERE(works_ucx, ucx_is_taken_between_hosts_where_it_is_there),
    PROPERTY_OF(2, a_progress_thread_over_mpi_needs_threads_of_mpi),
    PROPERTY_OF(2, different_calls_are_named_on_every_rank_over_mpi),
    PROPERTY_OF(2, different_calls_are_named_on_every_rank_over_shm),
    PROPERTY_OF(2, different_calls_are_named_on_every_rank_over_ucx),
};
RUN_PROPERTIES(mpi_property_main, properties)
