/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* MPI's types and operations in libcomm's words. What is not here goes to MPI:
 * derived types, operations of the program, complex numbers, unsigned ones but for those of
 * 8 bits, and MPI_BYTE, which has no sum, minimum or maximum. */

#include "libcomm/interpose/mpi/interpose.h"

bool lcomm_interpose_dtype(MPI_Datatype type, lcomm_dtype *dtype) {
  if (type == MPI_FLOAT || type == MPI_REAL || type == MPI_REAL4) {
    *dtype = LCOMM_FLOAT32;
  } else if (type == MPI_DOUBLE || type == MPI_DOUBLE_PRECISION || type == MPI_REAL8) {
    *dtype = LCOMM_FLOAT64;
  } else if (type == MPI_INT || type == MPI_INT32_T || type == MPI_INTEGER ||
             type == MPI_INTEGER4) {
    *dtype = LCOMM_INT32;
  } else if (type == MPI_LONG_LONG || type == MPI_INT64_T || type == MPI_INTEGER8 ||
             (type == MPI_LONG && sizeof(long) == sizeof(int64_t))) {
    *dtype = LCOMM_INT64;
  } else if (type == MPI_INT8_T || type == MPI_SIGNED_CHAR) {
    *dtype = LCOMM_INT8;
  } else if (type == MPI_UINT8_T || type == MPI_UNSIGNED_CHAR) {
    *dtype = LCOMM_UINT8;
  } else {
    return false;
  }
  return true;
}

bool lcomm_interpose_op(MPI_Op op, lcomm_op *own) {
  if (op == MPI_SUM) {
    *own = LCOMM_SUM;
  } else if (op == MPI_MIN) {
    *own = LCOMM_MIN;
  } else if (op == MPI_MAX) {
    *own = LCOMM_MAX;
  } else {
    return false;
  }
  return true;
}
