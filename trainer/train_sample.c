/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_sample.h"

#include <math.h>
#include <string.h>

#include "trainer/train_clock.h"
#include "trainer/train_random.h"

enum { BYTES = 256 };
#define TEMPERATURE 0.8f
#define SAMPLE_STREAM ((uint64_t)1 << 42)

/* One of the bytes, by its logit. */
static int draw(const float *logits, random_stream *random) {
  float share[BYTES], largest = logits[0], sum = 0.0f;
  for (int i = 1; i < BYTES; i++) {
    largest = logits[i] > largest ? logits[i] : largest;
  }
  for (int i = 0; i < BYTES; i++) {
    share[i] = expf((logits[i] - largest) / TEMPERATURE);
    sum += share[i];
  }
  float left = sum * random_unit(random);
  for (int i = 0; i < BYTES - 1; i++) {
    left -= share[i];
    if (left < 0.0f) {
      return i;
    }
  }
  return BYTES - 1;
}

/* The window holds the last bytes, at most `context` of them; what is behind them is not looked at,
 * because attention is causal. */
size_t sample_text(model *net, int context, uint64_t seed, double limit_s, char *text,
                   size_t size) {
  random_stream random = random_begin(seed, SAMPLE_STREAM);
  float *window = model_input(net);
  int used = 1;
  size_t made = 0;
  memset(window, 0, (size_t)context * sizeof *window);
  window[0] = '\n';
  for (double end_s = now_s() + limit_s; made < size && now_s() < end_s; made++) {
    float logits[BYTES];
    const element *all = model_infer(net, 1);
    net->on->load(logits, element_at(net->on, all, (size_t)(used - 1) * BYTES), BYTES);
    int next = draw(logits, &random);
    text[made] = (char)next;
    if (used == context) {
      memmove(window, window + 1, (size_t)(context - 1) * sizeof *window);
      used--;
    }
    window[used++] = (float)next;
  }
  return made;
}
