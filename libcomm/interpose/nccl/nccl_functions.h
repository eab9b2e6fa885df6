/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_NCCL_FUNCTIONS_H
#define LCOMM_INTERPOSE_NCCL_FUNCTIONS_H

/* Collective calls that NCCL has twice: as they are, and as XConfig, with a configuration as one
 * parameter more. ROW(X, name, parameters, parameters with the configuration, (type, name), ...) */
#define LCOMM_NCCL_CONFIGURED(ROW, X)                                                              \
  ROW(X, AllReduce, 7, 8, (const void *, send), (void *, receive), (size_t, count),                \
      (ncclDataType_t, type), (ncclRedOp_t, op), (ncclComm_t, comm), (cudaStream_t, stream))       \
  ROW(X, Reduce, 8, 9, (const void *, send), (void *, receive), (size_t, count),                   \
      (ncclDataType_t, type), (ncclRedOp_t, op), (int, root), (ncclComm_t, comm),                  \
      (cudaStream_t, stream))                                                                      \
  ROW(X, ReduceScatter, 7, 8, (const void *, send), (void *, receive), (size_t, count),            \
      (ncclDataType_t, type), (ncclRedOp_t, op), (ncclComm_t, comm), (cudaStream_t, stream))       \
  ROW(X, Broadcast, 7, 8, (const void *, send), (void *, receive), (size_t, count),                \
      (ncclDataType_t, type), (int, root), (ncclComm_t, comm), (cudaStream_t, stream))             \
  ROW(X, AllGather, 6, 7, (const void *, send), (void *, receive), (size_t, count),                \
      (ncclDataType_t, type), (ncclComm_t, comm), (cudaStream_t, stream))                          \
  ROW(X, AlltoAll, 6, 7, (const void *, send), (void *, receive), (size_t, count),                 \
      (ncclDataType_t, type), (ncclComm_t, comm), (cudaStream_t, stream))                          \
  ROW(X, Gather, 7, 8, (const void *, send), (void *, receive), (size_t, count),                   \
      (ncclDataType_t, type), (int, root), (ncclComm_t, comm), (cudaStream_t, stream))             \
  ROW(X, Scatter, 7, 8, (const void *, send), (void *, receive), (size_t, count),                  \
      (ncclDataType_t, type), (int, root), (ncclComm_t, comm), (cudaStream_t, stream))

