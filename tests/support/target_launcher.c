/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_launcher.h"

#include "libcomm/base/env.h"
#include "libcomm/bootstrap/launcher_env.h"
#include "tests/support/fuzz_promise.h"

enum { OWN = 2, VARIABLES = LCOMM_LAUNCHER_COUNT + OWN, VALUE_MAX = 2048 };

static const char *name_of(int variable) {
  static const char *const own[OWN] = {"LCOMM_PORT", "LCOMM_TOKEN"};
  return variable < OWN ? own[variable] : lcomm_launcher_table[variable - OWN].variable;
}

/* What of this environment is not the input's goes, for the time of a run. */
static void clear(void) {
  for (int i = 0; i < VARIABLES; i++) {
    unsetenv(name_of(i));
  }
}

/* Variables stay in the environment where they lie; setenv would keep each value for ever. */
static void set_all(const uint8_t *data, size_t size) {
  static char texts[VARIABLES][VALUE_MAX];
  while (size > 0) {
    int variable = data[0] % VARIABLES;
    size_t length = strnlen((const char *)data + 1, size - 1);
    snprintf(texts[variable], VALUE_MAX, "%s=%.*s", name_of(variable), (int)length, data + 1);
    fuzz_require(putenv(texts[variable]) == 0, "the environment has room");
    size_t taken = 1 + length + (length + 1 < size);
    data += taken;
    size -= taken;
  }
}

static void check_place(const lcomm_launcher_env *place) {
  fuzz_require(place->world_size >= 1 && place->world_size <= 1 << 20, "a world has ranks");
  fuzz_require(place->rank >= 0 && place->rank < place->world_size, "a rank is in its world");
  fuzz_require(strnlen(place->address, sizeof(place->address)) < sizeof(place->address) &&
                   strnlen(place->token, sizeof(place->token)) < sizeof(place->token),
               "address and token end");
  if (place->world_size > 1) {
    fuzz_require(place->port >= 1 && place->port <= 65535, "a port is one");
    fuzz_require(place->address[0] != '\0', "there is an address");
    fuzz_require((place->token_from != NULL) == (place->token[0] != '\0'),
                 "a token comes from a variable");
  }
}

/* What a newcomer reads of the same variables. */
static void check_newcomer(lcomm_launcher_env *place, lcomm_why *why) {
  lcomm_status status = lcomm_launcher_env_read_place(place, why);
  fuzz_require(status == LCOMM_OK || status == LCOMM_ERR_ARGUMENT, "a job is found or refused");
  fuzz_require((status == LCOMM_OK) == (why->text[0] == '\0'), "a refusal has a sentence");
  if (status == LCOMM_OK) {
    fuzz_require(place->port >= 1 && place->port <= 65535, "a port is one");
    fuzz_require(strnlen(place->address, sizeof(place->address)) < sizeof(place->address),
                 "an address ends");
  }
}

void lcomm_fuzz_launcher(const uint8_t *data, size_t size) {
  lcomm_why *why = fuzz_allocate(sizeof *why);
  lcomm_launcher_env *place = fuzz_allocate(sizeof *place);
  clear();
  set_all(data, size);
  lcomm_status status = lcomm_launcher_env_read(place, why);
  fuzz_require(status == LCOMM_OK || status == LCOMM_ERR_ARGUMENT, "a place is found or refused");
  fuzz_require(strnlen(why->text, LCOMM_WHY_MAX) < LCOMM_WHY_MAX, "a sentence ends");
  fuzz_require((status == LCOMM_OK) == (why->text[0] == '\0'), "a refusal has a sentence");
  if (status == LCOMM_OK) {
    check_place(place);
  }
  check_newcomer(place, why);
  clear();
  free(place);
  free(why);
}
