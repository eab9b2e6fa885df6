/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The table of statistics as text. */

#include <stdio.h>

#include "libcomm/base/writer.h"
#include "libcomm/observe/summary.h"

/* ----------------------------------------------------------------- cells */

enum { CELL_MAX = 32 };

static const char *bytes_text(uint64_t bytes, char text[CELL_MAX]) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = (double)bytes;
  unsigned unit = 0;
  while (value >= 1024 && unit < sizeof(units) / sizeof(units[0]) - 1) {
    value /= 1024;
    unit++;
  }
  snprintf(text, CELL_MAX, "%.*f %s", unit == 0 || value >= 99.95 ? 0 : 1, value, units[unit]);
  return text;
}

static const char *ratio_text(uint64_t exact, uint64_t sent, char text[CELL_MAX]) {
  if (sent == 0) {
    return "-";
  }
  snprintf(text, CELL_MAX, "%.2f", (double)exact / (double)sent);
  return text;
}

static const char *row_name(int row) {
  static const char *const others[] = {"tensors", "send", "receive"}; /* behind the collectives */
  return row < LCOMM_SUMMARY_TENSORS ? lcomm_collective_name((lcomm_collective)row)
                                     : others[row - LCOMM_SUMMARY_TENSORS];
}

/* ----------------------------------------------------------------- table */

static void put_heading(lcomm_writer *w, const lcomm_summary *summary,
                        const lcomm_summary_row *sum) {
  const lcomm_summary_about *about = &summary->about;
  lcomm_write(
      w, "libcomm: statistics of rank %d (host %s) of %d rank%s on %d node%s; its own numbers\n",
      about->rank, about->host, about->size, about->size == 1 ? "" : "s", about->nodes,
      about->nodes == 1 ? "" : "s");
  lcomm_write(w, "  policy      %s\n", about->policy);
  lcomm_write(w, "  transports  %s\n\n", about->transports[0] ? about->transports : "none");
  lcomm_write(w, "  %-17s %8s %9s", "operation", "calls", "data");
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    if (sum->cost.sent_bytes[link] > 0) {
      lcomm_write(w, " %9s %6s", lcomm_link_name((lcomm_link)link), "ratio");
    }
  }
  lcomm_write(w, " %9s %9s %9s %9s %9s\n", "seconds", "encode", "decode", "wire", "wait");
}

static void put_row(lcomm_writer *w, const char *name, const lcomm_summary_row *row,
                    const lcomm_summary_row *sum) {
  char text[CELL_MAX];
  const lcomm_summary_cost *cost = &row->cost;
  lcomm_write(w, "  %-17s %8llu %9s", name, (unsigned long long)row->operations,
              bytes_text(cost->data_bytes, text));
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    if (sum->cost.sent_bytes[link] > 0) {
      lcomm_write(w, " %9s", bytes_text(cost->sent_bytes[link], text));
      lcomm_write(w, " %6s", ratio_text(cost->exact_bytes[link], cost->sent_bytes[link], text));
    }
  }
  lcomm_write(w, " %9.3f %9.3f %9.3f %9.3f %9.3f\n", row->total_s, cost->encode_s, cost->decode_s,
              cost->wire_s, row->wait_s);
}

/* The same operations by their codecs between nodes, where several lossy ones were at work. */
static void put_codecs(lcomm_writer *w, const lcomm_summary *summary,
                       const lcomm_summary_row *sum) {
  int lossy = 0;
  for (int id = 0; id < LCOMM_SUMMARY_CODECS; id++) {
    lossy += id != LCOMM_CODEC_NONE && summary->codecs[id].operations > 0;
  }
  for (int id = 0; lossy > 1 && id < LCOMM_SUMMARY_CODECS; id++) {
    char name[CELL_MAX];
    const lcomm_codec *codec = lcomm_codec_by_id((unsigned)id);
    if (codec && summary->codecs[id].operations > 0) {
      snprintf(name, sizeof name, "codec %s", codec->name);
      put_row(w, name, &summary->codecs[id], sum);
    }
  }
}

