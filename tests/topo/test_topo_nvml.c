/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What NVML says of GPUs and their links, with an NVML of our own. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/unit_tests.h"
#include "tests/topo/nvml_fake.h"

static lcomm_gpus survey_with(const lcomm_nvml *nvml) {
  static lcomm_gpus gpus;
  lcomm_gpus_survey(nvml, &gpus);
  assert_int_equal(fake.started, 0);
  assert_true((gpus.count == 0) == (gpus.why.text[0] != '\0'));
  return gpus;
}

static lcomm_gpus survey_fake(void) {
  return survey_with(&fake_nvml);
}

static void a_library_that_is_not_there_is_named(void **state) {
  (void)state;
  lcomm_why why = {""};
  lcomm_nvml nvml;
  assert_false(lcomm_nvml_open("libno-such-nvml.so.1", &nvml, &why));
  assert_non_null(strstr(why.text, "libno-such-nvml.so.1"));
  assert_null(nvml.init);
}

static void a_library_without_the_functions_gives_no_gpus(void **state) {
  (void)state;
  lcomm_why why = {""};
  lcomm_nvml nvml;
  fake_machine(1);
  assert_true(lcomm_nvml_open("libm.so.6", &nvml, &why));
  assert_null(nvml.init);
  assert_non_null(strstr(survey_with(&nvml).why.text, "lacks the functions"));
}

static void names_ids_and_uuids_are_made_safe_and_equal(void **state) {
  (void)state;
  char text[LCOMM_PCI_TEXT_MAX];
  fake_machine(2);
  fake.gpu[1].uuid = NULL;
  lcomm_gpus gpus = survey_fake();
  assert_int_equal(gpus.count, 2);
  assert_string_equal(lcomm_pci_format(gpus.gpu[1].pci, text), "0000:11:00.0");
  assert_string_equal(gpus.gpu[0].name, "GPU of 00000000:10:00.0?");
  assert_int_equal(gpus.gpu[0].uuid[3], 1);
  assert_int_equal(gpus.gpu[0].uuid[15], 10);
  assert_true(lcomm_uuid_is_zero(gpus.gpu[1].uuid));
  assert_int_equal(gpus.gpu[1].index, 1);
}

static void a_gpu_that_cannot_be_read_is_left_out(void **state) {
  (void)state;
  fake_machine(3);
  fake.gpu[1].pci = "no id";
  lcomm_gpus gpus = survey_fake();
  assert_int_equal(gpus.count, 2);
  assert_int_equal(gpus.gpu[1].index, 2);
  fake.gpu[0].pci = NULL;
  assert_int_equal(survey_fake().count, 1);
}

static void more_gpus_than_there_is_room_for_are_left_out(void **state) {
  (void)state;
  fake_machine(FAKE_GPUS_MAX);
  assert_int_equal(survey_fake().count, LCOMM_GPUS_MAX);
}

static void direct_links_are_counted_by_their_end(void **state) {
  (void)state;
  fake_machine(4);
  fake_join(0, 1, 0, 4);
  fake_join(0, 2, 4, 2);
  fake.gpu[0].links[5].active = false; /* down */
  fake.gpu[0].links[3].not_p2p = true; /* for something else */
  lcomm_gpus gpus = survey_fake();
  assert_int_equal(gpus.gpu[0].nvlinks[1], 3);
  assert_int_equal(gpus.gpu[1].nvlinks[0], 4);
  assert_int_equal(gpus.gpu[0].nvlinks[2], 1);
  assert_int_equal(gpus.gpu[0].nvlinks[3], 0);
  assert_int_equal(gpus.gpu[0].switched, 0);
  assert_true(lcomm_gpus_nvlink(&gpus, 0, 1));
  assert_false(lcomm_gpus_nvlink(&gpus, 1, 2));
}

static void links_into_switches_join_all_gpus(void **state) {
  (void)state;
  static const struct {
    int type;
    const char *pci;
  } ends[] = {{LCOMM_NVML_REMOTE_SWITCH, "00000000:05:00.0"},
              {LCOMM_NVML_REMOTE_SWITCH, NULL},
              {LCOMM_NVML_REMOTE_UNKNOWN, "fffffff:ffff:ff"},
              {LCOMM_NVML_REMOTE_UNKNOWN, NULL}};
  for (size_t i = 0; i < sizeof(ends) / sizeof *ends; i++) {
    fake_machine(8);
    fake_switch(18, ends[i].type, ends[i].pci);
    lcomm_gpus gpus = survey_fake();
    for (int a = 0; a < 8; a++) {
      assert_int_equal(gpus.gpu[a].switched, 18);
      assert_true(a == 0 || lcomm_gpus_nvlink(&gpus, 0, a));
    }
  }
}

/* A GPU that this process may not see, and a processor of IBM's. */
static void other_ends_are_neither_gpu_nor_switch(void **state) {
  (void)state;
  fake_machine(2);
  fake_switch(6, LCOMM_NVML_REMOTE_GPU, "00000000:EE:00.0");
  fake.gpu[0].links[0] = (fake_link){.active = true, .type = 1, .pci = "0004:04:00.0"};
  fake.gpu[0].links[1] = (fake_link){.active = true, .pci = fake.gpu[0].pci}; /* itself */
  lcomm_gpus gpus = survey_fake();
  assert_int_equal(gpus.gpu[0].switched, 0);
  assert_int_equal(gpus.gpu[0].nvlinks[0], 0);
  assert_false(lcomm_gpus_nvlink(&gpus, 0, 1));
}

