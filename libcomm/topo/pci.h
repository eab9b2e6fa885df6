/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOPO_PCI_H
#define LCOMM_TOPO_PCI_H

/* Names of devices: PCI ids as numbers, so that "0000:3B:00.0" and
 * "00000000:3b:00.0" are equal, and UUIDs as 16 bytes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LCOMM_PCI_TEXT_MAX = 24, LCOMM_UUID_SIZE = 16, LCOMM_UUID_TEXT_MAX = 40 };

/* Domain, bus, device and function with a bit above them; 0 is no device. */
typedef uint64_t lcomm_pci;

/* Is it a PCI id? 0 is none. */
bool lcomm_pci_is_valid(lcomm_pci pci);

/* domain:bus:device.function, in hexadecimal digits of either case; 0 for any
 * other text. */
lcomm_pci lcomm_pci_parse(const char *text, size_t length);

/* "0000:3b:00.0", or "none" for 0. Returns text. */
const char *lcomm_pci_format(lcomm_pci pci, char text[LCOMM_PCI_TEXT_MAX]);

/* 32 hexadecimal digits with '-' between any of them, after "GPU-" or "MIG-"
 * or nothing. uuid is written only when it returns true. */
bool lcomm_uuid_parse(const char *text, size_t length, uint8_t uuid[LCOMM_UUID_SIZE]);

/* "00112233-4455-6677-8899-aabbccddeeff". Returns text. */
const char *lcomm_uuid_format(const uint8_t uuid[LCOMM_UUID_SIZE], char text[LCOMM_UUID_TEXT_MAX]);

bool lcomm_uuid_is_zero(const uint8_t uuid[LCOMM_UUID_SIZE]);

#endif
