/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_LAUNCH_PORT_H
#define LCOMM_TOOLS_LAUNCH_PORT_H

#include <stdbool.h>

/* Does nobody listen at this TCP port of this machine? */
bool launch_port_is_free(int port);

#endif
