#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# find_python MODULE[,MODULE...] [PREFERRED]: a Python that has them all, for there may be several:
# the system's has what its packages bring. One that has the module PREFERRED, too, if there is such.
# Scripts source this file.

find_python() {
  local candidate modules
  for modules in ${2:+"$1,$2"} "$1"; do
    for candidate in python3 /usr/bin/python3; do
      "$candidate" -c "import ${modules//,/, }" >/dev/null 2>&1 && echo "$candidate" && return
    done
  done
}
