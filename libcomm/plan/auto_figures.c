/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/plan/auto_figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(lcomm_auto_figures) % sizeof(float) == 0, "figures are whole words");

/* ------------------------------------------------------------------ figures */

lcomm_auto_figures lcomm_auto_figures_of(const lcomm_topo *topo) {
  const lcomm_link_cost *net = &topo->cost[LCOMM_LINK_NET];
  lcomm_auto_figures figures = {.latency_us = net->latency_us,
                                .bandwidth_gb_s = net->bandwidth_gb_s,
                                .message_us = net->message_us};
  memcpy(figures.codec, topo->codec_cost, sizeof(figures.codec));
  return figures;
}

static bool is_between(double figure, double least) {
  return figure >= least && figure < 1e12;
}

bool lcomm_auto_figures_are_possible(const lcomm_auto_figures *figures) {
  static const double LEAST = 1e-12;
  bool possible = is_between(figures->latency_us, LEAST) &&
                  is_between(figures->bandwidth_gb_s, LEAST) && is_between(figures->message_us, 0);
  for (int i = 0; i < LCOMM_AUTO_CODECS; i++) {
    const lcomm_codec_cost *codec = &figures->codec[i];
    possible &= is_between(codec->encode_gb_s, 0) && is_between(codec->decode_gb_s, 0) &&
                is_between(codec->encode_us, 0) && is_between(codec->decode_us, 0);
  }
  return possible;
}

void lcomm_auto_figures_put(const lcomm_auto_figures *figures, lcomm_topo *topo) {
  topo->cost[LCOMM_LINK_NET] = (lcomm_link_cost){.latency_us = figures->latency_us,
                                                 .bandwidth_gb_s = figures->bandwidth_gb_s,
                                                 .message_us = figures->message_us};
  memcpy(topo->codec_cost, figures->codec, sizeof(figures->codec));
}

const char *lcomm_auto_figures_format(const lcomm_topo *topo,
                                      char text[LCOMM_AUTO_FIGURES_TEXT_MAX]) {
  const lcomm_link_cost *net = &topo->cost[LCOMM_LINK_NET];
  snprintf(text, LCOMM_AUTO_FIGURES_TEXT_MAX,
           "%.3g us, %.3g us a message and %.3g GB/s, int8 for %.3g GB/s", net->latency_us,
           lcomm_message_cost_us(net), net->bandwidth_gb_s,
           lcomm_auto_speeds(topo, LCOMM_AUTO_INT8).encode_gb_s[LCOMM_STAGE_NET]);
  return text;
}

/* ---------------------------------------------------------------- correcting */

enum { FIRST = 4, MOST = 256, DOUBTS_MOST = 6 };

static const double OFF = 1.5;       /* a prediction that differs by half is wrong */
static const double RANGE = 1 << 20; /* of a correction */

bool lcomm_auto_is_agreed(uint64_t number) {
  uint64_t at = FIRST;
  while (at < number && at < MOST) {
    at *= 4;
  }
  return number > 0 && (number == at || (at == MOST && number % MOST == 0));
}

typedef enum term { TERM_BYTES, TERM_MESSAGES, TERM_CODECS } term;

/* The figures with which that term takes `times` as long. */
static lcomm_auto_figures scale(const lcomm_topo *topo, term it, double times) {
  lcomm_auto_figures figures = lcomm_auto_figures_of(topo);
  double message_us = lcomm_message_cost_us(&topo->cost[LCOMM_LINK_NET]);
  switch (it) {
  case TERM_BYTES:
    figures.bandwidth_gb_s /= times;
    break;
  case TERM_MESSAGES:
    figures.latency_us *= times;
    figures.message_us = message_us * times;
    break;
  case TERM_CODECS: /* another part of the processor is left for all of them */
    for (int i = 0; i < LCOMM_AUTO_CODECS; i++) {
      lcomm_codec_speeds speeds = lcomm_auto_speeds(topo, i);
      figures.codec[i] =
          (lcomm_codec_cost){.encode_gb_s = speeds.encode_gb_s[LCOMM_STAGE_NET] / times,
                             .decode_gb_s = speeds.decode_gb_s[LCOMM_STAGE_NET] / times,
                             .encode_us = speeds.encode_us[LCOMM_STAGE_NET] * times,
                             .decode_us = speeds.decode_us[LCOMM_STAGE_NET] * times};
    }
    break;
  }
  return figures;
}

