/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "trainer/train_sample.h"
#include "trainer/train_screen.h"

/* ---------------------------------------------------- table and end of it */

/* Bytes that left a rank, on the links the table is about. */
static double table_bytes(const training *of, const uint64_t *bytes) {
  if (lcomm_nodes(whole_comm(of)) > 1) {
    return (double)bytes[LCOMM_LINK_NET];
  }
  uint64_t sum = 0;
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    if (link != LCOMM_LINK_SELF) {
      sum += bytes[link];
    }
  }
  return (double)sum;
}

double results_bits(const results *of) {
  return of->test_loss / log(2.0);
}

double results_figure(const training *of, const results *what) {
  return task_is_text(&of->task) ? results_bits(what) : 100.0 * what->accuracy;
}

double results_hidden(const results *of) {
  return overlap_hidden((double)of->moved.communication_us, (double)of->moved.exposed_us);
}

const char *results_figure_name(bool text) {
  return text ? "bits per byte of held-out text" : "test accuracy, %";
}

void report_epoch(const training *of, const results *epoch) {
  if (of->ranks.rank != 0) {
    return;
  }
  char speed[SCREEN_COUNT_SIZE], ratio[SCREEN_COUNT_SIZE] = "-", figure[SCREEN_COUNT_SIZE];
  char hidden[SCREEN_COUNT_SIZE] = "-";
  double sent = table_bytes(of, epoch->moved.sent_bytes);
  if (sent > 0.0) {
    snprintf(ratio, sizeof ratio, "%.2fx", table_bytes(of, epoch->moved.exact_bytes) / sent);
  }
  if (of->ranks.size > 1) {
    snprintf(hidden, sizeof hidden, "%.0f %%", 100.0 * results_hidden(epoch));
  }
  if (task_is_text(&of->task)) {
    snprintf(figure, sizeof figure, "%.3f", results_bits(epoch));
  } else {
    snprintf(figure, sizeof figure, "%.2f %%", 100.0 * epoch->accuracy);
  }
  printf("%5d %8.4f %13s %9s %16.2f %11s %7s %7.1f\n", epoch->epoch, epoch->loss, figure,
         screen_count((uint64_t)epoch->samples_per_s, speed), sent / SCREEN_MEGA, ratio, hidden,
         epoch->seconds);
  fflush(stdout);
}

static void say_sent(const results *run, lcomm_link link, const char *where) {
  printf("  %-14s %.2f MB sent", where, (double)run->moved.sent_bytes[link] / SCREEN_MEGA);
}

/* Compare with float32. Where there are several nodes, only the links between
 * them are compared: inside a node a policy changes which messages there are. */
static void say_saving(const results *run, lcomm_link link) {
  double ratio = traffic_ratio(&run->moved, link);
  printf(", float32 would have sent %.2f MB", (double)run->moved.exact_bytes[link] / SCREEN_MEGA);
  if (ratio >= 1.05) {
    printf(": %s%.1f times less%s", screen_green(), ratio, screen_plain());
  }
}

static void say_traffic(const training *of, const results *run) {
  bool between_nodes = lcomm_nodes(whole_comm(of)) > 1;
  if (between_nodes) {
    say_sent(run, LCOMM_LINK_NET, "between nodes");
    say_saving(run, LCOMM_LINK_NET);
    printf("\n");
  }
  for (int link = LCOMM_LINK_SAME_DEVICE; link < LCOMM_LINK_NET; link++) {
    if (run->moved.sent_bytes[link] == 0) {
      continue;
    }
    char where[SCREEN_COUNT_SIZE];
    snprintf(where, sizeof where, "inside, %s", lcomm_link_name((lcomm_link)link));
    say_sent(run, (lcomm_link)link, where);
    if (!between_nodes) {
      say_saving(run, (lcomm_link)link);
    }
    printf("\n");
  }
}

/* What compression cost and brought, for each rank. */
static void say_communication(const training *of, const results *run) {
  int ranks = of->ranks.size;
  double exposed_s = 1e-6 * (double)run->moved.exposed_us / ranks;
  double coding_s = 1e-6 * (double)(run->moved.encode_us + run->moved.decode_us) / ranks;
  double sent = table_bytes(of, run->moved.sent_bytes);
  double kept = table_bytes(of, run->moved.exact_bytes) - sent;
  if (ranks == 1) {
    return;
  }
  printf("  %-14s %.0f %% of it hid behind backward; each rank waited %.1f s of %.1f s\n",
         "communication", 100.0 * results_hidden(run), exposed_s, run->trained_s);
  if (policy_compresses(lcomm_policy_string(whole_comm(of))) && kept > 0.0) {
    printf(
        "  %-14s cost each rank %.2f s to encode, decode and sum (%.1f %% of training), and kept\n"
        "  %-14s %.2f MB off the links%s\n",
        "compression", coding_s, 100.0 * coding_s / run->trained_s, "", kept / SCREEN_MEGA,
        lcomm_nodes(whole_comm(of)) > 1 ? " between nodes" : "");
  }
}

