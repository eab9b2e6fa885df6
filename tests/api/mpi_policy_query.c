/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 4 */

/* What lcomm_policy_query() says of a call is what the call then does. A NaN tells: only sums
 * that go through a lossy codec are looked through for it. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/wire.h"
#include "tests/support/mpi_property.h"

enum { COUNT = 6000 };

static float values[4 * COUNT], result[4 * COUNT];

static const lcomm_dtype types[] = {LCOMM_FLOAT32, LCOMM_BFLOAT16, LCOMM_INT32};

/* Not a number in all floating-point types of `types`. */
static void fill(void) {
  fill_gradient(values, 4 * COUNT, 7);
  memset(values, 0xff, 64);
}

/* Make the call; did it go through a lossy codec? */
static bool was_lossy(lcomm_comm *comm, lcomm_call_kind kind, uint64_t count, lcomm_dtype dtype,
                      lcomm_op op) {
  lcomm_request request = {0};
  lcomm_stats stats;
  lcomm_stats_reset(comm);
  lcomm_status status =
      kind == LCOMM_CALL_ALLREDUCE
          ? lcomm_iallreduce(comm, values, result, count, dtype, op, &request)
          : lcomm_ireduce_scatter(comm, values, result, count, dtype, op, &request);
  status = status == LCOMM_OK ? lcomm_wait(comm, &request) : status;
  require(status == LCOMM_OK, "%s", lcomm_last_error(comm));
  lcomm_stats_get(comm, &stats);
  uint64_t most = stats.not_finite; /* of a reduce-scatter, rank 0 has them */
  MPI_Bcast(&most, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  return most > 0;
}

static void check_call(lcomm_comm *comm, lcomm_call_kind kind, uint64_t count, lcomm_dtype dtype,
                       lcomm_op op) {
  const char *why = NULL;
  lcomm_selection choice = lcomm_policy_query(comm, kind, count, dtype, op, &why);
  bool lossy = was_lossy(comm, kind, count, dtype, op);
  bool alone = mpi_size == 1 && choice == LCOMM_SELECT_NONE; /* has no codec to go through */
  require(alone || lossy == (choice == LCOMM_SELECT_LOSSY),
          "'%s', %d nodes, %s of %d %s, operation %d: choice %d, %s (%s)",
          lcomm_policy_string(comm), lcomm_nodes(comm), lcomm_call_name(kind), (int)count,
          lcomm_dtype_name(dtype), (int)op, (int)choice, lossy ? "lossy" : "exact", why);
  require((why[0] == '\0') == (choice == LCOMM_SELECT_LOSSY || choice == LCOMM_SELECT_EF),
          "choice %d because '%s'", (int)choice, why);
  require(lcomm_policy_query(comm, kind, count, dtype, op, NULL) == choice,
          "another choice without why");
  require(equal_everywhere(choice), "the ranks choose differently");
}

static void calls_are_lossy_exactly_when_they_were_called_so(void) {
  static const char *const policies[] = {
      "net=none min=1K",
      "net=int8 min=1K",
      "net=none+zstd min=1K",
      "net=int8+ef min=1K",
      "net=bf16 node=bf16 min=1K",
      "net=topk:0.5+ef node=int8 min=1K",
      "net=int8 min=1K match=op=sum&count>=5000,comm=grad*&size<=2K",
      "net=int8 min=1K match=ranks>=5,call=reduce-scatter,op=avg"};
  const int nodes[] = {1, mpi_size > 1 ? 2 : 1, mpi_size};
  fill();
  for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++) {
    for (int n = 0; n < 3; n++) {
      lcomm_comm *comm = make_comm(policies[p], nodes[n]);
      if (p % 2 == 0) { /* others are never named */
        require(lcomm_name_set(comm, "gradients") == LCOMM_OK, "no name");
      }
      for (int i = 0; i < 2 * 3 * 3 * 2; i++) { /* counts, types, operations, kinds */
        lcomm_op op = i / 6 % 3 == 2 ? LCOMM_MAX : (lcomm_op)(i / 6 % 3);
        check_call(comm, (lcomm_call_kind)(i / 18), i % 2 ? COUNT : 512, types[i / 2 % 3], op);
      }
      require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
    }
  }
}

