/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* lcomm_create and lcomm_create_env in programs that use MPI, and what the MPI
 * transport promises besides messages. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libcomm/engine/engine.h"
#include "libcomm/transport/mpi/mpi_table.h"
#include "libcomm/transport/mpi/mpi_transport.h"
#include "tests/support/mpi_property.h"

/* ------------------------------------------------------- another bootstrap */

/* A program's own bootstrap: its ranks are those of MPI backwards. */
static int gather_backwards(void *context, const void *send, void *receive, size_t size) {
  char *all = malloc(size * (size_t)mpi_size);
  (void)context;
  MPI_Allgather(send, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, MPI_COMM_WORLD);
  for (int rank = 0; rank < mpi_size; rank++) {
    memcpy((char *)receive + (size_t)rank * size, all + (size_t)(mpi_size - 1 - rank) * size, size);
  }
  free(all);
  return 0;
}

static int gather_never(void *context, const void *send, void *receive, size_t size) {
  (void)context, (void)send, (void)receive, (void)size;
  return 1;
}

static void require_sum(lcomm_comm *comm) {
  double value = mpi_rank + 1;
  lcomm_status status = lcomm_allreduce(comm, &value, &value, 1, LCOMM_FLOAT64, LCOMM_SUM);
  require(status == LCOMM_OK, "it sums: %s", lcomm_last_error(comm));
  require(value == mpi_size * (mpi_size + 1) / 2.0, "the sum is %g", value);
}

static lcomm_comm *create_backwards(const char *transport) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_bootstrap boot = {
      .rank = mpi_size - 1 - mpi_rank, .world_size = mpi_size, .allgather = gather_backwards};
  lcomm_comm *comm = NULL;
  config.transport = transport;
  lcomm_status status = lcomm_create(&boot, &config, &comm);
  require(status == LCOMM_OK, "over %s: %s", transport, lcomm_last_error(NULL));
  return comm;
}

static void bootstrap_of_others_gives_the_ranks(void) {
  static const char *const transports[] = {"mpi", "shm", "auto"};
  for (int i = 0; i < 3; i++) {
    lcomm_comm *comm = create_backwards(transports[i]);
    require(lcomm_rank(comm) == mpi_size - 1 - mpi_rank, "rank %d", lcomm_rank(comm));
    require(!comm || mpi_size == 1 || comm->bootstrap.mpi, "MPI is found where it runs");
    require_sum(comm);
    require(lcomm_destroy(comm) == LCOMM_OK, "it ends well");
  }
}

static void bootstrap_that_fails_is_an_error(void) {
  lcomm_bootstrap boot = {.rank = mpi_rank, .world_size = mpi_size + 1, .allgather = gather_never};
  lcomm_comm *comm = NULL;
  require(lcomm_create(&boot, NULL, &comm) == LCOMM_ERR_TRANSPORT, "%s", lcomm_last_error(NULL));
  require(!comm, "nothing was made");
}

/* A port that nobody has just now, the same on all ranks. */
static void set_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bind(fd, (struct sockaddr *)&address, size);
  getsockname(fd, (struct sockaddr *)&address, &size);
  close(fd);
  int port = ntohs(address.sin_port);
  MPI_Bcast(&port, 1, MPI_INT, 0, MPI_COMM_WORLD);
  char text[16];
  snprintf(text, sizeof(text), "%d", port);
  setenv("LCOMM_PORT", text, 1);
}

static void launcher_of_mpi_is_understood(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  set_port();
  static const char *const transports[] = {"mpi", "auto"};
  for (int i = 0; i < 2; i++) {
    lcomm_comm *comm = NULL;
    config.transport = transports[i];
    lcomm_status status = lcomm_create_env(&config, &comm);
    require(status == LCOMM_OK, "over %s: %s", transports[i], lcomm_last_error(NULL));
    if (status == LCOMM_OK) {
      require(lcomm_rank(comm) == mpi_rank && lcomm_size(comm) == mpi_size, "rank and size");
      require_sum(comm);
    }
    require(lcomm_destroy(comm) == LCOMM_OK, "it ends well");
  }
}

static void thread_level_is_told(void) {
  int level = -1;
  MPI_Query_thread(&level);
  require(lcomm_mpi_allows_threads() == (level == MPI_THREAD_MULTIPLE), "level %d", level);
}

/* Of one name and major version: "Open MPI 4.1.4" and "Open MPI 4.1". */
static void mpi_is_the_one_that_was_built_for(void) {
  const char *running = lcomm_mpi_running(), *built_for = lcomm_mpi_built_for();
  size_t length = strcspn(built_for, "0123456789");
  require(!lcomm_mpi_other(), "%s", lcomm_mpi_other());
  require(length > 0 && strncmp(running, built_for, length + 1) == 0, "'%s' and '%s'", running,
          built_for);
}

/* ----------------------------------------------------------- the transport */

static lcomm_transport *open_mpi(MPI_Comm *own) {
  lcomm_why why = {.text = ""};
  lcomm_transport *transport = NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, own);
  lcomm_transport_setup setup = {.rank = mpi_rank, .size = mpi_size, .mpi = own, .timeout_s = 30};
  lcomm_status status = lcomm_transport_mpi.open(&setup, &transport, &why);
  require(status == LCOMM_OK, "it opens: %s", why.text);
  return transport;
}

static void close_mpi(lcomm_transport *transport, MPI_Comm *own) {
  MPI_Barrier(MPI_COMM_WORLD);
  transport->table->close(transport, true);
  MPI_Comm_free(own);
}

