/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LIBCOMM_TYPES_H
#define LIBCOMM_TYPES_H

/* The vocabulary every layer of libcomm shares: status codes and data types.
 * This header includes nothing of libcomm, so the codecs and kernels, which
 * sit below the communication layer, may use it without looking upwards.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LCOMM_API __attribute__((visibility("default")))
#else
#define LCOMM_API
#endif

/* Status codes. 0 is success, every error is negative. Each line is
 * X(name, value, short text); enum, name and text cannot get out of step.
 */
#define LCOMM_STATUS_LIST(X)                                                                       \
  X(LCOMM_OK, 0, "success")                                                                        \
  X(LCOMM_ERR_ARGUMENT, -1, "invalid argument")                                                    \
  X(LCOMM_ERR_POLICY, -2, "invalid or unusable policy")                                            \
  X(LCOMM_ERR_MEMORY, -3, "out of memory")                                                         \
  X(LCOMM_ERR_TRANSPORT, -4, "the transport failed")                                               \
  X(LCOMM_ERR_TIMEOUT, -5, "a peer did not answer in time")                                        \
  X(LCOMM_ERR_MISMATCH, -6, "ranks disagree")                                                      \
  X(LCOMM_ERR_WIRE, -7, "malformed bytes from a peer or a file")                                   \
  X(LCOMM_ERR_UNSUPPORTED, -8, "not supported")                                                    \
  X(LCOMM_ERR_STATE, -9, "call not allowed in this state")                                         \
  X(LCOMM_ERR_REMOTE, -10, "another rank reported an error")                                       \
  X(LCOMM_ERR_ABORTED, -11, "the communicator was aborted")                                        \
  X(LCOMM_ERR_SYSTEM, -12, "a system call failed")                                                 \
  X(LCOMM_ERR_INTERNAL, -13, "internal inconsistency, please report it")

typedef enum lcomm_status {
#define LCOMM_STATUS_ENUM(name, value, text) name = value,
  LCOMM_STATUS_LIST(LCOMM_STATUS_ENUM)
#undef LCOMM_STATUS_ENUM
} lcomm_status;

/* Element types of user buffers. X(name, wire number, bytes, text). The wire
 * number is part of the wire format and never changes.
 */
#define LCOMM_DTYPE_LIST(X)                                                                        \
  X(LCOMM_FLOAT32, 0, 4, "float32")                                                                \
  X(LCOMM_FLOAT16, 1, 2, "float16")                                                                \
  X(LCOMM_BFLOAT16, 2, 2, "bfloat16")                                                              \
  X(LCOMM_FLOAT64, 3, 8, "float64")                                                                \
  X(LCOMM_INT32, 4, 4, "int32")                                                                    \
  X(LCOMM_INT64, 5, 8, "int64")                                                                    \
  X(LCOMM_INT8, 6, 1, "int8")                                                                      \
  X(LCOMM_UINT8, 7, 1, "uint8")

/* The whole numbers among them: exact, never compressed, without factors. */
#define LCOMM_DTYPE_IS_WHOLE(dtype) ((dtype) >= LCOMM_INT32 && (dtype) <= LCOMM_UINT8)

typedef enum lcomm_dtype {
#define LCOMM_DTYPE_ENUM(name, value, size, text) name = value,
  LCOMM_DTYPE_LIST(LCOMM_DTYPE_ENUM)
#undef LCOMM_DTYPE_ENUM
} lcomm_dtype;

/* Bytes of one element; 0 for a value that is no dtype. */
LCOMM_API size_t lcomm_dtype_size(lcomm_dtype dtype);

/* "float32", ...; "unknown dtype" for a value that is no dtype. Static. */
LCOMM_API const char *lcomm_dtype_name(lcomm_dtype dtype);

/* "LCOMM_ERR_TIMEOUT", ...; "LCOMM_ERR_UNKNOWN" for a value that is no
 * status. Static. */
LCOMM_API const char *lcomm_status_name(lcomm_status status);

/* The short text of the table above. Static. For what happened in one case,
 * ask lcomm_last_error(). */
LCOMM_API const char *lcomm_status_string(lcomm_status status);

#ifdef __cplusplus
}
#endif

#endif
