/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Reads the codecs of a policy: NAME[:OPTION[,OPTION...]][+ef|-ef][+zstd].
 * Every option has one function, in the table `options`. */

#include <stdio.h>

#include "libcomm/plan/number.h"
#include "libcomm/plan/policy_internal.h"

enum { SCALE_MAX = 24 }; /* largest power of two that scales fp16 */

typedef lcomm_policy_reader reader;
typedef lcomm_span span;

bool lcomm_policy_read_whole(lcomm_span s, uint64_t most, uint64_t *number) {
  bool overflow;
  size_t digits = lcomm_read_integer(s.text, s.length, number, &overflow);
  return digits > 0 && digits == s.length && !overflow && *number <= most;
}

/* Add to a list of names that are parted by commas; what does not fit is cut. */
static void append(char *text, size_t size, const char *name, const char *ending) {
  size_t used = strlen(text);
  snprintf(text + used, size - used, "%s%s%s", used > 0 ? ", " : "", name, ending);
}

/* ---------------------------------------------------------------- options */

static lcomm_status parse_scale(reader *r, span value, lcomm_format *format) {
  char quoted[LCOMM_QUOTE_MAX];
  uint64_t number = 0;
  bool negative = value.length > 2 && value.text[2] == '-';
  if (lcomm_span_is(value, "block")) {
    format->variant = LCOMM_FP16_BLOCK;
    return LCOMM_OK;
  }
  if (value.length < 3 || memcmp(value.text, "2^", 2) != 0 ||
      !lcomm_policy_read_whole(lcomm_span_after(value, negative ? 3 : 2), SCALE_MAX, &number)) {
    return lcomm_policy_fail(
        r, value.text, "%s is no scale; expected scale=block or scale=2^N with -%d <= N <= %d",
        lcomm_policy_quote(value, quoted), SCALE_MAX, SCALE_MAX);
  }
  format->variant = number == 0 ? LCOMM_VARIANT_PLAIN : LCOMM_FP16_FIXED;
  format->exponent = (int8_t)(negative ? -(int)number : (int)number);
  return LCOMM_OK;
}

static lcomm_status parse_block(reader *r, span value, lcomm_format *format) {
  char quoted[LCOMM_QUOTE_MAX], names[64] = "", name[8];
  uint64_t number = 0;
  bool known = lcomm_policy_read_whole(value, UINT16_MAX, &number);
  for (const uint16_t *block = format->codec->blocks; *block != 0; block++) {
    snprintf(name, sizeof name, "%u", *block);
    append(names, sizeof names, name, "");
    if (known && number == *block) {
      format->block = *block;
      return LCOMM_OK;
    }
  }
  return lcomm_policy_fail(r, value.text, "%s is no block of %s; expected one of %s",
                           lcomm_policy_quote(value, quoted), format->codec->name, names);
}

static lcomm_status parse_stochastic(reader *r, span value, lcomm_format *format) {
  (void)r, (void)value;
  format->stochastic = true;
  return LCOMM_OK;
}

static lcomm_status parse_values(reader *r, span value, lcomm_format *format) {
  bool int8 = lcomm_span_is(value, "int8");
  if (!int8 && !lcomm_span_is(value, "bf16")) {
    return lcomm_policy_refuse(r, "", value, " is no format of kept values; expected bf16 or int8");
  }
  format->variant = int8 ? LCOMM_TOPK_INT8 : LCOMM_VARIANT_PLAIN;
  return LCOMM_OK;
}

enum {
  OPTION_COUNT = 4,
  HAVE_FP8 = 1 << LCOMM_CODEC_FP8E4M3 | 1 << LCOMM_CODEC_FP8E5M2,
  HAVE_BLOCKS = HAVE_FP8 | 1 << LCOMM_CODEC_INT8 | 1 << LCOMM_CODEC_INT4 | 1 << LCOMM_CODEC_SIGN |
                1 << LCOMM_CODEC_INT2
};

