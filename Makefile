# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
#
# `make help` lists what can be made and which variables can be set.
# Objects live in build/<hash of compiler and flags>/, so release, sanitizer
# and other builds stand side by side. build/latest is the last one built.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# ------------------------------------------------------------------ options
ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := $(if $(findstring clang,$(CC)),clang++,g++)
endif
SAN ?=#       sanitizers: address,undefined or thread
WERROR ?=#    1: warnings are errors
NVCC ?= nvcc# CUDA's compiler; empty: without CUDA
CUDA_ARCHS ?=# devices that libcomm-cuda.so is for (90); empty: all from 75 to 90 that nvcc knows, and PTX
NP ?= 4#      ranks of make run
HOSTS ?= 2#   emulated hosts of make run, where this machine can make them (root)
RATE ?= 50mbit# of their links
NODES ?=#     make run: nodes that ranks pose as, instead of emulated hosts
POLICY ?= net=topk:0.01+ef
ARGS ?=#      more arguments for the trainer, or for a benchmark
MPI ?=#       openmpi, mpich or none; empty: what is here, Open MPI first
FILE ?= tools/experiments/quick.ini# of make experiment
T ?=#         make test: only tests whose path contains this
FUZZ_S ?= 20#  seconds for each fuzzer of make fuzz
PREFIX ?= /usr/local#  make install: an absolute path
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share#  manual pages, completion, examples
PYTHONDIR ?=# the Python package; empty: where python3 looks below PREFIX, else LIBDIR/libcomm/python
DESTDIR ?=#   before all of them, for those who make packages
SAN := $(strip $(SAN))
WERROR := $(strip $(WERROR))
OPT ?= -O3
TEST_OPT := $(OPT:-O3=-O1)# tests wait more for the compiler than for themselves

# -------------------------------------------------------------------- flags
# pkg-config is asked silently: before `make deps` has run, or for help, a
# missing package is no reason for noise. tools/build/config says what is wrong.
PKG = $(shell pkg-config $(1) $(2) 2>/dev/null)
MPI_NAME := $(or $(shell tools/build/mpi-probe name '$(MPI)'),$(error MPI=$(MPI)))
MPI_CFLAGS := $(shell tools/build/mpi-probe cflags '$(MPI)')
MPI_LIBS := $(shell tools/build/mpi-probe libs '$(MPI)')
HAVE_MPI := $(filter-out none,$(MPI_NAME))
# MPICH's MPI_STATUSES_IGNORE is an address that gcc takes for an array of no length.
MPI_WARNINGS := $(if $(filter mpich,$(MPI_NAME)),$(if $(findstring clang,$(CC)),,-Wno-stringop-overflow))
XXHASH_LIBS := $(or $(call PKG,--libs,libxxhash),-lxxhash)
ZSTD_LIBS := $(or $(call PKG,--libs,libzstd),-lzstd)
JSON_LIBS := $(or $(call PKG,--libs,libcjson),-lcjson)
CMOCKA_LIBS := $(or $(call PKG,--libs,cmocka),-lcmocka)
BLAS_LIBS := $(or $(call PKG,--libs,openblas),-lopenblas)
ZLIB_LIBS := $(or $(call PKG,--libs,zlib),-lz)
# Foreign headers are not ours to warn about: -I becomes -isystem.
FOREIGN := $(patsubst -I%,-isystem%,$(MPI_CFLAGS) \
  $(call PKG,--cflags,libxxhash libzstd libcjson cmocka openblas zlib) $(call PKG,--cflags,ucx))

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes \
  -Wmissing-prototypes -Wvla $(if $(WERROR),-Werror) $(MPI_WARNINGS)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
# Asserts are for sanitizer builds: elsewhere the library ends no process.
CFLAGS := -std=c11 -D_GNU_SOURCE $(if $(SAN),,-DNDEBUG) $(OPT) -g -fPIC -fvisibility=hidden -ffp-contract=off -pthread \
  $(WARNINGS) $(SANFLAGS) $(EXTRA_CFLAGS)
CPPFLAGS := -I. -Ilibcomm/include $(FOREIGN)
LDFLAGS := -pthread $(SANFLAGS) $(if $(SAN),-rdynamic) $(EXTRA_LDFLAGS)
LIB_LIBS := $(XXHASH_LIBS) $(ZSTD_LIBS) -ldl -lm
# Each table of kernels is compiled for its instruction set, nothing else is.
AVX2 := -mavx2 -mf16c -mbmi -mbmi2 -mlzcnt -mpopcnt
AVX512 := $(AVX2) -mavx512f -mavx512bw -mavx512dq -mavx512vl
CXXFLAGS := -x c++ -std=c++17 -D_GNU_SOURCE $(OPT) -g -fPIC -fvisibility=hidden -ffp-contract=off -pthread \
  -fno-exceptions -fno-rtti -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wvla \
  $(if $(WERROR),-Werror) $(SANFLAGS) $(EXTRA_CFLAGS)
CUDA_FOR := $(or $(strip $(CUDA_ARCHS)),$(shell NVCC='$(NVCC)' tools/build/cuda-probe archs))
GENCODE := $(foreach a,$(CUDA_FOR),-gencode arch=compute_$(a),code=sm_$(a)) \
  $(foreach a,$(lastword $(CUDA_FOR)),-gencode arch=compute_$(a),code=compute_$(a))
NVCCFLAGS := -std=c++17 -O3 -g --fmad=false -ftz=false -prec-div=true -prec-sqrt=true $(GENCODE) \
  $(if $(WERROR),-Werror all-warnings) -Xcompiler -fPIC,-fvisibility=hidden