static void calls_that_do_not_exist_are_left(void) {
  lcomm_comm *comm = make_comm("net=int8 node=int8 min=0", 1);
  static const struct {
    int kind, dtype, op;
  } bad[] = {{LCOMM_CALL_KINDS, 0, 0}, {-1, 0, 0}, {0, 6, 0}, {0, -1, 0}, {0, 0, 4}, {0, 0, -1}};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    const char *why = NULL;
    lcomm_selection choice =
        lcomm_policy_query(comm, (lcomm_call_kind)bad[i].kind, COUNT, (lcomm_dtype)bad[i].dtype,
                           (lcomm_op)bad[i].op, &why);
    require(choice == LCOMM_SELECT_NONE && why[0] != '\0', "call %d was chosen", (int)i);
  }
  require(lcomm_policy_query(NULL, LCOMM_CALL_ALLREDUCE, COUNT, LCOMM_FLOAT32, LCOMM_SUM, NULL) ==
              LCOMM_SELECT_NONE,
          "a call without a communicator was chosen");
  lcomm_destroy(comm);
}

/* ------------------------------------------------------------------- names */

static lcomm_selection choose_sum(const lcomm_comm *comm) {
  return lcomm_policy_query(comm, LCOMM_CALL_ALLREDUCE, COUNT, LCOMM_FLOAT32, LCOMM_SUM, NULL);
}

