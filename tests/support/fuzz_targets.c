/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/fuzz_targets.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/codec.h"
#include "codecs/topk.h"
#include "codecs/wire.h"
#include "kernels/stripe.h"
#include "libcomm/plan/policy.h"
#include "libcomm/topo/topo.h"

static void require(bool promise, const char *what) {
  if (promise)
    return;
  fprintf(stderr, "broken promise: %s\n", what);
  abort();
}

/* Zeroed memory of exactly this size, so that a sanitizer sees one byte too far. */
static void *allocate(size_t size) {
  void *memory = calloc(size, 1);
  require(memory != NULL || size == 0, "the test machine has memory");
  return memory;
}

static void *exact_copy(const void *data, size_t size) {
  void *copy = allocate(size);
  if (size > 0)
    memcpy(copy, data, size);
  return copy;
}

static char *text_of(const uint8_t *data, size_t size) {
  char *text = allocate(size + 1);
  if (size > 0)
    memcpy(text, data, size);
  return text;
}

static bool is_printable(const char *text) {
  for (; *text != '\0'; text++) {
    if (*text < 0x20 || *text >= 0x7f)
      return false;
  }
  return true;
}

/* ----------------------------------------------------------------- policy */

static bool same_choice(const lcomm_codec_choice *a, const lcomm_codec_choice *b) {
  return a->codec == b->codec && a->density == b->density && a->error_feedback == b->error_feedback;
}

static void check_equal(const lcomm_policy *a, const lcomm_policy *b) {
  require(same_choice(&a->net, &b->net) && same_choice(&a->node, &b->node),
          "codecs survive their text");
  require(a->min_bytes == b->min_bytes && a->warmup_steps == b->warmup_steps &&
              a->bucket_bytes == b->bucket_bytes,
          "numbers survive their text");
  require(a->scope == b->scope && a->algorithm == b->algorithm && a->checksum == b->checksum,
          "choices survive their text");
  require(a->exempt_count == b->exempt_count && memcmp(a->exempt, b->exempt, sizeof a->exempt) == 0,
          "exempt patterns survive their text");
}

void lcomm_fuzz_policy(const uint8_t *data, size_t size) {
  char *text = text_of(data, size);
  char error[LCOMM_POLICY_ERROR_MAX], canonical[LCOMM_POLICY_MAX], again[LCOMM_POLICY_MAX];
  lcomm_policy policy, reread;
  lcomm_status status = lcomm_policy_parse(text, &policy, error);
  if (status == LCOMM_OK) {
    lcomm_policy_format(&policy, canonical);
    require(lcomm_policy_parse(canonical, &reread, error) == LCOMM_OK, "canonical text parses");
    check_equal(&policy, &reread);
    lcomm_policy_format(&reread, again);
    require(strcmp(canonical, again) == 0, "canonical text is stable");
    require(lcomm_policy_exempts(&policy, text) == lcomm_policy_exempts(&reread, text),
            "a policy from canonical text exempts the same names");
  } else {
    require(status == LCOMM_ERR_POLICY, "a bad policy is a policy error");
    require(strncmp(error, "policy, column ", 15) == 0, "a policy error names its column");
    require(is_printable(error), "a policy error is printable");
  }
  free(text);
}

/* --------------------------------------------------------------- topology */

static char *print_topo(const lcomm_topo *topo) {
  size_t size = lcomm_topo_print(topo, NULL, 0) + 1;
  char *text = allocate(size);
  require(lcomm_topo_print(topo, text, size) == size - 1, "print knows its length");
  require(strlen(text) == size - 1, "print fills its length");
  return text;
}

static void check_topo(const lcomm_topo *topo) {
  char error[LCOMM_TOPO_ERROR_MAX];
  lcomm_topo loaded;
  char *text = print_topo(topo);
  require(lcomm_topo_load(text, &loaded, error) == LCOMM_OK, "printed topologies load");
  char *again = print_topo(&loaded);
  require(strcmp(text, again) == 0, "printed topologies print the same again");
  require(topo->size == loaded.size && topo->nodes == loaded.nodes, "sizes survive their text");
  for (int rank = 0; rank < topo->size; rank++)
    require(topo->node[rank] == loaded.node[rank] &&
                memcmp(topo->host[rank], loaded.host[rank], LCOMM_HOST_MAX) == 0,
            "the place of every rank survives its text");
  for (int node = 0; node < topo->nodes; node++) {
    lcomm_group group = lcomm_topo_node_group(topo, node, lcomm_topo_rank(topo, node, 0));
    require(group.size > 0 && group.me == 0, "every node has a first rank");
    require(lcomm_topo_link(topo, group.ranks[0], group.ranks[group.size - 1]) != LCOMM_LINK_NET,
            "no network inside a node");
  }
  free(text);
  free(again);
  lcomm_topo_free(&loaded);
}

