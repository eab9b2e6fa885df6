/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_trace.h"

#include <cjson/cJSON.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/fuzz_promise.h"
#include "tools/trace/trace_report.h"
#include "tools/trace/trace_timeline.h"

static const char head[] =
    "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"x\","
    "\"libcomm_trace\":1,\"rank\":0,\"size\":2,\"host\":\"h\",\"communicator\":1,\"process\":5,"
    "\"base_s\":3}},\n";

static FILE *open_text(char **text, size_t *size) {
  FILE *file = open_memstream(text, size);
  fuzz_require(file != NULL, "the test machine has memory");
  return file;
}

/* What was read can be merged with itself, and viewers can read that. */
static void check_merge(lcomm_trace_survey surveys[2], lcomm_trace_messages *messages) {
  lcomm_trace_match match;
  char *text = NULL, *said = NULL, why[LCOMM_TRACE_WHY_MAX];
  size_t size = 0, said_size = 0;
  lcomm_trace_merge_processes(surveys, 2);
  fuzz_require(surveys[0].viewer_process != surveys[1].viewer_process, "processes are told apart");
  fuzz_require(lcomm_trace_match_make(messages, surveys, 2, &match), "there is memory");
  FILE *file = open_text(&text, &size);
  fuzz_require(lcomm_trace_merge_write(surveys, 2, &match, file, why),
               "what was surveyed can be merged");
  fclose(file);
  cJSON *events = cJSON_ParseWithLength(text, size);
  fuzz_require(cJSON_IsArray(events), "a merged trace is valid");
  fuzz_require((uint64_t)cJSON_GetArraySize(events) >=
                   surveys[0].events + surveys[1].events + 2 * match.pair_count,
               "no event is lost");
  cJSON_Delete(events);
  file = open_text(&said, &said_size);
  fuzz_require(lcomm_trace_report_table(surveys, 2, &match, file), "there is memory");
  lcomm_trace_report_oddities(surveys, 2, &match, file);
  fclose(file);
  free(said);
  free(text);
  free(match.pairs);
}

static void read_twice(const char *path) {
  lcomm_trace_survey surveys[2];
  lcomm_trace_messages messages = {0};
  char why[LCOMM_TRACE_WHY_MAX] = "";
  if (!lcomm_trace_survey_read(path, 0, &surveys[0], &messages, why)) {
    fuzz_require(memchr(why, '\0', sizeof(why)) != NULL && why[0] != '\0',
                 "a refusal is a sentence");
  } else {
    fuzz_require(lcomm_trace_survey_read(path, 1, &surveys[1], &messages, why),
                 "a file reads the same again");
    check_merge(surveys, &messages);
  }
  free(messages.all);
}

void lcomm_fuzz_trace(const uint8_t *data, size_t size) {
  if (size < 1) {
    return;
  }
  size_t begun = data[0] % 2 == 1 ? sizeof(head) - 1 : 0;
  int file = memfd_create("trace", 0);
  fuzz_require(file >= 0 && write(file, head, begun) == (ssize_t)begun &&
                   write(file, data + 1, size - 1) == (ssize_t)(size - 1),
               "the test machine has memory files");
  char path[64];
  snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
  read_twice(path);
  close(file);
}