static const struct option {
  const char *name;
  unsigned codecs;    /* bit: codec id */
  const char *values; /* after the name, as people are told; "": a mere word */
  const char *example;
  lcomm_status (*parse)(reader *r, span value, lcomm_format *format);
} options[OPTION_COUNT] = {
    {"scale", 1 << LCOMM_CODEC_FP16, "=block|2^N", "fp16:scale=2^10", parse_scale},
    {"block", HAVE_BLOCKS, "=N", "int8:block=32", parse_block},
    {"stochastic", HAVE_FP8, "", "fp8e4m3:block=32,stochastic", parse_stochastic},
    {"values", 1 << LCOMM_CODEC_TOPK, "=bf16|int8", "topk:0.01,values=int8+ef", parse_values},
};

static bool has_option(const lcomm_codec *codec, int index) {
  return (options[index].codecs >> codec->id & 1) != 0;
}

static lcomm_status fail_option(reader *r, span name, const lcomm_codec *codec) {
  char quoted[LCOMM_QUOTE_MAX], names[96] = "";
  for (int i = 0; i < OPTION_COUNT; i++) {
    if (!has_option(codec, i)) {
      continue;
    }
    if (names[0] == '\0') {
      r->example = options[i].example;
    }
    append(names, sizeof names, options[i].name, options[i].values);
  }
  if (names[0] == '\0') {
    return lcomm_policy_fail(r, name.text, "codec %s takes no options, found %s; expected %s alone",
                             codec->name, lcomm_policy_quote(name, quoted), codec->name);
  }
  return lcomm_policy_fail(r, name.text, "codec %s has no option %s; expected %s", codec->name,
                           lcomm_policy_quote(name, quoted), names);
}

/* A value ends where the next option or an ending begins; the minus of 2^-N
 * begins no ending. */
static span option_value(span s) {
  span value = lcomm_span_before(s, ",+-");
  if (value.length > 0 && value.length < s.length && value.text[value.length - 1] == '^') {
    value.length += 1 + lcomm_span_before(lcomm_span_after(s, value.length + 1), ",+-").length;
  }
  return value;
}

/* One option at the beginning of *rest; *rest becomes what follows. */
static lcomm_status read_option(reader *r, span *rest, unsigned *seen, lcomm_format *format) {
  span name = lcomm_span_before(*rest, "=,+-");
  int index = 0;
  while (index < OPTION_COUNT &&
         !(has_option(format->codec, index) && lcomm_span_is(name, options[index].name))) {
    index++;
  }
  if (index == OPTION_COUNT) {
    return fail_option(r, name, format->codec);
  }
  const struct option *option = &options[index];
  r->example = option->example;
  if ((*seen >> index & 1) != 0) {
    return lcomm_policy_fail(
        r, name.text, "option %s is given a second time; expected each option once", option->name);
  }
  *seen |= 1u << index;
  *rest = lcomm_span_after(*rest, name.length);
  span value = {rest->text, 0};
  bool given = rest->length > 0 && *rest->text == '=';
  if (given != (option->values[0] != '\0')) {
    return lcomm_policy_fail(r, rest->text, "option %s %s; expected %s%s", option->name,
                             given ? "takes no value" : "needs a value", option->name,
                             option->values);
  }
  if (given) {
    value = option_value(lcomm_span_after(*rest, 1));
  }
  *rest = lcomm_span_after(*rest, value.length + (given ? 1 : 0));
  return option->parse(r, value, format);
}

/* ------------------------------------------------------------------ top-k */

