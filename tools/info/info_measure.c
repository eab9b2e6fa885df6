/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/info/info_measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libcomm/device/device.h"
#include "tools/info/info_measure_device.h"
#include "tools/info/info_ranks.h"
#include "tools/info/info_topology.h"

enum { TROUBLE = 1 };

static const info_pings short_pings = {.size = INFO_SHORT_SIZE, .warm_up = 20, .count = 200};
static const info_pings long_pings = {.size = INFO_LONG_SIZE, .warm_up = 2, .count = 10};

/* What the first rank of a pair sends to rank 0. */
typedef struct report {
  double latency_us, bandwidth_gb_s;
  char remark[INFO_REMARK_MAX];
} report;

/* ----------------------------------------------------------- between two */

/* The first two ranks of each class, the same on all ranks. */
static void find_pairs(const lcomm_topo *topo, info_link links[LCOMM_LINK_COUNT]) {
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    links[i] = (info_link){.first = -1, .second = -1};
  }
  for (int a = 0; a < topo->size; a++) {
    for (int b = a + 1; b < topo->size; b++) {
      info_link *link = &links[lcomm_topo_link(topo, a, b)];
      if (link->first < 0) {
        link->first = a;
        link->second = b;
      }
    }
  }
}

static bool is_between_devices(lcomm_link link) {
  return link == LCOMM_LINK_SAME_DEVICE || link == LCOMM_LINK_NVLINK || link == LCOMM_LINK_PCIE;
}

static lcomm_status measure_as_first(const info_room *room, lcomm_link link, int peer, report *it) {
  const lcomm_comm *comm = room->comm;
  const char *transport = lcomm_comm_link(comm, peer)->table->name;
  double short_s = 0, long_s = 0, copy_s = 0;
  char why[INFO_WHY_MAX] = "";
  LCOMM_TRY(info_ping(room, peer, &short_pings, &short_s));
  LCOMM_TRY(info_ping(room, peer, &long_pings, &long_s));
  if (is_between_devices(link)) {
    LCOMM_TRY(info_device_read(room, peer, &copy_s, why));
  }
  it->latency_us = short_s * 1e6;
  it->bandwidth_gb_s = INFO_LONG_SIZE / (copy_s > 0 ? copy_s : long_s) / 1e9;
  snprintf(it->remark, sizeof(it->remark), "between ranks %d and %d by %s%s%s", comm->rank, peer,
           transport,
           copy_s > 0 ? "; the bandwidth is that of a copy from device to device"
           : why[0]   ? " through host memory, because "
                      : "",
           copy_s > 0 ? "" : why);
  return LCOMM_OK;
}

static lcomm_status measure_as_second(const info_room *room, lcomm_link link, int peer) {
  LCOMM_TRY(info_pong(room, peer, &short_pings));
  LCOMM_TRY(info_pong(room, peer, &long_pings));
  return is_between_devices(link) ? info_device_export(room, peer) : LCOMM_OK;
}

/* ---------------------------------------------------------------- to all */

/* What the text form of a topology can say: millionths, up to a million; thousandths are enough
 * from 1 on. */
static double as_written(double value) {
  double parts = value < 1 ? 1e6 : 1e3;
  double rounded = floor(value * parts + 0.5);
  return fmin(fmax(rounded, 1), 1e6 * parts) / parts;
}

static lcomm_status accept(lcomm_comm *comm, report *it, info_link *link) {
  if (!(isfinite(it->latency_us) && it->latency_us > 0 && isfinite(it->bandwidth_gb_s) &&
        it->bandwidth_gb_s > 0)) {
    return lcomm_fail(comm, LCOMM_ERR_WIRE,
                      "rank %d measured %g us and %g GB/s, which cannot be; its clock may stand "
                      "still",
                      link->first, it->latency_us, it->bandwidth_gb_s);
  }
  info_make_visible(it->remark, sizeof(it->remark));
  memcpy(link->remark, it->remark, sizeof(link->remark));
  link->cost = (lcomm_link_cost){.latency_us = as_written(it->latency_us),
                                 .bandwidth_gb_s = as_written(it->bandwidth_gb_s)};
  return LCOMM_OK;
}

static lcomm_status send_to_rank_0(const info_room *room, report *it, info_link *link) {
  if (room->comm->rank == link->first && link->first != 0) {
    memcpy(room->out, it, sizeof *it);
    return info_send(room, 0, sizeof *it);
  }
  if (room->comm->rank != 0) {
    return LCOMM_OK;
  }
  if (link->first != 0) {
    LCOMM_TRY(info_receive(room, link->first, sizeof *it));
    memcpy(it, room->in, sizeof *it);
  }
  return accept(room->comm, it, link);
}

