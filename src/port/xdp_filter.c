// SPDX-License-Identifier: BSD-2-Clause
/*
 * A libpcap expression in front of the sockets. libpcap compiles it to classic BPF; this file
 * translates that, instruction by instruction, to an eBPF program (RFC 9669 for eBPF, the BSD
 * Packet Filter paper of McCanne and Jacobson for classic BPF). Any expression works that does not
 * need a live interface; nothing is interpreted per packet.
 *
 * Registers: r0 = A, r5 = X, r6 = context, r7 = data, r8 = data_end; r1 to r4 are scratch. Nothing
 * but the prologue and the end calls helpers, so A and X may live in registers that calls destroy.
 * The sixteen words of scratch memory and the frame's length are on the stack.
 *
 * A load outside the frame rejects it, as in classic BPF.
 */
/* libpcap's classic instruction and program have the names of the kernel's and libbpf's. */
#define bpf_insn    classic
#define bpf_program classic_program
#include "port/bpf.h"
#undef bpf_insn
#undef bpf_program

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "port/xdp.h"
#include "port/xdp_shared.h"

#define OFFSET_MAX 4000 /* of a load: within the first page of a frame */
#define WORDS      16   /* of scratch memory: BPF_MEMWORDS */
#define LEN_SLOT   WORDS
#define EMIT_MAX   16 /* eBPF instructions for one of classic BPF, at most */
#define FIXED      64 /* for prologue and ends */

enum { A = BPF_REG_0, X = BPF_REG_5, CTX = BPF_REG_6, DATA = BPF_REG_7, END = BPF_REG_8 };
enum { T1 = BPF_REG_1, T2 = BPF_REG_2, T3 = BPF_REG_3, FP = BPF_REG_10 };

/* Where a jump goes that is not to an instruction of the filter. */
#define TO_ACCEPT UINT32_MAX
#define TO_REJECT (UINT32_MAX - 1)

struct xlate {
	struct bpf_insn *out;
	size_t n;
	struct fixup {
		size_t at;   /* the jump */
		uint32_t to; /* classic instruction, TO_ACCEPT or TO_REJECT */
	} * fixups;
	size_t n_fixups;
	size_t *start; /* of each classic instruction in out */
};

static void emit(struct xlate *x, uint8_t code, uint8_t dst, uint8_t src, int16_t off, int32_t imm)
{
	x->out[x->n++] = (struct bpf_insn){
		.code = code, .dst_reg = dst & 0xf, .src_reg = src & 0xf, .off = off, .imm = imm
	};
}

static void emit_jump(struct xlate *x, uint8_t code, uint8_t dst, uint8_t src, int32_t imm,
		      uint32_t to)
{
	x->fixups[x->n_fixups++] = (struct fixup){ .at = x->n, .to = to };
	emit(x, code, dst, src, 0, imm);
}

static int16_t stack_at(unsigned word)
{
	return (int16_t)(-4 * (int)(word + 1));
}

