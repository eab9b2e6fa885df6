/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What launchers set, and what is made of it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "libcomm/base/env.h"
#include "libcomm/bootstrap/launcher_env.h"
#include "tests/support/unit_tests.h"

enum { SETTINGS_MAX = 12 };

/* An environment as a launcher makes it, and what is to be understood. */
typedef struct launch {
  const char *name;
  const char *settings[SETTINGS_MAX]; /* NAME=value, ended by NULL */
  lcomm_launcher_env place;
} launch;

/* A setting that is wrong, and words of the sentence that says so. */
typedef struct mistake {
  const char *settings[SETTINGS_MAX];
  const char *words[4];
} mistake;

static void clear(void) {
  for (int i = 0; i < LCOMM_LAUNCHER_COUNT; i++) {
    unsetenv(lcomm_launcher_table[i].variable);
  }
  unsetenv("LCOMM_TOKEN");
  unsetenv("LCOMM_PORT");
}

static void set(const char *const *settings) {
  clear();
  for (int i = 0; i < SETTINGS_MAX && settings[i]; i++) {
    char name[64];
    const char *equals = strchr(settings[i], '=');
    assert_non_null(equals);
    assert_true((size_t)(equals - settings[i]) < sizeof(name));
    memcpy(name, settings[i], (size_t)(equals - settings[i]));
    name[equals - settings[i]] = '\0';
    setenv(name, equals + 1, 1);
  }
}

