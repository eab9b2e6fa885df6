/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 */

/* Ranks that compute on a device, which they share, train the model that they train on processors,
 * within rounding; their gradients leave in order with the device's stream. */

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda.h"
#include "libcomm/device/device.h"
#include "libcomm/include/libcomm_interpose.h"
#include "tests/support/emulated/emulated_device.h"
#include "tests/support/emulated/emulated_trainer.h"
#include "tests/support/mpi_property.h"
#include "trainer/train_report.h"
#include "trainer/train_save.h"

static void require_good(int result, const failure *why) {
  require(result == 0, "%s", why->text);
}

enum { WORDS_MAX = 16 };

/* Of words that are parted by blanks. */
static void parse(const char *line, options *made) {
  static char kept[256];
  static char *words[WORDS_MAX];
  failure why = {0};
  int count = 1;
  words[0] = "train";
  snprintf(kept, sizeof kept, "%s", line);
  for (char *word = strtok(kept, " "); word && count < WORDS_MAX; word = strtok(NULL, " ")) {
    words[count++] = word;
  }
  require_good(options_parse(count, words, made, &why), &why);
}

typedef struct end {
  float *weights;
  size_t count;
  double loss;
  uint64_t hash;
} end;

static void step_times(training *self, int steps) {
  failure why = {0};
  double loss;
  task_begin_epoch(&self->task, self->chosen->seed, self->epoch, self->order);
  for (int i = 0; i < steps; i++) {
    require_good(training_step(self, schedule_rate(&self->rates, self->step), &loss, &why), &why);
  }
}

static int nodes = 2; /* as which the ranks pose */

static options options_of(device_kind device, const char *line, const char *policy) {
  options made;
  parse(line, &made);
  made.device = device;
  made.policy = policy;
  return made;
}

static void begin(const options *chosen, training *made) {
  failure why = {0};
  *made = (training){.chosen = chosen, .epoch = 1, .saved_step = UINT64_MAX};
  made->comm = make_comm(chosen->policy, nodes);
  require_good(training_set_up(made, &why), &why);
  made->task.test_count = 64; /* an emulated device is slow */
  require(made->net.on->is_host == (chosen->device == DEVICE_CPU), "the wrong back end");
}

static end finish(training *self) {
  results tested = {0};
  failure why = {0};
  require_good(training_test(self, &tested, &why), &why);
  end made = {.count = self->net.weight_count, .loss = tested.test_loss};
  const float *weights = training_weights(self);
  made.weights = malloc(made.count * sizeof *made.weights);
  memcpy(made.weights, weights, made.count * sizeof *weights);
  require_good(replicas_compare(&self->ranks, made.weights, made.count, 1, &made.hash, &why), &why);
  bool far = !self->net.on->is_host;
  require(lcomm_destroy(self->comm) == LCOMM_OK, "it ends");
  training_tear_down(self);
  if (far) {
    emulated_trainer_close();
  }
  return made;
}

static end train_on(device_kind device, const char *line, const char *policy, int steps) {
  options chosen = options_of(device, line, policy);
  training self;
  begin(&chosen, &self);
  step_times(&self, steps);
  return finish(&self);
}

static double norm_of(const float *values, const float *less, size_t count) {
  double sum = 0.0;
  for (size_t i = 0; i < count; i++) {
    double value = (double)values[i] - (less ? (double)less[i] : 0.0);
    sum += value * value;
  }
  return sqrt(sum);
}

static void compare(const char *line, const char *policy, int steps, double share) {
  end cpu = train_on(DEVICE_CPU, line, policy, steps);
  end cuda = train_on(DEVICE_CUDA, line, policy, steps);
  double apart =
      norm_of(cuda.weights, cpu.weights, cpu.count) / norm_of(cpu.weights, NULL, cpu.count);
  printf("# %s, %s: loss %.6f, on the device %.6f; weights %.2g apart\n", line, policy, cpu.loss,
         cuda.loss, apart);
  require(cpu.count == cuda.count && apart < share, "'%s' '%s': the weights are %g apart", line,
          policy, apart);
  require(fabs(cpu.loss - cuda.loss) < 1e-3 * cpu.loss, "'%s': loss %g, on the device %g", line,
          cpu.loss, cuda.loss);
  free(cpu.weights);
  free(cuda.weights);
}

static void an_mlp_trains_alike(void) {
  compare("--model=mlp --data=builtin --images=512 --epochs=1", "net=none", 6, 1e-5);
  compare("--model=mlp --data=builtin --images=512 --epochs=1 --optimizer=adam --clip=0.5",
          "net=none", 4, 1e-4);
}

static void batches_add_up_alike(void) {
  compare("--model=mlp --data=builtin --images=512 --epochs=1 --accumulate=2 --batch=16",
          "net=none", 3, 1e-5);
}

