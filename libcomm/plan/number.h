/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_NUMBER_H
#define LCOMM_PLAN_NUMBER_H

/* Numbers in a policy, read and written without the locale, so that all ranks
 * agree on every bit of them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The digits at the beginning of text[0..length) as a number; returns how many
 * there are. *overflow is set if the number has more than 64 bits, and *number
 * is then meaningless. */
size_t lcomm_read_integer(const char *text, size_t length, uint64_t *number, bool *overflow);

/* The decimal number, such as 0.01, .01, 1e-3 or 1, at the beginning of
 * text[0..length); returns its length, or 0 if there is none. It is taken to
 * 15 significant digits and 22 decimal places, rounded half up. It is meant
 * for shares: any number above 1 is returned as 2. */
size_t lcomm_read_decimal(const char *text, size_t length, double *number);

/* Write `number` (not negative) with at most 15 significant digits and no
 * trailing zeros. What lcomm_read_decimal returned for a number up to 1 is
 * read back from it as the same double. */
void lcomm_format_decimal(double number, char *text, size_t size);

#endif
