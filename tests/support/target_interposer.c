/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_interposer.h"

#include "libcomm/interpose/mpi/interpose_handshake.h"
#include "tests/support/fuzz_comm.h"
#include "tests/support/fuzz_promise.h"

static void change(fuzz_bytes *in, void *bytes, size_t room) {
  uint8_t patch[256];
  while (in->left > 0) {
    size_t offset = fuzz_u16(in) % room, size = fuzz_u8(in);
    fuzz_take(in, patch, size);
    memcpy((uint8_t *)bytes + offset, patch, size < room - offset ? size : room - offset);
  }
}

static void read_handshake(fuzz_bytes *in) {
  char sentence[LCOMM_INTERPOSE_SENTENCE_MAX] = "";
  lcomm_interpose_handshake first, *other = fuzz_allocate(sizeof *other);
  lcomm_interpose_handshake_init(&first);
  snprintf(first.policy, sizeof(first.policy), "net=int8");
  memcpy(other, &first, sizeof(first));
  change(in, other, sizeof *other);
  bool differs = lcomm_interpose_handshake_differs(&first, other, 7, sentence);
  fuzz_check_text(sentence, sizeof(sentence));
  fuzz_require(differs == (sentence[0] != '\0'), "a difference has a sentence");
  if (!differs) {
    fuzz_require(memcmp(other->magic, first.magic, sizeof(first.magic)) == 0 &&
                     other->version == first.version && other->mode == first.mode &&
                     other->level == first.level && other->controlled == first.controlled &&
                     other->required == first.required &&
                     strncmp(other->policy, first.policy, sizeof(first.policy)) == 0,
                 "ranks that agree were told the same");
  }
  free(other);
}

static void read_verdict(fuzz_bytes *in) {
  lcomm_interpose_verdict *received = fuzz_allocate(sizeof *received), first = {.good = 0};
  lcomm_interpose_verdict_init(&first);
  memcpy(received, &first, sizeof(first));
  change(in, received, sizeof *received);
  bool taken = lcomm_interpose_verdict_check(received);
  fuzz_check_text(received->sentence, sizeof(received->sentence));
  fuzz_require(taken == (memcmp(received->magic, first.magic, sizeof(first.magic)) == 0),
               "a verdict is known by its beginning");
  free(received);
}

/* What a name service gives: any text. */
static void read_word(fuzz_bytes *in) {
  char text[2 * LCOMM_INTERPOSE_WORD_TEXT_MAX], again[LCOMM_INTERPOSE_WORD_TEXT_MAX];
  char sentence[LCOMM_INTERPOSE_SENTENCE_MAX];
  lcomm_interpose_presence_word word = {.number = 0}, same;
  text[fuzz_take(in, text, sizeof(text) - 1)] = '\0';
  if (!lcomm_interpose_presence_word_read(text, &word)) {
    return;
  }
  fuzz_require((unsigned)word.kind < LCOMM_INTERPOSE_WORD_KINDS && word.number >= 0,
               "a word has a kind and a number");
  lcomm_interpose_presence_word_explain(&word, sentence);
  fuzz_check_text(sentence, sizeof(sentence));
  lcomm_interpose_presence_word_write(&word, again);
  fuzz_require(lcomm_interpose_presence_word_read(again, &same) && same.kind == word.kind &&
                   same.number == word.number,
               "what is written is read again");
}

static void read_control_file(fuzz_bytes *in) {
  char *words = fuzz_allocate(LCOMM_INTERPOSE_CONTROL_MAX), again[LCOMM_INTERPOSE_CONTROL_MAX];
  const char *policy = NULL;
  lcomm_interpose_control_trim(words, fuzz_take(in, words, LCOMM_INTERPOSE_CONTROL_MAX - 1));
  fuzz_check_text(words, LCOMM_INTERPOSE_CONTROL_MAX);
  size_t length = strlen(words);
  fuzz_require(length > 0 && words[0] != ' ' && words[length - 1] != ' ', "words are trimmed");
  memcpy(again, words, sizeof(again));
  lcomm_interpose_control_trim(again, length);
  fuzz_require(strcmp(again, words) == 0, "trimmed words stay as they are");
  lcomm_interpose_control_command what = lcomm_interpose_control_parse(words, &policy);
  fuzz_require((what == LCOMM_INTERPOSE_CONTROL_POLICY) == (policy != NULL), "a policy has words");
  fuzz_require(!policy || (policy > words && policy <= words + length), "they are the file's");
  free(words);
}

void lcomm_fuzz_interposer(const uint8_t *data, size_t size) {
  fuzz_bytes in = {data, size};
  uint8_t what = fuzz_u8(&in);
  if (what == 0) {
    read_handshake(&in);
  } else if (what == 1) {
    read_verdict(&in);
  } else if (what == 3) {
    read_word(&in);
  } else {
    read_control_file(&in);
  }
}