/* What top-k keeps, after its name; *rest becomes what follows. */
static lcomm_status read_kept(reader *r, span *rest, lcomm_format *format) {
  char quoted[LCOMM_QUOTE_MAX];
  r->example = "topk:0.01+ef";
  if (rest->length == 0 || *rest->text != ':') {
    return lcomm_policy_fail(r, rest->text,
                             "topk needs the share of values to send; expected topk:DENSITY with 0 "
                             "< DENSITY <= 1, or topk:k=N");
  }
  span text = lcomm_span_after(*rest, 1);
  format->density = 0;
  if (text.length >= 2 && memcmp(text.text, "k=", 2) == 0) {
    span number = lcomm_span_before(lcomm_span_after(text, 2), ",+-");
    *rest = lcomm_span_after(text, 2 + number.length);
    if (lcomm_policy_read_whole(number, UINT32_MAX, &format->kept) && format->kept > 0) {
      return LCOMM_OK;
    }
    return lcomm_policy_refuse(r, "", number,
                               " is no number of values to keep; expected digits, 1 <= N < 2^32");
  }
  size_t length = lcomm_read_decimal(text.text, text.length, &format->density);
  *rest = lcomm_span_after(text, length);
  if (length == 0 || (rest->length > 0 && lcomm_span_before(*rest, ",+-").length > 0)) {
    return lcomm_policy_refuse(
        r, "", text,
        " is no density; expected a decimal number with 0 < DENSITY <= 1, or k=N; net= alone has "
        "presets, topk:safe and topk:fast");
  }
  if (!(format->density > 0 && format->density <= 1)) {
    return lcomm_policy_fail(r, text.text,
                             "density %s is out of range; expected 0 < DENSITY <= 1, or k=N",
                             lcomm_policy_quote((span){text.text, length}, quoted));
  }
  return LCOMM_OK;
}

/* ----------------------------------------------------------------- codecs */

static lcomm_status read_options(reader *r, span *rest, lcomm_format *format) {
  lcomm_status status = LCOMM_OK;
  unsigned seen = 0;
  char before = ':';
  if (lcomm_format_is_sparse(format)) {
    status = read_kept(r, rest, format);
    before = ',';
  }
  while (status == LCOMM_OK && rest->length > 0 && *rest->text == before) {
    *rest = lcomm_span_after(*rest, 1);
    status = read_option(r, rest, &seen, format);
    before = ',';
  }
  return status;
}

static lcomm_status read_endings(reader *r, span rest, lcomm_codec_spec *choice) {
  bool feedback_said = false;
  r->example = "int8+zstd";
  for (span ending; rest.length > 0; rest = lcomm_span_after(rest, ending.length)) {
    ending = (span){rest.text, 1 + lcomm_span_before(lcomm_span_after(rest, 1), "+-").length};
    bool zstd = lcomm_span_is(ending, "+zstd");
    if (!zstd && !lcomm_span_is(ending, "+ef") && !lcomm_span_is(ending, "-ef")) {
      return lcomm_policy_refuse(r, "unknown ending ", ending,
                                 " of a codec; expected +ef, -ef, +zstd or nothing");
    }
    if (zstd ? choice->format.zstd : feedback_said) {
      return lcomm_policy_refuse(
          r, "ending ", ending,
          " comes a second time; expected at most one of +ef and -ef, and +zstd once");
    }
    if (zstd) {
      choice->format.zstd = true;
      continue;
    }
    if (choice->format.codec->id == LCOMM_CODEC_NONE) {
      return lcomm_policy_fail(r, ending.text,
                               "codec none is exact and leaves no error to feed back; expected "
                               "none, none+zstd, or a lossy codec");
    }
    feedback_said = true;
    choice->error_feedback = *ending.text == '+';
  }
  return LCOMM_OK;
}

/* Error feedback and what lives off it have no place inside a node. */
static lcomm_status fail_in_node(reader *r, span value, const char *name, const char *ending) {
  return lcomm_policy_fail(
      r, value.text,
      "%s%s cannot be used inside a node: its error feedback lives on the shard, after the exact "
      "reduction inside the node; put it on net, and expect here a dense codec without +ef",
      name, ending);
}

/* auto[:CLASS], between nodes only; without a class no error is allowed. */
static lcomm_status read_auto(reader *r, span value, span rest, lcomm_codec_place place,
                              lcomm_codec_spec *choice) {
  r->example = "auto:int8";
  if (place == LCOMM_IN_NODE || !r->key) {
    return lcomm_policy_fail(r, value.text,
                             "auto chooses among codecs between nodes; expected it on net, and "
                             "here a codec");
  }
  if (rest.length == 0) {
    *choice = lcomm_auto_spec(LCOMM_AUTO_LOSSLESS);
    return LCOMM_OK;
  }
  span name = lcomm_span_after(rest, 1);
  for (int i = LCOMM_AUTO_LOSSLESS; i < LCOMM_AUTO_COUNT; i++) {
    if (*rest.text == ':' && lcomm_span_is(name, lcomm_auto_class_name((lcomm_auto_class)i))) {
      *choice = lcomm_auto_spec((lcomm_auto_class)i);
      return LCOMM_OK;
    }
  }
  return lcomm_policy_refuse(
      r, "", rest,
      " is no class of errors that auto may make; expected auto:lossless, "
      "auto:bf16, auto:int8, auto:int4, auto:int2, auto:sign, auto:lowrank or "
      "auto:topk");
}

