#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Conversions against oracles that are not ours: _Float16 of the compiler, and
# numpy and ml_dtypes of Python, which are installed into build/oracle when
# Python does not have them. oracle.c is our side, oracle.py compares.
set -u

cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-$(make -s print-build)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
wrap=()
# The thread sanitizer of older compilers dislikes strongly randomised addresses.
[ "${SAN:-}" = thread ] && setarch -R true 2>/dev/null && wrap=(setarch -R)

# shellcheck disable=SC2086 # flags are words
if ! ${CC:-gcc} -std=c11 -D_GNU_SOURCE -O2 -ffp-contract=off -I. -Ilibcomm/include \
  ${SAN:+-fsanitize=$SAN} tests/kernels/oracle.c "$build/libcomm.a" -pthread ${EXTRA_LDFLAGS:-} \
  -o "$work/oracle" 2>"$work/log"; then
  echo "FAIL oracle: it does not build"
  tail -n 20 "$work/log"
  exit 1
fi

for table in $("${wrap[@]}" "$work/oracle" tables | grep -v element); do
  name="${table}_encodes_fp16_as_the_compiler"
  "${wrap[@]}" "$work/oracle" compiler "$table"
  case $? in
    0) echo "PASS $name" ;;
    77) echo "SKIP $name: ${CC:-gcc} has no _Float16" ;;
    *) echo "FAIL $name" && failed=1 ;;
  esac
done

has_oracle() { "$1" -c 'import ml_dtypes, numpy' >/dev/null 2>&1; }

# Made in a folder of its own and moved, so that it is there whole or not at all.
install_oracle() {
  local new=build/oracle.$$
  mkdir -p build && rm -rf build/oracle &&
    python3 -m venv "$new" &&
    timeout 60 "$new/bin/python" -m pip install -q --disable-pip-version-check --retries 1 \
      --timeout 10 'ml_dtypes>=0.5' numpy &&
    mv -T "$new" build/oracle
  local rc=$?
  rm -rf "$new"
  return $rc
}

python=
if ! command -v python3 >/dev/null; then
  why="no python3 in PATH"
elif has_oracle python3; then
  python=python3
elif has_oracle build/oracle/bin/python || install_oracle >"$work/log" 2>&1; then
  python=build/oracle/bin/python
else
  why="ml_dtypes cannot be installed ($(grep -v '^$' "$work/log" | tail -n 1 | cut -c 1-150))"
fi

if [ -z "$python" ]; then
  echo "SKIP conversions_are_those_of_ml_dtypes: $why"
else
  "${wrap[@]}" "$python" tests/kernels/oracle.py "$work/oracle" || failed=1
fi
exit $failed