static const launch launches[] = {
    {"nothing", {NULL}, {0, 1, NULL, true, "", 0, "", NULL}},
    {"torchrun",
     {"RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=3", "LOCAL_WORLD_SIZE=4", "MASTER_ADDR=node7",
      "MASTER_PORT=29400", "TORCHELASTIC_RUN_ID=run-5", "TORCHELASTIC_USE_AGENT_STORE=True"},
     {3, 8, "WORLD_SIZE", false, "node7", 29401, "run-5", "TORCHELASTIC_RUN_ID"}},
    {"torchrun without a store of its own",
     {"RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=localhost", "MASTER_PORT=29400",
      "TORCHELASTIC_USE_AGENT_STORE=False"},
     {0, 2, "WORLD_SIZE", true, "localhost", 29400, "", NULL}},
    {"torchrun at the last port",
     {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=65535",
      "TORCHELASTIC_USE_AGENT_STORE=True"},
     {0, 2, "WORLD_SIZE", false, "a", 65534, "", NULL}},
    {"torchrun under srun",
     {"RANK=5", "WORLD_SIZE=8", "MASTER_ADDR=a", "MASTER_PORT=1234", "TORCHELASTIC_RUN_ID=r",
      "SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_JOB_ID=77", "SLURM_STEP_ID=0"},
     {5, 8, "WORLD_SIZE", false, "a", 1234, "r", "TORCHELASTIC_RUN_ID"}},
    {"a script's RANK under srun",
     {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=a", "SLURM_PROCID=1", "SLURM_NTASKS=2",
      "SLURM_JOB_ID=77", "SLURM_STEP_ID=0"},
     {1, 2, "WORLD_SIZE", false, "a", LCOMM_PORT_STANDARD, "77", "SLURM_JOB_ID"}},
    {"mpirun of Open MPI on one host",
     {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_SIZE=4",
      "PMIX_NAMESPACE=1007157249"},
     {1, 4, "OMPI_COMM_WORLD_SIZE", true, "127.0.0.1", LCOMM_PORT_STANDARD, "1007157249",
      "PMIX_NAMESPACE"}},
    {"mpirun of Open MPI on two hosts",
     {"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
      "PMIX_NAMESPACE=n", "MASTER_ADDR=fe80::1%eth0", "MASTER_PORT=0"},
     {3, 4, "OMPI_COMM_WORLD_SIZE", false, "fe80::1%eth0", LCOMM_PORT_STANDARD, "n",
      "PMIX_NAMESPACE"}},
    {"mpirun of Open MPI in an allocation of Slurm",
     {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
      "PMIX_NAMESPACE=n", "SLURM_PROCID=0", "SLURM_NTASKS=8", "SLURM_JOB_ID=4"},
     {1, 2, "OMPI_COMM_WORLD_SIZE", true, "127.0.0.1", LCOMM_PORT_STANDARD, "n", "PMIX_NAMESPACE"}},
    {"mpiexec of MPICH",
     {"PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALNRANKS=2", "MPI_LOCALRANKID=1"},
     {1, 2, "PMI_SIZE", true, "127.0.0.1", LCOMM_PORT_STANDARD, "", NULL}},
    {"mpiexec of Intel MPI on hosts",
     {"PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALNRANKS=1", "PMI_JOBID=j", "MASTER_ADDR=h1",
      "MASTER_PORT=5000"},
     {1, 2, "PMI_SIZE", false, "h1", 5000, "j", "PMI_JOBID"}},
    {"srun on one host",
     {"SLURM_PROCID=2", "SLURM_NTASKS=4", "SLURM_STEP_NUM_NODES=1", "SLURM_JOB_ID=99",
      "SLURM_STEP_ID=3"},
     {2, 4, "SLURM_NTASKS", true, "127.0.0.1", LCOMM_PORT_STANDARD, "99.3", "SLURM_JOB_ID"}},
    {"srun on two hosts",
     {"SLURM_PROCID=2", "SLURM_NTASKS=4", "SLURM_STEP_NUM_NODES=2", "SLURM_JOB_ID=99",
      "MASTER_ADDR=n1"},
     {2, 4, "SLURM_NTASKS", false, "n1", LCOMM_PORT_STANDARD, "99", "SLURM_JOB_ID"}},
    {"two ranks by hand, on one host as it seems",
     {"RANK=1", "WORLD_SIZE=2"},
     {1, 2, "WORLD_SIZE", true, "127.0.0.1", LCOMM_PORT_STANDARD, "", NULL}},
    {"an allocation without srun",
     {"SLURM_NTASKS=4", "SLURM_JOB_ID=99"},
     {0, 1, NULL, true, "", 0, "", NULL}},
    {"a world of one needs no address",
     {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1", "MASTER_PORT=nonsense"},
     {0, 1, "OMPI_COMM_WORLD_SIZE", true, "", 0, "", NULL}},
    {"the library's own variables come first",
     {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=77", "LCOMM_PORT=88",
      "LCOMM_TOKEN=secret", "TORCHELASTIC_RUN_ID=r", "TORCHELASTIC_USE_AGENT_STORE=True"},
     {0, 2, "WORLD_SIZE", false, "a", 88, "secret", "LCOMM_TOKEN"}},
    {"empty variables count as unset",
     {"RANK=", "WORLD_SIZE=", "PMI_RANK=0", "PMI_SIZE=2", "MASTER_ADDR=a",
      "LCOMM_TOKEN=", "LCOMM_PORT="},
     {0, 2, "PMI_SIZE", false, "a", LCOMM_PORT_STANDARD, "", NULL}},
};

static void assert_text(const char *got, const char *wanted) {
  assert_string_equal(got ? got : "(none)", wanted ? wanted : "(none)");
}

static void every_launcher_is_understood(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(launches) / sizeof(launches[0]); i++) {
    const lcomm_launcher_env *wanted = &launches[i].place;
    lcomm_why why = {.text = ""};
    lcomm_launcher_env place;
    set(launches[i].settings);
    lcomm_status status = lcomm_launcher_env_read(&place, &why);
    if (status != LCOMM_OK || place.rank != wanted->rank || place.port != wanted->port) {
      print_error("%s: %s\n", launches[i].name, why.text);
    }
    assert_int_equal(status, LCOMM_OK);
    assert_int_equal(place.rank, wanted->rank);
    assert_int_equal(place.world_size, wanted->world_size);
    assert_int_equal(place.one_host, wanted->one_host);
    assert_int_equal(place.port, wanted->port);
    assert_string_equal(place.address, wanted->address);
    assert_memory_equal(place.token, wanted->token, sizeof(place.token));
    assert_text(place.token_from, wanted->token_from);
    assert_text(place.size_from, wanted->size_from);
  }
  clear();
}

