#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# make install into a DESTDIR, with a prefix that has a space: what is there, that
# programs find it by pkg-config and by CMake, and that make uninstall leaves nothing.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
prefix='/opt/lib comm'
dest="$work/a dest"
there=$dest$prefix

fails() { ! "$@"; }

version=$(sed -nE 's/^#define LCOMM_VERSION_(MAJOR|MINOR|PATCH) //p' libcomm/include/libcomm.h | paste -sd .)
# add PREFIX [VARIABLE=VALUE...]: install what is built; remove likewise
add() { timeout -k 5 "$limit" make -s install-built BUILD="$build" DESTDIR="$dest" "PREFIX=$1" "${@:2}"; }
remove() { timeout -k 5 "$limit" make -s uninstall DESTDIR="$dest" "PREFIX=$1" "${@:2}"; }
nothing_in() { [ -z "$(find "$1" -mindepth 1 2>/dev/null)" ]; }

# ---------------------------------------------------------------- what is refused
expect a_relative_prefix_is_refused fails add opt/libcomm
add opt/libcomm >"$work/said" 2>&1
expect the_refusal_says_why grep -q "PREFIX is 'opt/libcomm', but must be an absolute path" "$work/said"
expect a_prefix_that_pkg_config_cannot_keep_is_refused fails add "/opt/a\"b"
expect what_was_refused_made_nothing nothing_in "$dest"
expect removing_what_is_not_there_is_an_error fails remove "$prefix"
expect make_refuses_before_it_builds bash -c '! make -s PREFIX=somewhere install'

# ---------------------------------------------------------------- what is there
expect it_installs add "$prefix"
for file in lib/libcomm.so lib/libcomm.a lib/libcomm-mpi.so lib/libcomm/libcomm-nccl.so lib/pkgconfig/libcomm.pc \
  lib/cmake/libcomm/libcomm-config.cmake include/libcomm.h include/libcomm_mpi.h \
  include/libcomm_collectives.h include/libcomm_pairs.h include/libcomm_stats.h include/libcomm_tensors.h include/libcomm_servers.h include/libcomm_residuals.h include/libcomm_elastic.h \
  share/doc/libcomm/LICENSE share/doc/libcomm/CHANGES.md share/doc/libcomm/examples/sum_env.c \
  share/man/man7/libcomm-environment.7; do
  expect "there_is_${file##*/}" test -s "$there/$file"
done
programs=()
for path in "$there"/bin/*; do programs+=("${path##*/}"); done
expect there_are_the_tools_of_the_readme test "$(printf '%s\n' "${programs[@]}" |
  grep -cxE 'libcomm-(info|train|codec_bench|cluster|allreduce_perf|trace_merge)')" -eq 6
expect tools_carry_the_prefix fails grep -v '^libcomm-' <(printf '%s\n' "${programs[@]}")

helps() {
  local name
  for name in "${programs[@]}"; do
    timeout "$limit" "$there/bin/$name" --help >/dev/null </dev/null || { echo "$name" && return 1; }
  done
}
expect all_tools_run_where_they_are helps

