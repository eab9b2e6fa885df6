/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/launching/launch_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

bool launch_port_is_free(int port) {
  int one = 1, s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in at = {.sin_family = AF_INET,
                           .sin_port = htons((uint16_t)port),
                           .sin_addr.s_addr = htonl(INADDR_ANY)};
  setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  bool free_port = s >= 0 && bind(s, (struct sockaddr *)&at, sizeof at) == 0 && listen(s, 1) == 0;
  close(s);
  return free_port;
}
