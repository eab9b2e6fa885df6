/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Elements of NCCL's types as numbers of the host: plain, for operations that are rare. */

#include <math.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_numbers.h"

bool lcomm_nccl_is_float(ncclDataType_t type) {
  return (unsigned)type >= ncclFloat16;
}

bool lcomm_nccl_is_signed(ncclDataType_t type) {
  return type == ncclInt8 || type == ncclInt32 || type == ncclInt64;
}

/* ------------------------------------------------------------- whole numbers */

static unsigned bytes_of(ncclDataType_t type) {
  return type == ncclInt8 || type == ncclUint8     ? 1
         : type == ncclInt32 || type == ncclUint32 ? 4
                                                   : 8;
}

uint64_t lcomm_nccl_whole_read(ncclDataType_t type, const void *from) {
  uint64_t value = 0;
  memcpy(&value, from, bytes_of(type)); /* little-endian */
  uint64_t top = UINT64_C(1) << (8 * bytes_of(type) - 1);
  return lcomm_nccl_is_signed(type) ? (value ^ top) - top : value;
}

void lcomm_nccl_whole_write(ncclDataType_t type, uint64_t value, void *to) {
  memcpy(to, &value, bytes_of(type));
}

/* --------------------------------------------------- floats of 8 and 16 bits */

/* How the bits of a float are shared out. */
typedef struct format {
  int exponent, fraction; /* bits of each */
  unsigned largest;       /* code of the largest number */
  unsigned inf;           /* code; `largest` where there is none */
  unsigned beyond;        /* code of finite numbers beyond the largest */
  unsigned nan;
} format;

static const format formats[] = {[ncclFloat16] = {5, 10, 0x7bff, 0x7c00, 0x7c00, 0x7fff},
                                 [ncclBfloat16] = {8, 7, 0x7f7f, 0x7f80, 0x7f80, 0x7fff},
                                 [ncclFloat8e4m3] = {4, 3, 0x7e, 0x7e, 0x7e, 0x7f},
                                 [ncclFloat8e5m2] = {5, 2, 0x7b, 0x7c, 0x7b, 0x7f}};

static int bias_of(const format *it) {
  return (1 << (it->exponent - 1)) - 1;
}

static double decode(const format *it, unsigned bits) {
  unsigned hidden = 1U << it->fraction, sign = 1U << (it->exponent + it->fraction);
  unsigned code = bits & (sign - 1), exponent = code >> it->fraction;
  unsigned fraction = code & (hidden - 1);
  double size = code > it->largest ? (code == it->inf ? (double)INFINITY : (double)NAN)
                : exponent == 0
                    ? ldexp(fraction, 1 - bias_of(it) - it->fraction)
                    : ldexp(hidden + fraction, (int)exponent - bias_of(it) - it->fraction);
  return bits & sign ? -size : size;
}

/* The code of a finite size that is not negative. */
static unsigned round_size(const format *it, double size) {
  int lowest = 1 - bias_of(it), exponent;
  if (size == 0) {
    return 0;
  }
  (void)frexp(size, &exponent);
  exponent = exponent - 1 > lowest ? exponent - 1 : lowest;
  if (exponent > bias_of(it) + 1) {
    return it->beyond;
  }
  /* Steps of the type's numbers there; the leading one carries into the exponent. */
  double exact = ldexp(size, it->fraction - exponent);
  unsigned steps = (unsigned)exact;
  double rest = exact - steps;
  steps += rest > 0.5 || (rest == 0.5 && steps % 2 == 1);
  unsigned code = ((unsigned)(exponent - lowest) << it->fraction) + steps;
  return code > it->largest ? it->beyond : code;
}

static unsigned encode(const format *it, double value) {
  unsigned sign = signbit(value) ? 1U << (it->exponent + it->fraction) : 0;
  return isnan(value) ? it->nan : sign | (isinf(value) ? it->inf : round_size(it, fabs(value)));
}

/* -------------------------------------------------------------------- floats */

double lcomm_nccl_float_read(ncclDataType_t type, const void *from) {
  float single;
  double wide;
  uint16_t bits = 0;
  switch (type) {
  case ncclFloat32:
    memcpy(&single, from, sizeof(single));
    return (double)single;
  case ncclFloat64:
    memcpy(&wide, from, sizeof(wide));
    return wide;
  default:
    memcpy(&bits, from, type == ncclFloat16 || type == ncclBfloat16 ? 2 : 1);
    return decode(&formats[type], bits);
  }
}

void lcomm_nccl_float_write(ncclDataType_t type, double value, void *to) {
  float single;
  uint16_t bits;
  switch (type) {
  case ncclFloat32:
    single = (float)value;
    memcpy(to, &single, sizeof(single));
    return;
  case ncclFloat64:
    memcpy(to, &value, sizeof(value));
    return;
  default:
    bits = (uint16_t)encode(&formats[type], value);
    memcpy(to, &bits, type == ncclFloat16 || type == ncclBfloat16 ? 2 : 1);
  }
}