# Every option that a tool knows is in its manual page and in its completion.
options_of() {
  "$there/bin/$1" --help </dev/null | grep -E '^ {1,8}-' | sed -E 's/^ +//; s/  .*//' |
    grep -oE -- '(^| )--?[a-zA-Z][-a-z_A-Z]*' | tr -d ' '
}
in_manual() {
  local name option
  for name in "${programs[@]}"; do
    for option in $(options_of "$name"); do
      grep -qF -- "${option//-/\\-}" "$there/share/man/man1/$name.1" || { echo "$name $option" && return 1; }
    done
  done
}
expect manuals_have_all_options in_manual
in_environment() {
  local variable
  for variable in $("$there/bin/libcomm-info" --env | grep -oE '^ +[A-Z_0-9]+'); do
    grep -qF -- "$variable " "$there/share/man/man7/libcomm-environment.7" || { echo "$variable" && return 1; }
  done
}
expect the_manual_has_all_variables in_environment
if command -v man >/dev/null; then
  for page in "$there"/share/man/man?/*; do
    { man --warnings -E UTF-8 -l -Tutf8 "$page" >/dev/null; } 2>&1
  done >"$work/odd"
  expect manuals_are_clean test ! -s "$work/odd"
else
  skip manuals_are_clean "no man in PATH (package man-db)"
fi

# complete WORD...: what may stand for the last one
complete_words() {
  timeout "$limit" bash --norc -c 'source "$1"
    COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2)) COMPREPLY=()
    function=$(complete -p "$2" | sed -E "s/.*-F ([a-z_]+).*/\1/")
    "$function" "$2" "${!#}" && printf "%s " "${COMPREPLY[@]}"' _ "$there/share/bash-completion/completions/$1" "$@"
}
completes() { [ "$(complete_words "${@:2}")" = "$1" ]; }
expect options_are_completed completes '--epochs ' libcomm-train --ep
expect values_are_completed completes 'calls ' libcomm-allreduce_perf --progress c
expect values_after_an_equals_sign_are_completed completes 'thread ' libcomm-allreduce_perf --progress = t
expect commands_are_completed completes 'down ' libcomm-cluster d
in_completion() {
  local name option
  for name in "${programs[@]}"; do
    for option in $(options_of "$name"); do
      [[ " $(complete_words "$name" -) " == *" $option "* ]] || { echo "$name $option" && return 1; }
    done
  done
}
expect completion_has_all_options in_completion

# ---------------------------------------------------------------- Python
# python_says EXPRESSION PATTERN: of the package that was installed, with the library beside it
python_says() {
  env -u LIBCOMM_LIBRARY PYTHONPATH="$there/lib/libcomm/python" \
    timeout "$limit" python3 -c "import libcomm; print($1)" | grep -qxF -- "$2"
}
expect there_is_the_python_package test -s "$there/lib/libcomm/python/libcomm/__init__.py" -a \
  -e "$there/lib/libcomm/python/libcomm/py.typed" -a -s "$there/share/doc/libcomm/examples/numpy_sgd.py"
if [ -n "${SAN:-}" ]; then
  skip the_python_package_finds_its_library "a Python without sanitizers cannot load a library with them"
else
  expect the_python_package_finds_its_library python_says libcomm.library_path "$there/lib/$(readlink "$build/libcomm.so")"
  expect the_python_package_is_of_this_version python_says libcomm.__version__ "$version"
fi

# ---------------------------------------------------------------- programs of others
# What is staged in a DESTDIR has no prefix yet: as a package, it is moved there.
moved="$work/moved to"
mkdir -p "$moved" && cp -a "$there/." "$moved"
examples=$moved/share/doc/libcomm/examples
export PKG_CONFIG_PATH="$moved/lib/pkgconfig"
sed -i "s|^prefix=.*|prefix=$moved|" "$PKG_CONFIG_PATH/libcomm.pc"
expect pkg_config_knows_the_version test "$(pkg-config --modversion libcomm)" = "$version"
expect make_builds_the_examples timeout -k 5 "$limit" make -s -C "$examples" CFLAGS='-O1 -Wall -Wextra -Werror' \
  ${SAN:+CFLAGS="-O1 -fsanitize=$SAN"}

