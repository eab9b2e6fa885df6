/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <string.h>

#include "trainer/train_random.h"
#include "trainer/train_text.h"

/* The grammar, with a choice of words at each place:
 *
 *   sentence   subject verb object [place] end
 *   subject    the [adjective] noun
 *
 * Who did something in a sentence is often "it" in the next, so there is a little to learn beyond
 * the words. Stream STORY_STREAM of the random numbers makes the choices. */

#define STORY_STREAM ((uint64_t)1 << 41)

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *pick(random_stream *random, const char *const *words) {
  uint32_t count = 0;
  while (words[count]) {
    count++;
  }
  return words[random_below(random, count)];
}

static const char *noun(random_stream *random) {
  return pick(random, WORDS("sailor", "miller", "fox", "river", "queen", "clock", "gardener",
                            "captain", "mountain", "violin", "letter", "lantern", "bridge",
                            "shepherd", "winter", "market"));
}

static const char *adjective(random_stream *random) {
  return pick(random, WORDS("old", "quiet", "red", "patient", "broken", "golden", "distant",
                            "narrow", "clever", "frozen"));
}

static const char *verb(random_stream *random) {
  return pick(random, WORDS("watched", "carried", "forgot", "followed", "painted", "found",
                            "answered", "remembered", "crossed", "counted"));
}

static const char *place(random_stream *random) {
  return pick(random, WORDS("by the sea", "in the morning", "under the roof", "after the rain",
                            "on the hill", "before the harvest"));
}

typedef struct story {
  uint8_t *at, *end;
} story;

/* Cuts what does not fit. */
static void say(story *self, const char *words) {
  size_t length = strlen(words), left = (size_t)(self->end - self->at);
  length = length < left ? length : left;
  memcpy(self->at, words, length);
  self->at += length;
}

/* "old " or nothing, then a noun */
static void say_thing(story *self, random_stream *random) {
  if (random_below(random, 3) == 0) {
    say(self, adjective(random));
    say(self, " ");
  }
  say(self, noun(random));
}

static void say_sentence(story *self, random_stream *random) {
  if (random_below(random, 4) == 0) {
    say(self, "It");
  } else {
    say(self, "The ");
    say_thing(self, random);
  }
  say(self, " ");
  say(self, verb(random));
  say(self, " the ");
  say_thing(self, random);
  if (random_below(random, 3) == 0) {
    say(self, " ");
    say(self, place(random));
  }
  say(self, random_below(random, 6) == 0 ? ".\n\n" : ". ");
}

void story_write(uint64_t seed, uint8_t *bytes, size_t size) {
  random_stream random = random_begin(seed, STORY_STREAM);
  story made = {bytes, bytes + size};
  while (made.at < made.end) {
    say_sentence(&made, &random);
  }
}
