#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# The properties of the Python package, by pytest, with the library of the build folder: worlds of
# 1, 2 and 4 forked processes, and programs under launchers. Each file is a process of its own.
#   run_pytest.sh [torch|programs|rest]   those of PyTorch, those that start programs, all others
# PYTEST_ARGS: more arguments, such as "-k killed".
set -u

cd "$(dirname "$0")/../.." || exit 2
part=${1:-all}

# part_of FILE
part_of() {
  case ${1##*/test_} in
  backend* | device_hook.py | fsdp.py | optimizer.py | torch.py | torch_*) echo torch ;;
  examples.py | meeting.py | torchrun.py) echo programs ;;
  *) echo rest ;;
  esac
}

# shellcheck source=tests/support/find_python.sh
source tests/support/find_python.sh
build=$(realpath "${BUILD:-$(make -s print-build)}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -n "${SAN:-}" ]; then
  echo "SKIP python: a Python without sanitizers cannot load a library with them"
  exit 77
fi
python=$(find_python numpy,pytest torch)
if [ -z "$python" ]; then
  echo "SKIP python: no python3 with numpy and pytest (packages python3-numpy, python3-pytest)"
  exit 77
fi
unset LCOMM_POLICY LCOMM_NODES LCOMM_TRANSPORT LCOMM_STATS LCOMM_HOSTID RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
export LIBCOMM_LIBRARY=$build/libcomm.so PYTHONPATH=$PWD/libcomm/python:$PWD/tests/python
export PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
export TMPDIR=$work

failed=0
for file in tests/python/test_*.py; do
  [ "$part" = all ] || [ "$part" = "$(part_of "$file")" ] || continue
  # shellcheck disable=SC2086 # arguments are words
  "$python" -m pytest "$file" ${PYTEST_ARGS:-} >"$work/out" 2>&1
  status=$?
  grep -E '^(PASS|FAIL|SKIP) ' "$work/out"
  # 5: no test of this file was asked for, or the whole file was skipped
  if [ $status -ne 0 ] && [ $status -ne 5 ]; then
    failed=1
    grep -q '^FAIL ' "$work/out" || echo "FAIL ${file##*/}: pytest ended with status $status"
    grep -vE '^(PASS|FAIL|SKIP) ' "$work/out" | tail -n 40
  fi
done
exit $failed