static void transport_without_mpi_says_so(void) {
  lcomm_why why = {.text = ""};
  lcomm_transport *transport = NULL;
  lcomm_transport_setup setup = {.rank = mpi_rank, .size = mpi_size};
  require(lcomm_transport_mpi.open(&setup, &transport, &why) == LCOMM_ERR_UNSUPPORTED, "refused");
  require(strcmp(why.text, "MPI is not running") == 0, "the reason: %s", why.text);
}

static void transport_reaches_everybody(void) {
  MPI_Comm own;
  lcomm_transport *t = open_mpi(&own);
  for (int peer = -1; peer <= mpi_size; peer++) {
    bool other = peer >= 0 && peer < mpi_size && peer != mpi_rank;
    require(t->table->reaches(t, peer) == other, "rank %d", peer);
  }
  require(!t->table->wakeup, "it cannot tell when to wake");
  close_mpi(t, &own);
}

/* Different control messages to one peer at once all arrive; too many are dropped, and
 * nobody waits for room. The control message of an error arrives behind any number. */
static void few_notices_arrive_and_many_do_not_block(void) {
  enum { FEW = 3, MANY = 2000 };
  MPI_Comm own;
  unsigned char notice[LCOMM_CONTROL_SIZE], heard[LCOMM_CONTROL_SIZE];
  lcomm_transport *t = open_mpi(&own);
  int count = 0, expected = FEW * (mpi_size - 1);
  for (int peer = 0; peer < mpi_size; peer++) {
    for (int i = 0; i < FEW && peer != mpi_rank; i++) {
      memset(notice, 16 * mpi_rank + i, sizeof(notice));
      t->table->control.send(t, peer, notice);
    }
  }
  bool whole = true;
  while (count < expected) {
    if (t->table->control.receive(t, heard)) {
      count++;
      whole = whole && heard[0] == heard[LCOMM_CONTROL_SIZE - 1] && heard[0] / 16 != mpi_rank;
    }
  }
  require(whole, "control messages arrive as they were told");
  require(!t->table->control.receive(t, heard), "and no more than were told");
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < MANY && mpi_size > 1; i++) {
    t->table->control.send(t, (mpi_rank + 1) % mpi_size, notice);
  }
  memset(notice, 255, sizeof(notice));
  for (int peer = 0; peer < mpi_size; peer++) {
    if (peer != mpi_rank) {
      t->table->control.send_error(t, peer, notice);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int errors = 0; errors < mpi_size - 1;) {
    errors += t->table->control.receive(t, heard) && heard[0] == 255;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  close_mpi(t, &own);
}

static void cancelled_receive_is_never_written(void) {
  enum { TAG = 5, SIZE = 1000 };
  MPI_Comm own;
  unsigned char bytes[SIZE] = {0}, sent[SIZE];
  lcomm_transfer receiving, sending;
  lcomm_transport *t = open_mpi(&own);
  int next = (mpi_rank + 1) % mpi_size, before = (mpi_rank + mpi_size - 1) % mpi_size;
  if (mpi_size > 1) {
    memset(sent, 7, sizeof(sent));
    t->table->receive(t, before, TAG, bytes, SIZE, &receiving);
    t->table->cancel(t, &receiving);
    MPI_Barrier(MPI_COMM_WORLD);
    t->table->send(t, next, TAG, sent, SIZE, &sending);
    bool over = false;
    while (!over && t->table->test(t, &sending, &over, NULL) == LCOMM_OK) {
    }
    MPI_Barrier(MPI_COMM_WORLD);
    require(bytes[0] == 0 && bytes[SIZE - 1] == 0, "the message came nevertheless");
    size_t size = 0;
    t->table->receive(t, before, TAG, bytes, SIZE, &receiving);
    over = false;
    while (!over && t->table->test(t, &receiving, &over, &size) == LCOMM_OK) {
    }
    require(over && size == SIZE && bytes[SIZE - 1] == 7, "the next receive gets it");
  }
  close_mpi(t, &own);
}

static void message_past_the_capacity_is_an_error(void) {
  enum { TAG = 6 };
  MPI_Comm own;
  unsigned char bytes[16], sent[64] = {0};
  lcomm_transfer receiving, sending;
  lcomm_transport *t = open_mpi(&own);
  int next = (mpi_rank + 1) % mpi_size, before = (mpi_rank + mpi_size - 1) % mpi_size;
  if (mpi_size > 1) {
    bool over = false, left = false;
    size_t size = 0;
    t->table->receive(t, before, TAG, bytes, sizeof(bytes), &receiving);
    t->table->send(t, next, TAG, sent, sizeof(sent), &sending);
    lcomm_status status = LCOMM_OK;
    while (!over && status == LCOMM_OK) {
      status = t->table->test(t, &receiving, &over, &size);
    }
    require(status == LCOMM_ERR_TRANSPORT && t->why[0], "%s", t->why);
    while (!left && t->table->test(t, &sending, &left, NULL) == LCOMM_OK) {
    }
  }
  close_mpi(t, &own);
}

static const mpi_property properties[] = {
    PROPERTY(bootstrap_of_others_gives_the_ranks),
    PROPERTY(bootstrap_that_fails_is_an_error),
    PROPERTY(launcher_of_mpi_is_understood),
    PROPERTY(thread_level_is_told),
    PROPERTY(mpi_is_the_one_that_was_built_for),
    PROPERTY(transport_without_mpi_says_so),
    PROPERTY(transport_reaches_everybody),
    PROPERTY(few_notices_arrive_and_many_do_not_block),
    PROPERTY(cancelled_receive_is_never_written),
    PROPERTY(message_past_the_capacity_is_an_error),
};
RUN_PROPERTIES(mpi_property_main, properties)
