#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# find_python MODULE[,MODULE...]: a Python that has them all, for there may be several: the system's
# has what its packages bring. Scripts source this file.

find_python() {
  local candidate
  for candidate in python3 /usr/bin/python3; do
    "$candidate" -c "import ${1//,/, }" >/dev/null 2>&1 && echo "$candidate" && return
  done
}