static void older_drivers_tell_the_state_by_a_function(void **state) {
  (void)state;
  fake_machine(2);
  fake_join(0, 1, 0, 4);
  fake.fields_fail = true;
  assert_int_equal(survey_fake().gpu[0].nvlinks[1], 4);
  lcomm_nvml nvml = fake_nvml;
  nvml.fields = NULL;
  assert_int_equal(survey_with(&nvml).gpu[0].nvlinks[1], 4);
}

static void peers_must_be_read_and_written(void **state) {
  (void)state;
  fake_machine(3);
  fake_join(0, 1, 0, 4);
  fake.gpu[0].p2p_status[0][1] = 4;
  fake.gpu[2].p2p_status[1][0] = 1;
  lcomm_gpus gpus = survey_fake();
  assert_false(gpus.gpu[0].p2p[1] || gpus.gpu[2].p2p[0] || gpus.gpu[0].p2p[0]);
  assert_true(gpus.gpu[1].p2p[0] && gpus.gpu[0].p2p[2] && gpus.gpu[1].p2p[2]);
  assert_false(lcomm_gpus_nvlink(&gpus, 0, 1));
}

static void only_a_completed_fabric_counts(void **state) {
  (void)state;
  fake_machine(4);
  for (int i = 0; i < 4; i++) {
    fake.gpu[i].fabric = (lcomm_nvml_fabric){.state = LCOMM_NVML_FABRIC_COMPLETED, .clique = 9};
    fake.gpu[i].fabric.cluster[5] = 0x77;
  }
  fake.gpu[1].fabric.state = LCOMM_NVML_FABRIC_COMPLETED - 1;
  fake.gpu[2].fabric.error = FAKE_ERROR;
  fake.gpu[3].fabric.cluster[5] = 0; /* one host alone */
  lcomm_gpus gpus = survey_fake();
  assert_int_equal(gpus.gpu[0].cluster[5], 0x77);
  assert_int_equal(gpus.gpu[0].clique, 9);
  for (int i = 1; i < 4; i++) {
    assert_true(lcomm_uuid_is_zero(gpus.gpu[i].cluster));
    assert_int_equal(gpus.gpu[i].clique, 0);
  }
}

static void failures_are_explained(void **state) {
  (void)state;
  fake_machine(2);
  fake.init_error = FAKE_ERROR;
  assert_non_null(strstr(survey_fake().why.text, "does not start (a fake error)"));
  lcomm_nvml nvml = fake_nvml;
  nvml.explain = NULL;
  assert_non_null(strstr(survey_with(&nvml).why.text, "no reason given"));
  fake.init_error = 0;
  fake.count_error = FAKE_ERROR;
  assert_non_null(strstr(survey_fake().why.text, "cannot count the GPUs (a fake error)"));
  fake_machine(0);
  assert_non_null(strstr(survey_fake().why.text, "shows no GPU"));
}

/* A driver may lack any function; what it told is then unknown. */
static void every_function_may_be_missing(void **state) {
  (void)state;
  for (size_t place = 0; place < sizeof(lcomm_nvml); place += sizeof(void *)) {
    lcomm_nvml nvml = fake_nvml;
    fake_machine(2);
    fake_join(0, 1, 0, 4);
    memset((char *)&nvml + place, 0, sizeof(void *));
    lcomm_gpus gpus;
    lcomm_gpus_survey(&nvml, &gpus);
    bool needed = place == offsetof(lcomm_nvml, init) || place == offsetof(lcomm_nvml, count) ||
                  place == offsetof(lcomm_nvml, by_index) || place == offsetof(lcomm_nvml, pci);
    assert_int_equal(gpus.count, needed ? 0 : 2);
    bool linked = place != offsetof(lcomm_nvml, p2p) && !needed;
    assert_int_equal(gpus.count == 2 && gpus.gpu[0].p2p[1], linked);
  }
}

static void this_host_is_looked_at_once(void **state) {
  (void)state;
  const lcomm_gpus *here = lcomm_gpus_here();
  assert_ptr_equal(here, lcomm_gpus_here());
  assert_true(here->count > 0 || here->why.text[0] != '\0');
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_library_that_is_not_there_is_named),
    cmocka_unit_test(a_library_without_the_functions_gives_no_gpus),
    cmocka_unit_test(names_ids_and_uuids_are_made_safe_and_equal),
    cmocka_unit_test(a_gpu_that_cannot_be_read_is_left_out),
    cmocka_unit_test(more_gpus_than_there_is_room_for_are_left_out),
    cmocka_unit_test(direct_links_are_counted_by_their_end),
    cmocka_unit_test(links_into_switches_join_all_gpus),
    cmocka_unit_test(other_ends_are_neither_gpu_nor_switch),
    cmocka_unit_test(older_drivers_tell_the_state_by_a_function),
    cmocka_unit_test(peers_must_be_read_and_written),
    cmocka_unit_test(only_a_completed_fabric_counts),
    cmocka_unit_test(failures_are_explained),
    cmocka_unit_test(every_function_may_be_missing),
    cmocka_unit_test(this_host_is_looked_at_once),
};
RUN_TESTS(tests)
