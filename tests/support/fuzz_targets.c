/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/fuzz_targets.h"

#include "codecs/wire.h"
#include "tests/support/fuzz_promise.h"

/* ------------------------------------------------------------ wire header */

void lcomm_fuzz_wire(const uint8_t *data, size_t size) {
  uint8_t *bytes = fuzz_copy(data, size), packed[LCOMM_WIRE_HEADER_SIZE];
  lcomm_wire_header header;
  const char *why = NULL;
  lcomm_status status = lcomm_wire_unpack(bytes, size, &header, &why);
  fuzz_require(lcomm_wire_unpack(bytes, size, &header, NULL) == status, "why may be NULL");
  if (status == LCOMM_OK) {
    lcomm_wire_pack(&header, packed);
    fuzz_require(memcmp(packed, bytes, sizeof packed) == 0,
                 "an accepted header packs to its bytes");
    fuzz_require(header.version == LCOMM_WIRE_VERSION, "an accepted header has a known version");
    fuzz_require(lcomm_codec_by_id(header.codec) != NULL, "an accepted header has a codec");
    lcomm_format format = lcomm_wire_get_format(&header);
    lcomm_wire_header again = {.flags = header.flags};
    lcomm_wire_set_format(&again, &format);
    fuzz_require(again.codec == header.codec && again.flags == header.flags,
                 "a format survives its header");
    fuzz_require(lcomm_dtype_size((lcomm_dtype)header.dtype) > 0, "an accepted header has a dtype");
    lcomm_wire_checksum(bytes + sizeof packed, size - sizeof packed);
  } else {
    fuzz_require(status == LCOMM_ERR_WIRE && why != NULL, "a refused header has a reason");
  }
  free(bytes);
}

const lcomm_fuzz_target lcomm_fuzz_targets[] = {
    {"policy", lcomm_fuzz_policy},
    {"topo", lcomm_fuzz_topo},
    {"wire", lcomm_fuzz_wire},
    {"dense", lcomm_fuzz_dense},
    {"kernels", lcomm_fuzz_kernels},
    {"topk", lcomm_fuzz_topk},
    {"topk_encode", lcomm_fuzz_topk_encode},
    {"lossless", lcomm_fuzz_lossless},
    {"state", lcomm_fuzz_state},
    {"idx", lcomm_fuzz_idx},
    {"text", lcomm_fuzz_text},
    {"checkpoint", lcomm_fuzz_checkpoint},
    {"npy", lcomm_fuzz_npy},
    {"npz", lcomm_fuzz_npz},
    {"safetensors", lcomm_fuzz_safetensors},
    {"meta", lcomm_fuzz_meta},
    {"capture", lcomm_fuzz_capture},
    {"trace", lcomm_fuzz_trace},
    {"store", lcomm_fuzz_store},
    {"ucx_addresses", lcomm_fuzz_ucx_addresses},
    {"control", lcomm_fuzz_control},
    {"handshake", lcomm_fuzz_handshake},
    {"split", lcomm_fuzz_split},
    {"shm", lcomm_fuzz_shm},
    {"memory_handle", lcomm_fuzz_memory_handle},
    {"nccl_id", lcomm_fuzz_nccl_id},
    {"pair_frame", lcomm_fuzz_pair_frame},
    {"pair_header", lcomm_fuzz_pair_header},
    {"shard_header", lcomm_fuzz_shard_header},
    {"interposer", lcomm_fuzz_interposer},
    {"sysfs", lcomm_fuzz_sysfs},
    {"nvml", lcomm_fuzz_nvml},
    {"launcher", lcomm_fuzz_launcher},
    {"dialogue", lcomm_fuzz_dialogue},
    {"settings", lcomm_fuzz_settings},
    {"simulate", lcomm_fuzz_simulate},
    {"experiment", lcomm_fuzz_experiment},
    {NULL, NULL},
};
