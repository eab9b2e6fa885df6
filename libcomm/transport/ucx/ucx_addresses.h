/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_UCX_UCX_ADDRESSES_H
#define LCOMM_TRANSPORT_UCX_UCX_ADDRESSES_H

/* How the addresses of the ranks are exchanged: a label of each, of fixed size, with the address
 * behind it where that is short; where some rank's is longer then all addresses themselves, each
 * filled up with zeros to the size of the largest. UCX reads an address without being told its
 * size, so none comes to it that is not, byte for byte, what its owner described. A label protects
 * from damage; it is no proof of who wrote it.
 *
 * Pure functions over bytes. */

#include <stddef.h>
#include <stdint.h>

enum {
  LCOMM_UCX_ADDRESS_MAX = 1 << 16, /* bytes of an address */
  LCOMM_UCX_LABEL_SIZE = 16,
  LCOMM_UCX_OFFER_SIZE = 512 /* a label, and behind it a short address */
};

/* The label of an address: its size and its checksum. Size 0, and one above the
 * maximum, say that there is none. */
void lcomm_ucx_label_pack(const void *address, size_t size, uint8_t *label);

/* The size of each row of addresses: that of the largest which the labels of
 * `count` ranks describe, at least 1. A damaged label describes none. */
size_t lcomm_ucx_addresses_width(const uint8_t *labels, int count);

/* The size of the address that the label of `rank` describes; 0: there is none. */
size_t lcomm_ucx_address_size(const uint8_t *labels, int rank);

/* The address of `rank` in `rows` of `width` bytes each, in place; NULL when it
 * has none, or when the row is not what the label describes. */
const uint8_t *lcomm_ucx_address_find(const uint8_t *labels, const uint8_t *rows, size_t width,
                                      int rank);

#endif
