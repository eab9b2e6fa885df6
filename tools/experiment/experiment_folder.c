/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/experiment/experiment_folder.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/tool_origin.h"

enum { TEXT_SIZE_MAX = 32 << 20 };

extern char **environ;

/* -------------------------------------------------------------------- files */

char *experiment_folder_text(const char *folder, const char *name) {
  char path[EXPERIMENT_PATH_MAX + 64];
  struct stat about;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size > TEXT_SIZE_MAX) {
    return NULL;
  }
  char *text = malloc((size_t)about.st_size + 1);
  FILE *file = text ? fopen(path, "re") : NULL;
  size_t size = file ? fread(text, 1, (size_t)about.st_size, file) : 0;
  if (file) {
    fclose(file);
    text[size] = '\0';
    return text;
  }
  free(text);
  return NULL;
}

char *experiment_folder_results(const char *folder) {
  char *text = experiment_folder_text(folder, "results.jsonl");
  return text ? text : experiment_folder_text(folder, "out");
}

static bool complain(char *error, const char *path, const char *what) {
  snprintf(error, EXPERIMENT_ERROR_MAX, "'%.300s' cannot be %s: %s", path, what, strerror(errno));
  return false;
}

bool experiment_folder_write(const char *folder, const char *name, const char *text, size_t size,
                             char *error) {
  char path[EXPERIMENT_PATH_MAX + 64], part[EXPERIMENT_PATH_MAX + 72];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  snprintf(part, sizeof part, "%s.part", path);
  FILE *file = fopen(part, "we");
  bool good = file && fwrite(text, 1, size, file) == size && fflush(file) == 0;
  int why = errno;
  good = file && fclose(file) == 0 && good;
  errno = why;
  if (!good || rename(part, path) != 0) {
    complain(error, path, "written");
    unlink(part);
    return false;
  }
  return true;
}

/* As mkdir -p. */
static bool make_folders(const char *folder) {
  char path[EXPERIMENT_PATH_MAX];
  if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path) {
    errno = ENAMETOOLONG;
    return false;
  }
  for (char *at = path + 1; (at = strchr(at, '/')); at++) {
    *at = '\0';
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
      return false;
    }
    *at = '/';
  }
  return mkdir(path, 0777) == 0 || errno == EEXIST;
}

bool experiment_folder_begin(const char *folder, char *error) {
  static const char *const names[] = {"run.json", "results.jsonl", "out",
                                      "err",      "bytes.json",    "cluster.err"};
  char path[EXPERIMENT_PATH_MAX + 64];
  if (!make_folders(folder)) {
    return complain(error, folder, "made");
  }
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    if (unlink(path) != 0 && errno != ENOENT) {
      return complain(error, path, "removed");
    }
  }
  return true;
}

bool experiment_folder_lock(const char *folder, char *error) {
  char path[EXPERIMENT_PATH_MAX + 16];
  if (!make_folders(folder)) {
    return complain(error, folder, "made");
  }
  snprintf(path, sizeof path, "%s/lock", folder);
  int lock = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (lock < 0) {
    return complain(error, path, "made");
  }
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    close(lock);
    snprintf(error, EXPERIMENT_ERROR_MAX,
             "another libcomm-experiment works in '%.200s'; wait for it, or give --out another "
             "folder",
             folder);
    return false;
  }
  return true; /* the system gives it back */
}

/* ------------------------------------------------------------------ judgement */

/* The line of its errors that says most: the last that names a trouble, else the last. */
static void last_words(const char *folder, char *words, size_t size) {
  static const char *const signs[] = {"error",       "cannot",   "refused", "unreachable",
                                      "not resolve", "No space", "full",    "failed"};
  char *text = experiment_folder_text(folder, "err"), *rest = NULL;
  bool named = false;
  words[0] = '\0';
  for (char *line = text ? strtok_r(text, "\r\n", &rest) : NULL; line;
       line = strtok_r(NULL, "\r\n", &rest)) {
    bool sign = false;
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
      sign |= strstr(line, signs[i]) != NULL;
    }
    if ((sign || !named) && line[strspn(line, " -\t")] != '\0') {
      named |= sign;
      snprintf(words, size, "%.160s", line);
    }
  }
  for (char *c = words; *c != '\0'; c++) {
    *c = (unsigned char)*c < ' ' || *c == 0x7f ? ' ' : *c;
  }
  free(text);
}

static void judge_exit(const char *folder, int code, experiment_result *made) {
  char words[200];
  char *results = experiment_folder_results(folder);
  if (code != 0) {
    last_words(folder, words, sizeof words);
    snprintf(made->why, sizeof made->why, "exit status %d%s%.190s", code, words[0] ? ": " : "",
             words);
  } else if (!results || !experiment_result_parse(results, made)) {
    snprintf(made->why, sizeof made->why,
             "it ended well, but wrote no results: there is no line of JSON with an epoch or a "
             "median_s in them");
  } else {
    made->state = EXPERIMENT_GOOD;
  }
  free(results);
}