static double predict_s(const lcomm_topo *topo, lcomm_auto_predictor predict, const void *context,
                        term it, double times) {
  lcomm_topo other = *topo; /* lends its lists */
  lcomm_auto_figures figures = scale(topo, it, times);
  lcomm_auto_figures_put(&figures, &other);
  return predict(context, &other).total_us * 1e-6;
}

/* The prediction grows with the term: by halving the interval of its logarithm. */
static double fit(const lcomm_topo *topo, lcomm_auto_predictor predict, const void *context,
                  term it, double measured_s) {
  enum { HALVINGS = 40 };
  double low = 1 / RANGE, high = RANGE;
  for (int i = 0; i < HALVINGS; i++) {
    double middle = sqrt(low * high);
    bool longer = predict_s(topo, predict, context, it, middle) > measured_s;
    low = longer ? low : middle;
    high = longer ? middle : high;
  }
  return low;
}

/* ------------------------------------------------------- what to correct */

/* Processors were measured by themselves, and messages by short sums: neither is wrong by more than
 * this. Bytes may be, where links are shared or limited in rate. */
static const double CODECS_RANGE = 4, MESSAGES_RANGE = 16;

static bool is_within(double times, double range) {
  return times < range && times > 1 / range;
}

/* As much may pass at once, whatever the rate of a link: fewer bytes cannot show that it is faster.
 */
static const double BURST_SIZE = 256 << 10;

static bool is_burst(const lcomm_topo *topo, lcomm_auto_predictor predict, const void *context) {
  enum { BYTES_PER_US = 1000 }; /* of a GB/s */
  double busy_us = predict(context, topo).link_us[LCOMM_LINK_NET];
  return busy_us * topo->cost[LCOMM_LINK_NET].bandwidth_gb_s * BYTES_PER_US < BURST_SIZE;
}

/* A term, and by how much it is longer than predicted. */
typedef struct correction {
  term it;
  double times;
} correction;

/* That on which the prediction spends most, where it can explain the time. */
static correction find_correction(const lcomm_topo *topo, lcomm_auto_predictor predict,
                                  const void *context, double measured_s) {
  lcomm_plan_time time = predict(context, topo);
  double bytes_us = time.link_us[LCOMM_LINK_NET];
  double messages_us = time.message_us + time.latency_us;
  if (time.codec_us > fmax(bytes_us, messages_us)) {
    double times = fit(topo, predict, context, TERM_CODECS, measured_s);
    if (is_within(times, CODECS_RANGE)) {
      return (correction){TERM_CODECS, times};
    }
  }
  correction bytes = {TERM_BYTES, fit(topo, predict, context, TERM_BYTES, measured_s)};
  correction messages = {TERM_MESSAGES, fit(topo, predict, context, TERM_MESSAGES, measured_s)};
  bool explains = is_within(messages.times, MESSAGES_RANGE) || !is_within(bytes.times, RANGE / 2);
  return messages_us > bytes_us && explains ? messages : bytes;
}

/* Is a finding that something is faster, or slower, to be acted on? */
static bool believe(lcomm_auto_trust *trust, bool faster) {
  if (faster && ++trust->faster < 1u << trust->doubts) {
    return false;
  }
  if (!faster && trust->raised && trust->doubts < DOUBTS_MOST) {
    trust->doubts++;
  }
  trust->faster = 0;
  trust->raised = faster;
  return true;
}

bool lcomm_auto_correct(lcomm_topo *topo, lcomm_auto_trust *trust, lcomm_auto_predictor predict,
                        const void *context, double measured_s) {
  double predicted_s = predict(context, topo).total_us * 1e-6;
  bool faster = predicted_s > OFF * measured_s, slower = measured_s > OFF * predicted_s;
  if (!(measured_s > 0 && predicted_s > 0) || !(faster || slower)) {
    trust->faster = 0;
    return false;
  }
  correction by = find_correction(topo, predict, context, measured_s);
  if (faster && by.it == TERM_BYTES && is_burst(topo, predict, context)) {
    return false;
  }
  if (!believe(trust, faster)) {
    return false;
  }
  lcomm_auto_figures figures = scale(topo, by.it, by.times);
  if (!lcomm_auto_figures_are_possible(&figures)) {
    return false;
  }
  lcomm_auto_figures_put(&figures, topo);
  return true;
}
