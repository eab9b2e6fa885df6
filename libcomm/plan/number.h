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

/* The digits at the beginning of text[0..length), and a unit K, M or G, powers
 * of 1024, if there is one; otherwise as lcomm_read_integer. */
size_t lcomm_read_size(const char *text, size_t length, uint64_t *bytes, bool *overflow);

/* The largest number that is read as it is. */
enum { LCOMM_DECIMAL_MAX = 1000000000 };

/* The decimal number, such as 0.01, .01, 1e-3, 12.5 or 1e3, at the beginning
 * of text[0..length); returns its length, or 0 if there is none. It is taken to
 * 15 significant digits and 22 decimal places, rounded half up, and *number is
 * the double nearest to that. A number above LCOMM_DECIMAL_MAX is returned as
 * infinity. */
size_t lcomm_read_decimal(const char *text, size_t length, double *number);

/* Write `number`, from 0 to LCOMM_DECIMAL_MAX, with at most 15 significant
 * digits and no trailing zeros. What lcomm_read_decimal returned is read back
 * from it as the same double. */
void lcomm_format_decimal(double number, char *text, size_t size);

#endif
