#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# libcomm.so needs no MPI: it names none, and ranks that meet without MPI run in a root
# that holds the program, libcomm.so, what these two need, and nothing else.
set -u
cd "$(dirname "$0")/../.." || exit 2
limit=${TEST_PART_S:-600}
build=$(realpath "${BUILD:-$(make -s print-build)}")
work=$(mktemp -d)
root=$work/root
trap 'rm -rf "$work"' EXIT
export LCOMM_TIMEOUT_S=${LCOMM_TIMEOUT_S:-60}
failed=0
pass() { echo "PASS $1"; }
fail() {
  echo "FAIL $1: $2"
  failed=1
}

# names_no_mpi NAME WHAT TEXT
names_no_mpi() {
  if ! grep -q libc.so <<<"$3"; then
    fail "$1" "what $2 needs cannot be found out"
  elif found=$(grep -iE 'libmpi|libopen-(pal|rte)|libmpich' <<<"$3"); then
    fail "$1" "$2 needs $(xargs <<<"$found")"
  else
    pass "$1"
  fi
}
names_no_mpi libcomm_so_names_no_mpi libcomm.so "$(readelf -d "$build/libcomm.so")"
names_no_mpi libcomm_so_needs_no_mpi libcomm.so "$(ldd "$build/libcomm.so")"

# A build without MPI leaves out what includes mpi.h, and says so.
plan=$(make -n MPI=none NVCC=none all 2>&1)
if grep -qE 'CC +(libcomm/interpose/mpi/|libcomm/bootstrap/mpi_|libcomm/transport/mpi/mpi_(transport|control))|-lmpi' <<<"$plan"; then
  fail build_without_mpi_leaves_it_out "$(grep -m3 -E 'interpose/mpi/|bootstrap/mpi_|mpi_transport|mpi_control|-lmpi' <<<"$plan")"
elif ! grep -q 'Left out: libcomm-with-mpi.so' <<<"$plan"; then
  fail build_without_mpi_leaves_it_out "it does not say so"
else
  pass build_without_mpi_leaves_it_out
fi

sanitizer=()
[ -n "${SAN:-}" ] && sanitizer=("-fsanitize=$SAN" tests/support/sanitizer/*.c)
if ! ${CC:-gcc} -std=c11 -D_GNU_SOURCE -Ilibcomm/include "${sanitizer[@]}" tests/bootstrap/without_mpi.c \
  -L"$build" -lcomm -Wl,-rpath,/lib ${EXTRA_LDFLAGS:+"$EXTRA_LDFLAGS"} -o "$work/without_mpi" 2>"$work/log"; then
  fail ranks_meet_where_there_is_no_mpi "the program does not build: $(tail -n 3 "$work/log")"
  exit 1
fi

# What the loader would take, at the places where it looks for it.
mkdir -p "$root/lib" "$root/proc" "$root/dev" "$root/tmp" "$root/sys"
cp "$work/without_mpi" "$root/"
if [ -n "${SAN:-}" ]; then # what is forgiven is read there, too
  mkdir -p "$root$PWD/tests/support" && cp tests/support/*.supp "$root$PWD/tests/support/"
fi
LD_LIBRARY_PATH=$build ldd "$work/without_mpi" | grep -oE '/[^ ]+ \(0x' | while read -r file _; do
  mkdir -p "$root$(dirname "$file")"
  cp -L "$file" "$root/lib/"
  [ -e "$root$file" ] || cp -L "$file" "$root$file"
done

# within COMMAND...: in that root, with the kernel's own folders
within() {
  # shellcheck disable=SC2016 # the inner shell expands it
  timeout -k 5 "$limit" "${own[@]}" sh -c 'root=$1; shift
    mount --rbind /proc "$root/proc" && mount --rbind /dev "$root/dev" &&
      mount --rbind /sys "$root/sys" && exec chroot "$root" "$@"' sh "$root" "$@"
}
own=()
for unshare in "unshare --mount" "unshare --mount --map-root-user"; do
  read -ra own <<<"$unshare"
  "${own[@]}" sh -c "mount --rbind /proc '$root/proc' && chroot / true" </dev/null >/dev/null 2>&1 && break
  own=()
done
if [ ${#own[@]} -eq 0 ]; then
  echo "SKIP ranks_meet_where_there_is_no_mpi: no mount namespace and chroot can be had here"
  exit $failed
fi

# meet NAME WORD...: three ranks, each told by LCOMM_TRANSPORT=$transport; the words are said
meet() {
  local name=$1 rank pids=() codes=0 word
  shift
  for rank in 0 1 2; do
    RANK=$rank WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port LCOMM_TRANSPORT=$transport \
      within /without_mpi >"$work/out.$rank" 2>&1 &
    pids+=($!)
  done
  for rank in 0 1 2; do wait "${pids[rank]}" || codes=$((codes + 1)); done
  for word in "$@"; do
    grep -qF -- "$word" "$work/out.0" || {
      fail "$name" "'$word' is not said; $codes of 3 ranks failed: $(tail -n 3 "$work/out.0" | xargs -0)"
      return
    }
  done
  pass "$name"
}
port=$((20000 + $$ % 10000)) transport=auto
meet ranks_meet_where_there_is_no_mpi "the sum of 3 ranks is 6" "no file of MPI is mapped"
port=$((port + 1)) transport=mpi
meet mpi_asked_for_where_there_is_none_is_a_sentence "mpi: the program is not linked with libcomm-with-mpi.so"

exit $failed
