/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_devices.h"

#include "libcomm/topo/gpus.h"
#include "libcomm/topo/sysfs_text.h"
#include "tests/support/fuzz_bytes.h"
#include "tests/support/fuzz_promise.h"

static void check_visible(const char *text, size_t room, char lowest) {
  size_t length = strnlen(text, room);
  fuzz_require(length < room, "a name ends");
  for (size_t i = 0; i < length; i++) {
    fuzz_require(text[i] >= lowest && text[i] < 0x7f, "a name is visible ASCII");
  }
}

/* ----------------------------------------------------------------- sysfs */

static void read_numbers(const char *line) {
  int64_t number = lcomm_sysfs_number(line), rate = lcomm_sysfs_rate(line);
  fuzz_require(number >= -1 && number <= INT64_C(1) << 40, "a number is in its range");
  fuzz_require(rate >= -1 && rate < INT64_C(1000000000) && (rate < 0 || rate % 100 == 0),
               "a rate is a possible one");
}

static void read_ids(const char *line, size_t length) {
  char text[LCOMM_UUID_TEXT_MAX];
  uint8_t uuid[LCOMM_UUID_SIZE], again[LCOMM_UUID_SIZE];
  lcomm_pci pci = lcomm_pci_parse(line, length);
  if (pci != 0) {
    fuzz_require(lcomm_pci_is_valid(pci), "a PCI id that was read is one");
    lcomm_pci_format(pci, text);
    fuzz_require(lcomm_pci_parse(text, strlen(text)) == pci, "a PCI id survives its text");
  }
  if (lcomm_uuid_parse(line, length, uuid)) {
    lcomm_uuid_format(uuid, text);
    fuzz_require(lcomm_uuid_parse(text, strlen(text), again) &&
                     memcmp(uuid, again, sizeof(uuid)) == 0,
                 "a UUID survives its text");
  }
}

static void read_place(const char *line, const char *other) {
  lcomm_pci_place a = {.numa_node = 0}, b = {.numa_node = -1};
  lcomm_pci pci = lcomm_sysfs_path(line, a.path);
  fuzz_require(strnlen(a.path, sizeof(a.path)) < sizeof(a.path), "a path ends");
  fuzz_require(pci == 0 || (lcomm_pci_is_valid(pci) && strncmp(a.path, "pci", 3) == 0),
               "a device hangs below a root complex");
  lcomm_sysfs_path(other, b.path);
  lcomm_pci_distance there = lcomm_pci_distance_between(&a, &b);
  fuzz_require(there == lcomm_pci_distance_between(&b, &a), "a distance is the same both ways");
  fuzz_require((unsigned)there < LCOMM_PCI_DISTANCE_COUNT, "a distance has a name");
}

void lcomm_fuzz_sysfs(const uint8_t *data, size_t size) {
  char *before = fuzz_allocate(1);
  while (size > 0) {
    char name[LCOMM_NIC_NAME_MAX];
    size_t length = strnlen((const char *)data, size), taken = length + (length < size);
    char *line = fuzz_allocate(length + 1);
    memcpy(line, data, length);
    read_numbers(line);
    read_ids(line, length);
    read_place(line, before);
    lcomm_sysfs_name(line, name);
    check_visible(name, sizeof(name), 0x21);
    free(before);
    before = line;
    data += taken;
    size -= taken;
  }
  free(before);
}

/* ------------------------------------------------------------------ NVML */

static fuzz_bytes *answers;
static uint64_t asked;

/* An answer of `size` bytes, if the input has one. */
static int answer(void *bytes, size_t size) {
  int error = answers->left == 0 ? 1 : fuzz_u8(answers);
  asked++;
  if (error == 0 && size > 0) {
    fuzz_take(answers, bytes, size);
  }
  return error;
}

