/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "trainer/train_report.h"
#include "trainer/train_screen.h"

/* What people and programs read of a pipeline. */

/* The weights that both ends have count once. */
uint64_t report_weights(const training *of) {
  uint64_t sum = 0;
  if (!is_pipelined(of)) {
    return of->net.weight_count;
  }
  for (int stage = 0; stage <= of->pipe.last; stage++) {
    sum += of->pipe.figures.weights[stage];
  }
  return sum - (of->pipe.tied ? of->pipe.tied->count : 0);
}

double report_waits(const training *of, int stage) {
  double trained_s = of->pipe.figures.trained_s;
  return trained_s > 0.0 ? of->pipe.figures.waits_s[stage] / trained_s : 0.0;
}

static double bubble(const training *of) {
  return pipeline_bubble(of->chosen->pipeline, of->deal.accumulate);
}

void report_stages(const training *of) {
  char count[SCREEN_COUNT_SIZE];
  if (!is_pipelined(of)) {
    return;
  }
  int replicas = replicas_of(of);
  printf("  pipeline  %d stages on %d rank%s each: ", of->chosen->pipeline, replicas,
         screen_plural(replicas));
  for (int stage = 0; stage <= of->pipe.last; stage++) {
    printf("%s%s", stage > 0 ? ", " : "", screen_count(of->pipe.figures.weights[stage], count));
  }
  printf(" weights;\n" SCREEN_INDENT
         "embedding and head have the same on the first and the last;\n" SCREEN_INDENT
         "%d batch%s in a step: of equal stages each is idle for %.0f %% of it\n",
         of->deal.accumulate, of->deal.accumulate == 1 ? "" : "es", 100.0 * bubble(of));
}

void report_pipeline(const training *of) {
  const pipeline_figures *seen = &of->pipe.figures;
  int replicas = replicas_of(of);
  printf("  %-14s stages waited for each other", "pipeline");
  for (int stage = 0; stage <= of->pipe.last; stage++) {
    printf("%s %.0f %%", stage > 0 ? "," : "", 100.0 * report_waits(of, stage));
  }
  printf(" of training (schedule: %.0f %%),\n  %-14s and sent %.2f MB; exact it would be %.2f MB\n",
         100.0 * bubble(of), "", (double)seen->sent_bytes / SCREEN_MEGA,
         (double)seen->exact_bytes / SCREEN_MEGA);
  for (int stage = 0; stage <= of->pipe.last; stage++) {
    printf("  %-14s stage %d: identical on %d rank%s (0x%016" PRIx64 ")\n",
           stage == 0 ? "replicas" : "", stage, replicas, screen_plural(replicas),
           seen->hashes[stage]);
  }
}

void put_pipeline(FILE *file, const training *of) {
  const pipeline_figures *seen = &of->pipe.figures;
  if (!is_pipelined(of)) {
    return;
  }
  fprintf(file,
          ",\"pipeline\":{\"stages\":%d,\"sent_bytes\":%" PRIu64 ",\"exact_bytes\":%" PRIu64
          ",\"bubble\":%.4f,\"waited\":[",
          of->chosen->pipeline, seen->sent_bytes, seen->exact_bytes, bubble(of));
  for (int stage = 0; stage <= of->pipe.last; stage++) {
    fprintf(file, "%s%.4f", stage > 0 ? "," : "", report_waits(of, stage));
  }
  fputs("]}", file);
}