/* What the numbers come to, in words. */
static void put_verdict(lcomm_writer *w, const lcomm_summary_row *sum, double active_s) {
  uint64_t sent = sum->cost.sent_bytes[LCOMM_LINK_NET];
  uint64_t exact = sum->cost.exact_bytes[LCOMM_LINK_NET];
  double ratio = sent > 0 ? (double)exact / (double)sent : 0;
  if (sum->operations == 0) {
    lcomm_write(w, "  No operation was finished.\n");
    return;
  }
  if (sent == 0) {
    lcomm_write(w, "  Nothing was sent between nodes");
  } else if (ratio >= 1.005) {
    lcomm_write(w, "  Between nodes %.*f times fewer bytes than exact", ratio < 9.995 ? 2 : 1,
                ratio);
  } else if (ratio <= 0.995) {
    lcomm_write(w, "  Between nodes %.2f times more bytes than exact", 1 / ratio);
  } else {
    lcomm_write(w, "  Between nodes as many bytes as exact");
  }
  double share = active_s > 0 ? sum->wait_s / active_s : 0;
  lcomm_write(w, "; %.0f %% of the %.3f s with an operation in flight were spent waiting.\n",
              100 * share, active_s);
}

/* What should not be, or what others are the reason of; nothing when all is well. */
static void put_remarks(lcomm_writer *w, const lcomm_summary *summary,
                        const lcomm_summary_row *sum) {
  if (sum->cost.waited > 0) {
    lcomm_write(w,
                "  %llu of %llu entries that top-k picked (%.2f %%) found no room in the messages "
                "to their owners and waited in residuals.\n",
                (unsigned long long)sum->cost.waited, (unsigned long long)sum->cost.picked,
                100 * (double)sum->cost.waited / (double)sum->cost.picked);
  }
  if (summary->flow_waits > 0) {
    lcomm_write(w, "  %llu operations waited until a slower rank had caught up.\n",
                (unsigned long long)summary->flow_waits);
  }
  if (summary->missed_wakeups > 0) {
    lcomm_write(w,
                "  %llu sleeps ran to their limit while a message was complete: a transport did "
                "not ring.\n",
                (unsigned long long)summary->missed_wakeups);
  }
}

/* The guard's figures of the first tensors that were checked. */
static void put_guarded(lcomm_writer *w, const lcomm_summary *summary) {
  enum { SHOWN_MAX = 24 };
  size_t shown = 0, left = 0;
  for (size_t i = 0; i < summary->guarded_count; i++) {
    const lcomm_guard_figures *it = summary->guarded[i];
    if (it->checks == 0 || shown == SHOWN_MAX) {
      left += it->checks > 0;
      continue;
    }
    if (shown++ == 0) {
      lcomm_write(w, "\n  %-24s %-20s %7s %9s %7s %9s %8s %5s\n", "guard: tensor", "codec",
                  "checks", "error", "cosine", "residual", "waited", "falls");
    }
    lcomm_write(w, "  %-24.60s %-20s %7llu %9.3g %7.3f %9.3g %8llu %5llu%s\n", it->tensor,
                it->codec, (unsigned long long)it->checks, it->error, it->cosine, it->residual,
                (unsigned long long)it->waited, (unsigned long long)it->fallbacks,
                it->beyond ? " beyond the limit" : "");
  }
  if (left > 0) {
    lcomm_write(w, "  and %zu more tensors\n", left);
  }
}

size_t lcomm_summary_print(const lcomm_summary *summary, double now_s, char *text, size_t size) {
  lcomm_writer w = lcomm_writer_begin(text, size);
  lcomm_summary_row sum;
  lcomm_summary_sum(summary, &sum);
  put_heading(&w, summary, &sum);
  int used = 0;
  for (int i = 0; i < LCOMM_SUMMARY_ROWS; i++) {
    if (summary->rows[i].operations > 0) {
      put_row(&w, row_name(i), &summary->rows[i], &sum);
      used++;
    }
  }
  if (used != 1) {
    put_row(&w, "all", &sum, &sum);
  }
  put_codecs(&w, summary, &sum);
  double active_s = summary->active_s;
  if (summary->in_flight > 0) {
    active_s += now_s - summary->active_since_s;
  }
  put_verdict(&w, &sum, active_s);
  put_remarks(&w, summary, &sum);
  put_guarded(&w, summary);
  return w.length;
}
