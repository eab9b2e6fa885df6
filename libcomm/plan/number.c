/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/plan/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* With a mantissa below 2^53 and a power of ten up to 10^22 both are exact in
 * a double, so that one division rounds correctly. */
enum { DIGITS_MAX = 15, PLACES_MAX = 22 };
static const uint64_t digits_full = 100000000000000; /* the first number of 15 digits */

static const double powers_of_ten[PLACES_MAX + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

size_t lcomm_read_integer(const char *text, size_t length, uint64_t *number, bool *overflow) {
  size_t i = 0;
  *number = 0;
  *overflow = false;
  for (; i < length && is_digit(text[i]); i++) {
    uint64_t digit = (uint64_t)(text[i] - '0');
    if (*number > (UINT64_MAX - digit) / 10) {
      *overflow = true;
    } else {
      *number = *number * 10 + digit;
    }
  }
  return i;
}

size_t lcomm_read_size(const char *text, size_t length, uint64_t *bytes, bool *overflow) {
  size_t used = lcomm_read_integer(text, length, bytes, overflow);
  char unit = used > 0 && used < length ? text[used] : '\0';
  unsigned shift = unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0;
  if (*bytes > UINT64_MAX >> shift) {
    *overflow = true;
  }
  *bytes <<= shift;
  return used + (shift > 0);
}

/* A number mantissa * 10^-places. */
typedef struct decimal {
  uint64_t mantissa; /* at most 10^15 */
  int64_t places;
} decimal;

/* The digits and the point; returns their length, 0 if there is no digit. */
static size_t read_mantissa(const char *text, size_t length, decimal *d) {
  bool point = false, any = false, rounded = false;
  size_t i = 0;
  for (; i < length && (is_digit(text[i]) || (text[i] == '.' && !point)); i++) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    any = true;
    if (d->mantissa < digits_full && !rounded) {
      d->mantissa = d->mantissa * 10 + (uint64_t)(text[i] - '0');
      d->places += point;
    } else {
      d->mantissa += !rounded && text[i] >= '5';
      d->places -= !point;
      rounded = true;
    }
  }
  return any ? i : 0;
}

/* e, a sign or none, digits; returns their length, 0 if that is not there. */
static size_t read_exponent(const char *text, size_t length, decimal *d) {
  uint64_t exponent;
  bool overflow;
  if (length == 0 || (text[0] != 'e' && text[0] != 'E')) {
    return 0;
  }
  size_t sign = length > 1 && (text[1] == '-' || text[1] == '+');
  size_t digits = lcomm_read_integer(text + 1 + sign, length - 1 - sign, &exponent, &overflow);
  if (digits == 0) {
    return 0;
  }
  if (overflow || exponent > INT32_MAX) {
    exponent = INT32_MAX;
  }
  d->places += sign && text[1] == '-' ? (int64_t)exponent : -(int64_t)exponent;
  return 1 + sign + digits;
}

static double decimal_value(decimal d) {
  for (; d.places > PLACES_MAX && d.mantissa > 0; d.places--) {
    d.mantissa = d.mantissa / 10 + (d.places == PLACES_MAX + 1 && d.mantissa % 10 >= 5);
  }
  if (d.mantissa == 0) {
    return 0;
  }
  for (; d.places < 0 && d.mantissa <= LCOMM_DECIMAL_MAX; d.places++) {
    d.mantissa *= 10;
  }
  if (d.places < 0) {
    return (double)INFINITY;
  }
  double value = (double)d.mantissa / powers_of_ten[d.places];
  return value <= LCOMM_DECIMAL_MAX ? value : (double)INFINITY;
}

size_t lcomm_read_decimal(const char *text, size_t length, double *number) {
  decimal d = {0, 0};
  size_t used = read_mantissa(text, length, &d);
  if (used == 0) {
    return 0;
  }
  used += read_exponent(text + used, length - used, &d);
  *number = decimal_value(d);
  return used;
}

/* As 0.000ddd or ddd.d or ddd000 while that is short, else as d.dde-N. */
static void place_point(const char *digits, int count, int exponent, char *text, size_t size) {
  static const char zeros[] = "00000000000000";
  char tail[16] = "";
  int before = 1; /* digits before the point */
  if (exponent < 0 && exponent >= -4) {
    snprintf(text, size, "0.%.*s%s", -exponent - 1, zeros, digits);
    return;
  }
  if (exponent > 0 && exponent < DIGITS_MAX) {
    before = exponent + 1;
  } else if (exponent != 0) {
    snprintf(tail, sizeof tail, "e%d", exponent);
  }
  if (count > before) {
    snprintf(text, size, "%.*s.%s%s", before, digits, digits + before, tail);
  } else {
    snprintf(text, size, "%s%.*s%s", digits, before - count, zeros, tail);
  }
}

/* Only digits and the exponent are taken from printf: its decimal point
 * depends on the locale. */
void lcomm_format_decimal(double number, char *text, size_t size) {
  char raw[64], digits[DIGITS_MAX + 1];
  int count = 0;
  snprintf(raw, sizeof raw, "%.*e", DIGITS_MAX - 1, number);
  const char *at = raw;
  for (; *at != '\0' && *at != 'e'; at++) {
    if (is_digit(*at) && count < DIGITS_MAX) {
      digits[count++] = *at;
    }
  }
  int exponent = *at == 'e' ? atoi(at + 1) : 0;
  while (count > 1 && digits[count - 1] == '0') {
    count--;
  }
  digits[count] = '\0';
  place_point(digits, count, exponent, text, size);
}
