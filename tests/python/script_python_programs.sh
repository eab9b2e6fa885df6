#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# Programs in Python, as launchers start them.
exec "$(dirname "$0")/run_pytest.sh" programs
