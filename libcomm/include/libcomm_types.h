/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LIBCOMM_TYPES_H
#define LIBCOMM_TYPES_H

/* The vocabulary every layer of libcomm shares: status codes, data types, operations, links.
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

/* ------------------------------------------ operations, requests, links */

typedef enum lcomm_op {
  LCOMM_SUM = 0, /* sum over the ranks; integers wrap around */
  LCOMM_AVG = 1, /* sum divided by the number of ranks; integers towards zero. The sum is made
                    first and may overflow where the average would not: 4 ranks with 2e38 get
                    Inf. lcomm_allreduce_scaled() with SUM and before = 1/ranks divides first. */
  LCOMM_MIN = 2, /* smallest; a NaN wins over numbers; always exact */
  LCOMM_MAX = 3  /* largest; a NaN wins over numbers; always exact */
} lcomm_op;

/* A running operation. Lives with the caller, is opaque, needs no
 * initialisation and no clean-up. It must stay at its address until
 * lcomm_wait() or lcomm_test() has said that the operation is over. */
typedef struct lcomm_request {
  void *internal;
  int32_t state;
  int32_t status;
  uint64_t not_finite;
} lcomm_request;

/* Link classes, from near to far. X(name, text). Between nodes lies net; inside a
 * node it depends on the devices that are current when the communicator is made:
 * one device is same-device, two that read and write each other are nvlink or
 * pcie, and all else is shm. nvlink lies between nodes too, where these are in one
 * NVLink domain. */
#define LCOMM_LINK_LIST(X)                                                                         \
  X(LCOMM_LINK_SELF, "self")                                                                       \
  X(LCOMM_LINK_SAME_DEVICE, "same-device")                                                         \
  X(LCOMM_LINK_NVLINK, "nvlink")                                                                   \
  X(LCOMM_LINK_PCIE, "pcie")                                                                       \
  X(LCOMM_LINK_SHM, "shm")                                                                         \
  X(LCOMM_LINK_NET, "net")

typedef enum lcomm_link {
#define LCOMM_LINK_ENUM(name, text) name,
  LCOMM_LINK_LIST(LCOMM_LINK_ENUM)
#undef LCOMM_LINK_ENUM
      LCOMM_LINK_COUNT
} lcomm_link;

LCOMM_API const char *lcomm_link_name(lcomm_link link);

#ifdef __cplusplus
}
#endif

#endif
