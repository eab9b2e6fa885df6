/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct run_log {
  FILE *file;
  const char *path; /* of the command line, lives as long as the program */
};

static int open_file(const char *path, const char *mode, run_log **made, failure *why) {
  *made = NULL;
  if (!path) {
    return 0;
  }
  run_log *log = malloc(sizeof *log);
  if (!log) {
    return failure_set(why, EXIT_SETUP, "no memory for the log %s", path);
  }
  log->path = path;
  log->file = fopen(path, mode);
  if (!log->file) {
    free(log);
    return failure_set(why, EXIT_SETUP, "cannot write the log %s: %s; give --log another file",
                       path, strerror(errno));
  }
  *made = log;
  return 0;
}

int log_open(const options *chosen, run_log **made, failure *why) {
  return open_file(chosen->log, chosen->resume ? "a" : "w", made, why);
}

int log_go_on(const options *chosen, run_log **made, failure *why) {
  return open_file(chosen->log, "a", made, why);
}

/* Anything but printable ASCII is escaped byte by byte, which is valid JSON
 * whatever the bytes are. */
static void put_text(FILE *file, const char *key, const char *text) {
  fprintf(file, ",\"%s\":\"", key);
  for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
    if (*at == '"' || *at == '\\') {
      fprintf(file, "\\%c", *at);
    } else if (*at < 0x20 || *at > 0x7e) {
      fprintf(file, "\\u%04x", *at);
    } else {
      fputc(*at, file);
    }
  }
  fputc('"', file);
}

static void put_whole(FILE *file, const char *key, uint64_t value) {
  fprintf(file, ",\"%s\":%" PRIu64, key, value);
}

/* JSON knows no NaN and no infinity. */
static void put_real(FILE *file, const char *key, double value) {
  if (isfinite(value)) {
    fprintf(file, ",\"%s\":%.9g", key, value);
  } else {
    fprintf(file, ",\"%s\":null", key);
  }
}

static void put_links(FILE *file, const char *key, const uint64_t *bytes) {
  fprintf(file, ",\"%s\":{", key);
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    fprintf(file, "%s\"%s\":%" PRIu64, link ? "," : "", lcomm_link_name((lcomm_link)link),
            bytes[link]);
  }
  fputc('}', file);
}

/* In the order of backward, as simulate reads them; it knows no pipelines. */
static void put_tensors(FILE *file, const model *net) {
  fputs(",\"tensors\":[", file);
  for (int i = 0; net->part.stages == 1 && i < net->parameter_count; i++) {
    const model_parameter *it = &net->parameters[i];
    fprintf(file, "%s{\"count\":%zu", i ? "," : "", it->count);
    if (it->rows > 0) {
      fprintf(file, ",\"rows\":%zu,\"columns\":%zu", it->rows, it->count / it->rows);
    }
    put_text(file, "name", it->name);
    fputc('}', file);
  }
  fputc(']', file);
}

/* With the time, of the world's clock in UTC: 2026-01-31T23:59:59.999Z. */
static void put_begin(FILE *file, const char *event) {
  char day[32];
  struct timespec now;
  struct tm parts;
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &parts);
  strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
  fprintf(file, "{\"event\":\"%s\",\"time\":\"%s.%03ldZ\"", event, day, now.tv_nsec / 1000000);
}

/* A line is on disk as soon as it is complete, so a run can be followed. */
static void put_end(FILE *file) {
  fputs("}\n", file);
  fflush(file);
}

static void put_state(FILE *file, const training *of) {
  memory_use now = memory_now(of);
  put_pipeline(file, of);
  put_whole(file, "memory_weights", now.weights);
  put_whole(file, "memory_gradients", now.gradients);
  put_whole(file, "memory_optimizer", now.optimizer);
  put_whole(file, "memory_batch", now.batch);
  put_whole(file, "memory_libcomm", now.libcomm);
  put_whole(file, "memory_process", now.process);
}

