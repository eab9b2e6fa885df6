/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "trainer/train_sample.h"

enum { COUNT_SIZE = 32, WORDS_SIZE = 2048 };
#define MEGA 1e6
#define INDENT "            "

/* ---------------------------------------------------------------- terminal */

/* Open MPI gives every rank a pseudo-terminal, wherever mpirun itself writes
 * to; but it has a width only if mpirun's output is a real terminal. */
static bool terminal_is_live(void) {
  struct winsize window = {0};
  if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0) {
    return false;
  }
  return window.ws_col > 0;
}

/* Live, and colours are not refused (NO_COLOR, TERM=dumb). */
static bool terminal_has_colours(void) {
  const char *refused = getenv("NO_COLOR");
  if (refused && *refused) {
    return false;
  }
  const char *kind = getenv("TERM");
  if (!kind || strcmp(kind, "dumb") == 0) {
    return false;
  }
  return terminal_is_live();
}

static const char *bold(void) {
  return terminal_has_colours() ? "\x1b[1m" : "";
}

static const char *green(void) {
  return terminal_has_colours() ? "\x1b[32m" : "";
}

static const char *plain(void) {
  return terminal_has_colours() ? "\x1b[0m" : "";
}

/* 60000 as "60,000"; returns text. */
static const char *with_commas(uint64_t value, char text[COUNT_SIZE]) {
  char digits[COUNT_SIZE];
  int length = snprintf(digits, sizeof digits, "%" PRIu64, value);
  int used = 0;
  for (int i = 0; i < length; i++) {
    if (i > 0 && (length - i) % 3 == 0) {
      text[used++] = ',';
    }
    text[used++] = digits[i];
  }
  text[used] = '\0';
  return text;
}

static const char *plural(int count) {
  return count == 1 ? "" : "s";
}

/* ---------------------------------------------------------------- progress */

enum { BAR_WIDTH = 24 };
#define LIVE_PERIOD_S 0.1
#define PLAIN_PERIOD_S 10.0
#define LOSS_MEMORY 0.95

double progress_now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

progress progress_begin(const training *of) {
  double now_s = progress_now_s();
  return (progress){of, of->ranks.rank == 0 && terminal_is_live(), now_s, of->step_of_epoch, now_s,
                    0.0};
}

static void show_bar(const progress *self, uint64_t step, double samples_per_s, double left_s) {
  uint64_t steps = self->of->steps_per_epoch;
  int full = (int)(step * BAR_WIDTH / steps);
  printf("\r  epoch %d/%d [", self->of->epoch, self->of->chosen->epochs);
  for (int i = 0; i < BAR_WIDTH; i++) {
    putchar(i < full ? '#' : '-');
  }
  printf("] %3d %%  loss %.3f  %.0f samples/s  %.0f s left\x1b[K", (int)(step * 100 / steps),
         self->loss, samples_per_s, left_s);
}

static void show_line(const progress *self, uint64_t step, double samples_per_s, double left_s) {
  printf("  epoch %d of %d: step %" PRIu64 " of %" PRIu64
         ", loss %.3f, %.0f samples/s, %.0f s left\n",
         self->of->epoch, self->of->chosen->epochs, step, self->of->steps_per_epoch, self->loss,
         samples_per_s, left_s);
}

double progress_speed(const progress *self, uint64_t step) {
  double seconds = progress_now_s() - self->began_s;
  return (double)(step - self->first) * samples_per_step(self->of) / seconds;
}

void progress_show(progress *self, uint64_t step, double loss) {
  if (self->of->ranks.rank != 0) {
    return;
  }
  self->loss =
      step == self->first + 1 ? loss : LOSS_MEMORY * self->loss + (1.0 - LOSS_MEMORY) * loss;
  double now_s = progress_now_s();
  if (now_s - self->shown_s < (self->live ? LIVE_PERIOD_S : PLAIN_PERIOD_S)) {
    return;
  }
  self->shown_s = now_s;
  double per_step_s = (now_s - self->began_s) / (double)(step - self->first);
  double samples_per_s = samples_per_step(self->of) / per_step_s;
  double left_s = per_step_s * (double)(self->of->steps_per_epoch - step);
  if (self->live) {
    show_bar(self, step, samples_per_s, left_s);
  } else {
    show_line(self, step, samples_per_s, left_s);
  }
  fflush(stdout);
}

void progress_end(progress *self) {
  if (self->live) {
    printf("\r\x1b[K");
  }
}

/* ------------------------------------------------------ start of the screen */

static void say_images(const training *of) {
  const dataset *images = &of->task.images;
  char train[COUNT_SIZE], test[COUNT_SIZE];
  printf("  images    %s to train, %s to test, %dx%d pixels, %d classes\n",
         with_commas(of->task.train_count, train), with_commas(of->task.test_count, test),
         images->train.height, images->train.width, DATASET_CLASSES);
  if (images->built_in) {
    printf(INDENT "built-in strokes and shapes, drawn from the seed;\n" INDENT
                  "for real photographs of clothes fetch Fashion-MNIST: make data\n");
  } else {
    printf(INDENT "from %s\n", images->where);
  }
}

