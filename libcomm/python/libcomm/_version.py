# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""The version of the package, which is that of the libcomm.so it is for."""

__version__ = "0.1.0"
