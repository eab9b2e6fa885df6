#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# The Python package in PyTorch: hook, backend, optimiser.
exec "$(dirname "$0")/run_pytest.sh" torch
