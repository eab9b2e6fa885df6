#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Compare libcomm's table of NCCL's functions and its types with headers of NCCL. Run by hand:
#   check_abi.sh NCCL_INCLUDE CUDA_INCLUDE
# A wheel nvidia-nccl-cu13 has the first, below nvidia/nccl/include; a toolkit the second. Prints one
# line for each difference; functions and fields that the headers do not know are left out.
set -u
[ $# -eq 2 ] || { sed -n '5,8s/^# //p' "$0" >&2; exit 2; }
headers=$1 cuda=$2
cd "$(dirname "$0")/../../.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(awk '/define NCCL_VERSION_CODE/ { print $3 }' "$headers/nccl.h")

# Functions: the compiler refuses a second declaration that differs from the first.
cat >"$work/functions.cc" <<'END'
#include <nccl.h>
#if __has_include(<nccl_device.h>)
#include <nccl_device.h>
#endif
#include "libcomm/interpose/nccl/nccl_functions.h"
#define DECLARE(name, kind, n, ...) \
  LCOMM_NCCL_RETURNS(kind) nccl##name LCOMM_NCCL_PARAMETERS(n, __VA_ARGS__);
extern "C" { LCOMM_NCCL_LIST(DECLARE) }
END
${CXX:-g++} -std=c++17 -w -fmax-errors=0 -I. -I"$headers" -I"$cuda" -fsyntax-only "$work/functions.cc" >"$work/said" 2>&1
grep -E 'error: (conflicting|ambiguating)' "$work/said" | sed 's/.*error: //' | sort -u >"$work/differences"

# Types: one program, once with each header, prints sizes and offsets.
cat >"$work/types.c" <<'END'
#include <stddef.h>
#include <stdio.h>
#include HEADER
#define SIZE(type) printf("sizeof(%s) %zu\n", #type, sizeof(type))
#define FIELD(type, field) printf("%s.%s %zu\n", #type, #field, offsetof(type, field))
#define NUMBER(name) printf("%s %lld\n", #name, (long long)name)
int main(void) {
  SIZE(ncclComm_t); SIZE(ncclUniqueId); SIZE(ncclResult_t); SIZE(ncclDataType_t); SIZE(ncclRedOp_t);
  NUMBER(ncclSuccess); NUMBER(ncclUnhandledCudaError); NUMBER(ncclSystemError); NUMBER(ncclInternalError);
  NUMBER(ncclInvalidArgument); NUMBER(ncclInvalidUsage); NUMBER(ncclRemoteError); NUMBER(ncclInProgress);
  NUMBER(ncclInt8); NUMBER(ncclUint8); NUMBER(ncclInt32); NUMBER(ncclUint32); NUMBER(ncclInt64); NUMBER(ncclUint64);
  NUMBER(ncclFloat16); NUMBER(ncclFloat32); NUMBER(ncclFloat64); NUMBER(ncclBfloat16);
  NUMBER(ncclSum); NUMBER(ncclProd); NUMBER(ncclMax); NUMBER(ncclMin); NUMBER(ncclAvg); NUMBER(ncclNumOps); NUMBER(ncclMaxRedOp);
  NUMBER(ncclScalarDevice); NUMBER(ncclScalarHostImmediate);
  FIELD(ncclConfig_t, size); FIELD(ncclConfig_t, magic); FIELD(ncclConfig_t, version); FIELD(ncclConfig_t, blocking);
  FIELD(ncclConfig_t, cgaClusterSize); FIELD(ncclConfig_t, minCTAs); FIELD(ncclConfig_t, maxCTAs);
  FIELD(ncclConfig_t, netName); FIELD(ncclConfig_t, splitShare);
#if VERSION >= 22200
  SIZE(ncclSimInfo_t); FIELD(ncclSimInfo_t, estimatedTime);
#endif
#if VERSION >= 22400
  NUMBER(ncclFloat8e4m3); NUMBER(ncclFloat8e5m2);
#endif
#if VERSION >= 22600
  FIELD(ncclConfig_t, trafficClass);
#endif
#if VERSION >= 22700
  FIELD(ncclConfig_t, commName); FIELD(ncclConfig_t, collnetEnable); FIELD(ncclConfig_t, CTAPolicy);
  FIELD(ncclConfig_t, shrinkShare); FIELD(ncclConfig_t, nvlsCTAs);
#endif
#if VERSION >= 22800
  FIELD(ncclConfig_t, nChannelsPerNetPeer); FIELD(ncclConfig_t, nvlinkCentricSched);
#endif
#if VERSION >= 22907
  FIELD(ncclConfig_t, graphUsageMode); FIELD(ncclConfig_t, numRmaCtx);
  NUMBER(ncclStatGpuMemSuspend); NUMBER(ncclStatGpuMemTotal);
#endif
#if VERSION >= 23007
  FIELD(ncclConfig_t, maxP2pPeers); FIELD(ncclConfig_t, graphStreamOrdering);
#endif
#if VERSION >= 23100
  FIELD(ncclConfig_t, launchOrderImplicit); FIELD(ncclConfig_t, numRmaSig); FIELD(ncclConfig_t, rmaEagerInit);
  FIELD(ncclConfig_t, hostCftMode); NUMBER(ncclTimeout);
#endif
#if VERSION >= 23200
  FIELD(ncclConfig_t, nvlsHostMode); SIZE(ncclConfig_t);
#endif
  return 0;
}
END
layout() { # HEADER NAME
  ${CC:-gcc} -w -D__CUDA_BF16_TYPES_EXIST__ -DHEADER="$1" -DVERSION="$version" -I. -I"$headers" -I"$cuda" "$work/types.c" -o "$work/$2" && "$work/$2" >"$work/$2.txt" ||
    echo "the types of $1 do not compile" >>"$work/differences"
}
layout '<nccl.h>' theirs
layout '"libcomm/interpose/nccl/nccl_abi.h"' ours
diff "$work/theirs.txt" "$work/ours.txt" | grep '^[<>]' >>"$work/differences"

cat "$work/differences"
echo "NCCL $version: $(wc -l <"$work/differences") differences; the headers declare $(
  grep -ohE '\bnccl[A-Z][A-Za-z0-9]*\(' "$headers"/nccl.h | sort -u | wc -l) functions in nccl.h"
[ ! -s "$work/differences" ]