/* The last check of a tensor. */
static void say_checked(const lcomm_guard_figures *found) {
  printf(SCREEN_INDENT "%s by %s: error %.2g, cosine %.2f", found->tensor, found->codec,
         found->error, found->cosine);
  if (found->residual > 0.0) {
    printf(", residual %.2g gradients", found->residual);
  }
  if (found->waited > 0) {
    printf(", %" PRIu64 " entries waited", found->waited);
  }
  if (found->fallbacks > 0) {
    printf("; fell back %" PRIu64 " time%s, goes on by %s", found->fallbacks,
           screen_plural((int)found->fallbacks), found->next);
  } else if (found->beyond) {
    printf("; beyond its limit");
  }
  printf("\n");
}

static void say_guard(const training *of) {
  lcomm_stats stats;
  lcomm_comm *comm = gradients_comm(of);
  if (lcomm_stats_get(comm, &stats) != LCOMM_OK || stats.guard_checks == 0) {
    return;
  }
  printf("  %-14s results were compared with exact sums %" PRIu64 " time%s, at last:\n", "guard",
         stats.guard_checks, screen_plural((int)stats.guard_checks));
  for (int i = 0; i < of->net.parameter_count; i++) {
    lcomm_guard_figures found;
    if (lcomm_tensor_guard(comm, of->gradients.tensors[i], &found) == LCOMM_OK &&
        found.checks > 0) {
      say_checked(&found);
    }
  }
}

void report_end(const training *of, const results *run) {
  if (of->ranks.rank != 0) {
    return;
  }
  printf("\n%strained%s in %.1f s\n", screen_bold(), screen_plain(), run->seconds);
  if (task_is_text(&of->task)) {
    printf("  %-14s %s%.3f%s bits for a byte of held-out text; %.2f %% are guessed right\n", "text",
           screen_green(), results_bits(run), screen_plain(), 100.0 * run->accuracy);
  } else {
    printf("  %-14s %s%.2f %%%s of the test images are told correctly\n", "accuracy",
           screen_green(), 100.0 * run->accuracy, screen_plain());
  }
  say_traffic(of, run);
  say_communication(of, run);
  if (!is_sharded(of)) {
    say_guard(of);
  }
  if (!is_sharded(of)) {
    report_auto(of, "  in the end     ", "                 ");
  }
  if (of->scale.dynamic) {
    printf("  %-14s %g in the end\n", "loss scale", (double)of->scale.factor);
  }
  report_memory(of, "  memory         ");
  if (of->skipped > 0) {
    printf("  %-14s %" PRIu64 " step%s: the averages of the gradients held NaN or Inf\n", "skipped",
           of->skipped, of->skipped == 1 ? "" : "s");
  }
  if (of->late.is_stale) {
    printf("  %-14s gradients were %.2f steps old on average, %" PRIu64 " at most\n", "staleness",
           of->late.age_mean, of->late.age_most);
  }
  if (of->chosen->save) {
    printf("  %-14s in %s, after step %" PRIu64 "\n", "saved", of->chosen->save, of->saved_step);
  }
  if (is_pipelined(of)) {
    report_pipeline(of);
  } else if (of->ranks.size > 1) {
    printf("  %-14s identical on all ranks (0x%016" PRIx64 ")\n", "replicas", run->weights_hash);
  }
  fflush(stdout);
}

/* ------------------------------------------------------------------- sample */

enum { SAMPLE_SIZE = 300 };
#define SAMPLE_LIMIT_S 10.0

/* What is not printable ASCII is shown as a dot. */
static void say_sample(const char *text, size_t size) {
  printf("\n%ssample%s of what it writes:\n  | ", screen_bold(), screen_plain());
  for (size_t i = 0; i < size; i++) {
    if (text[i] == '\n') {
      printf("\n  | ");
    } else {
      putchar(text[i] >= ' ' && text[i] <= '~' ? text[i] : '.');
    }
  }
  printf("\n");
  fflush(stdout);
}

void report_sample(training *of) {
  if (!task_is_text(&of->task) || is_pipelined(of)) {
    return;
  }
  char text[SAMPLE_SIZE];
  size_t size =
      sample_text(&of->net, of->task.labels, of->chosen->seed, SAMPLE_LIMIT_S, text, sizeof text);
  if (of->ranks.rank == 0) {
    say_sample(text, size);
  }
}
