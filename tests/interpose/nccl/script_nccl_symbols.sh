#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# libcomm-nccl.so exports all names that each version of NCCL in symbols/ exports, and no other: a
# library that is linked with NCCL does not load when one is missing.
# symbols/VERSION.txt is `nm -D --defined-only libnccl.so.2 | awk '$2 ~ /[TW]/ { print $3 }'`, sorted,
# of the names that begin with nccl or pnccl.
set -u

# shellcheck source=tests/support/interposer_script.sh
source "$(dirname "$0")/../../support/interposer_script.sh"
lists=tests/interpose/nccl/symbols
library=$build/libcomm-nccl.so

command -v nm >/dev/null || { skip nccl_symbols "no nm in PATH"; exit 77; }
nm -D --defined-only "$library" | awk '{ print $3 }' | grep -v '^_' | LC_ALL=C sort >"$work/exported"

# holds NAME TROUBLE: there is none
holds() {
  if [ -z "$2" ]; then pass "$1"; else fail "$1" "$(tr '\n' ' ' <<<"$2")"; fi
}

for list in "$lists"/*.txt; do
  version=${list##*/}
  holds "all_names_of_${version%.txt}" "$(LC_ALL=C comm -13 "$work/exported" "$list")"
done
holds no_name_that_no_version_has "$(LC_ALL=C comm -23 "$work/exported" <(LC_ALL=C sort -u "$lists"/*.txt))"
holds it_has_the_name_of_nccl_for_the_loader "$(readelf -d "$library" | grep -q 'SONAME.*\[libnccl.so.2\]' || echo no)"
# So is it with NCCL; a profiler defines some of them and calls those with p.
holds names_that_have_one_with_p_are_weak "$(nm -D --defined-only "$library" | awk '{ kind[$3] = $2 }
  END { for (name in kind) if (("p" name) in kind && kind[name] != "W") print name }')"
holds it_needs_no_nccl_and_no_cuda "$(readelf -d "$library" | grep NEEDED | grep -iE 'cuda|nccl')"

exit $failed