/* One class: two ranks measure, the others wait in a barrier. The time-out of the two is shorter
 * than that of the others, because they know which rank to name. */
static lcomm_status measure_class(info_room *room, lcomm_comm *comm, lcomm_link class,
                                  info_link *link) {
  report it = {0};
  info_room_begin(room, comm->settings.timeout_s * 3 / 4);
  if (comm->rank == link->first) {
    LCOMM_TRY(measure_as_first(room, class, link->second, &it));
  } else if (comm->rank == link->second) {
    LCOMM_TRY(measure_as_second(room, class, link->first));
  }
  LCOMM_TRY(lcomm_barrier(comm));
  info_room_begin(room, comm->settings.timeout_s);
  return send_to_rank_0(room, &it, link);
}

lcomm_status info_measure(lcomm_comm *comm, info_link links[LCOMM_LINK_COUNT]) {
  info_room room = {.comm = comm};
  bool works = comm->rank == 0;
  find_pairs(&comm->topo, links);
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    works |= links[i].first == comm->rank || links[i].second == comm->rank;
  }
  lcomm_status status = works ? info_room_open(comm, &room) : LCOMM_OK;
  for (int i = 0; status == LCOMM_OK && i < LCOMM_LINK_COUNT; i++) {
    if (links[i].first >= 0) {
      status = measure_class(&room, comm, (lcomm_link)i, &links[i]);
    }
  }
  if (status == LCOMM_OK) {
    info_room_close(&room);
  }
  return status;
}

/* ------------------------------------------------------------ the screen */

/* Nothing else in this program chooses a device: the ranks of a host take turns. */
static void use_device_of_rank(void) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  int count = 0, local = info_local_rank();
  if (table && table->count(&count) == 0 && count > 0) {
    (void)table->use(local % count);
  }
}

static void print(const lcomm_topo *topo, const info_link links[LCOMM_LINK_COUNT]) {
  lcomm_topo measured = *topo; /* a view with other costs */
  info_print_machine();
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    if (links[i].first >= 0) {
      measured.cost[i] = links[i].cost;
      printf("# %-11s measured %s\n", lcomm_link_name((lcomm_link)i), links[i].remark);
    }
  }
  info_print_ranks(&measured);
  info_print_links(&measured);
}

/* One rank is a topology, too, but nothing lies between it and itself. */
static int print_alone(const info_options *o) {
  lcomm_why error;
  lcomm_topo topo = {0};
  if (info_topology_find(o, &topo, &error) != LCOMM_OK) {
    fprintf(stderr, "libcomm-info: %s\n", error.text);
    return INFO_BAD_INPUT;
  }
  info_print_machine();
  printf("# nothing was measured: links lie between 2 ranks or more, as under\n"
         "# mpirun -np 2 libcomm-info --measure\n");
  info_print_ranks(&topo);
  info_print_links(&topo);
  lcomm_topo_free(&topo);
  return 0;
}

/* MPI would wait for all ranks at its end, also for one that does not answer. */
static int give_up(lcomm_comm *comm) {
  fprintf(stderr, "libcomm-info: %s\n", lcomm_last_error(comm));
  fflush(stderr);
  (void)lcomm_destroy(comm);
  info_ranks_abort(TROUBLE);
  return TROUBLE;
}

int info_print_measured(const info_options *o) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  info_link links[LCOMM_LINK_COUNT];
  lcomm_comm *comm = NULL;
  use_device_of_rank();
  if (info_ranks() == 1) {
    return print_alone(o);
  }
  config.policy = o->policy;
  config.nodes = o->nodes;
  config.progress = LCOMM_PROGRESS_CALLS; /* messages of our own are not the thread's */
  if (info_ranks_join(&config, &comm) != LCOMM_OK) {
    fprintf(stderr, "libcomm-info: %s\n", lcomm_last_error(NULL));
    return INFO_BAD_INPUT;
  }
  if (info_measure(comm, links) != LCOMM_OK) {
    return give_up(comm);
  }
  if (comm->rank == 0) {
    print(&comm->topo, links);
  }
  lcomm_status status = lcomm_destroy(comm);
  if (status != LCOMM_OK) {
    fprintf(stderr, "libcomm-info: the ranks could not end together: %s\n",
            lcomm_status_string(status));
  }
  return status == LCOMM_OK ? 0 : TROUBLE;
}
