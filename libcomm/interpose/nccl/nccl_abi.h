/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_NCCL_ABI_H
#define LCOMM_INTERPOSE_NCCL_ABI_H

/* NCCL's binary interface: the types that its functions pass, with NCCL's names and numbers, so
 * that no header of NVIDIA's is needed. What callers hand over by address only stays incomplete.
 *
 * Structs with `size`, `magic` and `version` at their beginning grow at their end only: `size` says
 * how much of them the caller knows, and nothing behind it is read. `check_abi.sh` beside the tests
 * compares this file with a header of NCCL's. */

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------ handles */

typedef struct CUstream_st *cudaStream_t;
typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
typedef struct ncclParamHandle *ncclParamHandle_t;

typedef struct ncclUniqueId {
  char internal[128];
} ncclUniqueId;

/* ------------------------------------------------------------------ numbers */

typedef enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
  ncclTimeout = 8
} ncclResult_t;

typedef enum ncclDataType_t {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11
} ncclDataType_t;

/* From 5 on: operations that a program has made. */
typedef enum ncclRedOp_t {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
  ncclNumOps = 5,
  ncclMaxRedOp = INT_MAX
} ncclRedOp_t;

typedef enum ncclScalarResidence_t {
  ncclScalarDevice = 0,
  ncclScalarHostImmediate = 1
} ncclScalarResidence_t;

typedef enum ncclCommMemStat_t {
  ncclStatGpuMemSuspend = 0,
  ncclStatGpuMemSuspended = 1,
  ncclStatGpuMemPersist = 2,
  ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

/* ------------------------------------------------------------------ structs */

enum { NCCL_CONFIG_MAGIC = (int)0xcafebeefu, NCCL_SIM_MAGIC = 0x74685283 };
enum { NCCL_SPLIT_NOCOLOR = -1 }; /* a rank without a part */

/* Of NCCL 2.32. A field that is INT_MIN or NULL is not set. */
typedef struct ncclConfig_t {
  size_t size;
  unsigned int magic, version;
  int blocking; /* 0: calls return ncclInProgress. 2.14 */
  int cgaClusterSize, minCTAs, maxCTAs;
  const char *netName;
  int splitShare;                                                /* 2.18 */
  int trafficClass;                                              /* 2.26 */
  const char *commName;                                          /* 2.27 */
  int collnetEnable, CTAPolicy, shrinkShare;                     /* 2.27 */
  int nvlsCTAs;                                                  /* 2.27 */
  int nChannelsPerNetPeer, nvlinkCentricSched;                   /* 2.28 */
  int graphUsageMode, numRmaCtx;                                 /* 2.29 */
  int maxP2pPeers, graphStreamOrdering;                          /* 2.30 */
  int launchOrderImplicit, numRmaSig, rmaEagerInit, hostCftMode; /* 2.31 */
  int nvlsHostMode;                                              /* 2.32 */
} ncclConfig_t;

typedef struct ncclSimInfo_t {
  size_t size;
  unsigned int magic, version;
  float estimatedTime; /* in us */
} ncclSimInfo_t;

/* A set of ranks of a communicator, passed by value. */
typedef struct ncclTeam_t {
  int nRanks, rank, stride;
} ncclTeam_t;

/* The address of memory that several devices write at once, passed by value. */
typedef struct ncclMultimemHandle_t {
  void *mcBasePtr;
} ncclMultimemHandle_t;

typedef int ncclCftTeamMode_t; /* an enumeration of NCCL's */

/* Only ever seen by address. */
typedef struct ncclCollConfig_t ncclCollConfig_t;
typedef struct ncclEncryptionConfig_t ncclEncryptionConfig_t;
typedef struct ncclCommProperties_t ncclCommProperties_t;
typedef struct ncclDevCommRequirements_t ncclDevCommRequirements_t;
typedef struct ncclDevResourceRequirements_t ncclDevResourceRequirements_t;
typedef struct ncclDevComm_t ncclDevComm_t;
typedef struct ncclWaitSignalDesc_t ncclWaitSignalDesc_t;
typedef struct ncclLsaBarrierHandle_t ncclLsaBarrierHandle_t;
typedef struct ncclGinBarrierHandle_t ncclGinBarrierHandle_t;
typedef struct ncclLLA2AHandle_t ncclLLA2AHandle_t;
typedef struct ncclGinOutboxHandle ncclGinOutboxHandle;
typedef struct ncclGinInboxA2AHandle ncclGinInboxA2AHandle;
typedef struct ncclCftLeId ncclCftLeId;

#endif
