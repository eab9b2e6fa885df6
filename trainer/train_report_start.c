/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <inttypes.h>
#include <stdio.h>

#include "trainer/train_report.h"
#include "trainer/train_screen.h"

/* What the screen begins with. */

enum { WORDS_SIZE = 2048 };

static void say_images(const training *of) {
  const dataset *images = &of->task.images;
  char train[SCREEN_COUNT_SIZE], test[SCREEN_COUNT_SIZE];
  printf("  images    %s to train, %s to test, %dx%d pixels, %d classes\n",
         screen_count(of->task.train_count, train), screen_count(of->task.test_count, test),
         images->train.height, images->train.width, DATASET_CLASSES);
  if (images->built_in) {
    printf(SCREEN_INDENT "built-in strokes and shapes, drawn from the seed;\n" SCREEN_INDENT
                         "for real photographs of clothes fetch Fashion-MNIST: make data\n");
  } else {
    printf(SCREEN_INDENT "from %s\n", images->where);
  }
}

static void say_text(const training *of) {
  const text_data *text = &of->task.text;
  char train[SCREEN_COUNT_SIZE], test[SCREEN_COUNT_SIZE], windows[SCREEN_COUNT_SIZE];
  printf("  text      %s bytes to train, %s held out; %s windows of %d bytes\n",
         screen_count(text->train.size, train), screen_count(text->test.size, test),
         screen_count(of->task.train_count, windows), of->task.labels);
  if (text->built_in) {
    printf(SCREEN_INDENT "built-in sentences, made from the seed; --data takes any text\n");
  } else {
    printf(SCREEN_INDENT "from %s\n", text->where);
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
  char steps[SCREEN_COUNT_SIZE];
  printf("  training  %d epoch%s of %s steps, %s, learning rate %g", chosen->epochs,
         screen_plural(chosen->epochs), screen_count(of->steps_per_epoch, steps),
         optimizer_name(chosen->optimizer), (double)chosen->rate);
  if (chosen->schedule != SCHEDULE_COSINE) {
    printf(" (%s)", schedule_name(chosen->schedule));
  }
  printf(", seed %" PRIu64 "\n", chosen->seed);
  if (!of->net.on->is_host) {
    printf(SCREEN_INDENT "computed on CUDA devices\n");
  }
  if (chosen->precision != PRECISION_FP32) {
    printf(SCREEN_INDENT "in %s, weights stepped in fp32", precision_name(chosen->precision));
    printf(of->scale.dynamic ? ", the loss scaled by %g\n" : "\n", (double)of->scale.factor);
  }
  int replicas = replicas_of(of);
  printf("  step      %d %s%s x ", replicas, is_pipelined(of) ? "pipeline" : "rank",
         screen_plural(replicas));
  if (of->deal.accumulate > 1) {
    printf("%d batches of ", of->deal.accumulate);
  }
  printf("%d %s; then the ranks average their gradients,\n" SCREEN_INDENT
         "%d tensors%s, %.2f MB as %s\n",
         of->deal.batch, task_samples(&of->task), of->net.parameter_count,
         is_pipelined(of) ? " of stage 0" : "",
         (double)(of->net.weight_count * precision_size(chosen->precision)) / SCREEN_MEGA,
         precision_name(chosen->precision));
  if (is_sharded(of)) {
    printf(SCREEN_INDENT "sharded: %s; a rank steps %s weights\n",
           chosen->shard == SHARD_GRADIENTS ? "optimiser and gradients" : "optimiser",
           screen_count(of->shard.plan.count, steps));
  }
}

/* Tensors know their codecs; reduce-scatters follow the same policy under the same names. Nodes are
 * those of the ranks that average gradients. */
static void say_policy(const training *of, int nodes) {
  const char *policy = lcomm_policy_string(whole_comm(of));
  char words[WORDS_SIZE];
  printf("  policy    %s\n", policy);
  if (of->served) {
    int servers = lcomm_size(of->served) - of->ranks.size;
    bool one = servers == 1, weights = of->chosen->serve_weights;
    printf(SCREEN_INDENT "%d server%s beside them %s%s\n", servers, screen_plural(servers),
           weights ? (one ? "steps" : "step") : (one ? "averages" : "average"),
           weights ? " the weights" : " the gradients");
  }
  if (is_sharded(of)) {
    printf(SCREEN_INDENT "for %d reduce-scatters; weights come back exact\n",
           of->shard.plan.bucket_count);
    return;
  }
  if (is_pipelined(of)) {
    policy_stage_words(policy, nodes == 1, SCREEN_INDENT, words, sizeof words);
    fputs(words, stdout);
  }
  if (is_pipelined(of) && nodes == 1) {
    return;
  }
  policy_codec codecs[MODEL_PARAMETERS_MAX];
  gradients_codecs(&of->gradients, of->net.parameter_count, codecs);
  policy_words(policy, nodes, &of->net, codecs, SCREEN_INDENT, words, sizeof words);
  fputs(words, stdout);
  report_auto(of, SCREEN_INDENT, SCREEN_INDENT);
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
  int nodes = lcomm_nodes(whole_comm(of));
  char count[SCREEN_COUNT_SIZE];
  printf("%slibcomm trainer%s: %d rank%s on %d node%s learn to ", screen_bold(), screen_plain(),
         of->ranks.size, screen_plural(of->ranks.size), nodes, screen_plural(nodes));
  say_aim(&of->task);
  printf("  model     %s, %s weights\n", of->chosen->model,
         screen_count(report_weights(of), count));
  printf(SCREEN_INDENT "%s\n", model_describe(of->chosen->model));
  report_stages(of);
  say_data(of);
  say_step(of);
  if (of->resumed[0]) {
    printf("  resumed   from %s: epoch %d, step %" PRIu64 "\n", of->resumed, of->epoch, of->step);
  }
  say_policy(of, lcomm_nodes(gradients_comm(of)));
  report_memory(of, "  memory    ");
  printf("\n%s%5s %8s %13s %9s %16s %11s %7s %7s%s\n", screen_bold(), "epoch", "loss",
         task_is_text(&of->task) ? "bits per byte" : "test accuracy", "samples/s",
         nodes > 1 ? "MB between nodes" : "MB between ranks", "compression", "hidden", "seconds",
         screen_plain());
  fflush(stdout);
}