static int init_it(void) {
  return answer(NULL, 0);
}
static int shutdown_it(void) {
  return 0;
}
static const char *explain_it(int error) {
  return error % 2 == 0 ? "no reason given"
                        : "a reason that is very long indeed, and goes on and "
                          "on, past all room that a sentence may have, and "
                          "then some more, to be sure that it is cut";
}
static int count_it(unsigned *count) {
  return answer(count, sizeof *count);
}
static int by_index_it(unsigned index, void **device) {
  static char devices[256];
  *device = &devices[index % 256];
  return answer(NULL, 0);
}
static int text_it(void *device, char *text, unsigned size) {
  (void)device;
  int error = answer(text, fuzz_u8(answers) % (size + 1));
  text[size - 1] = '\0';
  return error;
}
/* Most ids are like those of GPUs, so that some are met again. */
static int pci_it(void *device, lcomm_nvml_pci *pci) {
  (void)device;
  uint8_t what = fuzz_u8(answers);
  int error = answer(pci, what == 255 ? sizeof *pci : 0);
  if (what != 255) {
    snprintf(pci->id, sizeof(pci->id), "00000000:%02X:00.0", what % 8);
  }
  return error;
}
static int fields_it(void *device, int count, lcomm_nvml_field *fields) {
  (void)device;
  uint8_t value = 0;
  int error = answer(&value, sizeof(value));
  for (int i = 0; i < count; i++) {
    fields[i].error = value / 16;
    fields[i].value.number = value % 16;
  }
  return error;
}
static int capability_it(void *device, unsigned link, int capability, unsigned *value) {
  (void)device;
  (void)link;
  (void)capability;
  return answer(value, 1);
}
static int state_it(void *device, unsigned link, int *active) {
  (void)device;
  (void)link;
  return answer(active, 1);
}
static int remote_pci_it(void *device, unsigned link, lcomm_nvml_pci *pci) {
  (void)link;
  return pci_it(device, pci);
}
static int remote_type_it(void *device, unsigned link, int *type) {
  (void)device;
  (void)link;
  return answer(type, 1);
}
static int p2p_it(void *from, void *to, int capability, int *status) {
  (void)from;
  (void)to;
  (void)capability;
  return answer(status, sizeof *status);
}
static int fabric_it(void *device, lcomm_nvml_fabric *fabric) {
  (void)device;
  return answer(fabric, sizeof *fabric);
}

static void check_gpus(const lcomm_gpus *gpus) {
  fuzz_require(gpus->count >= 0 && gpus->count <= LCOMM_GPUS_MAX, "GPUs are counted");
  fuzz_require(strnlen(gpus->why.text, LCOMM_WHY_MAX) < LCOMM_WHY_MAX, "a sentence ends");
  for (int i = 0; i < gpus->count; i++) {
    const lcomm_gpu *gpu = &gpus->gpu[i];
    check_visible(gpu->name, sizeof(gpu->name), 0x20);
    fuzz_require(lcomm_pci_is_valid(gpu->pci), "a GPU has a PCI id");
    fuzz_require(!lcomm_uuid_is_zero(gpu->cluster) || gpu->clique == 0,
                 "who is in no domain is in no part of one");
    for (int j = 0; j < gpus->count; j++) {
      fuzz_require(lcomm_gpus_nvlink(gpus, i, j) == lcomm_gpus_nvlink(gpus, j, i),
                   "NVLink leads both ways");
      fuzz_require(gpu->nvlinks[j] >= 0 && gpu->nvlinks[j] <= LCOMM_NVLINKS_MAX,
                   "links are counted");
    }
  }
}

void lcomm_fuzz_nvml(const uint8_t *data, size_t size) {
  fuzz_bytes in = {data, size};
  lcomm_nvml nvml = {init_it,  shutdown_it,   explain_it,     count_it,  by_index_it,
                     text_it,  text_it,       pci_it,         fields_it, capability_it,
                     state_it, remote_pci_it, remote_type_it, p2p_it,    fabric_it};
  uint8_t missing = fuzz_u8(&in);
  lcomm_gpus *gpus = fuzz_allocate(sizeof *gpus);
  nvml.fields = missing & 1 ? NULL : nvml.fields;
  nvml.nvlink_state = missing & 2 ? NULL : nvml.nvlink_state;
  nvml.nvlink_capability = missing & 4 ? NULL : nvml.nvlink_capability;
  nvml.nvlink_remote_type = missing & 8 ? NULL : nvml.nvlink_remote_type;
  nvml.nvlink_remote_pci = missing & 16 ? NULL : nvml.nvlink_remote_pci;
  nvml.fabric = missing & 32 ? NULL : nvml.fabric;
  nvml.p2p = missing & 64 ? NULL : nvml.p2p;
  nvml.explain = missing & 128 ? NULL : nvml.explain;
  answers = &in;
  asked = 0;
  lcomm_gpus_survey(&nvml, gpus);
  fuzz_require(asked < 100000, "NVML is not asked without end");
  check_gpus(gpus);
  free(gpus);
}