static void say_text(const training *of) {
  const text_data *text = &of->task.text;
  char train[COUNT_SIZE], test[COUNT_SIZE], windows[COUNT_SIZE];
  printf("  text      %s bytes to train, %s held out; %s windows of %d bytes\n",
         with_commas(text->train.size, train), with_commas(text->test.size, test),
         with_commas(of->task.train_count, windows), of->task.labels);
  if (text->built_in) {
    printf(INDENT "built-in sentences, made from the seed; --data takes any text\n");
  } else {
    printf(INDENT "from %s\n", text->where);
  }
}

static void say_data(const training *of) {
  if (task_is_text(&of->task)) {
    say_text(of);
  } else {
    say_images(of);
  }
}

static void say_step(const training *of) {
  const options *chosen = of->chosen;
  char steps[COUNT_SIZE];
  printf("  training  %d epoch%s of %s steps, %s, learning rate %g", chosen->epochs,
         plural(chosen->epochs), with_commas(of->steps_per_epoch, steps),
         optimizer_name(chosen->optimizer), (double)chosen->rate);
  if (chosen->schedule != SCHEDULE_COSINE) {
    printf(" (%s)", schedule_name(chosen->schedule));
  }
  printf(", seed %" PRIu64 "\n", chosen->seed);
  printf("  step      %d rank%s x ", of->ranks.size, plural(of->ranks.size));
  if (of->accumulate > 1) {
    printf("%d batches of ", of->accumulate);
  }
  printf("%d %s; then the ranks average their gradients,\n" INDENT
         "%d tensors, %.2f MB as float32\n",
         of->batch, task_samples(&of->task), of->net.parameter_count,
         (double)(of->net.weight_count * sizeof(float)) / MEGA);
}

static void say_aim(const task *learnt) {
  if (task_is_text(learnt)) {
    printf("predict the next byte of a text\n\n");
  } else {
    printf("tell %d kinds of images apart\n\n", learnt->classes);
  }
}

void report_start(const training *of) {
  if (of->ranks.rank != 0) {
    return;
  }
  int nodes = lcomm_nodes(of->comm);
  const char *policy = lcomm_policy_string(of->comm);
  char count[COUNT_SIZE], words[WORDS_SIZE];
  printf("%slibcomm trainer%s: %d rank%s on %d node%s learn to ", bold(), plain(), of->ranks.size,
         plural(of->ranks.size), nodes, plural(nodes));
  say_aim(&of->task);
  printf("  model     %s, %s weights\n", of->chosen->model,
         with_commas(of->net.weight_count, count));
  printf(INDENT "%s\n", model_describe(of->chosen->model));
  say_data(of);
  say_step(of);
  if (of->resumed[0]) {
    printf("  resumed   from %s: epoch %d, step %" PRIu64 "\n", of->resumed, of->epoch, of->step);
  }
  printf("  policy    %s\n", policy);
  policy_codec codecs[MODEL_PARAMETERS_MAX];
  gradients_codecs(&of->gradients, of->net.parameter_count, codecs);
  policy_words(policy, nodes, &of->net, codecs, INDENT, words, sizeof words);
  fputs(words, stdout);
  report_auto(of, INDENT, INDENT);
  printf("\n%s%5s %8s %14s %10s %17s %12s %8s%s\n", bold(), "epoch", "loss",
         task_is_text(&of->task) ? "bits per byte" : "test accuracy", "samples/s",
         nodes > 1 ? "MB between nodes" : "MB between ranks", "compression", "seconds", plain());
  fflush(stdout);
}

/* ---------------------------------------------------- table and end of it */