void log_config(const training *of) {
  if (!of->log) {
    return;
  }
  FILE *file = of->log->file;
  const options *chosen = of->chosen;
  put_begin(file, "config");
  put_whole(file, "library_version", (uint64_t)lcomm_version());
  put_text(file, "model", chosen->model);
  put_whole(file, "weights", report_weights(of));
  bool text = task_is_text(&of->task);
  put_text(file, "data", task_where(&of->task));
  put_whole(file, text ? "train_windows" : "train_images", of->task.train_count);
  put_whole(file, text ? "test_windows" : "test_images", of->task.test_count);
  put_whole(file, "ranks", (uint64_t)of->ranks.size);
  put_whole(file, "nodes", (uint64_t)lcomm_nodes(whole_comm(of)));
  put_text(file, "policy", lcomm_policy_string(whole_comm(of)));
  put_text(file, "optimizer", optimizer_name(chosen->optimizer));
  put_real(file, "lr", (double)chosen->rate);
  put_real(file, "momentum", (double)chosen->momentum);
  put_real(file, "weight_decay", (double)chosen->decay);
  put_real(file, "clip", (double)chosen->clip);
  put_text(file, "schedule", schedule_name(chosen->schedule));
  put_real(file, "warmup", (double)chosen->warmup);
  put_whole(file, "batch", (uint64_t)of->deal.batch);
  put_whole(file, "accumulate", (uint64_t)of->deal.accumulate);
  put_whole(file, "epochs", (uint64_t)chosen->epochs);
  put_whole(file, "steps_per_epoch", of->steps_per_epoch);
  put_whole(file, "seed", chosen->seed);
  put_tensors(file, &of->net);
  put_text(file, "precision", precision_name(chosen->precision));
  put_text(file, "shard", shard_name(chosen->shard));
  put_state(file, of);
  put_origin(file, of);
  put_end(file);
}

static void put_hash(FILE *file, uint64_t value) {
  char hash[32];
  snprintf(hash, sizeof hash, "0x%016" PRIx64, value);
  put_text(file, "weights_hash", hash);
}

static void put_results(FILE *file, const results *what) {
  put_whole(file, "epoch", (uint64_t)what->epoch);
  put_whole(file, "steps", what->steps);
  put_real(file, "loss", what->loss);
  put_real(file, "accuracy", what->accuracy);
  put_real(file, "test_loss", what->test_loss);
  put_real(file, "samples_per_s", what->samples_per_s);
  put_real(file, "seconds", what->seconds);
  put_links(file, "sent_bytes", what->moved.sent_bytes);
  put_links(file, "exact_bytes", what->moved.exact_bytes);
  put_real(file, "net_ratio", traffic_ratio(&what->moved, LCOMM_LINK_NET));
  put_real(file, "encode_s", 1e-6 * (double)what->moved.encode_us);
  put_real(file, "decode_s", 1e-6 * (double)what->moved.decode_us);
  put_real(file, "wire_s", 1e-6 * (double)what->moved.wire_us);
  put_real(file, "wait_s", 1e-6 * (double)what->moved.wait_us);
  put_real(file, "communication_s", 1e-6 * (double)what->moved.communication_us);
  put_real(file, "exposed_s", 1e-6 * (double)what->moved.exposed_us);
  put_real(file, "hidden", results_hidden(what));
  put_hash(file, what->weights_hash);
}

void log_results(const training *of, const char *event, const results *what) {
  if (!of->log) {
    return;
  }
  put_begin(of->log->file, event);
  put_results(of->log->file, what);
  if (task_is_text(&of->task)) {
    put_real(of->log->file, "bits_per_byte", results_bits(what));
  }
  put_whole(of->log->file, "skipped_steps", of->skipped);
  if (of->late.is_stale) {
    put_real(of->log->file, "age_mean", of->late.age_mean);
    put_whole(of->log->file, "age_most", of->late.age_most);
  }
  put_real(of->log->file, "loss_scale", (double)of->scale.factor);
  put_state(of->log->file, of);
  put_end(of->log->file);
}