static bool takes(lcomm_codec_place place, const char *name) {
  if (place == LCOMM_IN_RACK) {
    return lcomm_policy_rack_takes((span){name, strlen(name)});
  }
  return place != LCOMM_ON_PIPE || lcomm_policy_pipe_takes(name);
}

/* What the place refuses by its name. */
static lcomm_status check_place(reader *r, span value, span name, lcomm_codec_place place) {
  if (place == LCOMM_IN_RACK) {
    return lcomm_policy_check_rack(r, value, name);
  }
  return place == LCOMM_ON_PIPE ? lcomm_policy_check_pipe(r, value, name) : LCOMM_OK;
}

static lcomm_status fail_name(reader *r, span name, lcomm_codec_place place) {
  char quoted[LCOMM_QUOTE_MAX], names[192] = "";
  for (const lcomm_codec *const *c = lcomm_codec_list; *c != NULL; c++) {
    if (takes(place, (*c)->name)) {
      append(names, sizeof names, (*c)->name, (*c)->id == LCOMM_CODEC_TOPK ? ":DENSITY" : "");
    }
  }
  if (place == LCOMM_ON_NET && r->key) {
    append(names, sizeof names, "lowrank", ":RANK");
    append(names, sizeof names, "auto", ":CLASS");
  }
  return lcomm_policy_fail(r, name.text, "unknown codec %s; expected one of %s",
                           lcomm_policy_quote(name, quoted), names);
}

lcomm_status lcomm_policy_read_codec(lcomm_policy_reader *r, lcomm_span value,
                                     lcomm_codec_place place, lcomm_codec_spec *choice) {
  const char *example = r->example;
  span name = lcomm_span_before(value, ":+-"), rest = lcomm_span_after(value, name.length);
  const lcomm_codec *codec = lcomm_codec_by_name(name.text, name.length);
  LCOMM_TRY(check_place(r, value, name, place));
  if (lcomm_span_is(name, "auto")) {
    return read_auto(r, value, rest, place, choice);
  }
  if (lcomm_span_is(name, "lowrank")) {
    return lcomm_policy_read_lowrank(r, value, place, choice);
  }
  if (!codec) {
    return fail_name(r, name, place);
  }
  if (place == LCOMM_IN_NODE && codec->id == LCOMM_CODEC_TOPK) {
    return fail_in_node(r, value, codec->name, "");
  }
  lcomm_codec_spec read = {.format = lcomm_format_of(codec)};
  read.error_feedback = place == LCOMM_ON_NET && codec->feeds_back;
  lcomm_status status = read_options(r, &rest, &read.format);
  if (status == LCOMM_OK) {
    status = read_endings(r, rest, &read);
  }
  if (status != LCOMM_OK) {
    return status;
  }
  r->example = example;
  if (place == LCOMM_IN_RACK && read.error_feedback) {
    return lcomm_policy_fail_in_rack(r, value);
  }
  if (place == LCOMM_IN_NODE && read.error_feedback) {
    return fail_in_node(r, value, codec->name, "+ef");
  }
  *choice = read;
  return LCOMM_OK;
}

lcomm_status lcomm_format_parse(const char *text, lcomm_codec_spec *choice, lcomm_why *error) {
  reader r = {.text = text ? text : "", .example = "int8", .error = error};
  error->text[0] = '\0';
  return lcomm_policy_read_codec(&r, (span){r.text, strlen(r.text)}, LCOMM_ON_NET, choice);
}
