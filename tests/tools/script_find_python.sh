#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Which Python scripts take, where the first in PATH has less than the system's.
set -u

# shellcheck source=tests/support/expect.sh
. "$(dirname "$0")/../support/expect.sh"
# shellcheck source=tests/support/find_python.sh
. "$(dirname "$0")/../support/find_python.sh"
if ! /usr/bin/python3 -c 'import json, os'; then
  echo "SKIP find_python: no /usr/bin/python3"
  exit 77
fi
mkdir "$work/bin"
printf '#!%s\n[ "$*" = "-c import json" ]\n' "$BASH" >"$work/bin/python3" # has json alone
chmod +x "$work/bin/python3"
PATH=$work/bin:$PATH

expect the_first_in_path_is_taken test "$(find_python json)" = python3
expect one_that_has_all_is_taken test "$(find_python json,os)" = /usr/bin/python3
expect one_that_has_what_is_preferred_is_taken test "$(find_python json os)" = /usr/bin/python3
expect who_lacks_it_is_taken_where_nobody_has_it test "$(find_python json no_such_module)" = python3
expect nobody_is_taken_where_nobody_has_all test -z "$(find_python no_such_module os)"