static void load_text(const uint8_t *data, size_t size) {
  char *text = text_of(data, size), error[LCOMM_TOPO_ERROR_MAX];
  lcomm_topo topo;
  if (lcomm_topo_load(text, &topo, error) == LCOMM_OK) {
    check_topo(&topo);
  } else {
    require(strncmp(error, "topology, line ", 15) == 0, "a topology error names its line");
    require(is_printable(error), "a topology error is printable");
  }
  lcomm_topo_free(&topo);
  free(text);
}

/* Byte 0: ranks, byte 1: forced nodes, then what peers say of themselves. */
static void create_from_peers(const uint8_t *data, size_t size) {
  enum { RANKS = 32 };
  lcomm_identity identities[RANKS];
  char error[LCOMM_TOPO_ERROR_MAX];
  lcomm_topo topo;
  if (size < 2)
    return;
  int ranks = data[0] % (RANKS + 1), forced_nodes = (int8_t)data[1] / 4;
  memset(identities, 0, sizeof identities);
  size_t said = size - 2 < sizeof identities ? size - 2 : sizeof identities;
  memcpy(identities, data + 2, said);
  for (int rank = 0; rank < ranks; rank++)
    identities[rank].host_hash %= 8; /* so that hosts repeat */
  if (lcomm_topo_create(identities, ranks, forced_nodes, &topo, error) == LCOMM_OK)
    check_topo(&topo);
  else
    require(is_printable(error) && error[0] != '\0', "a topology error is a sentence");
  lcomm_topo_free(&topo);
}

void lcomm_fuzz_topo(const uint8_t *data, size_t size) {
  load_text(data, size);
  create_from_peers(data, size);
}

/* ------------------------------------------------------------ wire header */

void lcomm_fuzz_wire(const uint8_t *data, size_t size) {
  uint8_t *bytes = exact_copy(data, size), packed[LCOMM_WIRE_HEADER_SIZE];
  lcomm_wire_header header;
  const char *why = NULL;
  lcomm_status status = lcomm_wire_unpack(bytes, size, &header, &why);
  require(lcomm_wire_unpack(bytes, size, &header, NULL) == status, "why may be NULL");
  if (status == LCOMM_OK) {
    lcomm_wire_pack(&header, packed);
    require(memcmp(packed, bytes, sizeof packed) == 0, "an accepted header packs to its bytes");
    require(header.version == LCOMM_WIRE_VERSION, "an accepted header has a known version");
    require((header.flags | LCOMM_WIRE_CHECKSUM) == LCOMM_WIRE_CHECKSUM,
            "an accepted header has known flags");
    require(lcomm_codec_by_id(header.codec) != NULL, "an accepted header has a codec");
    require(lcomm_dtype_size((lcomm_dtype)header.dtype) > 0, "an accepted header has a dtype");
    lcomm_wire_checksum(bytes + sizeof packed, size - sizeof packed);
  } else {
    require(status == LCOMM_ERR_WIRE && why != NULL, "a refused header has a reason");
  }
  free(bytes);
}

/* ------------------------------------------------------------------ top-k */

/* Byte 0 and 1: base count, byte 2: parts and part, byte 3: the number of
 * outputs and the density of the encoder, then a payload or floats. */
typedef struct topk_input {
  uint64_t base_count;
  uint32_t parts, part, outputs;
  double density;
  const uint8_t *rest;
  size_t size;
} topk_input;

static const float outside = -7.0f; /* marks elements that are not in the view */

/* An array of base_count elements: the view holds `value`, the rest `outside`. */
static float *make_view(const topk_input *in, float value) {
  float *base = allocate((size_t)in->base_count * sizeof *base);
  for (uint64_t i = 0; i < in->base_count; i++)
    base[i] = lcomm_stripe_owner(i, in->parts) == in->part ? value : outside;
  return base;
}

/* Nothing outside the view was touched; returns how many inside are not 0. */
static uint64_t check_view(const topk_input *in, const float *base) {
  uint64_t changed = 0;
  for (uint64_t i = 0; i < in->base_count; i++) {
    if (lcomm_stripe_owner(i, in->parts) == in->part)
      changed += base[i] != 0.0f;
    else
      require(base[i] == outside, "elements outside the view stay as they are");
  }
  return changed;
}

static void apply_payload(const topk_input *in, const uint8_t *payload, uint64_t entries) {
  float *base = make_view(in, 5.0f), *residual = make_view(in, 0.0f);
  lcomm_topk_decode(payload, in->base_count, in->parts, in->part, 1.0f, base);
  require(check_view(in, base) <= entries, "decode writes its entries only");
  lcomm_topk_add(payload, in->parts, in->part, 0.5f, base);
  require(check_view(in, base) <= entries, "add writes its entries only");
  lcomm_topk_add(payload, in->parts, in->part, 1.0f, residual);
  lcomm_topk_settle(payload, payload, in->parts, in->part, residual);
  for (uint64_t i = 0; i < in->base_count; i++) {
    if (residual[i] - residual[i] == 0.0f && residual[i] != outside)
      require(residual[i] == 0.0f, "what was sent and applied leaves the residual");
  }
  lcomm_topk_settle(payload, NULL, in->parts, in->part, residual);
  check_view(in, residual);
  free(base);
  free(residual);
}

