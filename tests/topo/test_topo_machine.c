/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Where devices are plugged in, from a /sys and an NVML of our own. */

#include <sched.h>

#include "tests/topo/sysfs_tree.h"

#include "libcomm/topo/machine.h"
#include "tests/support/unit_tests.h"
#include "tests/topo/nvml_fake.h"

static char root[] = "/tmp/lcomm-sysfs-XXXXXX";

static int make_tree(void **state) {
  (void)state;
  sysfs_tree_make("sysfs.tree", root);
  return 0;
}

static int remove_made_tree(void **state) {
  (void)state;
  remove_tree(root);
  return 0;
}

static lcomm_pci_place place_of(const char *pci) {
  lcomm_pci_place place;
  lcomm_sysfs_place(root, lcomm_pci_parse(pci, strlen(pci)), &place);
  return place;
}

static void distances_follow_the_common_parent(void **state) {
  (void)state;
  static const struct {
    const char *a, *b;
    lcomm_pci_distance expected;
  } cases[] = {{"0000:1b:00.0", "0000:1b:00.0", LCOMM_PCI_SAME},
               {"0000:1b:00.0", "0000:43:00.0", LCOMM_PCI_SWITCH},
               {"0000:a0:00.0", "0000:a0:00.1", LCOMM_PCI_SWITCH},
               {"0000:9d:00.0", "0000:a0:00.1", LCOMM_PCI_ROOT},
               {"0000:1b:00.0", "0000:52:00.0", LCOMM_PCI_ROOT},
               {"0000:1b:00.0", "0000:61:00.0", LCOMM_PCI_SOCKET},
               {"0000:1b:00.0", "0000:9d:00.0", LCOMM_PCI_SYSTEM},
               {"0000:1b:00.0", "0000:77:00.0", LCOMM_PCI_UNKNOWN},
               {"0000:ff:00.0", "0000:1b:00.0", LCOMM_PCI_UNKNOWN}};
  for (size_t i = 0; i < sizeof(cases) / sizeof *cases; i++) {
    lcomm_pci_place a = place_of(cases[i].a), b = place_of(cases[i].b);
    assert_int_equal(lcomm_pci_distance_between(&a, &b), cases[i].expected);
    assert_int_equal(lcomm_pci_distance_between(&b, &a), cases[i].expected);
  }
  assert_int_equal(place_of("0000:9d:00.0").numa_node, 1);
  assert_int_equal(place_of("0000:77:00.0").numa_node, -1);
  assert_string_equal(lcomm_pci_distance_name(LCOMM_PCI_SOCKET), "socket");
  assert_string_equal(lcomm_pci_distance_name((lcomm_pci_distance)77), "unknown");
}

static void two_root_complexes_without_numa_are_unknown(void **state) {
  (void)state;
  lcomm_pci_place a = place_of("0000:1b:00.0"), b = place_of("0000:9d:00.0");
  a.numa_node = -1;
  assert_int_equal(lcomm_pci_distance_between(&a, &b), LCOMM_PCI_UNKNOWN);
}

static void interfaces_are_listed_with_speed_and_place(void **state) {
  (void)state;
  static const struct {
    const char *name, *pci;
    int64_t speed_mbit_s;
    int numa_node;
    bool infiniband;
  } expected[] = {{"eth0", "0000:a0:00.0", 25000, 1, false},
                  {"eth1", "0000:a1:00.0", -1, -1, false}, /* virtio, below its PCI device */
                  {"veth7", "none", 10000, -1, false},
                  {"mlx5_0", "0000:1a:00.0", 400000, 0, true},
                  {"mlx5_1", "0000:a0:00.0", 2500, 1, true}};
  lcomm_nic nics[LCOMM_NICS_MAX];
  char text[LCOMM_PCI_TEXT_MAX];
  assert_int_equal(lcomm_sysfs_nics(root, nics), 5);
  for (int i = 0; i < 5; i++) {
    assert_string_equal(nics[i].name, expected[i].name);
    assert_string_equal(lcomm_pci_format(nics[i].pci, text), expected[i].pci);
    assert_int_equal(nics[i].speed_mbit_s, expected[i].speed_mbit_s);
    assert_int_equal(nics[i].place.numa_node, expected[i].numa_node);
    assert_int_equal(nics[i].infiniband, expected[i].infiniband);
  }
}

static void an_interface_is_found_by_its_name(void **state) {
  (void)state;
  lcomm_nic nic;
  lcomm_sysfs_interface(root, "eth0", &nic);
  assert_string_equal(nic.name, "eth0");
  assert_int_equal(nic.speed_mbit_s, 25000);
  assert_int_equal(nic.place.numa_node, 1);
  lcomm_sysfs_interface(root, "eth9", &nic);
  assert_int_equal(nic.speed_mbit_s, -1);
  assert_int_equal(nic.place.numa_node, -1);
}

