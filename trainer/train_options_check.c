/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <stdlib.h>
#include <string.h>

#include "trainer/train_model.h"
#include "trainer/train_options.h"
#include "trainer/train_report.h"

/* What was not given, and what does not go together. */

/* Learning rates and decays that suit the models at the default batch; LARS and LAMB are for large
 * ones. */
static const float default_rates[] = {
    [OPTIMIZER_SGD] = 0.05f,  [OPTIMIZER_ADAM] = 0.002f, [OPTIMIZER_ADAMW] = 0.002f,
    [OPTIMIZER_LARS] = 15.0f, [OPTIMIZER_LAMB] = 0.01f,  [OPTIMIZER_ONEBIT_ADAM] = 0.002f};
static const float default_decays[] = {[OPTIMIZER_ADAMW] = 0.1f,
                                       [OPTIMIZER_LARS] = 1e-4f,
                                       [OPTIMIZER_LAMB] = 0.01f,
                                       [OPTIMIZER_ONEBIT_ADAM] = 0.0f};

/* Who sends momentum needs the optimiser that takes it. */
static optimizer_kind default_optimizer(const options *made) {
  const char *policy = made->policy ? made->policy : getenv("LCOMM_POLICY");
  if (policy && policy_sends_momentum(policy)) {
    return OPTIMIZER_ONEBIT_ADAM;
  }
  return model_context(made->model) > 0 ? OPTIMIZER_ADAMW : OPTIMIZER_SGD;
}

/* What was not given depends on the rest. */
static void complete(options *made) {
  bool text = model_context(made->model) > 0;
  if (!made->optimizer_given) {
    made->optimizer = default_optimizer(made);
  }
  if (made->batch == 0) {
    made->batch = text ? 16 : 32;
  }
  if (made->rate == 0.0f) {
    made->rate = default_rates[made->optimizer];
  }
  if (made->decay < 0.0f) {
    made->decay = default_decays[made->optimizer];
  }
}

/* Names of files are added to it. */
static int check_folder(const char *option, const char *folder, failure *why) {
  enum { LONGEST = 900 };
  if (!folder || (*folder && strlen(folder) <= LONGEST)) {
    return 0;
  }
  return failure_set_common(why, EXIT_SETUP, "--%s needs the name of a folder, of at most %d bytes",
                            option, LONGEST);
}

/* What one rank alone has, a part of the optimiser or the figures of a plot, is lost with it. */
static int check_elastic(const options *made, failure *why) {
  if (!is_elastic(made)) {
    return 0;
  }
  if (made->shard != SHARD_NONE) {
    return failure_set_common(why, EXIT_SETUP,
                              "--elastic does not go with --shard: what a lost rank keeps of the "
                              "optimiser would be lost");
  }
  if (made->plot) {
    return failure_set_common(why, EXIT_SETUP,
                              "--elastic does not go with --plot, whose figures rank 0 keeps, and "
                              "may be lost; --log has them");
  }
  return 0;
}

static int check_stages(const options *made, failure *why) {
  int blocks = model_blocks(made->model);
  if (blocks == 0) {
    return failure_set_common(why, EXIT_SETUP,
                              "--pipeline shares out the blocks of a transformer, of which --model "
                              "%s has none; give a model of text, such as gpt-nano",
                              made->model);
  }
  if (blocks < made->pipeline) {
    return failure_set_common(why, EXIT_SETUP,
                              "--pipeline %d has more stages than --model %s has blocks (%d); give "
                              "%d at most",
                              made->pipeline, made->model, blocks, blocks);
  }
  return 0;
}

/* What a stage would need of the others is not exchanged. */
static int check_pipeline(const options *made, failure *why) {
  optimizer_kind kind = made->optimizer;
  const struct {
    bool given;
    const char *option, *reason;
  } apart[] = {
      {made->shard != SHARD_NONE, "--shard", "stages keep what they step as a whole"},
      {is_elastic(made), "--elastic", "when a rank is lost, its pipeline is broken"},
      {made->device != DEVICE_CPU, "--device", "stages are computed by processors"},
      {made->precision != PRECISION_FP32, "--precision", "stages exchange float32"},
      {made->clip > 0.0f, "--clip", "no stage knows the norm of all gradients"},
      {made->save || made->resume, "--save and --resume", "checkpoints are of whole models"},
      {made->slow.factor > 0 || made->slow.share > 0, "--late", "stages wait for each other"},
      {kind == OPTIMIZER_LARS, "--optimizer lars", "gains step as a matrix of another stage does"},
      {kind == OPTIMIZER_ONEBIT_ADAM, "--optimizer onebit-adam",
       "momentum of weights that both ends have is not added up"},
  };
  if (made->pipeline == 1) {
    return 0;
  }
  for (size_t i = 0; i < sizeof apart / sizeof apart[0]; i++) {
    if (apart[i].given) {
      return failure_set_common(why, EXIT_SETUP, "--pipeline does not go with %s: %s",
                                apart[i].option, apart[i].reason);
    }
  }
  return check_stages(made, why);
}

/* A server steps each piece by itself, in float32. */
static int check_serve(const options *made, failure *why) {
  bool steps =
      made->optimizer == OPTIMIZER_SGD && made->precision == PRECISION_FP32 && made->clip <= 0.0f;
  if (!made->serve_weights || steps) {
    return 0;
  }
  return failure_set_common(why, EXIT_SETUP,
                            "--serve weights goes with --optimizer sgd and --precision fp32, and "
                            "without --clip: a server steps each part of the weights by itself");
}

/* Options that do not go together. */
static int check(const options *made, failure *why) {
  if (made->decay > 0.0f && !optimizer_decays(made->optimizer)) {
    return failure_set_common(why, EXIT_SETUP,
                              "--weight-decay is for adamw, lars, lamb and onebit-adam, not for %s",
                              optimizer_name(made->optimizer));
  }
  if (made->optimizer == OPTIMIZER_ONEBIT_ADAM &&
      (made->shard != SHARD_NONE || made->clip > 0.0f)) {
    return failure_set_common(why, EXIT_SETUP,
                              "--optimizer onebit-adam gets momentum of whole tensors: leave out "
                              "--shard, and instead of --clip give clip=NORM in the policy");
  }
  if (made->save_every > 0 && !made->save) {
    return failure_set_common(why, EXIT_SETUP, "--save-every needs --save DIR");
  }
  if (check_elastic(made, why) || check_pipeline(made, why) || check_serve(made, why) ||
      check_folder("save", made->save, why) || check_folder("resume", made->resume, why)) {
    return -1;
  }
  if (made->batch_global > 0 && made->accumulate > 1) {
    return failure_set_common(
        why, EXIT_SETUP, "--batch-global says how often to accumulate; leave --accumulate out");
  }
  return 0;
}

int options_complete(options *made, failure *why) {
  complete(made);
  return check(made, why);
}