static const mistake mistakes[] = {
    {{"RANK=1"}, {"RANK=1 is set and WORLD_SIZE is not", "WORLD_SIZE=4"}},
    {{"WORLD_SIZE=4"}, {"WORLD_SIZE=4 is set and RANK is not", "RANK=0"}},
    {{"PMI_SIZE=4"}, {"PMI_SIZE=4 is set and PMI_RANK is not"}},
    {{"SLURM_PROCID=0"}, {"SLURM_PROCID=0 is set and SLURM_NTASKS is not"}},
    {{"RANK=4", "WORLD_SIZE=4"}, {"RANK=4 is outside", "WORLD_SIZE=4", "RANK=3"}},
    {{"RANK=two", "WORLD_SIZE=4"}, {"RANK=two is no number", "RANK=0"}},
    {{"RANK=-1", "WORLD_SIZE=4"}, {"RANK=-1 is no number"}},
    {{"RANK= 1", "WORLD_SIZE=4"}, {"RANK= 1 is no number"}},
    {{"RANK=1", "WORLD_SIZE=0"}, {"WORLD_SIZE=0 is no number from 1", "WORLD_SIZE=4"}},
    {{"RANK=1", "WORLD_SIZE=99999999999999999999"}, {"WORLD_SIZE=9999", "is no number"}},
    {{"RANK=1", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=1"},
     {"MASTER_ADDR is not set", "LOCAL_WORLD_SIZE", "MASTER_ADDR=node1"}},
    {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_SIZE=2"},
     {"MASTER_ADDR is not set", "OMPI_COMM_WORLD_LOCAL_SIZE", "all 4 ranks"}},
    {{"SLURM_PROCID=1", "SLURM_NTASKS=4", "SLURM_STEP_NUM_NODES=2"}, {"MASTER_ADDR is not set"}},
    {{"RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=4", "MASTER_ADDR=a"},
     {"LOCAL_WORLD_SIZE=4 is more than WORLD_SIZE=2"}},
    {{"RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=x", "MASTER_ADDR=a"},
     {"LOCAL_WORLD_SIZE=x is no number"}},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=70000"},
     {"MASTER_PORT=70000 is no number from 0 to 65535", "MASTER_PORT=29600"}},
    {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "LCOMM_PORT=http"}, {"LCOMM_PORT=http"}},
};

static void mistakes_are_named_with_their_value_and_an_example(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
    lcomm_why why = {.text = ""};
    lcomm_launcher_env place;
    set(mistakes[i].settings);
    assert_int_equal(lcomm_launcher_env_read(&place, &why), LCOMM_ERR_ARGUMENT);
    for (int k = 0; k < 4 && mistakes[i].words[k]; k++) {
      if (!strstr(why.text, mistakes[i].words[k])) {
        print_error("no '%s' in: %s\n", mistakes[i].words[k], why.text);
      }
      assert_non_null(strstr(why.text, mistakes[i].words[k]));
    }
  }
  clear();
}

static void texts_that_are_too_long_are_refused(void **state) {
  (void)state;
  static const char *const plain[] = {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", NULL};
  static const char *const variables[] = {"LCOMM_TOKEN", "MASTER_ADDR"};
  char text[1000];
  lcomm_why why;
  lcomm_launcher_env place;
  memset(text, 'x', sizeof(text));
  text[sizeof(text) - 1] = '\0';
  for (int i = 0; i < 2; i++) {
    set(plain);
    setenv(variables[i], text, 1);
    assert_int_equal(lcomm_launcher_env_read(&place, &why), LCOMM_ERR_ARGUMENT);
    assert_non_null(strstr(why.text, variables[i]));
    setenv(variables[i], text + sizeof(text) - 256, 1);
    assert_int_equal(lcomm_launcher_env_read(&place, &why), LCOMM_OK);
  }
  clear();
}

static void every_variable_of_a_launcher_has_a_help(void **state) {
  (void)state;
  for (int i = 0; i < LCOMM_LAUNCHER_COUNT; i++) {
    assert_true(strlen(lcomm_launcher_table[i].variable) > 3);
    assert_true(strlen(lcomm_launcher_table[i].standard) > 3);
    assert_true(strlen(lcomm_launcher_table[i].help) > 3);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_launcher_is_understood),
    cmocka_unit_test(mistakes_are_named_with_their_value_and_an_example),
    cmocka_unit_test(texts_that_are_too_long_are_refused),
    cmocka_unit_test(every_variable_of_a_launcher_has_a_help),
};
RUN_TESTS(tests)