static int some_processor(void) {
  cpu_set_t allowed;
  int cpu = 0;
  assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  while (!CPU_ISSET(cpu, &allowed)) {
    cpu++;
  }
  return cpu;
}

static void a_thread_runs_on_the_nodes_of_its_processors(void **state) {
  (void)state;
  char path[SYSFS_TREE_PATH_MAX];
  snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%d/node3/", root, some_processor());
  assert_false(lcomm_sysfs_runs_on(root, 3));
  sysfs_tree_folders(path);
  assert_true(lcomm_sysfs_runs_on(root, 3));
  assert_false(lcomm_sysfs_runs_on(root, 1));
  assert_false(lcomm_sysfs_runs_on(root, 33));
  assert_false(lcomm_sysfs_runs_on("/nonexistent", 3));
}

static void a_folder_that_is_not_there_is_an_empty_machine(void **state) {
  (void)state;
  lcomm_nic nics[LCOMM_NICS_MAX];
  assert_int_equal(lcomm_sysfs_nics("/nonexistent", nics), 0);
  assert_int_equal(lcomm_sysfs_numa_nodes("/nonexistent"), 1);
  assert_int_equal(lcomm_sysfs_numa_nodes(root), 2);
}

static bool all_lines_are_comments(const char *text) {
  for (; *text; text = strchr(text, '\n') + 1) {
    if (*text != '#' || !strchr(text, '\n')) {
      return false;
    }
  }
  return true;
}

static void assert_line(const char *text, const char *expected) {
  if (!strstr(text, expected)) {
    print_error("no '%s' in\n%s", expected, text);
  }
  assert_non_null(strstr(text, expected));
}

static void gpus_and_interfaces_are_in_one_matrix(void **state) {
  (void)state;
  static const char *const ids[] = {"00000000:1B:00.0", "00000000:43:00.0", "00000000:9D:00.0"};
  static lcomm_gpus gpus;
  char text[8192];
  fake_machine(3);
  for (int i = 0; i < 3; i++) {
    fake.gpu[i].pci = ids[i];
  }
  fake_join(0, 1, 0, 4);
  fake.gpu[0].p2p_status[0][2] = 1;
  lcomm_gpus_survey(&fake_nvml, &gpus);
  assert_true(lcomm_machine_print(root, "alpha", &gpus, text, sizeof(text)) < sizeof(text));
  assert_true(all_lines_are_comments(text));
  assert_line(text, "# host        alpha, ");
  assert_line(text, ", 2 NUMA nodes\n");
  assert_line(text, "# gpu0        GPU of 00000000:1B:00.0?, 0000:1b:00.0, NUMA node 0, 4 NVLinks "
                    "to GPUs\n");
  assert_line(text, "# gpu2        GPU of 00000000:9D:00.0?, 0000:9d:00.0, NUMA node 1\n");
  assert_line(text, "# eth0        25000 Mbit/s, 0000:a0:00.0, NUMA node 1\n");
  assert_line(text, "# veth7       10000 Mbit/s, not on PCI\n");
  assert_line(text, "# mlx5_0      400000 Mbit/s, InfiniBand, 0000:1a:00.0, NUMA node 0\n");
  assert_line(text,
              "#                   gpu0       gpu1       gpu2       eth0       eth1     mlx5_0"
              "     mlx5_1\n");
  assert_line(text,
              "\n# gpu0                 -   nvlink*4    system!     system    unknown     switch"
              "     system\n");
  assert_line(text, "\n# gpu1          nvlink*4          -     system     system");
}

static void a_machine_without_gpus_says_why(void **state) {
  (void)state;
  static lcomm_gpus gpus;
  char text[8192], tiny[16];
  fake_machine(0);
  lcomm_gpus_survey(&fake_nvml, &gpus);
  size_t needed = lcomm_machine_print(root, "alpha", &gpus, text, sizeof(text));
  assert_true(all_lines_are_comments(text));
  assert_line(text, "# no GPU      the driver shows no GPU to this process; ");
  assert_int_equal(lcomm_machine_print(root, "alpha", &gpus, tiny, sizeof(tiny)), needed);
  assert_int_equal(strlen(tiny), sizeof(tiny) - 1);
  lcomm_machine_print("/nonexistent", "alpha", &gpus, text, sizeof(text));
  assert_null(strstr(text, "unknown"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(distances_follow_the_common_parent),
    cmocka_unit_test(two_root_complexes_without_numa_are_unknown),
    cmocka_unit_test(interfaces_are_listed_with_speed_and_place),
    cmocka_unit_test(an_interface_is_found_by_its_name),
    cmocka_unit_test(a_thread_runs_on_the_nodes_of_its_processors),
    cmocka_unit_test(a_folder_that_is_not_there_is_an_empty_machine),
    cmocka_unit_test(gpus_and_interfaces_are_in_one_matrix),
    cmocka_unit_test(a_machine_without_gpus_says_why),
};
RUN_TESTS_WITHIN(tests, make_tree, remove_made_tree)