static void emit_mov(struct xlate *x, uint8_t dst, uint8_t src)
{
	emit(x, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

/* A size code's bytes. */
static unsigned load_bytes(uint8_t code)
{
	return BPF_SIZE(code) == BPF_W ? 4 : BPF_SIZE(code) == BPF_H ? 2 : 1;
}

/* dst = the bytes at reg + off, in host order. */
static void emit_load(struct xlate *x, uint8_t code, uint8_t dst, uint8_t reg, int16_t off)
{
	emit(x, BPF_LDX | BPF_MEM | BPF_SIZE(code), dst, reg, off, 0);
	if (load_bytes(code) > 1)
		emit(x, BPF_ALU | BPF_END | BPF_TO_BE, dst, 0, 0, (int)load_bytes(code) * 8);
}

/* dst = frame[k] */
static void load_absolute(struct xlate *x, uint8_t code, uint8_t dst, uint32_t k)
{
	if (k > OFFSET_MAX) {
		/* Always true, but the verifier must not see that what follows is dead. */
		emit_jump(x, BPF_JMP | BPF_JLE | BPF_X, DATA, END, 0, TO_REJECT);
		return;
	}
	emit_mov(x, T1, DATA);
	emit(x, BPF_ALU64 | BPF_ADD | BPF_K, T1, 0, 0, (int32_t)(k + load_bytes(code)));
	emit_jump(x, BPF_JMP | BPF_JGT | BPF_X, T1, END, 0, TO_REJECT);
	emit_load(x, code, dst, DATA, (int16_t)k);
}

/* A = frame[X + k] */
static void load_indirect(struct xlate *x, uint8_t code, uint32_t k)
{
	emit(x, BPF_ALU | BPF_MOV | BPF_X, T1, X, 0, 0);
	if (k)
		emit(x, BPF_ALU | BPF_ADD | BPF_K, T1, 0, 0, (int32_t)k);
	emit_jump(x, BPF_JMP | BPF_JGT | BPF_K, T1, 0, OFFSET_MAX, TO_REJECT);
	emit_mov(x, T2, DATA);
	emit(x, BPF_ALU64 | BPF_ADD | BPF_X, T2, T1, 0, 0);
	emit_mov(x, T3, T2);
	emit(x, BPF_ALU64 | BPF_ADD | BPF_K, T3, 0, 0, (int32_t)load_bytes(code));
	emit_jump(x, BPF_JMP | BPF_JGT | BPF_X, T3, END, 0, TO_REJECT);
	emit_load(x, code, A, T2, 0);
}

/* ld and ldx: what the mode says into dst. */
static int translate_load(struct xlate *x, const struct classic *c, uint8_t dst)
{
	switch (BPF_MODE(c->code)) {
	case BPF_IMM:
		emit(x, BPF_ALU | BPF_MOV | BPF_K, dst, 0, 0, (int32_t)c->k);
		return 0;
	case BPF_ABS:
		load_absolute(x, (uint8_t)c->code, dst, c->k);
		return 0;
	case BPF_IND:
		load_indirect(x, (uint8_t)c->code, c->k);
		return 0;
	case BPF_MEM:
		emit(x, BPF_LDX | BPF_MEM | BPF_W, dst, FP, stack_at(c->k % WORDS), 0);
		return 0;
	case BPF_LEN:
		emit(x, BPF_LDX | BPF_MEM | BPF_W, dst, FP, stack_at(LEN_SLOT), 0);
		return 0;
	case BPF_MSH: /* X = 4 * (frame[k] & 15): the length of an IPv4 header */
		load_absolute(x, BPF_B, X, c->k);
		emit(x, BPF_ALU | BPF_AND | BPF_K, X, 0, 0, 0xf);
		emit(x, BPF_ALU | BPF_LSH | BPF_K, X, 0, 0, 2);
		return 0;
	default:
		return -EINVAL;
	}
}

static int translate_alu(struct xlate *x, const struct classic *c)
{
	uint8_t op = BPF_OP(c->code), src = BPF_SRC(c->code);

	if (op > BPF_XOR)
		return -EINVAL;
	/* Division by zero rejects the frame; in eBPF it would give 0. */
	if ((op == BPF_DIV || op == BPF_MOD) && src == BPF_X)
		emit_jump(x, BPF_JMP32 | BPF_JEQ | BPF_K, X, 0, 0, TO_REJECT);
	emit(x, (uint8_t)(BPF_ALU | op | src), A, src == BPF_X ? X : 0, 0,
	     src == BPF_X || op == BPF_NEG ? 0 : (int32_t)c->k);
	return 0;
}

static int translate_jump(struct xlate *x, const struct classic *c, uint32_t i)
{
	uint8_t op = BPF_OP(c->code), src = BPF_SRC(c->code);

	if (op == BPF_JA) {
		/* Only libpcap's "protochain" jumps back. */
		if ((int32_t)c->k < 0)
			return -ELOOP;
		emit_jump(x, BPF_JMP | BPF_JA, 0, 0, 0, i + 1 + c->k);
		return 0;
	}
	if (op != BPF_JEQ && op != BPF_JGT && op != BPF_JGE && op != BPF_JSET)
		return -EINVAL;
	emit_jump(x, (uint8_t)(BPF_JMP32 | op | src), A, src == BPF_X ? X : 0,
		  src == BPF_X ? 0 : (int32_t)c->k, i + 1 + c->jt);
	if (c->jf)
		emit_jump(x, BPF_JMP | BPF_JA, 0, 0, 0, i + 1 + c->jf);
	return 0;
}

static int translate_one(struct xlate *x, const struct classic *c, uint32_t i)
{
	switch (BPF_CLASS(c->code)) {
	case BPF_LD:
		return translate_load(x, c, A);
	case BPF_LDX:
		return translate_load(x, c, X);
	case BPF_ST:
		emit(x, BPF_STX | BPF_MEM | BPF_W, FP, A, stack_at(c->k % WORDS), 0);
		return 0;
	case BPF_STX:
		emit(x, BPF_STX | BPF_MEM | BPF_W, FP, X, stack_at(c->k % WORDS), 0);
		return 0;
	case BPF_ALU:
		return translate_alu(x, c);
	case BPF_JMP:
		return translate_jump(x, c, i);
	case BPF_RET:
		if (BPF_RVAL(c->code) == BPF_A) {
			emit_jump(x, BPF_JMP32 | BPF_JNE | BPF_K, A, 0, 0, TO_ACCEPT);
			emit_jump(x, BPF_JMP | BPF_JA, 0, 0, 0, TO_REJECT);
		} else {
			emit_jump(x, BPF_JMP | BPF_JA, 0, 0, 0, c->k ? TO_ACCEPT : TO_REJECT);
		}
		return 0;
	default: /* BPF_MISC */
		if (BPF_MISCOP(c->code) == BPF_TAX)
			emit(x, BPF_ALU | BPF_MOV | BPF_X, X, A, 0, 0);
		else
			emit(x, BPF_ALU | BPF_MOV | BPF_X, A, X, 0, 0);
		return 0;
	}
}

/* Which words of scratch memory are used; bit LEN_SLOT: the length is. */
static uint32_t words_used(const struct classic *c, uint32_t n)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint8_t class = BPF_CLASS(c[i].code), mode = BPF_MODE(c[i].code);

		if (class == BPF_ST || class == BPF_STX ||
		    ((class == BPF_LD || class == BPF_LDX) && mode == BPF_MEM))
			used |= 1u << c[i].k % WORDS;
		if ((class == BPF_LD || class == BPF_LDX) && mode == BPF_LEN)
			used |= 1u << LEN_SLOT;
	}
	return used;
}

