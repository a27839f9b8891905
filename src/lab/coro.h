/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Coroutines: stacks of their own for code on modelled CPUs. A hub (the outer loop's stack) enters
 * one; that one leaves back to the hub, or switches to another, which then leaves to the hub in
 * its place. On x86-64 a switch is a dozen instructions; elsewhere it is ucontext's. Signal masks,
 * rounding modes and FPU control words are shared by all. Sanitizers are told of each switch.
 */
#ifndef HOLDOFF_LAB_CORO_H
#define HOLDOFF_LAB_CORO_H

#include <stddef.h>

#include "lab/store.h"

struct lab_coro;
struct lab_coro_hub;

/* Stacks are from the store, which may be NULL. */
int lab_coro_hub_create(struct lab_store *store, struct lab_coro_hub **out);
/* NULL is allowed. All of its coroutines must be gone. */
void lab_coro_hub_destroy(struct lab_coro_hub *hub);

/* The stack has a guard page below. fn must not return. -ENOMEM. */
int lab_coro_create(struct lab_coro_hub *hub, void (*fn)(void *arg), void *arg,
		    struct lab_coro **out);
/* Not the running one. What lies on its stack is forgotten. NULL is allowed. */
void lab_coro_destroy(struct lab_coro *co);

/* From the hub's stack; returns when a coroutine leaves. */
void lab_coro_enter(struct lab_coro *co);
/* From `co`, the running one, back to the hub; returns when it is entered or switched to again. */
void lab_coro_leave(struct lab_coro *co);
/* From `from`, the running one, to `to`. */
void lab_coro_switch(struct lab_coro *from, struct lab_coro *to);
/* The same for the last time: `from` will never run again and may be destroyed from now on. */
void lab_coro_end(struct lab_coro *from, struct lab_coro *to);

#endif
