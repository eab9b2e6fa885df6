/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The address by which other hosts reach this one: that of a network interface, which
 * NCCL_SOCKET_IFNAME chooses as NCCL documents it. */

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_address.h"

static const char variable[] = "NCCL_SOCKET_IFNAME";

/* ------------------------------------------------------------------ choosing */

static bool is_in_list(const char *list, bool is_exact, const char *name) {
  while (*list) {
    size_t length = strcspn(list, ",");
    bool begins = length > 0 && strncmp(list, name, length) == 0;
    if (begins && (!is_exact || name[length] == '\0')) {
      return true;
    }
    list += length + (list[length] == ',');
  }
  return false;
}

bool lcomm_nccl_interface_matches(const char *list, const char *name) {
  bool excludes = *list == '^';
  list += excludes;
  bool is_exact = *list == '=';
  list += is_exact;
  return is_in_list(list, is_exact, name) != excludes;
}

/* Up, with an address of IPv4. */
static const struct in_addr *address_of(const struct ifaddrs *it) {
  bool has_address = (it->ifa_flags & IFF_UP) && it->ifa_addr && it->ifa_addr->sa_family == AF_INET;
  return has_address ? &((const struct sockaddr_in *)(const void *)it->ifa_addr)->sin_addr : NULL;
}

static bool is_loopback(const struct ifaddrs *it) {
  return (it->ifa_flags & IFF_LOOPBACK) != 0;
}

/* The first one that the list names; without a list, the first one that is not loopback. Where the
 * list only excludes, loopback is the last choice. */
static const struct ifaddrs *choose(const struct ifaddrs *all, const char *list) {
  const struct ifaddrs *last = NULL;
  bool takes_loopback = list && *list != '^';
  for (const struct ifaddrs *it = all; it; it = it->ifa_next) {
    if (!address_of(it) || (list && !lcomm_nccl_interface_matches(list, it->ifa_name))) {
      continue;
    }
    if (takes_loopback || !is_loopback(it)) {
      return it;
    }
    last = last ? last : it;
  }
  return last;
}

/* ------------------------------------------------------------------- failing */

static ncclResult_t none_matches(const struct ifaddrs *all, const char *list) {
  char names[256] = "";
  size_t used = 0;
  for (const struct ifaddrs *it = all; it && used < sizeof(names); it = it->ifa_next) {
    int put = address_of(it) ? snprintf(names + used, sizeof(names) - used, "%s%s",
                                        used > 0 ? ", " : "", it->ifa_name)
                             : 0;
    used += put > 0 ? (size_t)put : 0;
  }
  return lcomm_nccl_fail(
      ncclInvalidUsage,
      "ncclGetUniqueId: %s=%.100s chooses no network interface of this host that "
      "is up and has an IPv4 address; those that have are %s",
      variable, list, names[0] ? names : "none");
}

ncclResult_t lcomm_nccl_address_find(char *text, size_t size) {
  const char *list = getenv(variable);
  struct ifaddrs *all = NULL;
  list = list && list[0] ? list : NULL;
  if (getifaddrs(&all) != 0) {
    return lcomm_nccl_fail(ncclSystemError,
                           "ncclGetUniqueId: the network interfaces of this host cannot be listed: "
                           "%s",
                           strerror(errno));
  }
  const struct ifaddrs *chosen = choose(all, list);
  ncclResult_t result = ncclSuccess;
  if (chosen) {
    inet_ntop(AF_INET, address_of(chosen), text, (socklen_t)size);
  } else if (list) {
    result = none_matches(all, list);
  } else {
    snprintf(text, size, "127.0.0.1");
  }
  freeifaddrs(all);
  return result;
}
