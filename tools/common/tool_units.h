/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_COMMON_TOOL_UNITS_H
#define LCOMM_TOOLS_COMMON_TOOL_UNITS_H

/* Numbers with units, from the command line and for people. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOOL_UNITS_TEXT_MAX = 32 };

/* A whole number such as 4096, 256K, 64MiB or 1G, powers of 1024, up to 2^50.
 * All of `text` is read. */
bool tool_units_read_size(const char *text, uint64_t *size);

/* A whole number from `least` to `most`. */
bool tool_units_read_whole(const char *text, uint64_t least, uint64_t most, uint64_t *number);

/* A finite number above `above`. */
bool tool_units_read_number(const char *text, double above, double *number);

/* The word at *list, which ends with a comma or the list; moves on behind the comma. false when
 * the word or the one behind it is empty, or it does not fit. */
bool tool_units_next_word(const char **list, char *word, size_t size);

/* 1 to `most` sizes with commas between them. */
bool tool_units_read_sizes(const char *list, uint64_t *sizes, size_t most, size_t *count);

/* What a link carries in a second, as bytes: 200mbit, 10Gbit, 25Gbit/s are
 * bits, 5GB, 800MB/s are bytes, powers of 1000; k, M, G, T in either case.
 * "bit" and "B" tell them apart, so one of them has to be there. */
bool tool_units_read_bandwidth(const char *text, double *bytes_per_s);

/* "256 KiB", "1.5 GiB". Returns text. */
const char *tool_units_bytes(uint64_t size, char text[TOOL_UNITS_TEXT_MAX]);

/* "25 Gbit/s". Returns text. */
const char *tool_units_bandwidth(double bytes_per_s, char text[TOOL_UNITS_TEXT_MAX]);

/* "1.23 s", "4.5 ms", "17 us". Returns text. */
const char *tool_units_seconds(double seconds, char text[TOOL_UNITS_TEXT_MAX]);

#endif