static void judge(const char *folder, const experiment_outcome *outcome, double limit_s,
                  experiment_result *made) {
  made->state = EXPERIMENT_FAILED;
  switch (outcome->end) {
  case EXPERIMENT_EXITED:
    judge_exit(folder, outcome->code, made);
    break;
  case EXPERIMENT_KILLED:
    snprintf(made->why, sizeof made->why, "signal %d: %s", outcome->code, strsignal(outcome->code));
    break;
  case EXPERIMENT_LATE:
    snprintf(made->why, sizeof made->why,
             "it took longer than its limit of %g s, and was ended; limit = in [experiment]",
             limit_s);
    break;
  case EXPERIMENT_STOPPED:
    snprintf(made->why, sizeof made->why, "stopped by the user");
    break;
  case EXPERIMENT_NO_START:
    snprintf(made->why, sizeof made->why, "it could not be started: %s", strerror(outcome->code));
    break;
  }
}

/* ------------------------------------------------------------------- recording */

/* What can change a result: the variables of libcomm, MPI, UCX and BLAS. */
static void put_environment(tool_json *json) {
  static const char *const kinds[] = {"LCOMM_", "OMPI_", "MPICH_", "UCX_", "OPENBLAS_", "OMP_"};
  cJSON *list = tool_json_array(json, json->root, "environment");
  for (char **at = environ; *at; at++) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
      if (strncmp(*at, kinds[i], strlen(kinds[i])) == 0) {
        tool_json_text(json, list, NULL, *at);
      }
    }
  }
}

/* What the emulated hosts sent. */
static double sum_bytes(const char *folder) {
  char *text = experiment_folder_text(folder, "bytes.json");
  cJSON *root = text ? cJSON_Parse(text) : NULL;
  const cJSON *host;
  double sum = 0.0;
  cJSON_ArrayForEach(host, cJSON_GetObjectItemCaseSensitive(root, "hosts")) {
    const cJSON *sent = cJSON_GetObjectItemCaseSensitive(host, "tx_bytes");
    sum += cJSON_IsNumber(sent) && sent->valuedouble > 0.0 ? sent->valuedouble : 0.0;
  }
  cJSON_Delete(root);
  free(text);
  return sum;
}

static void put_case(tool_json *json, const experiment_case *of) {
  tool_json_text(json, json->root, "run", of->of->name);
  tool_json_text(json, json->root, "where", experiment_where_name(of->of->where));
  tool_json_text(json, json->root, "policy", of->policy);
  tool_json_text(json, json->root, "rate", of->rate);
  tool_json_number(json, json->root, "delay_ms", of->delay_ms);
  tool_json_number(json, json->root, "hosts", of->world.hosts);
  tool_json_number(json, json->root, "ranks_per_host", of->world.ranks);
  tool_json_text(json, json->root, "model", of->model);
  tool_json_number(json, json->root, "seed", (double)of->seed);
  tool_json_number(json, json->root, "repetition", of->repetition);
}

/* The links of the case, for its origin. */
static void set_links(const experiment_case *of) {
  char delay_ms[32];
  snprintf(delay_ms, sizeof delay_ms, "%g", of->delay_ms);
  if (of->rate[0] != '\0') {
    setenv("CLUSTER_RATE", of->rate, 1);
    setenv("CLUSTER_DELAY_MS", delay_ms, 1);
  } else {
    unsetenv("CLUSTER_RATE");
    unsetenv("CLUSTER_DELAY_MS");
  }
}

bool experiment_folder_end(const char *folder, const experiment_case *of, const char *command,
                           const experiment_outcome *outcome, double limit_s,
                           experiment_result *made, char *error) {
  memset(made, 0, sizeof *made);
  judge(folder, outcome, limit_s, made);
  made->wall_s = outcome->seconds;
  made->interface_bytes = sum_bytes(folder);
  set_links(of);
  tool_json json = tool_json_begin();
  tool_json_text(&json, json.root, "state", made->state == EXPERIMENT_GOOD ? "good" : "failed");
  tool_json_text(&json, json.root, "why", made->why);
  tool_json_text(&json, json.root, "command", command);
  put_case(&json, of);
  tool_json_number(&json, json.root, "exit_code",
                   outcome->end == EXPERIMENT_EXITED ? outcome->code : -1);
  tool_json_number(&json, json.root, "seconds", made->wall_s);
  tool_json_number(&json, json.root, "interface_bytes", made->interface_bytes);
  tool_origin_put(&json, json.root,
                  &(tool_origin){of->world.hosts, made->transport, made->interface});
  put_environment(&json);
  char *text = json.broken ? NULL : cJSON_Print(json.root);
  tool_json_drop(&json);
  bool good = text && experiment_folder_write(folder, "run.json", text, strlen(text), error);
  if (!text) {
    snprintf(error, EXPERIMENT_ERROR_MAX, "no memory for the record of a run");
  }
  cJSON_free(text);
  if (good) {
    experiment_result_read(folder, command, made);
  }
  return good;
}