static void emit_prologue(struct xlate *x, uint32_t used)
{
	emit_mov(x, CTX, BPF_REG_1);
	if (used & (1u << LEN_SLOT)) {
		emit(x, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_xdp_get_buff_len);
		emit(x, BPF_STX | BPF_MEM | BPF_W, FP, BPF_REG_0, stack_at(LEN_SLOT), 0);
	}
	emit(x, BPF_LDX | BPF_MEM | BPF_W, DATA, CTX, offsetof(struct xdp_md, data), 0);
	emit(x, BPF_LDX | BPF_MEM | BPF_W, END, CTX, offsetof(struct xdp_md, data_end), 0);
	emit(x, BPF_ALU64 | BPF_MOV | BPF_K, A, 0, 0, 0);
	emit(x, BPF_ALU64 | BPF_MOV | BPF_K, X, 0, 0, 0);
	for (unsigned w = 0; w < WORDS; w++) {
		if (used & (1u << w))
			emit(x, BPF_STX | BPF_MEM | BPF_W, FP, A, stack_at(w), 0);
	}
}

/* Goes on at a step of the program in xdp.bpf.c; should that be missing, the kernel has it. */
static void emit_step(struct xlate *x, int steps_fd, int32_t step)
{
	emit_mov(x, BPF_REG_1, CTX);
	emit(x, BPF_LD | BPF_IMM | BPF_DW, BPF_REG_2, BPF_PSEUDO_MAP_FD, 0, steps_fd);
	emit(x, 0, 0, 0, 0, 0); /* the upper half of the constant */
	emit(x, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, step);
	emit(x, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_tail_call);
	emit(x, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, XDP_PASS);
	emit(x, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static bool jumps_to(const struct xlate *x, uint32_t to)
{
	for (size_t i = 0; i < x->n_fixups; i++) {
		if (x->fixups[i].to == to)
			return true;
	}
	return false;
}

static int fix_jumps(struct xlate *x, size_t accept, size_t reject, uint32_t n)
{
	for (size_t i = 0; i < x->n_fixups; i++) {
		const struct fixup *f = &x->fixups[i];
		size_t to;

		if (f->to == TO_ACCEPT)
			to = accept;
		else if (f->to == TO_REJECT)
			to = reject;
		else if (f->to < n)
			to = x->start[f->to];
		else
			return -EINVAL;
		if (to - f->at - 1 > INT16_MAX)
			return -E2BIG;
		x->out[f->at].off = (int16_t)(to - f->at - 1);
	}
	return 0;
}

static int translate(struct xlate *x, const struct classic *c, uint32_t n, int steps_fd)
{
	size_t accept, reject;

	emit_prologue(x, words_used(c, n));
	for (uint32_t i = 0; i < n; i++) {
		int rc;

		x->start[i] = x->n;
		rc = translate_one(x, &c[i], i);
		if (rc < 0)
			return rc;
	}
	/* An end that nothing jumps to would be unreachable code, which the kernel refuses. */
	accept = x->n;
	if (jumps_to(x, TO_ACCEPT))
		emit_step(x, steps_fd, XDP_STEP_TAKE);
	reject = x->n;
	if (jumps_to(x, TO_REJECT))
		emit_step(x, steps_fd, XDP_STEP_UNMATCHED);
	return fix_jumps(x, accept, reject, n);
}

int xdp_filter_translate(const char *expression, int steps_fd, struct bpf_insn **out, size_t *n,
			 struct ho_err *err)
{
	struct classic_program program = { 0 };
	struct xlate x = { 0 };
	int rc = port_bpf_compile(expression, &program, err);

	if (rc < 0)
		return rc;
	x.out = calloc((size_t)program.bf_len * EMIT_MAX + FIXED, sizeof(*x.out));
	x.fixups = calloc((size_t)program.bf_len * 2 + 1, sizeof(*x.fixups));
	x.start = calloc((size_t)program.bf_len + 1, sizeof(*x.start));
	if (!x.out || !x.fixups || !x.start) {
		rc = ho_err_set(err, -ENOMEM, "out of memory for filter '%s'", expression);
		goto out;
	}
	rc = translate(&x, program.bf_insns, program.bf_len, steps_fd);
	if (rc < 0) {
		rc = ho_err_set(err, -EINVAL, "filter '%s': %s", expression,
				rc == -E2BIG ? "too long for a BPF program"
				: rc == -ELOOP
					? "'protochain' needs a loop, which XDP filters cannot have"
					: "uses something that XDP filters cannot do");
		goto out;
	}
	*out = x.out;
	*n = x.n;
	x.out = NULL;
out:
	pcap_freecode(&program);
	free(x.out);
	free(x.fixups);
	free(x.start);
	return rc;
}