# two RANK_0 RANK_1: both ranks of a world without MPI
two() {
  local first
  next_port
  export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 LCOMM_PORT=$port LCOMM_TOKEN=install-$$ LCOMM_NODES=2
  RANK=1 timeout -k 5 "$limit" "$1" >"$work/one" 2>&1 </dev/null &
  first=$!
  RANK=0 timeout -k 5 "$limit" "$1" </dev/null && wait $first && cat "$work/one"
}
cmake_of_others() { # VERSION
  timeout -k 5 "$limit" cmake -S "$work/other" -B "$work/other-$1" -DWANTED="$1" -DCMAKE_PREFIX_PATH="$moved" \
    -DCMAKE_C_FLAGS="${SAN:+-fsanitize=$SAN}" && timeout -k 5 "$limit" cmake --build "$work/other-$1"
}
say() { two "$1/$2" | tee "$work/said" | grep -qE -- "$3"; }
for how in "by_pkg_config:$examples" "by_cmake:$work/cmake"; do
  folder=${how#*:} how=${how%%:*}
  if [ $how = by_cmake ]; then
    if ! command -v cmake >/dev/null; then
      skip examples_by_cmake "no cmake in PATH (package cmake)"
      continue
    fi
    expect cmake_builds_the_examples timeout -k 5 "$limit" bash -c 'cmake -S "$1" -B "$2" -DCMAKE_PREFIX_PATH="$3" \
      -DCMAKE_C_FLAGS="$4" && cmake --build "$2"' _ "$examples" "$folder" "$moved" "${SAN:+-fsanitize=$SAN}"
    mkdir "$work/other" && cp "$examples/sum_env.c" "$work/other"
    cat >"$work/other/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.13)
project(other C)
find_package(libcomm ${WANTED} REQUIRED)
add_executable(other sum_env.c)
target_link_libraries(other libcomm::static)
END
    expect cmake_refuses_an_interface_to_come fails cmake_of_others 99
    expect cmake_refuses_an_older_interface fails cmake_of_others 0.0.9
    expect cmake_without_a_version_links_the_archive cmake_of_others ''
  fi
  expect "sum_env_$how" say "$folder" sum_env 'rank 1 of 2: the sum is 3'
  expect "overlap_requests_$how" say "$folder" overlap_requests 'the largest value is 8, expected 8'
  [ $how = by_pkg_config ] || continue
  expect "train_tensors_$how" say "$folder" train_tensors 'after 400 steps [01]\.'
  expect "pipeline_stages_$how" say "$folder" pipeline_stages 'the loss of the last step is 0\.0'
  expect "serve_weights_$how" say "$folder" serve_weights 'loss after 100 steps 0\.0'
  expect "choose_codec_$how" say "$folder" choose_codec '^net=int8 .*error [0-9.]+e-0[45], '
done
unset WORLD_SIZE MASTER_ADDR LCOMM_PORT LCOMM_TOKEN LCOMM_NODES
expect sum_mpi_by_pkg_config bash -c 'timeout -k 5 "$1" tools/build/launch 2 "$2" | grep -q "sum over 2 ranks: 3, expected 3"' \
  _ "$limit" "$examples/sum_mpi"

# ---------------------------------------------------------------- again, and away
touch "$there/bin/of another"
echo "f $prefix/lib/of an older version" >>"$there/share/libcomm/manifest"
touch "$there/lib/of an older version"
expect it_installs_again add "$prefix"
expect what_an_older_version_had_is_removed test ! -e "$there/lib/of an older version"
expect it_is_removed remove "$prefix"
expect only_what_others_put_there_is_left test "$(find "$dest" -type f -o -type l)" = "$there/bin/of another"
rm -f "$there/bin/of another"
add "$prefix" >/dev/null 2>&1 && remove "$prefix" >/dev/null 2>&1
rmdir "$there/bin" "$there" "$dest/opt" 2>/dev/null
expect nothing_is_left nothing_in "$dest"

bindir='/usr/local/bin of' libdir=/usr/lib/some-triplet includedir=/usr/include/lcomm
places=("BINDIR=$bindir" "LIBDIR=$libdir" "INCLUDEDIR=$includedir")
expect it_installs_into_folders_of_their_own add /usr "${places[@]}"
expect the_library_is_in_libdir test -e "$dest$libdir/libcomm.so" -a -e "$dest$libdir/pkgconfig/libcomm.pc"
expect the_tools_are_in_bindir test -x "$dest$bindir/libcomm-info"
expect the_headers_are_in_includedir test -e "$dest$includedir/libcomm.h" -a ! -e "$dest/usr/include/libcomm.h"
expect pkg_config_says_where test "$(PKG_CONFIG_PATH="$dest$libdir/pkgconfig" pkg-config --cflags --libs libcomm |
  tr -d ' ')" = "-I$includedir-L$libdir-lcomm"
expect the_python_package_is_where_python_looks_or_beside_the_library bash -c \
  'ls "$0$1"/libcomm/python/libcomm/__init__.py "$0"/usr/lib/python3*/*-packages/libcomm/__init__.py 2>/dev/null | grep -q .' \
  "$dest" "$libdir"
expect tools_look_there bash -c 'make -n BINDIR="/usr/local/bin of" LIBDIR=/usr/lib/some-triplet "$1/train" |
  grep -qF "\$ORIGIN/../../lib/some-triplet"' _ "$BUILD"
expect all_of_it_is_removed remove /usr "${places[@]}"
expect nothing_of_it_is_left nothing_in "$dest"
