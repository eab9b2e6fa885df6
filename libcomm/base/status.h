/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_STATUS_H
#define LCOMM_BASE_STATUS_H

/* Statuses that come from peers. */

#include "libcomm/include/libcomm_types.h"

enum { LCOMM_STATUS_TEXT_MAX = 128 };

/* The status that a peer sent as a number; LCOMM_ERR_WIRE for a number that is no
 * status. text (LCOMM_STATUS_TEXT_MAX bytes, may be NULL) becomes the end of a
 * sentence: the status's own text, or what is wrong with the number. */
lcomm_status lcomm_status_received(int32_t number, char *text);

#endif