static void a_name_counts_until_the_first_operation(void) {
  lcomm_comm *comm = make_comm("net=int8 min=1K match=comm=grad*", mpi_size > 1 ? 2 : 1);
  char text[2048];
  fill();
  require(choose_sum(comm) == LCOMM_SELECT_NONE, "chosen without a name");
  require(lcomm_name_set(comm, "gradients") == LCOMM_OK, "%s", lcomm_last_error(comm));
  require(mpi_size == 1 || choose_sum(comm) == LCOMM_SELECT_LOSSY, "not chosen by its name");
  require(lcomm_plan_print(comm, COUNT, LCOMM_FLOAT32, 0, text, sizeof(text)) == LCOMM_OK, "%s",
          lcomm_last_error(comm));
  require(mpi_size == 1 || strstr(text, "int8"), "the plan does not know the name: %s", text);
  require(lcomm_name_set(comm, "logits") == LCOMM_OK, "%s", lcomm_last_error(comm));
  require(choose_sum(comm) == LCOMM_SELECT_NONE, "chosen by a former name");
  require(!was_lossy(comm, LCOMM_CALL_ALLREDUCE, COUNT, LCOMM_FLOAT32, LCOMM_SUM), "compressed");
  require(lcomm_name_set(comm, "gradients") == LCOMM_ERR_STATE, "a name was changed too late");
  require(strstr(lcomm_last_error(comm), "logits") != NULL, "%s", lcomm_last_error(comm));
  require(choose_sum(comm) == LCOMM_SELECT_NONE, "chosen by a name that was refused");
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

static void a_step_of_tensors_ends_the_time_for_names_too(void) {
  lcomm_comm *comm = make_comm("net=none", 1);
  lcomm_tensor *tensor = NULL;
  lcomm_tensor_add(comm, "w", result, 10, LCOMM_FLOAT32, LCOMM_AVG, &tensor);
  require(lcomm_name_set(comm, "x") == LCOMM_OK, "%s", lcomm_last_error(comm));
  lcomm_tensor_ready(comm, tensor);
  require(lcomm_tensors_wait(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
  require(lcomm_name_set(comm, "y") == LCOMM_ERR_STATE, "a name was changed too late");
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

static void long_names_are_cut(void) {
  char name[300], policy[300] = "net=int8 min=1K match=comm=";
  lcomm_comm *comm = NULL;
  memset(name, 'n', sizeof(name) - 1);
  name[sizeof(name) - 1] = '\0';
  memset(policy + strlen(policy), 'n', 127);
  comm = make_comm(policy, mpi_size > 1 ? 2 : 1);
  require(lcomm_name_set(comm, name) == LCOMM_OK, "%s", lcomm_last_error(comm));
  require(mpi_size == 1 || choose_sum(comm) == LCOMM_SELECT_LOSSY, "the name is not 127 bytes");
  require(lcomm_name_set(comm, NULL) == LCOMM_ERR_ARGUMENT, "no name is a name");
  require(lcomm_name_set(NULL, name) == LCOMM_ERR_ARGUMENT, "named nothing");
  lcomm_destroy(comm);
}

static void names_that_differ_are_an_error_not_a_hang(void) {
  lcomm_comm *comm = make_comm("net=int8 min=1K match=comm=a", 2);
  lcomm_name_set(comm, mpi_rank == 1 ? "b" : "a");
  lcomm_status status = lcomm_allreduce(comm, values, result, COUNT, LCOMM_FLOAT32, LCOMM_SUM);
  status = status == LCOMM_OK ? lcomm_barrier(comm) : status;
  require(status == LCOMM_ERR_MISMATCH, "%s", lcomm_status_name(status));
  lcomm_destroy(comm);
}

/* A run is kept for the next call of its shape: an average is not the same shape as a
 * sum where a rule parts them. */
static void averages_do_not_take_the_kept_runs_of_sums(void) {
  lcomm_comm *comm = make_comm("net=int8 min=1K match=op=sum", mpi_size > 1 ? 2 : 1);
  fill();
  for (int i = 0; i < 3; i++) {
    bool sum = was_lossy(comm, LCOMM_CALL_ALLREDUCE, COUNT, LCOMM_FLOAT32, LCOMM_SUM);
    bool average = was_lossy(comm, LCOMM_CALL_ALLREDUCE, COUNT, LCOMM_FLOAT32, LCOMM_AVG);
    require(sum == (mpi_size > 1), "sum %d was %s", i, sum ? "lossy" : "exact");
    require(!average, "average %d was lossy", i);
  }
  lcomm_destroy(comm);
}

/* ------------------------------------------------------------------- bytes */

static uint64_t sent_between_nodes(lcomm_comm *comm, uint64_t count) {
  lcomm_stats stats;
  lcomm_stats_reset(comm);
  lcomm_status status = lcomm_allreduce(comm, values, result, count, LCOMM_FLOAT32, LCOMM_SUM);
  require(status == LCOMM_OK, "%s", lcomm_last_error(comm));
  lcomm_stats_get(comm, &stats);
  return stats.sent_bytes[LCOMM_LINK_NET] -
         stats.sent_messages[LCOMM_LINK_NET] * LCOMM_WIRE_HEADER_SIZE;
}

static void bytes_of_a_call_are_those_that_it_sends(void) {
  static const char *const policies[] = {"net=int8", "net=none", "net=int8+ef",
                                         "net=bf16 match=ranks>=100"};
  int nodes = mpi_size > 1 ? 2 : 1;
  fill_gradient(values, 4 * COUNT, 7);
  for (int p = 0; p < 4; p++) {
    lcomm_comm *comm = make_comm(policies[p], nodes), *plain = make_comm("net=none", nodes);
    uint64_t sent = 1, exact = 1, error_feedback = 1, same = 1;
    const uint64_t count = 4 * COUNT;
    lcomm_status status = lcomm_call_bytes(comm, LCOMM_CALL_ALLREDUCE, count, LCOMM_FLOAT32,
                                           LCOMM_SUM, 0, &sent, &exact);
    require(status == LCOMM_OK, "%s", lcomm_last_error(comm));
    require(sent == sent_between_nodes(comm, count), "'%s': %d bytes", policies[p], (int)sent);
    require(exact == sent_between_nodes(plain, count), "'%s': %d exact bytes", policies[p],
            (int)exact);
    require(mpi_size == 1 || (sent < exact) == (p == 0), "'%s': %d of %d bytes", policies[p],
            (int)sent, (int)exact);
    status = lcomm_call_bytes(comm, LCOMM_CALL_ALLREDUCE, count, LCOMM_FLOAT32, LCOMM_AVG, 1,
                              &error_feedback, &same);
    require(status == LCOMM_OK && same == exact, "%s", lcomm_last_error(comm));
    require(mpi_size == 1 || (error_feedback < exact) == (p != 1),
            "'%s': %d of %d bytes with a residual", policies[p], (int)error_feedback, (int)exact);
    lcomm_destroy(plain);
    lcomm_destroy(comm);
  }
}

static void bytes_of_calls_that_cannot_be_are_refused(void) {
  lcomm_comm *comm = make_comm("net=int8+ef", 1);
  uint64_t sent = 7, exact = 7;
  static const struct {
    int kind, dtype, op, error_feedback;
    uint64_t count;
  } bad[] = {{4, 0, 0, 0, 9}, {0, 9, 0, 0, 9}, {0, 0, 4, 0, 9},
             {2, 0, 0, 1, 9}, {0, 3, 0, 1, 9}, {0, 0, 0, 0, UINT64_MAX / 8}};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    lcomm_status status = lcomm_call_bytes(comm, (lcomm_call_kind)bad[i].kind, bad[i].count,
                                           (lcomm_dtype)bad[i].dtype, (lcomm_op)bad[i].op,
                                           bad[i].error_feedback, &sent, &exact);
    require(status == LCOMM_ERR_ARGUMENT && lcomm_last_error(comm)[0] != '\0', "call %d: %s",
            (int)i, lcomm_status_name(status));
  }
  require(sent == 7 && exact == 7, "outputs were written");
  require(lcomm_call_bytes(comm, LCOMM_CALL_ALLREDUCE, 9, LCOMM_FLOAT32, LCOMM_SUM, 0, NULL,
                           &exact) == LCOMM_ERR_ARGUMENT,
          "nowhere to write");
  require(lcomm_barrier(comm) == LCOMM_OK, "a refusal stuck: %s", lcomm_last_error(comm));
  lcomm_destroy(comm);
}

/* ------------------------------------------------------------------- facts */

static lcomm_policy_facts facts_of(const char *policy) {
  lcomm_policy_facts facts = {0};
  lcomm_comm *comm = make_comm(policy, 1);
  require(lcomm_policy_facts_get(comm, &facts) == LCOMM_OK, "%s", lcomm_last_error(comm));
  lcomm_destroy(comm);
  return facts;
}

static void facts_are_those_of_the_policy(void) {
  lcomm_policy_facts facts = facts_of("");
  require(facts.min_bytes == 65536 && !facts.lossy && !facts.error_feedback && !facts.uses_names &&
              facts.step_calls == 0,
          "facts of the default");
  facts = facts_of("net=topk:0.1+ef min=5 match=size>=1,comm=a step=17");
  require(facts.min_bytes == 5 && facts.lossy == 1 && facts.error_feedback == 1 &&
              facts.uses_names == 1 && facts.step_calls == 17,
          "facts of all words");
  facts = facts_of("net=none+zstd node=bf16 match=size>=1");
  require(facts.lossy && !facts.error_feedback && !facts.uses_names, "facts of a node's codec");
  facts = facts_of("net=none+zstd");
  require(!facts.lossy, "what is lossless is lossy");
  require(lcomm_policy_facts_get(NULL, &facts) == LCOMM_ERR_ARGUMENT, "facts of nothing");
}

static const mpi_property properties[] = {
    PROPERTY(calls_are_lossy_exactly_when_they_were_called_so),
    PROPERTY(calls_that_do_not_exist_are_left),
    PROPERTY(a_name_counts_until_the_first_operation),
    PROPERTY(a_step_of_tensors_ends_the_time_for_names_too),
    PROPERTY(long_names_are_cut),
    PROPERTY_OF(2, names_that_differ_are_an_error_not_a_hang),
    PROPERTY(averages_do_not_take_the_kept_runs_of_sums),
    PROPERTY(bytes_of_a_call_are_those_that_it_sends),
    PROPERTY(bytes_of_calls_that_cannot_be_are_refused),
    PROPERTY(facts_are_those_of_the_policy),
};
RUN_PROPERTIES(mpi_property_main, properties)