#define LCOMM_NCCL_CONFIG_PARAMETER (const ncclCollConfig_t *, config)
#define LCOMM_NCCL_TWICE(X, name, n, more, ...)                                                    \
  X(name, result, n, __VA_ARGS__)                                                                  \
  X(name##Config, result, more, __VA_ARGS__, LCOMM_NCCL_CONFIG_PARAMETER)

/* Every function of NCCL up to 2.32, once: exports, forwarders, refusals and the look-up in another
 * NCCL are made of this table by the compiler, which also checks them against each other. Include
 * nccl_abi.h, or NCCL's own headers, before it.
 *
 * X(name without nccl, what it returns, number of parameters, (type, name), ...). Without
 * parameters: 0, none. */
#define LCOMM_NCCL_LIST(X)                                                                         \
  /* the library */                                                                                \
  X(GetVersion, result, 1, (int *, version))                                                       \
  X(GetErrorString, text, 1, (ncclResult_t, result))                                               \
  X(GetLastError, text, 1, (ncclComm_t, comm))                                                     \
  X(ResetDebugInit, nothing, 0, none)                                                              \
  X(SetEncryption, result, 1, (const ncclEncryptionConfig_t *, config))                            \
  /* communicators */                                                                              \
  X(GetUniqueId, result, 1, (ncclUniqueId *, id))                                                  \
  X(CommInitRank, result, 4, (ncclComm_t *, comm), (int, ranks), (ncclUniqueId, id), (int, rank))  \
  X(CommInitRankConfig, result, 5, (ncclComm_t *, comm), (int, ranks), (ncclUniqueId, id),         \
    (int, rank), (ncclConfig_t *, config))                                                         \
  X(CommInitRankScalable, result, 6, (ncclComm_t *, comm), (int, ranks), (int, rank),              \
    (int, count), (ncclUniqueId *, ids), (ncclConfig_t *, config))                                 \
  X(CommInitAll, result, 3, (ncclComm_t *, comms), (int, count), (const int *, devices))           \
  X(CommSplit, result, 5, (ncclComm_t, comm), (int, color), (int, key), (ncclComm_t *, part),      \
    (ncclConfig_t *, config))                                                                      \
  X(CommShrink, result, 6, (ncclComm_t, comm), (int *, without), (int, count),                     \
    (ncclComm_t *, part), (ncclConfig_t *, config), (int, flags))                                  \
  X(CommGetUniqueId, result, 2, (ncclComm_t, comm), (ncclUniqueId *, id))                          \
  X(CommGrow, result, 6, (ncclComm_t, comm), (int, ranks), (const ncclUniqueId *, id),             \
    (int, rank), (ncclComm_t *, whole), (ncclConfig_t *, config))                                  \
  X(CommFinalize, result, 1, (ncclComm_t, comm))                                                   \
  X(CommDestroy, result, 1, (ncclComm_t, comm))                                                    \
  X(CommAbort, result, 1, (ncclComm_t, comm))                                                      \
  X(CommRevoke, result, 2, (ncclComm_t, comm), (int, flags))                                       \
  X(CommSuspend, result, 2, (ncclComm_t, comm), (int, flags))                                      \
  X(CommResume, result, 1, (ncclComm_t, comm))                                                     \
  X(CommMemStats, result, 3, (ncclComm_t, comm), (ncclCommMemStat_t, what), (uint64_t *, value))   \
  X(CommGetAsyncError, result, 2, (ncclComm_t, comm), (ncclResult_t *, error))                     \
  X(CommCount, result, 2, (const ncclComm_t, comm), (int *, count))                                \
  X(CommCuDevice, result, 2, (const ncclComm_t, comm), (int *, device))                            \
  X(CommUserRank, result, 2, (const ncclComm_t, comm), (int *, rank))                              \
  X(CommQueryProperties, result, 2, (ncclComm_t, comm), (ncclCommProperties_t *, properties))      \
  /* memory */                                                                                     \
  X(MemAlloc, result, 2, (void **, memory), (size_t, size))                                        \
  X(MemFree, result, 1, (void *, memory))                                                          \
  X(CommRegister, result, 4, (const ncclComm_t, comm), (void *, buffer), (size_t, size),           \
    (void **, handle))                                                                             \
  X(CommDeregister, result, 2, (const ncclComm_t, comm), (void *, handle))                         \
  X(CommWindowRegister, result, 5, (ncclComm_t, comm), (void *, buffer), (size_t, size),           \
    (ncclWindow_t *, window), (int, flags))                                                        \
  X(CommWindowDeregister, result, 2, (ncclComm_t, comm), (ncclWindow_t, window))                   \
  X(WinGetUserPtr, result, 3, (ncclComm_t, comm), (ncclWindow_t, window), (void **, address))      \
  /* groups and operations */                                                                      \
  X(GroupStart, result, 0, none)                                                                   \
  X(GroupEnd, result, 0, none)                                                                     \
  X(GroupSimulateEnd, result, 1, (ncclSimInfo_t *, simulation))                                    \
  X(RedOpCreatePreMulSum, result, 5, (ncclRedOp_t *, op), (void *, scalar),                        \
    (ncclDataType_t, type), (ncclScalarResidence_t, residence), (ncclComm_t, comm))                \
  X(RedOpDestroy, result, 2, (ncclRedOp_t, op), (ncclComm_t, comm))                                \
  /* collective calls */                                                                           \
  LCOMM_NCCL_CONFIGURED(LCOMM_NCCL_TWICE, X)                                                       \
  X(Bcast, result, 6, (void *, buffer), (size_t, count), (ncclDataType_t, type), (int, root),      \
    (ncclComm_t, comm), (cudaStream_t, stream))                                                    \
  /* between two ranks */                                                                          \
  X(Send, result, 6, (const void *, send), (size_t, count), (ncclDataType_t, type), (int, peer),   \
    (ncclComm_t, comm), (cudaStream_t, stream))                                                    \
  X(Recv, result, 6, (void *, receive), (size_t, count), (ncclDataType_t, type), (int, peer),      \
    (ncclComm_t, comm), (cudaStream_t, stream))                                                    \
  X(PutSignal, result, 11, (const void *, send), (size_t, count), (ncclDataType_t, type),          \
    (int, peer), (ncclWindow_t, window), (size_t, offset), (int, signal), (int, context),          \
    (unsigned int, flags), (ncclComm_t, comm), (cudaStream_t, stream))                             \
  X(Signal, result, 6, (int, peer), (int, signal), (int, context), (unsigned int, flags),          \
    (ncclComm_t, comm), (cudaStream_t, stream))                                                    \
  X(WaitSignal, result, 4, (int, count), (ncclWaitSignalDesc_t *, signals), (ncclComm_t, comm),    \
    (cudaStream_t, stream))                                                                        \
  /* for kernels that communicate */                                                               \
  X(DevCommCreate, result, 3, (ncclComm_t, comm), (const ncclDevCommRequirements_t *, what),       \
    (ncclDevComm_t *, made))                                                                       \
  X(DevCommDestroy, result, 2, (ncclComm_t, comm), (const ncclDevComm_t *, made))                  \
  X(GetLsaDevicePointer, result, 4, (ncclWindow_t, window), (size_t, offset), (int, rank),         \
    (void **, address))                                                                            \
  X(GetLsaMultimemDevicePointer, result, 3, (ncclWindow_t, window), (size_t, offset),              \
    (void **, address))                                                                            \
  X(GetMultimemDevicePointer, result, 4, (ncclWindow_t, window), (size_t, offset),                 \
    (ncclMultimemHandle_t, multimem), (void **, address))                                          \
  X(GetPeerDevicePointer, result, 4, (ncclWindow_t, window), (size_t, offset), (int, peer),        \
    (void **, address))                                                                            \
  X(GetCftDeviceLeInfo, result, 6, (ncclWindow_t, window), (size_t, offset), (int, peer),          \
    (ncclTeam_t, team), (ncclCftLeId *, id), (size_t *, at))                                       \
  X(GetMultimemDeviceLeInfo, result, 4, (ncclWindow_t, window), (size_t, offset),                  \
    (ncclCftLeId *, id), (size_t *, at))                                                           \
  X(GetPeerDeviceLeInfo, result, 5, (ncclWindow_t, window), (size_t, offset), (int, peer),         \
    (ncclCftLeId *, id), (size_t *, at))                                                           \
  X(TeamWorld, team, 1, (ncclComm_t, comm))                                                        \
  X(TeamLsa, team, 1, (ncclComm_t, comm))                                                          \
  X(TeamRail, team, 1, (ncclComm_t, comm))                                                         \
  X(TeamCft, team, 2, (ncclComm_t, comm), (ncclCftTeamMode_t, mode))                               \
  X(TeamCftMultimem, team, 1, (ncclComm_t, comm))                                                  \
  X(TeamRankToWorld, number, 3, (ncclComm_t, comm), (ncclTeam_t, team), (int, rank))               \
  X(TeamRankToLsa, number, 3, (ncclComm_t, comm), (ncclTeam_t, team), (int, rank))                 \
  X(LsaBarrierCreateRequirement, result, 4, (ncclTeam_t, team), (int, count),                      \
    (ncclLsaBarrierHandle_t *, handle), (ncclDevResourceRequirements_t *, what))                   \
  X(GinBarrierCreateRequirement, result, 5, (ncclComm_t, comm), (ncclTeam_t, team), (int, count),  \
    (ncclGinBarrierHandle_t *, handle), (ncclDevResourceRequirements_t *, what))                   \
  X(LLA2ACalcSlots, number, 2, (int, count), (int, size))                                          \
  X(LLA2ACreateRequirement, result, 4, (int, blocks), (int, slots), (ncclLLA2AHandle_t *, handle), \
    (ncclDevResourceRequirements_t *, what))                                                       \
  X(GinOutboxCreateRequirement, result, 4, (int, blocks), (int, size_log2),                        \
    (ncclGinOutboxHandle *, handle), (ncclDevResourceRequirements_t *, what))                      \
  X(GinInboxA2ACreateRequirement, result, 5, (ncclTeam_t, peers), (int, blocks), (int, size_log2), \
    (ncclGinInboxA2AHandle *, handle), (ncclDevResourceRequirements_t *, what))                    \
  /* NCCL's own settings */                                                                        \
  X(ParamBind, result, 2, (ncclParamHandle_t *, parameter), (const char *, key))                   \
  X(ParamGetI8, result, 2, (ncclParamHandle_t, parameter), (int8_t *, value))                      \
  X(ParamGetI16, result, 2, (ncclParamHandle_t, parameter), (int16_t *, value))                    \
  X(ParamGetI32, result, 2, (ncclParamHandle_t, parameter), (int32_t *, value))                    \
  X(ParamGetI64, result, 2, (ncclParamHandle_t, parameter), (int64_t *, value))                    \
  X(ParamGetU8, result, 2, (ncclParamHandle_t, parameter), (uint8_t *, value))                     \
  X(ParamGetU16, result, 2, (ncclParamHandle_t, parameter), (uint16_t *, value))                   \
  X(ParamGetU32, result, 2, (ncclParamHandle_t, parameter), (uint32_t *, value))                   \
  X(ParamGetU64, result, 2, (ncclParamHandle_t, parameter), (uint64_t *, value))                   \
  X(ParamGetStr, result, 2, (ncclParamHandle_t, parameter), (const char **, value))                \
  X(ParamGet, result, 4, (ncclParamHandle_t, parameter), (void *, value), (int, room),             \
    (int *, size))                                                                                 \
  X(ParamGetParameter, result, 3, (const char *, key), (const char **, value), (int *, length))    \
  X(ParamGetAllParameterKeys, result, 2, (const char ***, keys), (int *, count))                   \
  X(ParamDumpAll, nothing, 0, none)

/* ------------------------------------------------- what a row is made into */

/* LCOMM_NCCL_RETURNS(kind): the type behind what a row says. */
#define LCOMM_NCCL_RETURNS(kind) LCOMM_NCCL_RETURNS_##kind
#define LCOMM_NCCL_RETURNS_result ncclResult_t
#define LCOMM_NCCL_RETURNS_text const char *
#define LCOMM_NCCL_RETURNS_number int
#define LCOMM_NCCL_RETURNS_team ncclTeam_t
#define LCOMM_NCCL_RETURNS_nothing void

/* LCOMM_NCCL_PARAMETERS(n, ...): (const void *send, size_t count, ...) or (void)
 * LCOMM_NCCL_UNUSED(n, ...): the same for functions that do not look at them
 * LCOMM_NCCL_ARGUMENTS(n, ...): (send, count, ...) or () */
#define LCOMM_NCCL_PARAMETERS(n, ...) (LCOMM_NCCL_EACH_##n(LCOMM_NCCL_PARAMETER, __VA_ARGS__))
#define LCOMM_NCCL_UNUSED(n, ...) (LCOMM_NCCL_EACH_##n(LCOMM_NCCL_UNUSED_ONE, __VA_ARGS__))
#define LCOMM_NCCL_ARGUMENTS(n, ...) (LCOMM_NCCL_EACH_##n(LCOMM_NCCL_ARGUMENT, __VA_ARGS__))

#define LCOMM_NCCL_PARAMETER(type, name) type name
#define LCOMM_NCCL_PARAMETER_NONE void
#define LCOMM_NCCL_UNUSED_ONE(type, name) type name __attribute__((unused))
#define LCOMM_NCCL_UNUSED_ONE_NONE void
#define LCOMM_NCCL_ARGUMENT(type, name) name
#define LCOMM_NCCL_ARGUMENT_NONE

/* LCOMM_NCCL_EACH_n(M, ...): M of each of n pairs, with commas between them; M_NONE of none. */
#define LCOMM_NCCL_EACH_0(M, none) M##_NONE
#define LCOMM_NCCL_EACH_1(M, one) M one
#define LCOMM_NCCL_EACH_2(M, one, ...) M one, LCOMM_NCCL_EACH_1(M, __VA_ARGS__)
#define LCOMM_NCCL_EACH_3(M, one, ...) M one, LCOMM_NCCL_EACH_2(M, __VA_ARGS__)
#define LCOMM_NCCL_EACH_4(M, one, ...) M one, LCOMM_NCCL_EACH_3(M, __VA_ARGS__)
#define LCOMM_NCCL_EACH_5(M, one, ...) M one, LCOMM_NCCL_EACH_4(M, __VA_ARGS__)
#define LCOMM_NCCL_EACH_6(M, one, ...) M one, LCOMM_NCCL_EACH_5(M, __VA_ARGS__)
#define LCOMM_NCCL_EACH_7(M, one, ...) M one, LCOMM_NCCL_EACH_6(M, __VA_ARGS__)
#define LCOMM_NCCL_EACH_8(M, one, ...) M one, LCOMM_NCCL_EACH_7(M, __VA_ARGS__)
#define LCOMM_NCCL_EACH_9(M, one, ...) M one, LCOMM_NCCL_EACH_8(M, __VA_ARGS__)
#define LCOMM_NCCL_EACH_10(M, one, ...) M one, LCOMM_NCCL_EACH_9(M, __VA_ARGS__)
#define LCOMM_NCCL_EACH_11(M, one, ...) M one, LCOMM_NCCL_EACH_10(M, __VA_ARGS__)

#endif
