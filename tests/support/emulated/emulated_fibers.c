/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/emulated/emulated_fibers.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "tests/support/emulated/emulated_sanitizers.h"

enum { STACK_SIZE = 256 << 10, GUARD_SIZE = 64 << 10 };

/* Stacks begin at different places of a page: else all that is hot in them would
 * want the same few lines of the caches. */
enum { COLOURS = 16, COLOUR_SIZE = 192 };

struct lcomm_fiber {
  void *top; /* of the stack while it is stopped, on x86-64 */
  ucontext_t context;
  void (*body)(void);
  unsigned char *memory; /* guard and stack; NULL: a thread's own stack */
  const void *bottom;    /* what AddressSanitizer knows of the stack */
  size_t size;
  void *fake_stack;
  void *tsan;
};

static _Thread_local lcomm_fiber home;
static _Thread_local unsigned made;
static _Thread_local lcomm_fiber *left; /* the fiber that the last change came from */
static _Thread_local lcomm_fiber *entered;

/* -------------------------------------------------------------- sanitizers */

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

static void announce_change(lcomm_fiber *from, const lcomm_fiber *to) {
  __sanitizer_start_switch_fiber(&from->fake_stack, to->bottom, to->size);
}

/* Of a thread's own stack only the first change away from it tells the place. */
static void announce_arrival(lcomm_fiber *arrived, lcomm_fiber *from) {
  const void *bottom = NULL;
  size_t size = 0;
  __sanitizer_finish_switch_fiber(arrived->fake_stack, &bottom, &size);
  if (!from->memory) {
    from->bottom = bottom;
    from->size = size;
  }
}

/* What is mapped here next is no stack. */
static void announce_end(lcomm_fiber *fiber) {
  __asan_unpoison_memory_region(fiber->memory + GUARD_SIZE, STACK_SIZE);
}
#else
static void announce_change(lcomm_fiber *from, const lcomm_fiber *to) {
  (void)from;
  (void)to;
}

static void announce_arrival(lcomm_fiber *arrived, lcomm_fiber *from) {
  (void)arrived;
  (void)from;
}

static void announce_end(lcomm_fiber *fiber) {
  (void)fiber;
}
#endif

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

static void *tsan_here(void) {
  return __tsan_get_current_fiber();
}

static void *tsan_create(void) {
  return __tsan_create_fiber(0);
}

static void tsan_destroy(void *fiber) {
  __tsan_destroy_fiber(fiber);
}

static void tsan_change(void *fiber) {
  __tsan_switch_to_fiber(fiber, 0);
}
#else
static void *tsan_here(void) {
  return NULL;
}

static void *tsan_create(void) {
  return NULL;
}

static void tsan_destroy(void *fiber) {
  (void)fiber;
}

static void tsan_change(void *fiber) {
  (void)fiber;
}
#endif

/* ---------------------------------------------------------------- changing */

static void begin(void) {
  lcomm_fiber *self = entered;
  announce_arrival(self, left);
  self->body();
  abort();
}

#ifdef __x86_64__
/* swapcontext() asks the system for the signal mask each time, which takes a
 * hundred times as long as this. Signals are left as they are. It ends with a
 * jump, because a processor foresees returns to where the last call came from. */
void lcomm_fiber_swap(void **save, void *load);
__asm__(".text\n"
        ".globl lcomm_fiber_swap\n"
        ".hidden lcomm_fiber_swap\n"
        ".type lcomm_fiber_swap, @function\n"
        ".p2align 4\n"
        "lcomm_fiber_swap:\n"
        "  pushq %rbp\n"
        "  pushq %rbx\n"
        "  pushq %r12\n"
        "  pushq %r13\n"
        "  pushq %r14\n"
        "  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n"
        "  popq %r14\n"
        "  popq %r13\n"
        "  popq %r12\n"
        "  popq %rbx\n"
        "  popq %rbp\n"
        "  popq %rcx\n"
        "  jmpq *%rcx\n"
        ".size lcomm_fiber_swap, . - lcomm_fiber_swap\n");

/* Six registers, the address to return to, and a zero where begin() would find
 * its caller; it is entered with the stack as after a call. */
static void prepare(lcomm_fiber *fiber) {
  uintptr_t *top = (uintptr_t *)(void *)(fiber->memory + GUARD_SIZE + fiber->size) - 8;
  top[6] = (uintptr_t)begin;
  fiber->top = top;
}

static void swap(lcomm_fiber *from, lcomm_fiber *to) {
  lcomm_fiber_swap(&from->top, to->top);
}
#else
static void prepare(lcomm_fiber *fiber) {
  if (getcontext(&fiber->context) != 0) {
    abort();
  }
  fiber->context.uc_stack.ss_sp = fiber->memory + GUARD_SIZE;
  fiber->context.uc_stack.ss_size = fiber->size;
  makecontext(&fiber->context, begin, 0);
}

static void swap(lcomm_fiber *from, lcomm_fiber *to) {
  swapcontext(&from->context, &to->context);
}
#endif

void lcomm_fiber_change(lcomm_fiber *from, lcomm_fiber *to) {
  left = from;
  entered = to;
  announce_change(from, to);
  tsan_change(to->tsan);
  swap(from, to);
  announce_arrival(from, left);
}

/* ------------------------------------------------------- making, unmaking */

lcomm_fiber *lcomm_fiber_home(void) {
  home.tsan = tsan_here();
  return &home;
}

lcomm_fiber *lcomm_fiber_create(void (*body)(void)) {
  lcomm_fiber *fiber = calloc(1, sizeof *fiber);
  unsigned char *memory = mmap(NULL, GUARD_SIZE + STACK_SIZE, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (!fiber || memory == MAP_FAILED || mprotect(memory, GUARD_SIZE, PROT_NONE) != 0) {
    fprintf(stderr, "emulated grid: no memory for the stack of one more thread\n");
    abort();
  }
  fiber->body = body;
  fiber->memory = memory;
  fiber->bottom = memory + GUARD_SIZE;
  fiber->size = STACK_SIZE - made++ % COLOURS * COLOUR_SIZE;
  fiber->tsan = tsan_create();
  prepare(fiber);
  return fiber;
}

void lcomm_fiber_destroy(lcomm_fiber *fiber) {
  announce_end(fiber);
  tsan_destroy(fiber->tsan);
  munmap(fiber->memory, GUARD_SIZE + STACK_SIZE);
  free(fiber);
}
