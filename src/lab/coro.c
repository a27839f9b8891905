// SPDX-License-Identifier: BSD-2-Clause
#include "lab/coro.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/compiler.h"

#if defined(__SANITIZE_ADDRESS__)
#define CORO_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CORO_ASAN 1
#endif
#endif

#ifdef CORO_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define CORO_STACK (1024u * 1024u) /* red zones make frames several times as large */
#else
#define CORO_STACK (256u * 1024u) /* only pages that are touched exist */
#endif

#if !defined(__x86_64__) && !defined(LAB_CORO_UCONTEXT)
#define LAB_CORO_UCONTEXT 1
#endif

/* --- how to move between stacks ----------------------------------------------------------- */

#ifdef LAB_CORO_UCONTEXT
#include <ucontext.h>

struct coro_place {
	ucontext_t context;
};

static inline void coro_jump(struct coro_place *from, struct coro_place *to)
{
	swapcontext(&from->context, &to->context);
}

static void coro_first(struct lab_coro *co);

/* makecontext passes ints only. */
static void coro_entry(unsigned high, unsigned low)
{
	coro_first((struct lab_coro *)((uintptr_t)high << 32 | low));
}

static void coro_prepare(struct coro_place *place, struct lab_coro *co, char *stack, size_t bytes)
{
	uintptr_t arg = (uintptr_t)co;

	getcontext(&place->context);
	place->context.uc_stack.ss_sp = stack;
	place->context.uc_stack.ss_size = bytes;
	place->context.uc_link = NULL;
	makecontext(&place->context, (void (*)(void))coro_entry, 2, (unsigned)(arg >> 32),
		    (unsigned)arg);
}
#else
struct coro_place {
	void *sp;
};

void lab_coro_jump(void **save_sp, void *load_sp);
void lab_coro_start(void);
void lab_coro_first(struct lab_coro *co);
static void coro_first(struct lab_coro *co);

/*
 * System V ABI: rbx, rbp and r12 to r15 survive a call, so they and the stack pointer are all
 * there is to save. A new stack is laid out as if it had been left: lab_coro_start is its return
 * address and r12 its coroutine.
 */
__asm__(".text\n"
	".p2align 4\n"
	".globl lab_coro_jump\n"
	".hidden lab_coro_jump\n"
	".type lab_coro_jump,@function\n"
	"lab_coro_jump:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size lab_coro_jump,.-lab_coro_jump\n"
	".p2align 4\n"
	".globl lab_coro_start\n"
	".hidden lab_coro_start\n"
	".type lab_coro_start,@function\n"
	"lab_coro_start:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n" /* a backtrace ends here */
	"	movq %r12, %rdi\n"
	"	call lab_coro_first\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	".size lab_coro_start,.-lab_coro_start\n");

__attribute__((visibility("hidden"), used)) void lab_coro_first(struct lab_coro *co)
{
	coro_first(co);
}

static inline void coro_jump(struct coro_place *from, struct coro_place *to)
{
	lab_coro_jump(&from->sp, to->sp);
}

static void coro_prepare(struct coro_place *place, struct lab_coro *co, char *stack, size_t bytes)
{
	void **sp = (void **)(stack + bytes);

	/* The stack must be aligned to 16 where lab_coro_start calls: the top is, and two words
	 * stay when the others are popped. The first of them ends chains of frame pointers. */
	*--sp = NULL;
	*--sp = NULL;
	*--sp = (void *)lab_coro_start;
	*--sp = NULL; /* rbp */
	*--sp = NULL; /* rbx */
	*--sp = co;   /* r12 */
	*--sp = NULL;
	*--sp = NULL;
	*--sp = NULL;
	place->sp = sp;
}
#endif

/* --- the coroutines ----------------------------------------------------------------------- */

struct lab_coro_hub {
	struct lab_store *store;
	struct coro_place place;
	void *fake_stack;   /* AddressSanitizer's */
	const void *bottom; /* of the stack that entered last */
	size_t bytes;
};

struct lab_coro {
	struct coro_place place;
	struct lab_coro_hub *hub;
	void (*fn)(void *arg);
	void *arg;
	void *fake_stack;
	char *map; /* guard page and stack */
	size_t map_bytes;
	char *stack;
	bool from_hub; /* who comes next comes from the hub */
};

static inline void leaving(void **fake_stack, const void *bottom, size_t bytes)
{
#ifdef CORO_ASAN
	__sanitizer_start_switch_fiber(fake_stack, bottom, bytes);
#endif
}

/* In a coroutine, after it was entered or switched to. */
static inline void arrived(struct lab_coro *co)
{
#ifdef CORO_ASAN
	const void *bottom;
	size_t bytes;

	__sanitizer_finish_switch_fiber(co->fake_stack, &bottom, &bytes);
	if (co->from_hub) {
		co->hub->bottom = bottom;
		co->hub->bytes = bytes;
	}
#endif
}

static void coro_first(struct lab_coro *co)
{
	arrived(co);
	co->fn(co->arg);
	abort();
}

int lab_coro_hub_create(struct lab_store *store, struct lab_coro_hub **out)
{
	struct lab_coro_hub *hub = calloc(1, sizeof(*hub));

	if (!hub)
		return -ENOMEM;
	hub->store = store;
	*out = hub;
	return 0;
}

void lab_coro_hub_destroy(struct lab_coro_hub *hub)
{
	free(hub);
}

int lab_coro_create(struct lab_coro_hub *hub, void (*fn)(void *arg), void *arg,
		    struct lab_coro **out)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct lab_coro *co = calloc(1, sizeof(*co));

	if (!co)
		return -ENOMEM;
	co->hub = hub;
	co->fn = fn;
	co->arg = arg;
	co->map_bytes = CORO_STACK + page;
	co->map = lab_store_take(hub->store, LAB_STORE_STACK, &co->map_bytes);
	if (!co->map) {
		free(co);
		return -ENOMEM;
	}
	co->stack = co->map + page;
	coro_prepare(&co->place, co, co->stack, CORO_STACK);
	*out = co;
	return 0;
}

void lab_coro_destroy(struct lab_coro *co)
{
	if (!co)
		return;
#ifdef CORO_ASAN
	/* What was on the stack left red zones, and the addresses may be mapped again. */
	__asan_unpoison_memory_region(co->stack, CORO_STACK);
#endif
	lab_store_give(co->hub->store, LAB_STORE_STACK, co->map, co->map_bytes);
	free(co);
}

void lab_coro_enter(struct lab_coro *co)
{
	struct lab_coro_hub *hub = co->hub;

	co->from_hub = true;
	leaving(&hub->fake_stack, co->stack, CORO_STACK);
	coro_jump(&hub->place, &co->place);
#ifdef CORO_ASAN
	__sanitizer_finish_switch_fiber(hub->fake_stack, NULL, NULL);
#endif
}

void lab_coro_leave(struct lab_coro *co)
{
	leaving(&co->fake_stack, co->hub->bottom, co->hub->bytes);
	coro_jump(&co->place, &co->hub->place);
	arrived(co);
}

void lab_coro_switch(struct lab_coro *from, struct lab_coro *to)
{
	to->from_hub = false;
	leaving(&from->fake_stack, to->stack, CORO_STACK);
	coro_jump(&from->place, &to->place);
	arrived(from);
}

void lab_coro_end(struct lab_coro *from, struct lab_coro *to)
{
	to->from_hub = false;
	leaving(NULL, to->stack, CORO_STACK);
	coro_jump(&from->place, &to->place);
	abort();
}
