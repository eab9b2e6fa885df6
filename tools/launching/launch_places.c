/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/launching/launch_places.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOSTS_MAX = 4096, SLOTS_MAX = 1 << 20, LINE_SIZE = 1024, LIST_MAX = 256 };

typedef struct host {
  char name[LAUNCH_HOST_MAX];
  int slots; /* 0: it does not say */
} host;

typedef struct host_list {
  host hosts[HOSTS_MAX];
  int count;
  int slots; /* of all; 0: none says */
} host_list;

launch_place *launch_places_here(int ranks) {
  launch_place *made = calloc((size_t)ranks, sizeof *made);
  for (int rank = 0; made && rank < ranks; rank++) {
    made[rank].local_rank = rank;
    made[rank].local_size = ranks;
  }
  return made;
}

void launch_place_name(const launch_place *at, char name[LAUNCH_HOST_MAX]) {
  const char *user = strrchr(at->host, '@');
  snprintf(name, LAUNCH_HOST_MAX, "%s", user ? user + 1 : at->host);
  if (!launch_place_is_remote(at) && gethostname(name, LAUNCH_HOST_MAX - 1) != 0) {
    strcpy(name, "here");
  }
}

char *launch_places_list(const launch_place *places, int ranks) {
  char *text = NULL, name[LAUNCH_HOST_MAX];
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  for (int rank = 0; to && rank < ranks && size < LIST_MAX; rank++) {
    launch_place_name(&places[rank], name);
    const char *at = launch_place_is_remote(&places[rank]) ? name : "127.0.0.1";
    if (places[rank].local_rank == 0 && size + 1 + strlen(at) < LIST_MAX) {
      fprintf(to, "%s%s", rank > 0 ? "," : "", at);
      fflush(to); /* which brings the size up to date */
    }
  }
  return to && fclose(to) == 0 ? text : NULL;
}

/* ---------------------------------------------------------------- the file */

/* "slots=N", or nothing. */
static bool read_slots(const char *word, int *slots) {
  char *end = NULL;
  if (!word) {
    *slots = 0;
    return true;
  }
  if (strncmp(word, "slots=", 6) != 0 || word[6] < '0' || word[6] > '9') {
    return false;
  }
  long value = strtol(word + 6, &end, 10);
  *slots = (int)value;
  return *end == '\0' && value >= 1 && value <= SLOTS_MAX;
}

/* A name that begins with - would be an option of ssh. */
static bool read_line(char *line, host_list *list) {
  char *rest = NULL;
  line[strcspn(line, "#\r\n")] = '\0';
  const char *name = strtok_r(line, " \t", &rest);
  if (!name) {
    return true;
  }
  if (list->count == HOSTS_MAX || strlen(name) >= LAUNCH_HOST_MAX || name[0] == '-') {
    return false;
  }
  host *made = &list->hosts[list->count];
  snprintf(made->name, sizeof made->name, "%s", name);
  if (!read_slots(strtok_r(NULL, " \t", &rest), &made->slots) || strtok_r(NULL, " \t", &rest)) {
    return false;
  }
  list->slots += made->slots;
  list->count++;
  return list->slots <= SLOTS_MAX;
}

static bool read_hosts(FILE *file, const char *path, host_list *list, char *error, size_t size) {
  char line[LINE_SIZE];
  for (int number = 1; fgets(line, sizeof line, file); number++) {
    if (!read_line(line, list)) {
      snprintf(error, size, "line %d of %s is no host, such as \"node1\" or \"node1 slots=8\"",
               number, path);
      return false;
    }
  }
  if (ferror(file) || list->count == 0) {
    snprintf(error, size, "%s names no host", path);
    return false;
  }
  return true;
}

/* ------------------------------------------------------------------ places */

/* How many of the ranks host number i has. */
static int share_of(const host_list *list, int i, int ranks, int placed) {
  if (list->slots == 0) {
    return (int)((long)ranks * (i + 1) / list->count - (long)ranks * i / list->count);
  }
  int slots = list->hosts[i].slots > 0 ? list->hosts[i].slots : 1;
  return slots < ranks - placed ? slots : ranks - placed;
}

static int place_ranks(const host_list *list, int ranks, launch_place *made) {
  int placed = 0;
  for (int i = 0; i < list->count; i++) {
    int share = share_of(list, i, ranks, placed);
    for (int local = 0; local < share; local++, placed++) {
      snprintf(made[placed].host, LAUNCH_HOST_MAX, "%s", list->hosts[i].name);
      made[placed].local_rank = local;
      made[placed].local_size = share;
    }
  }
  return placed;
}

static launch_place *place_all(const host_list *list, const char *path, int ranks, char *error,
                               size_t size) {
  launch_place *made = launch_places_here(ranks);
  int placed = made ? place_ranks(list, ranks, made) : 0;
  if (placed == ranks) {
    return made;
  }
  if (made) {
    snprintf(error, size,
             "%s has slots for %d ranks, %d are asked for; give more slots=, or fewer ranks", path,
             placed, ranks);
  } else {
    snprintf(error, size, "no memory for %d ranks", ranks);
  }
  free(made);
  return NULL;
}

launch_place *launch_places_read(const char *path, int ranks, char *error, size_t size) {
  FILE *file = fopen(path, "r");
  if (!file) {
    snprintf(error, size, "cannot read the hosts in %s: %s", path, strerror(errno));
    return NULL;
  }
  host_list *list = calloc(1, sizeof *list);
  launch_place *made = NULL;
  if (!list) {
    snprintf(error, size, "no memory for the hosts in %s", path);
  } else if (read_hosts(file, path, list, error, size)) {
    made = place_all(list, path, ranks, error, size);
  }
  free(list);
  fclose(file);
  return made;
}
