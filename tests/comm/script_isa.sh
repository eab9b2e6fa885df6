#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# LCOMM_ISA changes the speed of a training and nothing else.
set -u

launch=tools/build/launch train=$BUILD/train failed=0
usual=
for isa in scalar avx2 avx512; do
  name=a_training_with_${isa}_ends_with_the_same_weights
  out=$(LCOMM_NODES=2 LCOMM_ISA=$isa "$launch" 2 "$train" --images 1000 --epochs 1 \
    --policy "net=topk:0.01,values=int8+ef+zstd" 2>&1)
  weights=$(sed -nE 's/.*identical on all ranks \((0x[0-9a-f]+)\).*/\1/p' <<<"$out")
  usual=${usual:-$weights}
  if grep -q 'does not support it\|no such kernels' <<<"$out"; then
    echo "SKIP $name: this processor or system does not run $isa"
  elif [ -n "$weights" ] && [ "$weights" = "$usual" ]; then
    echo "PASS $name"
  else
    echo "FAIL $name: weights ${weights:-unknown}, not $usual"
    sed 's/^/  | /' <<<"$out" | tail -n 20
    failed=1
  fi
done
exit $failed
