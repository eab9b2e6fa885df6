/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The links between ranks, for people. */

#include <stdint.h>

#include "libcomm/base/writer.h"
#include "libcomm/topo/topo_internal.h"

/* What fits on a screen. */
enum { MATRIX_RANKS_MAX = 16, COUNTED_RANKS_MAX = 4096 };

static void write_matrix(lcomm_writer *w, const lcomm_topo *topo) {
  lcomm_write(w, "# rank ");
  for (int rank = 0; rank < topo->size; rank++) {
    lcomm_write(w, " %11d", rank);
  }
  for (int a = 0; a < topo->size; a++) {
    lcomm_write(w, "\n# %-5d", a);
    for (int b = 0; b < topo->size; b++) {
      lcomm_write(w, " %11s", lcomm_link_name(lcomm_topo_link(topo, a, b)));
    }
  }
  lcomm_write(w, "\n");
}

static void write_counts(lcomm_writer *w, const lcomm_topo *topo) {
  uint64_t pairs[LCOMM_LINK_COUNT] = {0};
  if (topo->size > COUNTED_RANKS_MAX) {
    lcomm_write(w, "# %d ranks, too many for a list of their links\n", topo->size);
    return;
  }
  for (int a = 0; a < topo->size; a++) {
    for (int b = a + 1; b < topo->size; b++) {
      pairs[lcomm_topo_link(topo, a, b)]++;
    }
  }
  lcomm_write(w, "# %d ranks, pairs by link:", topo->size);
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    if (pairs[link] > 0) {
      lcomm_write(w, " %s %llu", lcomm_link_name((lcomm_link)link),
                  (unsigned long long)pairs[link]);
    }
  }
  lcomm_write(w, "\n");
}

static void write_cost(lcomm_writer *w, const lcomm_topo *topo, lcomm_link link) {
  const lcomm_link_cost *cost = &topo->cost[link];
  lcomm_write(w, "# %-11s latency ", lcomm_link_name(link));
  lcomm_write_decimal(w, cost->latency_us);
  lcomm_write(w, " us, bandwidth ");
  lcomm_write_decimal(w, cost->bandwidth_gb_s);
  lcomm_write(w, " GB/s%s\n", cost->assumed ? ", assumed" : "");
}

size_t lcomm_topo_matrix(const lcomm_topo *topo, char *text, size_t size) {
  lcomm_writer w = lcomm_writer_begin(text, size);
  if (topo->size > 1 && topo->size <= MATRIX_RANKS_MAX) {
    write_matrix(&w, topo);
  } else if (topo->size > 1) {
    write_counts(&w, topo);
  }
  for (int link = LCOMM_LINK_SAME_DEVICE; link < LCOMM_LINK_COUNT; link++) {
    write_cost(&w, topo, (lcomm_link)link);
  }
  return w.length;
}