static void check_payload(const topk_input *in) {
  uint64_t entries = 0, count = lcomm_stripe_count(in->base_count, in->parts, in->part);
  uint8_t *payload = exact_copy(in->rest, in->size);
  lcomm_status status = lcomm_topk_check(payload, in->size, count, &entries);
  require(lcomm_topk_check(payload, in->size, count, NULL) == status, "entries may be NULL");
  require(status == LCOMM_OK || status == LCOMM_ERR_WIRE, "a payload is valid or malformed");
  if (status == LCOMM_OK) {
    require(entries <= count, "no more entries than elements");
    require(in->size <= lcomm_topk_bound(entries), "no payload exceeds its bound");
    apply_payload(in, payload, entries);
  }
  free(payload);
}

/* The floats of the rest, over and over, as the array to encode. */
static float *make_base(const topk_input *in) {
  size_t given = in->size / sizeof(float);
  float *base = allocate((size_t)in->base_count * sizeof *base);
  for (uint64_t i = 0; given > 0 && i < in->base_count; i++)
    memcpy(base + i, in->rest + i % given * sizeof *base, sizeof *base);
  return base;
}

/* The view that a payload of an encoder with this shape stands for. */
static uint64_t output_count(const lcomm_topk_shape *shape, uint32_t output) {
  if (shape->outputs > 1)
    return lcomm_stripe_count(shape->base_count, shape->outputs, output);
  return lcomm_stripe_count(shape->base_count, shape->parts, shape->part);
}

static void check_outputs(const lcomm_topk *topk, const lcomm_topk_shape *shape,
                          uint8_t *const *payload, const size_t *size) {
  uint64_t sent = 0, entries;
  for (uint32_t o = 0; o < shape->outputs; o++) {
    require(size[o] <= lcomm_topk_output_bound(topk, o), "an encoder keeps to its bound");
    require(lcomm_topk_check(payload[o], size[o], output_count(shape, o), &entries) == LCOMM_OK,
            "an encoder writes valid payloads");
    require(entries <= lcomm_topk_output_capacity(topk, o), "an encoder keeps to its capacity");
    sent += entries;
  }
  require(sent <= lcomm_topk_total(topk), "an encoder keeps to its density");
}

static void check_encoder(const topk_input *in) {
  enum { OUTPUTS_MAX = 4 };
  uint64_t ends[2] = {in->base_count / 3, in->base_count};
  lcomm_topk_shape shape = {.base_count = in->base_count,
                            .parts = in->outputs > 1 ? 1 : in->parts,
                            .part = in->outputs > 1 ? 0 : in->part,
                            .outputs = in->outputs,
                            .density = in->density,
                            .segment_ends = ends,
                            .segments = 2};
  lcomm_topk *topk = NULL;
  uint8_t *payload[OUTPUTS_MAX];
  size_t size[OUTPUTS_MAX];
  require(lcomm_topk_create(&shape, &topk) == LCOMM_OK, "a good shape makes an encoder");
  for (uint32_t o = 0; o < shape.outputs; o++)
    payload[o] = allocate(lcomm_topk_output_bound(topk, o));
  float *base = make_base(in), *residual = allocate((size_t)in->base_count * sizeof *residual);
  for (int step = 0; step < 2; step++) {
    lcomm_topk_encode(topk, lcomm_kernels_best(), base, residual,
                      step == 0 ? LCOMM_TOPK_RELEASE : LCOMM_TOPK_HOLD, payload, size);
    check_outputs(topk, &shape, payload, size);
  }
  if (shape.outputs == 1) {
    lcomm_topk_encode_owner(topk, lcomm_kernels_best(), base, NULL, 1.0f, payload[0], size);
    check_outputs(topk, &shape, payload, size);
  }
  for (uint64_t i = 0; i < in->base_count; i++)
    require(residual[i] - residual[i] == 0.0f, "a residual stays finite");
  for (uint32_t o = 0; o < shape.outputs; o++)
    free(payload[o]);
  free(base);
  free(residual);
  lcomm_topk_destroy(topk);
}

void lcomm_fuzz_topk(const uint8_t *data, size_t size) {
  if (size < 4)
    return;
  topk_input in = {.base_count = data[0] + 256u * (data[1] % 80u),
                   .parts = 1 + data[2] % 4u,
                   .outputs = 1 + data[3] % 4u,
                   .density = (1 + data[3]) / 256.0,
                   .rest = data + 4,
                   .size = size - 4};
  in.part = data[2] / 4u % in.parts;
  check_payload(&in);
  check_encoder(&in);
}

const lcomm_fuzz_target lcomm_fuzz_targets[] = {
    {"policy", lcomm_fuzz_policy},
    {"topo", lcomm_fuzz_topo},
    {"wire", lcomm_fuzz_wire},
    {"topk", lcomm_fuzz_topk},
    {NULL, NULL},
};