/* What the device stores with 16 bits, the processor rounds; between them lie other roundings. */
static void values_of_16_bits_train_alike(void) {
  compare("--model=mlp --data=builtin --images=512 --epochs=1 --precision=bf16", "net=none", 3,
          1e-3);
  compare("--model=mlp --data=builtin --images=512 --epochs=1 --precision=fp16 --accumulate=2 "
          "--batch=16",
          "net=none", 3, 1e-3);
  compare("--model=cnn --data=builtin --images=64 --epochs=1 --batch=4 --precision=bf16",
          "net=none", 2, 1e-3);
  compare("--model=gpt-nano --data=builtin --images=16 --epochs=1 --batch=1 --precision=fp16",
          "net=none", 2, 1e-2);
}

static void a_device_holds_half_the_bytes_of_16_bits(void) {
  static const char line[] = "--model=mlp --data=builtin --images=512 --epochs=1";
  memory_use used[2];
  for (int i = 0; i < 2; i++) {
    char with[96];
    snprintf(with, sizeof with, "%s --precision=%s", line, i == 0 ? "fp32" : "bf16");
    options chosen = options_of(DEVICE_CUDA, with, "net=none");
    training self;
    begin(&chosen, &self);
    used[i] = memory_now(&self);
    end made = finish(&self);
    free(made.weights);
  }
  require(2 * used[1].batch == used[0].batch, "a batch takes %llu bytes, as float32 %llu",
          (unsigned long long)used[1].batch, (unsigned long long)used[0].batch);
  require(2 * used[1].weights == 3 * used[0].weights, "weights take %llu bytes, as float32 %llu",
          (unsigned long long)used[1].weights, (unsigned long long)used[0].weights);
}

static void a_codec_with_error_feedback_works_on_the_device(void) {
  compare("--model=mlp --data=builtin --images=512 --epochs=1 --lr=0.02", "net=int8+ef min=4K", 4,
          1e-3);
}

static void shards_train_alike(void) {
  compare("--model=mlp --data=builtin --images=512 --epochs=1 --shard=optimizer --clip=0.5",
          "net=none", 4, 1e-5);
  compare("--model=mlp --data=builtin --images=512 --epochs=1 --shard=gradients --accumulate=2 "
          "--batch=16",
          "net=none", 3, 1e-5);
  compare("--model=mlp --data=builtin --images=512 --epochs=1 --shard=gradients --precision=bf16",
          "net=none", 3, 1e-3);
}

/* Which read each other's device: no stream waits for that, the host does. */
static void shards_of_ranks_of_one_node_train_alike(void) {
  nodes = 1;
  shards_train_alike();
  nodes = 2;
}

/* Residuals lie on the device, too. */
static void compressed_shards_train_alike(void) {
  compare("--model=mlp --data=builtin --images=512 --epochs=1 --shard=optimizer --lr=0.02",
          "net=int8+ef min=4K", 4, 1e-3);
  compare("--model=mlp --data=builtin --images=512 --epochs=1 --shard=gradients --precision=fp16",
          "net=int8+ef min=4K", 3, 1e-3);
}

static void have_the_bits_of_the_whole(const char *precision, const char *const *shards,
                                       int count) {
  char line[128], sharded[160];
  snprintf(line, sizeof line,
           "--model=mlp --data=builtin --images=512 --epochs=1 --optimizer=lamb --clip=0.5 "
           "--precision=%s",
           precision);
  end whole = train_on(DEVICE_CUDA, line, "net=none", 3);
  for (int i = 0; i < count; i++) {
    snprintf(sharded, sizeof sharded, "%s --shard=%s", line, shards[i]);
    end parts = train_on(DEVICE_CUDA, sharded, "net=none", 3);
    require(parts.hash == whole.hash, "%s, --shard %s: the weights are others", precision,
            shards[i]);
    free(parts.weights);
  }
  free(whole.weights);
}

static void shards_of_a_device_have_the_bits_of_the_whole(void) {
  static const char *const shards[] = {"optimizer", "gradients"};
  have_the_bits_of_the_whole("fp32", shards, 2);
  have_the_bits_of_the_whole("bf16", shards, 1);
  have_the_bits_of_the_whole("fp16", shards + 1, 1);
}

/* To other nodes, of all that was begun. */
static uint64_t sent_so_far(const training *self) {
  lcomm_stats stats = {0};
  while (lcomm_is_busy(self->comm)) {
    (void)lcomm_progress(self->comm); /* a failure ends what is in flight */
    sched_yield();
  }
  require(lcomm_stats_get(self->comm, &stats) == LCOMM_OK, "statistics");
  return stats.sent_bytes[LCOMM_LINK_NET];
}