/* Bytes that left a rank, on the links the table is about. */
static double table_bytes(const training *of, const uint64_t *bytes) {
  if (lcomm_nodes(of->comm) > 1) {
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

const char *results_figure_name(bool text) {
  return text ? "bits per byte of held-out text" : "test accuracy, %";
}

void report_epoch(const training *of, const results *epoch) {
  if (of->ranks.rank != 0) {
    return;
  }
  char speed[COUNT_SIZE], ratio[COUNT_SIZE] = "-", figure[COUNT_SIZE];
  double sent = table_bytes(of, epoch->moved.sent_bytes);
  if (sent > 0.0) {
    snprintf(ratio, sizeof ratio, "%.2fx", table_bytes(of, epoch->moved.exact_bytes) / sent);
  }
  if (task_is_text(&of->task)) {
    snprintf(figure, sizeof figure, "%.3f", results_bits(epoch));
  } else {
    snprintf(figure, sizeof figure, "%.2f %%", 100.0 * epoch->accuracy);
  }
  printf("%5d %8.4f %14s %10s %17.2f %12s %8.1f\n", epoch->epoch, epoch->loss, figure,
         with_commas((uint64_t)epoch->samples_per_s, speed), sent / MEGA, ratio, epoch->seconds);
  fflush(stdout);
}

static void say_sent(const results *run, lcomm_link link, const char *where) {
  printf("  %-14s %.2f MB sent", where, (double)run->moved.sent_bytes[link] / MEGA);
}

/* Compare with float32. Where there are several nodes, only the links between
 * them are compared: inside a node a policy changes which messages there are. */
static void say_saving(const results *run, lcomm_link link) {
  double ratio = traffic_ratio(&run->moved, link);
  printf(", float32 would have sent %.2f MB", (double)run->moved.exact_bytes[link] / MEGA);
  if (ratio >= 1.05) {
    printf(": %s%.1f times less%s", green(), ratio, plain());
  }
}

static void say_traffic(const training *of, const results *run) {
  bool between_nodes = lcomm_nodes(of->comm) > 1;
  if (between_nodes) {
    say_sent(run, LCOMM_LINK_NET, "between nodes");
    say_saving(run, LCOMM_LINK_NET);
    printf("\n");
  }
  for (int link = LCOMM_LINK_SAME_DEVICE; link < LCOMM_LINK_NET; link++) {
    if (run->moved.sent_bytes[link] == 0) {
      continue;
    }
    char where[COUNT_SIZE];
    snprintf(where, sizeof where, "inside, %s", lcomm_link_name((lcomm_link)link));
    say_sent(run, (lcomm_link)link, where);
    if (!between_nodes) {
      say_saving(run, (lcomm_link)link);
    }
    printf("\n");
  }
}

/* The last check of a tensor. */
static void say_checked(const lcomm_guard_figures *found) {
  printf(INDENT "%s by %s: error %.2g, cosine %.2f", found->tensor, found->codec, found->error,
         found->cosine);
  if (found->residual > 0.0) {
    printf(", residual %.2g gradients", found->residual);
  }
  if (found->waited > 0) {
    printf(", %" PRIu64 " entries waited", found->waited);
  }
  if (found->fallbacks > 0) {
    printf("; fell back %" PRIu64 " time%s, goes on by %s", found->fallbacks,
           plural((int)found->fallbacks), found->next);
  } else if (found->beyond) {
    printf("; beyond its limit");
  }
  printf("\n");
}

static void say_guard(const training *of) {
  lcomm_stats stats;
  if (lcomm_stats_get(of->comm, &stats) != LCOMM_OK || stats.guard_checks == 0) {
    return;
  }
  printf("  %-14s results were compared with exact sums %" PRIu64 " time%s, at last:\n", "guard",
         stats.guard_checks, plural((int)stats.guard_checks));
  for (int i = 0; i < of->net.parameter_count; i++) {
    lcomm_guard_figures found;
    if (lcomm_tensor_guard(of->comm, of->gradients.tensors[i], &found) == LCOMM_OK &&
        found.checks > 0) {
      say_checked(&found);
    }
  }
}

void report_end(const training *of, const results *run) {
  if (of->ranks.rank != 0) {
    return;
  }
  printf("\n%strained%s in %.1f s\n", bold(), plain(), run->seconds);
  if (task_is_text(&of->task)) {
    printf("  %-14s %s%.3f%s bits for a byte of held-out text; %.2f %% are guessed right\n", "text",
           green(), results_bits(run), plain(), 100.0 * run->accuracy);
  } else {
    printf("  %-14s %s%.2f %%%s of the test images are told correctly\n", "accuracy", green(),
           100.0 * run->accuracy, plain());
  }
  say_traffic(of, run);
  say_guard(of);
  report_auto(of, "  in the end     ", "                 ");
  if (of->skipped > 0) {
    printf("  %-14s %" PRIu64 " step%s: the averages of the gradients held NaN or Inf\n", "skipped",
           of->skipped, of->skipped == 1 ? "" : "s");
  }
  if (of->chosen->save) {
    printf("  %-14s in %s, after step %" PRIu64 "\n", "saved", of->chosen->save, of->saved_step);
  }
  if (of->ranks.size > 1) {
    printf("  %-14s identical on all ranks (0x%016" PRIx64 ")\n", "replicas", run->weights_hash);
  }
  fflush(stdout);
}

/* ------------------------------------------------------------------- sample */

enum { SAMPLE_SIZE = 300 };
#define SAMPLE_LIMIT_S 10.0

/* What is not printable ASCII is shown as a dot. */
static void say_sample(const char *text, size_t size) {
  printf("\n%ssample%s of what it writes:\n  | ", bold(), plain());
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
  if (!task_is_text(&of->task)) {
    return;
  }
  char text[SAMPLE_SIZE];
  size_t size =
      sample_text(&of->net, of->task.labels, of->chosen->seed, SAMPLE_LIMIT_S, text, sizeof text);
  if (of->ranks.rank == 0) {
    say_sample(text, size);
  }
}