VERSION := $(shell awk '/^.define LCOMM_VERSION_(MAJOR|MINOR|PATCH)/ { v = v s $$3; s = "." } \
  END { print v }' libcomm/include/libcomm.h)
# The binary interface, as libcomm/README.md says: before 1.0 that of a minor version, then of a major one.
ABI := $(if $(filter 0.%,$(VERSION)),$(basename $(VERSION)),$(firstword $(subst ., ,$(VERSION))))
SONAME := libcomm.so.$(ABI)
WITH_MPI_SONAME := $(SONAME:libcomm.%=libcomm-with-mpi.%)

BUILD_KEY := $(shell printf '%s\n' "$$($(CC) --version 2>&1 | head -n 1)" '$(CC) $(CFLAGS)' \
  '$(CPPFLAGS)' '$(LDFLAGS)' '$(MPI_NAME)' '$(AVX512)' '$(NVCC) $(NVCCFLAGS)' '$(SONAME)' | sha256sum | cut -c1-10)
BUILD := build/$(BUILD_KEY)

# ------------------------------------------------------------------ sources
CU_KERNELS := $(wildcard kernels/cuda/*.cu)
CU_SOURCES := $(CU_KERNELS) $(wildcard libcomm/device/cuda/*.cu)
# The trainer multiplies matrices by cuBLASLt where the toolkit has it, else by a kernel of its own.
CU_BLAS := $(addprefix trainer/cuda/,train_cuda_blas.cu train_cuda_without_blas.cu)
CU_TRAINER_KERNELS := $(filter-out $(CU_BLAS) %_module.cu,$(wildcard trainer/cuda/*.cu))
HAVE_BLASLT := $(wildcard $(dir $(realpath $(shell command -v $(NVCC) 2>/dev/null)))../include/cublasLt.h)
CU_TRAINER := $(CU_TRAINER_KERNELS) trainer/cuda/train_cuda_module.cu $(word $(if $(HAVE_BLASLT),1,2),$(CU_BLAS))
CU_TESTS := $(shell find tests -name 'cuda_*.c' 2>/dev/null | sort)
FUZZERS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))
# The probe compiles a kernel once and remembers the answer; it runs only when
# there is something to compile with nvcc.
HAVE_CUDA := $(if $(CU_SOURCES)$(CU_TESTS),$(shell NVCC='$(NVCC)' tools/build/cuda-probe status))
ifneq ($(HAVE_CUDA),yes)
CU_SOURCES :=
CU_TRAINER :=
endif

# On other processors than x86-64 the scalar table is the only one.
X86 := $(filter x86_64%,$(shell $(CC) -dumpmachine 2>/dev/null))
OTHER_KERNELS := $(if $(X86),kernels/generic.c,kernels/x86.c kernels/avx%.c)
# UCX is opened at run time; the build needs its headers only, and some files not even those.
HAVE_UCX := $(shell pkg-config --exists ucx 2>/dev/null && echo yes)
UCX_PART := $(filter-out %/ucx_addresses.c,$(wildcard libcomm/transport/ucx/*.c)) libcomm/transport/registry.c
OTHER_TRANSPORTS := $(if $(HAVE_UCX),libcomm/transport/registry_without_ucx.c,$(UCX_PART))
# What includes mpi.h is a library of its own, libcomm-with-mpi.so: libcomm.so needs no MPI.
WITH_MPI_SOURCES := libcomm/bootstrap/mpi_bootstrap.c libcomm/bootstrap/mpi_version.c \
  libcomm/transport/mpi/mpi_control_messages.c libcomm/transport/mpi/mpi_transport.c
LIB_SOURCES := $(filter-out $(OTHER_KERNELS),$(wildcard kernels/*.c)) $(wildcard codecs/*.c) \
  $(filter-out libcomm/interpose/% libcomm/examples/% $(WITH_MPI_SOURCES) $(OTHER_TRANSPORTS),$(wildcard libcomm/*/*.c libcomm/*/*/*.c))
