/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Matrix products by cuBLASLt, of float32 or of values of 16 bits, added up in float32.
 *
 * Its matrices are stored column by column: what lies here as [rows][columns] is [columns][rows] to
 * it. So it is asked for the transpose of the result, which is b^T * a^T: b comes first. */

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <string.h>

#include "trainer/cuda/train_cuda_blas.cuh"

enum { WORKSPACE = 32 << 20, PLANS_MAX = 256, ALIGNED_MOST = 256 };

/* What a plan depends on: `of` without its addresses and factors, and how they are aligned. A
 * process stores elements of one type. */
typedef struct plan_key {
  product of;
  uint32_t aligned;
} plan_key;

typedef struct plan {
  plan_key key;
  cublasLtMatmulDesc_t matmul;
  cublasLtMatrixLayout_t first, second, out;
  cublasLtMatmulAlgo_t algorithm;
} plan;

static cublasLtHandle_t handle;
static precision_kind kind; /* of elements */
static void *workspace;
static plan plans[PLANS_MAX];
static int plan_count;

static int result(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? 0 : TRAIN_CUDA_BLAS_ERRORS + (int)status;
}

/* ---------------------------------------------------------------------- plans */

static size_t size_of(bool wide) {
  return wide || kind == PRECISION_FP32 ? sizeof(float) : sizeof(uint16_t);
}

static cudaDataType type_of(bool wide) {
  static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_16BF, CUDA_R_16F}; /* by precision_kind */
  return wide ? CUDA_R_32F : types[kind];
}

static uint32_t alignment_of(const product *of) {
  uintptr_t all = (uintptr_t)of->a.values | (uintptr_t)of->b.values | (uintptr_t)of->out |
                  (of->a.next | of->b.next) * size_of(false) | of->next * size_of(of->wide) |
                  ALIGNED_MOST;
  return (uint32_t)(all & (~all + 1));
}

static plan_key key_of(const product *of) {
  plan_key key;
  memset(&key, 0, sizeof key); /* also what lies between members */
  key.of.rows = of->rows;
  key.of.columns = of->columns;
  key.of.depth = of->depth;
  key.of.a.step = of->a.step;
  key.of.a.transposed = of->a.transposed;
  key.of.a.next = of->a.next;
  key.of.b.step = of->b.step;
  key.of.b.transposed = of->b.transposed;
  key.of.b.next = of->b.next;
  key.of.wide = of->wide;
  key.of.step = of->step;
  key.of.next = of->next;
  key.of.count = of->count;
  key.aligned = alignment_of(of);
  return key;
}

/* Of a matrix that is [rows][columns] once it is transposed, if it is to be. */
static int make_layout(matrix of, int rows, int columns, int count, bool wide,
                       cublasLtMatrixLayout_t *made) {
  int64_t next = (int64_t)of.next;
  int32_t batch = count;
  uint64_t width = (uint64_t)(of.transposed ? rows : columns);
  uint64_t height = (uint64_t)(of.transposed ? columns : rows);
  int error = result(cublasLtMatrixLayoutCreate(made, type_of(wide), width, height, of.step));
  if (error == 0) {
    error = result(cublasLtMatrixLayoutSetAttribute(*made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                    &batch, sizeof batch));
  }
  if (error == 0) {
    error = result(cublasLtMatrixLayoutSetAttribute(
        *made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &next, sizeof next));
  }
  return error;
}

static int make_matmul(const product *of, cublasLtMatmulDesc_t *made) {
  int32_t first = of->b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  int32_t second = of->a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  int error = result(cublasLtMatmulDescCreate(made, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  if (error == 0) {
    error = result(
        cublasLtMatmulDescSetAttribute(*made, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first));
  }
  if (error == 0) {
    error = result(
        cublasLtMatmulDescSetAttribute(*made, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second));
  }
  return error;
}

static int set_preference(cublasLtMatmulPreference_t wish, cublasLtMatmulPreferenceAttributes_t of,
                          const void *value, size_t size) {
  return result(cublasLtMatmulPreferenceSetAttribute(wish, of, value, size));
}

static int choose_algorithm(plan *made) {
  cublasLtMatmulPreference_t wish;
  cublasLtMatmulHeuristicResult_t best;
  size_t size = WORKSPACE;
  uint32_t aligned = made->key.aligned;
  int found = 0, error = result(cublasLtMatmulPreferenceCreate(&wish));
  if (error != 0) {
    return error;
  }
  error = set_preference(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &size, sizeof size);
  static const cublasLtMatmulPreferenceAttributes_t places[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (int i = 0; i < 4 && error == 0; i++) {
    error = set_preference(wish, places[i], &aligned, sizeof aligned);
  }
  if (error == 0) {
    error = result(cublasLtMatmulAlgoGetHeuristic(handle, made->matmul, made->first, made->second,
                                                  made->out, made->out, wish, 1, &best, &found));
  }
  (void)cublasLtMatmulPreferenceDestroy(wish);
  if (error == 0 && found == 0) {
    error = result(CUBLAS_STATUS_NOT_SUPPORTED);
  }
  made->algorithm = best.algo;
  return error;
}

static int make_plan(const product *of, plan *made) {
  matrix out = {of->out, of->step, false, of->next};
  memset(made, 0, sizeof *made);
  made->key = key_of(of);
  int error = make_matmul(of, &made->matmul);
  error =
      error ? error : make_layout(of->b, of->depth, of->columns, of->count, false, &made->first);
  error = error ? error : make_layout(of->a, of->rows, of->depth, of->count, false, &made->second);
  error = error ? error : make_layout(out, of->rows, of->columns, of->count, of->wide, &made->out);
  return error ? error : choose_algorithm(made);
}

static void forget(plan *of) {
  (void)cublasLtMatrixLayoutDestroy(of->first);
  (void)cublasLtMatrixLayoutDestroy(of->second);
  (void)cublasLtMatrixLayoutDestroy(of->out);
  (void)cublasLtMatmulDescDestroy(of->matmul);
}

/* A model has some dozens of them; where there is no room the last one makes room. */
static int find_plan(const product *of, const plan **found) {
  plan_key key = key_of(of);
  for (int i = 0; i < plan_count; i++) {
    if (memcmp(&plans[i].key, &key, sizeof key) == 0) {
      *found = &plans[i];
      return 0;
    }
  }
  if (plan_count == PLANS_MAX) {
    forget(&plans[--plan_count]);
  }
  int error = make_plan(of, &plans[plan_count]);
  *found = &plans[plan_count];
  plan_count += error == 0;
  return error;
}

/* ------------------------------------------------------------------- products */

static int multiply(const product *of, precision_kind stored, void *stream) {
  const plan *by = NULL;
  kind = stored;
  int error = find_plan(of, &by);
  if (error != 0) {
    return error;
  }
  return result(cublasLtMatmul(handle, by->matmul, &of->scale, of->b.values, by->first,
                               of->a.values, by->second, &of->keep, of->out, by->out, of->out,
                               by->out, &by->algorithm, workspace, WORKSPACE,
                               (cudaStream_t)stream));
}

int train_cuda_blas_open(train_cuda_blas_function **made) {
  *made = multiply;
  int error = (int)cudaMalloc(&workspace, WORKSPACE);
  return error ? error : result(cublasLtCreate(&handle));
}