/* What a rank sends other nodes in two steps, gradients and weights. */
static uint64_t sent_of_shards(const char *precision) {
  char line[128];
  training self;
  snprintf(line, sizeof line,
           "--model=mlp --data=builtin --images=512 --epochs=1 --shard=gradients --precision=%s",
           precision);
  options chosen = options_of(DEVICE_CUDA, line, "net=none");
  begin(&chosen, &self);
  uint64_t before = sent_so_far(&self);
  step_times(&self, 2);
  uint64_t after = sent_so_far(&self);
  end made = finish(&self);
  free(made.weights);
  return after - before;
}

/* Gradients leave, and weights come back, in the type that the model computes with. */
static void shards_of_16_bits_send_half_the_bytes(void) {
  uint64_t wide = sent_of_shards("fp32"), half = sent_of_shards("bf16");
  require(half > 0 && 2 * half < wide + wide / 20, "%llu bytes, as float32 %llu",
          (unsigned long long)half, (unsigned long long)wide);
}

static void a_cnn_trains_alike(void) {
  compare("--model=cnn --data=builtin --images=64 --epochs=1 --batch=4", "net=none", 2, 1e-5);
}

static void a_gpt_trains_alike(void) {
  compare("--model=gpt-nano --data=builtin --images=16 --epochs=1 --batch=1", "net=none", 2, 1e-4);
}

/* One that all ranks see, made by the first. */
static void make_shared_folder(char path[64]) {
  snprintf(path, 64, "/tmp/libcomm-test-XXXXXX");
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  require(rank != 0 || mkdtemp(path), "no folder");
  MPI_Bcast(path, 64, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static end go_on(device_kind device, const char *line, const char *policy, const char *folder) {
  options chosen = options_of(device, line, policy);
  chosen.resume = folder;
  training self;
  begin(&chosen, &self);
  require(self.step == 2, "it goes on from step %llu", (unsigned long long)self.step);
  step_times(&self, 2);
  return finish(&self);
}

/* Residuals and moments come back, too. */
static void expect_to_go_on(const char *line) {
  static const char policy[] = "net=int8+ef min=4K";
  char folder[64], command[96];
  failure why = {0};
  make_shared_folder(folder);
  options chosen = options_of(DEVICE_CUDA, line, policy);
  chosen.save = folder;
  training self;
  begin(&chosen, &self);
  step_times(&self, 2);
  require_good(save_checkpoint(&self, &why), &why);
  step_times(&self, 2);
  end whole = finish(&self), there = go_on(DEVICE_CUDA, line, policy, folder);
  end here = go_on(DEVICE_CPU, line, policy, folder);
  require(whole.hash == there.hash, "the weights are others");
  double apart =
      norm_of(here.weights, whole.weights, whole.count) / norm_of(whole.weights, NULL, whole.count);
  require(apart < 1e-3, "on processors the weights are %g apart", apart);
  MPI_Barrier(MPI_COMM_WORLD);
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  require(system(command) == 0, "the folder stays");
  free(whole.weights);
  free(there.weights);
  free(here.weights);
}

static void a_checkpoint_of_a_device_goes_on_there_to_the_bit_and_elsewhere(void) {
  expect_to_go_on("--model=mlp --data=builtin --images=512 --epochs=1 --optimizer=adam");
}

static void so_does_one_of_shards(void) {
  expect_to_go_on(
      "--model=mlp --data=builtin --images=512 --epochs=1 --optimizer=adam --shard=gradients");
}

int main(int argc, char **argv) {
  static const mpi_property properties[] = {
      PROPERTY(an_mlp_trains_alike),
      PROPERTY(batches_add_up_alike),
      PROPERTY(values_of_16_bits_train_alike),
      PROPERTY(a_device_holds_half_the_bytes_of_16_bits),
      PROPERTY(a_codec_with_error_feedback_works_on_the_device),
      PROPERTY(a_checkpoint_of_a_device_goes_on_there_to_the_bit_and_elsewhere),
      PROPERTY(shards_train_alike),
      PROPERTY(shards_of_ranks_of_one_node_train_alike),
      PROPERTY(compressed_shards_train_alike),
      PROPERTY(shards_of_a_device_have_the_bits_of_the_whole),
      PROPERTY(shards_of_16_bits_send_half_the_bytes),
      PROPERTY(so_does_one_of_shards),
      PROPERTY(a_cnn_trains_alike),
      PROPERTY(a_gpt_trains_alike),
  };
  emulated_setup setup = {
      .devices = 1, .kernels = &lcomm_cuda_kernels_table, .seed = 11, .pause_us_max = 50};
  lcomm_device_replace(emulated_begin(&setup));
  device_replace(emulated_trainer_open);
  int failed =
      mpi_property_main_threads(&argc, &argv, properties, sizeof properties / sizeof properties[0]);
  (void)emulated_end(); /* joins the threads of streams */
  return failed;
}