TRAINER_SOURCES := $(wildcard trainer/*.c)
TOOL_SOURCES := $(wildcard tools/*.c)
COMMON_SOURCES := $(wildcard tools/common/*.c)
PERF_SOURCES := $(wildcard tools/perf/*.c)
CODEC_SOURCES := $(wildcard tools/codec/*.c)
TRACE_SOURCES := $(wildcard tools/trace/*.c)
INFO_SOURCES := $(filter-out tools/info/info_ranks_$(if $(HAVE_MPI),alone,mpi).c,$(wildcard tools/info/*.c))
CUDA_BENCH_SOURCES := $(wildcard tools/cuda/*.c)
STREAM_BENCH_SOURCES := $(wildcard tools/stream/*.c)
SOAK_SOURCES := $(wildcard tools/soak/*.c)
SCALE_SOURCES := $(wildcard tools/scale/*.c)
FIDELITY_SOURCES := $(wildcard tools/fidelity/*.c)
EXPERIMENT_SOURCES := $(wildcard tools/experiment/*.c)
SIMULATE_SOURCES := $(wildcard tools/simulation/*.c)
LAUNCH_SOURCES := $(wildcard tools/launching/*.c)
# MPIs differ in what they have, and in whether their Fortran passes the C functions by.
MPI_FEATURES := $(shell tools/build/mpi-probe features '$(MPI)')
OTHER_MPIS := $(addprefix %/interpose_,$(if $(filter pcollreq,$(MPI_FEATURES)),,persistent_pcollreq.c) \
  $(if $(filter init,$(MPI_FEATURES)),,persistent_mpi4.c) $(if $(filter large,$(MPI_FEATURES)),,large_counts.c) \
  $(if $(filter mpich,$(MPI_NAME)),openmpi.c,mpich.c) \
  $(if $(filter openmpi,$(MPI_NAME)),$(if $(filter init,$(MPI_FEATURES)),,fortran_persistent.c),fortran_persistent.c))
INTERPOSER_COMMON := $(wildcard libcomm/interpose/*.c)
INTERPOSER_SOURCES := $(filter-out $(OTHER_MPIS),$(wildcard libcomm/interpose/mpi/*.c)) $(INTERPOSER_COMMON)
# What of the MPI interposer knows nothing of MPI, for tests that run alone.
INTERPOSER_PARTS := libcomm/interpose/mpi/interpose_handshake.c $(INTERPOSER_COMMON)
# Another NCCL is below the interposer, found at run time; so it needs none to be built.
NCCL_SOURCES := $(wildcard libcomm/interpose/nccl/*.c) $(INTERPOSER_COMMON)
STAND_IN_SOURCES := $(wildcard tests/interpose/nccl/stand_in_*.c)
CLIENT_SOURCES := $(wildcard tests/clients/*.c)
SUPPORT_SOURCES := $(wildcard tests/support/*.c tests/support/emulated/*.c tests/wire/decoder*.c)
EMULATED_SOURCES := $(CU_KERNELS) $(CU_TRAINER_KERNELS) $(wildcard tests/kernels/cuda/*.cu)
SAN_SOURCES := $(if $(SAN),$(wildcard tests/support/sanitizer/*.c))
OTHER_TESTS := $(if $(HAVE_UCX),,tests/transport/ucx/test_ucx_% tests/engine/mpi_device_ucx.c)
# A build without MPI has neither what speaks MPI nor the tests of that.
ifeq ($(HAVE_MPI),)
WITH_MPI_SOURCES :=
TRAINER_SOURCES :=
CU_TRAINER :=
TOOL_SOURCES := $(filter-out %_perf.c,$(TOOL_SOURCES))
PERF_SOURCES :=
INTERPOSER_SOURCES :=
CLIENT_SOURCES :=
SUPPORT_SOURCES := $(filter-out %property.c tests/support/interposer_%,$(SUPPORT_SOURCES))
OTHER_TESTS += $(shell find tests -name 'mpi_*.c')
endif
TEST_SOURCES := $(filter-out $(OTHER_TESTS),$(shell find tests -path tests/support -prune -o \( -name 'test_*.c' -o -name 'mpi_*.c' \) -print 2>/dev/null | sort)) \
  $(CU_TESTS)

OBJ = $(addprefix $(BUILD)/,$(addsuffix .o,$(1)))
LIB_OBJECTS := $(call OBJ,$(LIB_SOURCES))
WITH_MPI_OBJECTS := $(call OBJ,$(WITH_MPI_SOURCES))
CU_OBJECTS := $(call OBJ,$(CU_SOURCES))
EMULATED_OBJECTS := $(patsubst %,$(BUILD)/emulated/%.o,$(EMULATED_SOURCES))
SUPPORT_OBJECTS := $(call OBJ,$(SUPPORT_SOURCES)) $(EMULATED_OBJECTS)
SAN_OBJECTS := $(call OBJ,$(SAN_SOURCES))
CODEC_OBJECTS := $(call OBJ,$(CODEC_SOURCES))
INTERPOSER_OBJECTS := $(call OBJ,$(INTERPOSER_SOURCES))
NCCL_OBJECTS := $(call OBJ,$(NCCL_SOURCES))
TRACE_OBJECTS := $(call OBJ,$(TRACE_SOURCES))
TRAINER_PARTS := $(call OBJ,$(filter-out trainer/train.c,$(wildcard trainer/*.c)))

LIBRARY := $(BUILD)/libcomm.so
WITH_MPI := $(if $(HAVE_MPI),$(BUILD)/libcomm-with-mpi.so)
WITH_MPI_ARCHIVE := $(if $(HAVE_MPI),$(BUILD)/libcomm-with-mpi.a)
INTERPOSER := $(if $(HAVE_MPI),$(BUILD)/libcomm-mpi.so)
NCCL_INTERPOSER := $(BUILD)/libcomm-nccl.so
STAND_INS := $(patsubst %.c,$(BUILD)/%.so,$(STAND_IN_SOURCES))
CUDA_MODULE := $(if $(CU_SOURCES),$(BUILD)/libcomm-cuda.so)
TRAINER_MODULE := $(if $(CU_TRAINER),$(BUILD)/libtrainer-cuda.so)
ARCHIVE := $(BUILD)/libcomm.a
CLIENTS := $(patsubst %.c,$(BUILD)/%,$(CLIENT_SOURCES))
TRAIN := $(if $(TRAINER_SOURCES),$(BUILD)/train)
TOOLS := $(patsubst tools/%.c,$(BUILD)/tools/%,$(TOOL_SOURCES))
# The interposer's scripts run its other tests' programs once more.
SCRIPTS := $(foreach t,$(wildcard tests/interpose/script_*.sh),$(findstring $(T),$t))
RUN_BY_SCRIPTS := $(if $(strip $(SCRIPTS)),$(wildcard tests/interpose/mpi_*.c))
# Python's tests open the library, and cannot be linked with a device.
EMULATED_MODULE := $(if $(SAN),,$(if $(or $(if $(T),,all),$(findstring $(T),tests/python/emulated_cuda.c)),$(BUILD)/tests/python/libcomm-cuda.so))
# Nor can unchanged programs that call CUDA.
CUDA_STAND_IN := $(if $(SAN),,$(BUILD)/tests/interpose/nccl/cuda/libcudart.so)
TESTS := $(foreach t,$(TEST_SOURCES),$(if $(or $(if $(T),,all),$(findstring $(T),$t),$(filter $t,$(RUN_BY_SCRIPTS))),$(BUILD)/$(t:.c=)))

# Targets that start a build of their own use all processors, unless told.
SUBMAKE = $(MAKE) $(if $(findstring -j,$(MAKEFLAGS))$(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

# ------------------------------------------------------------------- builds
.PHONY: all programs tests
# Beside other targets ("make -j all tests") without one: two makes at a time would build the same files.
BESIDE_ALL := $(filter-out all,$(MAKECMDGOALS))
all: $(if $(BESIDE_ALL),programs) ## build the library, the trainer and the tools (default)
	+@$(if $(BESIDE_ALL),:,$(SUBMAKE) programs)

programs: $(ARCHIVE) $(LIBRARY) $(WITH_MPI_ARCHIVE) $(WITH_MPI) $(INTERPOSER) $(NCCL_INTERPOSER) $(CUDA_MODULE) $(TRAINER_MODULE) $(TRAIN) $(TOOLS)
	@ln -sfn $(BUILD_KEY) build/latest
	@$(if $(HAVE_MPI),,echo "MPI: $$(tools/build/mpi-probe version '$(MPI)'). Left out: libcomm-with-mpi.so" \
	  "(lcomm_create_mpi), libcomm-mpi.so, train and the perf tools")

tests: programs $(TESTS) $(CLIENTS) $(STAND_INS) $(EMULATED_MODULE) $(CUDA_STAND_IN) ## build all, tests included

isa_flags = $(if $(filter kernels/avx2%,$(1)),$(AVX2))$(if $(filter kernels/avx512%,$(1)),$(AVX512)) \
  $(if $(filter kernels/avx512_vbmi.c,$(1)),-mavx512vbmi)

$(BUILD)/%.c.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) $(if $(filter tests/%,$<),$(TEST_OPT)) $(call isa_flags,$<) -MMD -MP -c $< -o $@

$(BUILD)/%.cu.o: %.cu
	@mkdir -p $(@D)
	@echo "  NVCC  $<"
	@$(NVCC) -I. -Ilibcomm/include $(NVCCFLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

# For tests the kernels are compiled once more, for an emulated grid on the processor.
$(BUILD)/emulated/%.cu.o: %.cu
	@mkdir -p $(@D)
	@echo "  CXX   $<"
	@$(CXX) $(CXXFLAGS) -I. -Ilibcomm/include -include tests/support/emulated/emulated_hardware.cuh -MMD -MP -c $< -o $@

# Opened at run time; only its description of itself is exported.
$(CUDA_MODULE): $(CU_OBJECTS)
	@echo "  LINK  $@"
	@$(NVCC) -shared -cudart static $(GENCODE) -Xlinker --exclude-libs=ALL,-z,defs,-soname,libcomm-cuda.so $^ -ldl -lrt -lpthread -o $@

# Opened by the trainer when it is asked for a GPU.
$(TRAINER_MODULE): $(call OBJ,$(CU_TRAINER))
	@echo "  LINK  $@"
	@$(NVCC) -shared -cudart static $(GENCODE) -Xlinker --exclude-libs=ALL,-z,defs,-soname,libtrainer-cuda.so $^ \
	  $(if $(HAVE_BLASLT),-lcublasLt) -ldl -lrt -lpthread -o $@

$(ARCHIVE): $(LIB_OBJECTS)
	@echo "  AR    $@"
	@rm -f $@; ar rcs $@ $^

$(BUILD)/$(SONAME): $(LIB_OBJECTS)
	@echo "  LINK  $@"
	@$(CC) -shared -Wl,-soname,$(SONAME) $(if $(SAN),,-Wl,-z,defs) $(LDFLAGS) $^ $(LIB_LIBS) -o $@

$(LIBRARY): $(BUILD)/$(SONAME)
	@ln -sf $(SONAME) $@

$(WITH_MPI_ARCHIVE): $(WITH_MPI_OBJECTS)
	@echo "  AR    $@"
	@rm -f $@; ar rcs $@ $^

$(BUILD)/$(WITH_MPI_SONAME): $(WITH_MPI_OBJECTS) $(LIBRARY)
	@echo "  LINK  $@"
	@$(CC) -shared -Wl,-soname,$(WITH_MPI_SONAME) $(if $(SAN),,-Wl,-z,defs) $(LDFLAGS) $(WITH_MPI_OBJECTS) $(LIBRARY) \
	  -Wl,-rpath,'$$ORIGIN' $(MPI_LIBS) -o $@

$(BUILD)/libcomm-with-mpi.so: $(BUILD)/$(WITH_MPI_SONAME)
	@ln -sf $(WITH_MPI_SONAME) $@

# Preloaded before MPI: linked with it all the same, because its handles are data of MPI's.
$(BUILD)/libcomm-mpi.so: $(INTERPOSER_OBJECTS) $(WITH_MPI) $(LIBRARY)
	@echo "  LINK  $@"
	@$(CC) -shared -Wl,-soname,libcomm-mpi.so $(if $(SAN),,-Wl,-z,defs) $(LDFLAGS) $(INTERPOSER_OBJECTS) $(WITH_MPI) $(LIBRARY) \
	  -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../lib' $(MPI_LIBS) -ldl -o $@

# Preloaded in the place of NCCL, so it has NCCL's name for the loader, and no other NCCL is loaded by that.
# It lies in a folder of its own when installed, where ldconfig makes no link of that name.
$(NCCL_INTERPOSER): $(NCCL_OBJECTS) $(LIBRARY)
	@echo "  LINK  $@"
	@$(CC) -shared -Wl,-soname,libnccl.so.2 $(if $(SAN),,-Wl,-z,defs) $(LDFLAGS) $(NCCL_OBJECTS) $(LIBRARY) \
	  -Wl,-rpath,'$$ORIGIN:$$ORIGIN/..' -ldl -o $@

# The trainer and the perf tools see only what libcomm.so exports: they prove
# that the public interface is enough. The other tools look inside.
# They find it beside them, above them and, installed, from BINDIR in LIBDIR.
FROM_BINDIR := $(shell realpath -ms --relative-to='$(BINDIR)' '$(LIBDIR)' 2>/dev/null)
PUBLIC = -Xlinker -rpath -Xlinker '$$ORIGIN:$$ORIGIN/..:$$ORIGIN/$(FROM_BINDIR)'
LINK = @echo "  LINK  $@"; mkdir -p $(@D); $(CC) $(LDFLAGS) $(filter %.o,$^)

.PHONY: look-again
$(BUILD)/from-bindir: look-again
	@mkdir -p $(@D); [ "$$(cat $@ 2>/dev/null)" = '$(FROM_BINDIR)' ] || echo '$(FROM_BINDIR)' >$@

$(TRAIN) $(TOOLS): $(BUILD)/from-bindir

$(BUILD)/train: $(call OBJ,$(TRAINER_SOURCES)) $(BUILD)/build_revision.o $(SAN_OBJECTS) $(WITH_MPI) $(LIBRARY)
	$(LINK) $(WITH_MPI) $(LIBRARY) $(PUBLIC) $(MPI_LIBS) $(BLAS_LIBS) $(ZLIB_LIBS) $(XXHASH_LIBS) -ldl -lm -o $@

# The commit that programs name in what they write.
REVISION := $(BUILD)/build_revision.o
$(BUILD)/build_revision.c: look-again
	@mkdir -p $(@D); tools/build/revision-source $@

$(REVISION): $(BUILD)/build_revision.c
	@$(CC) $(CFLAGS) -c $< -o $@

# What several programs share: each takes the files of it that it refers to.
TOOLS_COMMON := $(BUILD)/libtools.a
$(TOOLS_COMMON): $(call OBJ,$(COMMON_SOURCES)) $(REVISION)
	@echo "  AR    $@"
	@rm -f $@; ar rcs $@ $^

$(BUILD)/tools/%_perf: $(BUILD)/tools/%_perf.c.o $(call OBJ,$(PERF_SOURCES)) $(SAN_OBJECTS) $(TOOLS_COMMON) $(WITH_MPI) $(LIBRARY)
	$(LINK) $(TOOLS_COMMON) $(WITH_MPI) $(LIBRARY) $(PUBLIC) $(MPI_LIBS) $(JSON_LIBS) -lm -o $@

$(BUILD)/tools/codec_bench: $(call OBJ,tools/codec_bench.c) $(CODEC_OBJECTS) $(SAN_OBJECTS) $(TOOLS_COMMON) $(ARCHIVE)
	$(LINK) $(TOOLS_COMMON) $(ARCHIVE) $(LIB_LIBS) $(JSON_LIBS) $(ZLIB_LIBS) -o $@

$(BUILD)/tools/trace_merge: $(call OBJ,tools/trace_merge.c) $(TRACE_OBJECTS) $(SAN_OBJECTS) $(TOOLS_COMMON) $(ARCHIVE)
	$(LINK) $(TOOLS_COMMON) $(ARCHIVE) $(LIB_LIBS) $(JSON_LIBS) -o $@

$(BUILD)/tools/soak_bench: $(call OBJ,tools/soak_bench.c $(SOAK_SOURCES)) $(SAN_OBJECTS) $(TOOLS_COMMON) $(ARCHIVE)
	$(LINK) $(TOOLS_COMMON) $(ARCHIVE) $(LIB_LIBS) -o $@

$(BUILD)/tools/scale_bench: $(call OBJ,tools/scale_bench.c $(SCALE_SOURCES)) $(SAN_OBJECTS) $(TOOLS_COMMON) $(ARCHIVE)
	$(LINK) $(TOOLS_COMMON) $(ARCHIVE) $(LIB_LIBS) -o $@

$(BUILD)/tools/libcomm-info: $(call OBJ,tools/libcomm-info.c $(INFO_SOURCES) tools/codec/codec_under_test.c) \
  $(SAN_OBJECTS) $(TOOLS_COMMON) $(WITH_MPI_ARCHIVE) $(ARCHIVE)
	$(LINK) $(TOOLS_COMMON) $(WITH_MPI_ARCHIVE) $(ARCHIVE) $(PUBLIC) $(MPI_LIBS) $(LIB_LIBS) $(JSON_LIBS) -o $@

$(BUILD)/tools/cuda_bench: $(call OBJ,tools/cuda_bench.c $(CUDA_BENCH_SOURCES)) $(CODEC_OBJECTS) \
  $(SAN_OBJECTS) $(TOOLS_COMMON) $(ARCHIVE)
	$(LINK) $(TOOLS_COMMON) $(ARCHIVE) $(PUBLIC) $(LIB_LIBS) $(JSON_LIBS) $(ZLIB_LIBS) -lm -o $@

$(BUILD)/tools/stream_bench: $(call OBJ,tools/stream_bench.c $(STREAM_BENCH_SOURCES)) $(SAN_OBJECTS) $(TOOLS_COMMON) $(ARCHIVE)
	$(LINK) $(TOOLS_COMMON) $(ARCHIVE) $(PUBLIC) $(LIB_LIBS) $(JSON_LIBS) -o $@

# Models, data and optimisers of the trainer know no MPI; so they train workers in one process.
TRAINER_LIBRARY := $(BUILD)/libtrainer.a
$(TRAINER_LIBRARY): $(TRAINER_PARTS)
	@echo "  AR    $@"
	@rm -f $@; ar rcs $@ $^

$(BUILD)/tools/fidelity_bench: $(call OBJ,tools/fidelity_bench.c $(FIDELITY_SOURCES)) $(SAN_OBJECTS) $(TRAINER_LIBRARY) \
  $(TOOLS_COMMON) $(LIBRARY)
	$(LINK) $(TRAINER_LIBRARY) $(TOOLS_COMMON) $(LIBRARY) $(PUBLIC) $(JSON_LIBS) $(BLAS_LIBS) $(ZLIB_LIBS) $(XXHASH_LIBS) -lm -o $@

# Reports show simulated times beside measured ones.
$(BUILD)/tools/libcomm-experiment: $(call OBJ,tools/libcomm-experiment.c $(EXPERIMENT_SOURCES) $(SIMULATE_SOURCES)) \
  $(TRACE_OBJECTS) $(SAN_OBJECTS) $(TOOLS_COMMON) $(ARCHIVE)
	$(LINK) $(TOOLS_COMMON) $(ARCHIVE) $(LIB_LIBS) $(JSON_LIBS) -lm -o $@

$(BUILD)/tools/simulate: $(call OBJ,tools/simulate.c $(SIMULATE_SOURCES)) $(TRACE_OBJECTS) \
  $(SAN_OBJECTS) $(TOOLS_COMMON) $(ARCHIVE)
	$(LINK) $(TOOLS_COMMON) $(ARCHIVE) $(LIB_LIBS) $(JSON_LIBS) -o $@

$(BUILD)/tools/launch: $(call OBJ,tools/launch.c $(LAUNCH_SOURCES)) $(SAN_OBJECTS) $(TOOLS_COMMON) $(ARCHIVE)
	$(LINK) $(TOOLS_COMMON) $(ARCHIVE) $(LIB_LIBS) -o $@

$(BUILD)/tools/cluster_delay: $(call OBJ,tools/cluster_delay.c) $(SAN_OBJECTS) $(TOOLS_COMMON)
	$(LINK) $(TOOLS_COMMON) -lm -o $@

$(BUILD)/tools/%: $(BUILD)/tools/%.c.o $(SAN_OBJECTS) $(ARCHIVE)
	$(LINK) $(ARCHIVE) $(LIB_LIBS) -o $@

# Helpers of the tests, and what they look into besides the library: only what a
# test refers to is linked.
$(BUILD)/libtest.a: $(SUPPORT_OBJECTS) $(CODEC_OBJECTS) $(TRACE_OBJECTS) $(call OBJ,$(PERF_SOURCES)) \
  $(call OBJ,$(CUDA_BENCH_SOURCES) $(STREAM_BENCH_SOURCES) $(COMMON_SOURCES) $(INFO_SOURCES) $(FIDELITY_SOURCES) $(EXPERIMENT_SOURCES) $(SIMULATE_SOURCES) $(INTERPOSER_PARTS) $(NCCL_SOURCES)) \
  $(TRAINER_PARTS)
	@echo "  AR    $@"
	@rm -f $@; ar rcs $@ $^

# libcomm-cuda.so is looked for beside whoever opens it; sanitizers look only where
# the older kind of path says.
FIND_MODULE := -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/..:$$ORIGIN/../..:$$ORIGIN/../../..'
TEST_PARTS := $(BUILD)/libtest.a $(SAN_OBJECTS) $(WITH_MPI_ARCHIVE) $(ARCHIVE)
TEST_LINK = $(TEST_PARTS) $(CMOCKA_LIBS) $(JSON_LIBS) -Wl,--as-needed $(BLAS_LIBS) $(ZLIB_LIBS) \
  $(MPI_LIBS) $(LIB_LIBS) $(FIND_MODULE) -lstdc++ -o $@
$(FUZZERS): $(BUILD)/%: $(BUILD)/%.c.o $(TEST_PARTS)
	@echo "  LINK  $@"
	@$(CC) $(LDFLAGS) -fsanitize=fuzzer $< $(TEST_LINK)

$(BUILD)/tests/%: $(BUILD)/tests/%.c.o $(TEST_PARTS)
	@echo "  LINK  $@"
	@$(CC) $(LDFLAGS) $< $(TEST_LINK)

# Emulated devices for libcomm.so: a libcomm-cuda.so beside it, which is the driver, too.
$(BUILD)/tests/python/libcomm-cuda.so: $(BUILD)/tests/python/emulated_cuda.c.o $(BUILD)/libtest.a $(ARCHIVE) $(LIBRARY)
	@echo "  LINK  $@"
	@ln -sf ../../libcomm.so $(@D)/libcomm.so
	@$(CC) -shared -Wl,-soname,libcuda.so.1,--exclude-libs=ALL,-z,defs $(LDFLAGS) $(filter-out $(LIBRARY),$^) $(LIB_LIBS) -lstdc++ -o $@

# The same with the names of CUDA's runtime, for programs that are linked with that.
$(BUILD)/tests/interpose/nccl/cuda/libcudart.so: $(call OBJ,tests/python/emulated_cuda.c $(wildcard tests/support/emulated/emulated_runtime*.c)) \
  $(BUILD)/libtest.a $(ARCHIVE) $(LIBRARY)
	@echo "  LINK  $@"
	@mkdir -p $(@D); ln -sf ../../../../libcomm.so $(@D)/libcomm.so; \
	  for name in libcuda.so.1 libcomm-cuda.so; do ln -sf $(@F) $(@D)/$$name; done
	@$(CC) -shared -Wl,-soname,libcuda.so.1,--exclude-libs=ALL,-z,defs $(LDFLAGS) $(filter-out $(LIBRARY),$^) $(LIB_LIBS) -lstdc++ -o $@

# Programs of the MPI interposer know nothing of libcomm; the interposer comes before MPI in the search for names.
$(BUILD)/tests/interpose/mpi_%: $(BUILD)/tests/interpose/mpi_%.c.o $(call OBJ,tests/support/property.c $(wildcard tests/support/interposer_*.c)) \
  $(SAN_OBJECTS) $(INTERPOSER)
	$(LINK) -Wl,--no-as-needed $(INTERPOSER) -Wl,-rpath,'$$ORIGIN/../..' $(MPI_LIBS) -lm -o $@

# That one has emulated devices as well, so nothing of it is in a library of its own.
$(BUILD)/tests/interpose/mpi_interposer_devices: $(BUILD)/tests/interpose/mpi_interposer_devices.c.o $(INTERPOSER_OBJECTS) $(TEST_PARTS)
	@echo "  LINK  $@"
	@$(CC) $(LDFLAGS) $< $(INTERPOSER_OBJECTS) $(TEST_LINK)

# Libraries that the NCCL interposer takes for NCCL.
$(STAND_INS): $(BUILD)/%.so: $(BUILD)/%.c.o
	@echo "  LINK  $@"
	@$(CC) -shared -Wl,-soname,libnccl.so.2 $(LDFLAGS) $< -o $@

# Programs as users write them: plain MPI.
$(CLIENTS): $(BUILD)/tests/clients/%: $(BUILD)/tests/clients/%.c.o
	$(LINK) $(MPI_LIBS) $(BLAS_LIBS) -lm -o $@

-include $(patsubst %.o,%.d,$(LIB_OBJECTS) $(WITH_MPI_OBJECTS) $(INTERPOSER_OBJECTS) $(NCCL_OBJECTS) $(CU_OBJECTS) $(call OBJ,$(CU_TRAINER)) $(SUPPORT_OBJECTS) \
  $(TRAINER_PARTS) $(call OBJ,$(TRAINER_SOURCES) $(TOOL_SOURCES) $(PERF_SOURCES) $(CODEC_SOURCES) $(TRACE_SOURCES) $(INFO_SOURCES) $(CUDA_BENCH_SOURCES) $(STREAM_BENCH_SOURCES) $(SOAK_SOURCES) $(SCALE_SOURCES) $(FIDELITY_SOURCES) $(EXPERIMENT_SOURCES) $(SIMULATE_SOURCES) $(LAUNCH_SOURCES) $(SAN_SOURCES) $(TEST_SOURCES) $(CLIENT_SOURCES) $(STAND_IN_SOURCES) tests/python/emulated_cuda.c))

# -------------------------------------------------------------- everyday use
# deps may install the very packages whose flags were asked for above, so what
# follows it is another make.
.PHONY: deps run ranks-are-right test test-cuda run-built test-built data bare-root
deps: ## install missing packages (Debian, Ubuntu), or say which are missing
	@tools/build/deps

deps-%:
	@tools/build/deps $*

run: ranks-are-right deps-run ## train Fashion-MNIST over HOSTS emulated hosts: RATE, NP ranks, POLICY, ARGS
	+@$(SUBMAKE) all
	@$(MAKE) run-built

ranks-are-right:
	@tools/build/launch --check '$(NP)'

run-built:
	@tools/build/data --unless-found || echo 'run: going on with the built-in images of the trainer'
	@MPI='$(MPI_NAME)' NP='$(strip $(NP))' HOSTS='$(strip $(HOSTS))' RATE='$(strip $(RATE))' NODES='$(strip $(NODES))' \
	  POLICY='$(POLICY)' tools/build/run $(BUILD) $(ARGS)

# The file as FILE=; what it measured is in build/experiments.
.PHONY: experiment
experiment: deps-bench ## does compression pay? tools/experiments/quick.ini, or FILE=; a report in build/experiments
	+@$(SUBMAKE) all
	@tools/build/data --unless-found || echo 'experiment: going on with the built-in images of the trainer'
	@$(BUILD)/tools/libcomm-experiment $(ARGS) $(FILE)

test: deps-test ## build and run all tests: SAN=address,undefined, SAN=thread, T=part of a path
	+@$(SUBMAKE) tests
	@$(MAKE) test-built

test-cuda: deps-test ## build and run the tests that need a GPU; counted as skipped without one
	+@$(SUBMAKE) T=/cuda_ tests
	@$(MAKE) T=/cuda_ test-built

test-built:
	@SAN='$(SAN)' HAVE_CUDA='$(HAVE_CUDA)' MPI='$(MPI_NAME)' tests/run $(BUILD) '$(T)'

# Fuzzers are clang's; their seeds are tests/fuzz/corpus, what they find stays in build/fuzz.
.PHONY: fuzz fuzz-built
fuzz: deps-fuzz ## fuzz what reads foreign bytes: FUZZ_S seconds for each fuzzer (clang)
	+@$(SUBMAKE) CC=clang SAN=address,undefined,fuzzer-no-link fuzz-built

fuzz-built: $(FUZZERS)
	@for fuzzer in $(FUZZERS:$(BUILD)/tests/fuzz/fuzz_%=%); do \
	  mkdir -p build/fuzz/$$fuzzer; echo "fuzz_$$fuzzer: $(FUZZ_S) s"; \
	  $(BUILD)/tests/fuzz/fuzz_$$fuzzer -max_total_time=$(FUZZ_S) -verbosity=0 -print_final_stats=1 \
	    -artifact_prefix=build/fuzz/ build/fuzz/$$fuzzer tests/fuzz/corpus/$$fuzzer; done

data: deps-data ## download Fashion-MNIST into data/fashion-mnist and check it
	@tools/build/data

bare-root: ## run and test in a fresh minimal Debian root: what `deps` forgets is missing there (root, debootstrap)
	@tools/build/bare-root $(ARGS) || [ $$? -eq 77 ]

bench-%: deps-bench ## run a benchmark of those below, bench-slice say: ARGS
	+@$(SUBMAKE) all
	@test -x tools/bench/$* || { echo "make: there is no benchmark tools/bench/$*"; exit 2; }
	@$(MAKE) BENCH=$* bench-built

.PHONY: bench-built
bench-built: $(if $(filter door,$(BENCH)),$(filter %/client_train,$(CLIENTS))) \
  $(if $(filter async,$(BENCH)),$(addprefix $(BUILD)/tests/shards/,mpi_quorum_time mpi_servers_time)) \
  $(if $(filter nccl,$(BENCH)),$(addprefix $(BUILD)/tests/interpose/nccl/,test_nccl_forward mpi_nccl_over mpi_nccl_time) $(NCCL_INTERPOSER) $(STAND_INS))
	@mkdir -p build/bench
	@BUILD=$(BUILD) MPI='$(MPI_NAME)' BENCH_COMMAND='make bench-$(BENCH)$(if $(ARGS), ARGS="$(ARGS)")' tools/bench/$(BENCH) $(ARGS)

# -------------------------------------------------------------- housekeeping
.PHONY: check format config help install uninstall clean print-build
check: ## formatting, analysers, include arrows, exported symbols, headers, wording
	@CC='$(CC)' CPPFLAGS='$(CPPFLAGS)' CFLAGS='$(CFLAGS)' tools/build/check

format: ## clang-format all sources
	@tools/build/format

config: ## say what was found on this machine and what was not, and why
	@CC='$(CC)' NVCC='$(NVCC)' MPI='$(MPI)' tools/build/config
	@echo
	@printf '%-12s %s\n' build '$(BUILD)' cflags '$(CFLAGS)' cppflags '$(CPPFLAGS)' \
	  'lib libs' '$(LIB_LIBS)' 'mpi libs' '$(MPI_LIBS)' 'cuda files' '$(or $(CU_SOURCES),none)'

help: ## this text
	@echo 'Targets:'
	@sed -nE 's/^([a-z%-]+):[^#]*## (.*)/\1\t\2/p' Makefile | \
	  awk -F '\t' '{ printf "  %-11s %s\n", $$1, $$2 }'
	@echo 'Variables (make run POLICY=net=int8):'
	@sed -nE 's/^([A-Z_]+) \?= *([^#]*)(# *(.*))?$$/\1\t\2\t\4/p' Makefile | \
	  awk -F '\t' '{ printf "  %-11s %-20s %s\n", $$1, $$2, $$3 }'
	@echo 'Benchmarks (make bench-slice ARGS=train):'
	@tools/build/benchmarks

install: ## install library, tools, headers, manual and examples: PREFIX=, BINDIR=, LIBDIR=, INCLUDEDIR=, DESTDIR=
	+@tools/build/install --check && $(SUBMAKE) programs
	@$(MAKE) install-built

# Paths travel in the environment, which keeps their spaces.
.PHONY: install-built
install install-built uninstall: export PREFIX := $(PREFIX)
install install-built uninstall: export BINDIR := $(BINDIR)
install install-built uninstall: export LIBDIR := $(LIBDIR)
install install-built uninstall: export INCLUDEDIR := $(INCLUDEDIR)
install install-built uninstall: export DATADIR := $(DATADIR)
install install-built uninstall: export PYTHONDIR := $(PYTHONDIR)
install install-built uninstall: export DESTDIR := $(DESTDIR)
install-built:
	@VERSION='$(VERSION)' LIBS='$(LIB_LIBS)' MPI_CFLAGS='$(MPI_CFLAGS)' MPI_LIBS='$(MPI_LIBS)' \
	  MPI_VERSION="$$(tools/build/mpi-probe version '$(MPI)')" tools/build/install $(BUILD)

uninstall: ## remove what make install has installed: PREFIX= and DESTDIR= as they were then
	@tools/build/uninstall

.PHONY: print-isa-flags
print-isa-flags:
	@echo $(call isa_flags,$(FILE))

.PHONY: print-mpi-sources
print-mpi-sources: # what is built for one MPI: KIND=with-mpi or interposer; KIND=omitted: for others
	@printf '%s\n' $(if $(filter omitted,$(KIND)),$(filter-out $(INTERPOSER_SOURCES),$(wildcard libcomm/interpose/mpi/*.c)), \
	  $(if $(filter with-mpi,$(KIND)),$(WITH_MPI_SOURCES),$(INTERPOSER_SOURCES)))

print-build: ## print the build folder
	@echo $(BUILD)

clean: ## remove build/
	rm -rf build
