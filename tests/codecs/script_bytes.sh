#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# The same bytes from every compiler at every optimisation: test_codecs_bytes,
# which compares with kept digests, is built by gcc and clang at -O0 and -O3.
set -u

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-std=c11 -D_GNU_SOURCE -ffp-contract=off -I. -Ilibcomm/include)
failed=0

declare -A isa
for table in avx2 avx512 avx512_vbmi; do
  isa[$table]=$(make -s print-isa-flags FILE="kernels/$table.c")
done

# compile COMPILER OPTIMISATION FILE FOLDER
compile() {
  local flags_of_file=
  case $3 in
    kernels/avx512_vbmi*) flags_of_file=${isa[avx512_vbmi]} ;;
    kernels/avx512*) flags_of_file=${isa[avx512]} ;;
    kernels/avx2*) flags_of_file=${isa[avx2]} ;;
  esac
  # shellcheck disable=SC2086 # flags are words
  "$1" "${flags[@]}" "$2" $flags_of_file -c "$3" -o "$4/${3//\//_}.o"
}

# build COMPILER OPTIMISATION: two files at a time
build() {
  local folder=$work/$1$2 file
  mkdir "$folder"
  for file in codecs/*.c kernels/*.c tests/codecs/test_codecs_bytes.c; do
    case $(uname -m):$file in
      *:codecs/codec_state.c | *:codecs/wire.c | *:codecs/lossless*) continue ;; # not in these bytes
      x86_64:kernels/generic.c) continue ;;
      x86_64:*) ;;
      *:kernels/x86.c | *:kernels/avx*) continue ;;
    esac
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
    compile "$1" "$2" "$file" "$folder" &
  done
  wait
  "$1" "$folder"/*.o -lcmocka -lxxhash -lm -pthread -o "$folder/test"
}

for compiler in gcc clang; do
  for optimisation in -O0 -O3; do
    name="the_golden_bytes_come_from_$compiler$optimisation"
    if ! command -v "$compiler" >/dev/null; then
      echo "SKIP $name: no $compiler in PATH"
    elif build "$compiler" "$optimisation" >"$work/log" 2>&1 &&
      "$work/$compiler$optimisation/test" >>"$work/log" 2>&1; then
      echo "PASS $name"
    else
      echo "FAIL $name"
      tail -n 20 "$work/log"
      failed=1
    fi
  done
done
exit $failed