void log_step(const training *of, double loss, float rate, double samples_per_s) {
  if (!of->log) {
    return;
  }
  FILE *file = of->log->file;
  put_begin(file, "step");
  put_whole(file, "epoch", (uint64_t)of->epoch);
  put_whole(file, "step", of->step);
  put_real(file, "loss", loss);
  put_real(file, "lr", (double)rate);
  put_real(file, "samples_per_s", samples_per_s);
  put_real(file, "loss_scale", (double)of->scale.factor);
  put_whole(file, "skipped_steps", of->skipped);
  put_end(file);
}

void log_guard(void *training_to_log, const lcomm_guard_figures *found) {
  const training *of = training_to_log;
  if (!of->log) {
    return;
  }
  FILE *file = of->log->file;
  put_begin(file, "guard");
  put_whole(file, "epoch", (uint64_t)of->epoch);
  put_whole(file, "step", of->step + 1);
  put_text(file, "tensor", found->tensor);
  put_text(file, "codec", found->codec);
  put_text(file, "next", found->next);
  put_whole(file, "samples", found->samples);
  put_real(file, "error", found->error);
  put_real(file, "cosine", found->cosine);
  put_real(file, "residual", found->residual);
  put_whole(file, "waited", found->waited);
  put_whole(file, "fallbacks", found->fallbacks);
  put_whole(file, "beyond", (uint64_t)found->beyond);
  put_end(file);
}

void log_checkpoint(const training *of, const char *event, const char *path) {
  if (!of->log) {
    return;
  }
  FILE *file = of->log->file;
  put_begin(file, event);
  put_whole(file, "epoch", (uint64_t)of->epoch);
  put_whole(file, "step", of->step);
  put_text(file, "path", path);
  put_end(file);
}

void log_change(const training *of, const change *what) {
  if (!of->log) {
    return;
  }
  FILE *file = of->log->file;
  put_begin(file, "changed");
  put_whole(file, "epoch", (uint64_t)of->epoch);
  put_whole(file, "step", of->step);
  put_whole(file, "ranks_before", (uint64_t)what->before);
  put_whole(file, "lost", (uint64_t)what->lost);
  put_whole(file, "left", (uint64_t)what->left);
  put_whole(file, "joined", (uint64_t)what->joined);
  put_whole(file, "ranks", (uint64_t)of->ranks.size);
  put_whole(file, "nodes", (uint64_t)lcomm_nodes(whole_comm(of)));
  put_whole(file, "samples_used", of->deal.used);
  put_whole(file, "batch", (uint64_t)of->deal.batch);
  put_whole(file, "accumulate", (uint64_t)of->deal.accumulate);
  put_real(file, "rate", (double)deal_rate(&of->deal));
  put_real(file, "lost_residual", what->lost_residual);
  put_real(file, "lost_norm", what->lost_norm);
  put_real(file, "seconds", what->seconds);
  put_hash(file, what->weights_hash);
  put_end(file);
}

void log_failed(const training *of, const failure *what) {
  if (!of->log) {
    return;
  }
  FILE *file = of->log->file;
  put_begin(file, what->exit_code > EXIT_SIGNAL ? "stopped" : "failed");
  put_whole(file, "epoch", (uint64_t)of->epoch);
  put_whole(file, "step", of->step);
  put_whole(file, "exit_code", (uint64_t)what->exit_code);
  put_text(file, "message", what->text);
  put_end(file);
}

int log_close(run_log *log, failure *why) {
  if (!log) {
    return 0;
  }
  int bad = ferror(log->file);
  bad |= fclose(log->file);
  if (bad) {
    failure_set(why, EXIT_SETUP, "the log %s is incomplete; is the disk full?", log->path);
  }
  free(log);
  return bad ? -1 : 0;
}
