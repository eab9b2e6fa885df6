/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/topo/pci.h"

#include <stdio.h>
#include <string.h>

static const lcomm_pci PRESENT = UINT64_C(1) << 48;

bool lcomm_pci_is_valid(lcomm_pci pci) {
  return pci >> 48 == 1;
}

static int digit_of(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  c = (char)(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 1 to `most` digits up to `end`, which is taken too; '\0' stands for the end
 * of the text. */
static bool take_number(const char **at, const char *stop, int most, char end, uint32_t *number) {
  int digits = 0;
  *number = 0;
  for (; *at < stop && digit_of(**at) >= 0; ++*at, digits++) {
    *number = *number << 4 | (uint32_t)digit_of(**at);
  }
  if (digits < 1 || digits > most) {
    return false;
  }
  if (end == '\0') {
    return *at == stop;
  }
  return *at < stop && *(*at)++ == end;
}

lcomm_pci lcomm_pci_parse(const char *text, size_t length) {
  const char *at = text, *stop = text + length;
  uint32_t domain, bus, device, function;
  if (!take_number(&at, stop, 8, ':', &domain) || !take_number(&at, stop, 2, ':', &bus) ||
      !take_number(&at, stop, 2, '.', &device) || !take_number(&at, stop, 1, '\0', &function) ||
      device > 31 || function > 7) {
    return 0;
  }
  return PRESENT | (lcomm_pci)domain << 16 | bus << 8 | device << 3 | function;
}

const char *lcomm_pci_format(lcomm_pci pci, char text[LCOMM_PCI_TEXT_MAX]) {
  if (!lcomm_pci_is_valid(pci)) {
    snprintf(text, LCOMM_PCI_TEXT_MAX, "none");
    return text;
  }
  snprintf(text, LCOMM_PCI_TEXT_MAX, "%04x:%02x:%02x.%x", (uint32_t)(pci >> 16),
           (unsigned)(pci >> 8 & 0xff), (unsigned)(pci >> 3 & 31), (unsigned)(pci & 7));
  return text;
}

bool lcomm_uuid_parse(const char *text, size_t length, uint8_t uuid[LCOMM_UUID_SIZE]) {
  uint8_t bytes[LCOMM_UUID_SIZE] = {0};
  int digits = 0;
  size_t i = length >= 4 && (memcmp(text, "GPU-", 4) == 0 || memcmp(text, "MIG-", 4) == 0) ? 4 : 0;
  for (; i < length; i++) {
    int digit = digit_of(text[i]);
    if (text[i] == '-') {
      continue;
    }
    if (digit < 0 || digits == 2 * LCOMM_UUID_SIZE) {
      return false;
    }
    bytes[digits / 2] = (uint8_t)(bytes[digits / 2] << 4 | digit);
    digits++;
  }
  if (digits != 2 * LCOMM_UUID_SIZE) {
    return false;
  }
  memcpy(uuid, bytes, sizeof(bytes));
  return true;
}

const char *lcomm_uuid_format(const uint8_t uuid[LCOMM_UUID_SIZE], char text[LCOMM_UUID_TEXT_MAX]) {
  size_t used = 0;
  for (int i = 0; i < LCOMM_UUID_SIZE; i++) {
    bool dash = i == 4 || i == 6 || i == 8 || i == 10;
    used += (size_t)snprintf(text + used, LCOMM_UUID_TEXT_MAX - used, "%s%02x", dash ? "-" : "",
                             uuid[i]);
  }
  return text;
}

bool lcomm_uuid_is_zero(const uint8_t uuid[LCOMM_UUID_SIZE]) {
  uint8_t any = 0;
  for (int i = 0; i < LCOMM_UUID_SIZE; i++) {
    any |= uuid[i];
  }
  return any == 0;
}
