/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A line for each run, and for each size of a collective. */

#include "tools/common/tool_output.h"
#include "tools/experiment/experiment_report.h"

static void put_word(const char *text, FILE *file) {
  tool_put_quoted(text, file);
  fputc(',', file);
}

static void put_words(const char *const *texts, size_t count, FILE *file) {
  for (size_t i = 0; i < count; i++) {
    put_word(texts[i], file);
  }
}

/* An empty cell for what is not known. */
static void put_figures(const double *values, size_t count, FILE *file) {
  for (size_t i = 0; i < count; i++) {
    if (values[i] > 0.0) {
      fprintf(file, "%.9g", values[i]);
    }
    fputc(',', file);
  }
}

#define LENGTH_OF(array) (sizeof(array) / sizeof(array)[0])

static void put_case(const experiment_case *it, FILE *file) {
  put_word(it->of->name, file);
  put_word(experiment_where_name(it->of->where), file);
  put_word(experiment_policy_name(it->policy), file);
  put_word(it->rate, file);
  fprintf(file, "%g,%d,%d,", it->delay_ms, it->world.hosts, it->world.ranks);
  put_word(it->model, file);
  fprintf(file, "%llu,%d,", (unsigned long long)it->seed, it->repetition);
}

static void put_training(const experiment_result *had, double accuracy, FILE *file) {
  bool trained = had->epoch_count > 0;
  const experiment_epoch *last = trained ? &had->epochs[had->epoch_count - 1] : NULL;
  const double figures[] = {experiment_result_epoch_s(had),
                            accuracy > 0.0 ? experiment_result_time_to(had, accuracy) : 0.0,
                            trained ? last->accuracy : 0.0,
                            trained ? last->sent_bytes : 0.0,
                            had->interface_bytes,
                            had->step_s,
                            had->compute_s,
                            had->encode_s,
                            had->decode_s,
                            had->wait_s};
  put_figures(figures, LENGTH_OF(figures), file);
}

static void put_line(const experiment_report *of, size_t i, const experiment_row *row, FILE *file) {
  static const char *const states[] = {"missing", "good", "failed"};
  static const experiment_row none;
  const experiment_result *had = &of->of->results[i];
  row = row ? row : &none;
  const double sizes[] = {row->size, row->median_s, row->busbw_gb_s};
  const char *const origin[] = {had->transport, had->interface, had->date, had->commit, had->host};
  put_case(&of->of->cases[i], file);
  put_word(states[had->state], file);
  put_word(had->why, file);
  put_figures(&had->wall_s, 1, file);
  put_training(had, of->of->file.accuracy, file);
  put_figures(sizes, LENGTH_OF(sizes), file);
  put_words(origin, LENGTH_OF(origin), file);
  tool_put_quoted(had->machine, file);
  fputc('\n', file);
}

void experiment_report_csv(const experiment_report *of, FILE *file) {
  fputs("run,where,policy,rate,delay_ms,hosts,ranks_per_host,model,seed,repetition,state,why,"
        "seconds,epoch_s,to_accuracy_s,accuracy,sent_bytes,interface_bytes,step_s,compute_s,"
        "encode_s,decode_s,wait_s,size,median_s,busbw_gb_s,transport,interface,date,commit,host,"
        "machine\n",
        file);
  for (size_t i = 0; i < of->of->count; i++) {
    const experiment_result *had = &of->of->results[i];
    for (size_t r = 0; r < had->row_count; r++) {
      put_line(of, i, &had->rows[r], file);
    }
    if (had->row_count == 0) {
      put_line(of, i, NULL, file);
    }
  }
}
