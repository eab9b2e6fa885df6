/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "trainer/train_shard_plan.h"

static const struct {
  const char *name;
  layer_shape input;
  int classes;
} models[] = {{"cnn", {1, 28, 28}, 10},
              {"mlp", {1, 28, 28}, 10},
              {"resnet", {1, 28, 28}, 10},
              {"gpt-nano", {1, 64, 1}, 256}};
enum { MODELS = 4, RANKS_MAX = 7 };

/* A line of cmocka's table: what holds for the plans of each model with each number of ranks. */
#define PLAN_TEST(property)                                                                        \
  {                                                                                                \
    .name = #property, .test_func = test_plans, .initial_state = &(plan_property) { property }     \
  }

typedef struct plan_property {
  void (*holds)(const model *net, int ranks);
} plan_property;

static void test_plans(void **state) {
  const plan_property *property = *state;
  for (int i = 0; i < MODELS; i++) {
    model net;
    assert_int_equal(model_create(models[i].name, models[i].input, models[i].classes, 1, &net), 0);
    for (int ranks = 1; ranks <= RANKS_MAX; ranks++) {
      property->holds(&net, ranks);
    }
    model_destroy(&net);
  }
}

static void make(const model *net, int ranks, int rank, shard_plan *made) {
  assert_int_equal(shard_plan_make(net, ranks, rank, made), 0);
}

static void buckets_are_the_parameters_in_their_order(const model *net, int ranks) {
  shard_plan plan;
  size_t end = 0;
  int parameter = 0;
  make(net, ranks, 0, &plan);
  for (int i = 0; i < plan.bucket_count; i++) {
    const shard_bucket *at = &plan.buckets[i];
    uint64_t sum = 0;
    assert_int_equal(at->offset, end);
    assert_int_equal(at->first, parameter);
    for (int rank = 0; rank < ranks; rank++) {
      sum += at->counts[rank];
    }
    assert_int_equal(sum, at->count);
    assert_true(at->count <= plan.largest);
    end += at->count;
    parameter += at->parameters;
  }
  assert_int_equal(end, net->weight_count);
  assert_int_equal(parameter, net->parameter_count);
  shard_plan_free(&plan);
}

static void all_ranks_have_the_same_plan_and_each_its_own_part(const model *net, int ranks) {
  shard_plan first, plan;
  size_t sum = 0;
  make(net, ranks, 0, &first);
  for (int rank = 0; rank < ranks; rank++) {
    make(net, ranks, rank, &plan);
    assert_int_equal(plan.bucket_count, first.bucket_count);
    for (int i = 0; i < plan.bucket_count; i++) {
      const shard_bucket *at = &plan.buckets[i];
      size_t before = at->offset;
      assert_memory_equal(at->counts, first.buckets[i].counts, (size_t)ranks * sizeof(uint64_t));
      for (int other = 0; other < rank; other++) {
        before += at->counts[other];
      }
      assert_int_equal(at->own_offset, before);
      assert_int_equal(at->own_count, at->counts[rank]);
    }
    sum += plan.count;
    shard_plan_free(&plan);
  }
  assert_int_equal(sum, net->weight_count);
  shard_plan_free(&first);
}

/* Each weight is in one piece of one rank, and blocks are never cut. */
static void each_weight_is_stepped_by_one_rank_in_whole_blocks(const model *net, int ranks) {
  char *seen = test_calloc(net->weight_count, 1);
  for (int rank = 0; rank < ranks; rank++) {
    shard_plan plan;
    size_t end = 0;
    make(net, ranks, rank, &plan);
    assert_true(plan.piece_count <= SHARD_PIECES_MAX);
    for (int i = 0; i < plan.piece_count; i++) {
      const optimizer_piece *piece = &plan.pieces[i];
      const model_parameter *of = &net->parameters[piece->part];
      size_t base = 0;
      for (int k = 0; k < piece->part; k++) {
        base += optimizer_blocks(net->parameters[k].count);
      }
      size_t within = (piece->block - base) * OPTIMIZER_BLOCK;
      assert_int_equal(piece->offset, end);
      end += piece->count;
      assert_true(within + piece->count <= of->count);
      assert_true(piece->count % OPTIMIZER_BLOCK == 0 || within + piece->count == of->count);
      for (size_t k = 0; k < piece->count; k++) {
        assert_int_equal(seen[of->offset + within + k]++, 0);
      }
    }
    assert_int_equal(end, plan.count);
    shard_plan_free(&plan);
  }
  assert_null(memchr(seen, 0, net->weight_count));
  test_free(seen);
}

static void shards_are_about_as_large(const model *net, int ranks) {
  for (int rank = 0; rank < ranks; rank++) {
    shard_plan plan;
    make(net, ranks, rank, &plan);
    size_t fair = net->weight_count / (size_t)ranks;
    size_t slack = (size_t)plan.bucket_count * OPTIMIZER_BLOCK * 2;
    assert_true(plan.count <= fair + slack && plan.count + slack >= fair);
    shard_plan_free(&plan);
  }
}

static void a_bucket_has_the_name_of_its_first_parameter(void **state) {
  (void)state;
  model net;
  shard_plan plan;
  char name[64];
  assert_int_equal(model_create("mlp", models[1].input, 10, 1, &net), 0);
  make(&net, 2, 0, &plan);
  shard_bucket_name(&plan.buckets[0], &net, name, sizeof name);
  assert_string_equal(name, "dense3.weight+1");
  shard_bucket_name(&plan.buckets[1], &net, name, sizeof name);
  assert_string_equal(name, "dense2.weight");
  shard_plan_free(&plan);
  model_destroy(&net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(buckets_are_the_parameters_in_their_order),
      PLAN_TEST(all_ranks_have_the_same_plan_and_each_its_own_part),
      PLAN_TEST(each_weight_is_stepped_by_one_rank_in_whole_blocks),
      PLAN_TEST(shards_are_about_as_large),
      cmocka_unit_test(a_bucket_has_the_name_of_its_first_parameter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
