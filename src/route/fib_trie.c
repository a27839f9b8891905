// SPDX-License-Identifier: BSD-2-Clause
#include "route/fib_trie.h"

#include <errno.h>
#include <stdlib.h>

struct node {
	struct node *child[2];
	uint32_t nh;
};

/* Nodes are only ever added while readers run, so that none can vanish under one. */
struct fib_trie {
	struct node root;
	size_t count, nodes;
};

static unsigned bit_of(const uint8_t *key, unsigned i)
{
	return key[i / 8] >> (7 - i % 8) & 1;
}

int fib_trie_create(struct fib_trie **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static void free_below(struct node *n)
{
	for (int side = 0; side < 2; side++) {
		if (n->child[side]) {
			free_below(n->child[side]);
			free(n->child[side]);
		}
	}
}

void fib_trie_destroy(struct fib_trie *t)
{
	if (t)
		free_below(&t->root);
	free(t);
}

static struct node *find(const struct fib_trie *t, const uint8_t *key, unsigned len)
{
	const struct node *n = &t->root;

	for (unsigned i = 0; n && i < len; i++)
		n = n->child[bit_of(key, i)];
	return (struct node *)n;
}

int fib_trie_set(struct fib_trie *t, const uint8_t *key, unsigned len, uint32_t nh)
{
	struct node *n = &t->root;

	for (unsigned i = 0; i < len; i++) {
		struct node **next = &n->child[bit_of(key, i)];

		if (!*next) {
			struct node *fresh = calloc(1, sizeof(*fresh));

			if (!fresh)
				return -ENOMEM;
			t->nodes++;
			__atomic_store_n(next, fresh, __ATOMIC_RELEASE);
		}
		n = *next;
	}
	t->count += n->nh == 0;
	__atomic_store_n(&n->nh, nh, __ATOMIC_RELEASE);
	return 0;
}

int fib_trie_del(struct fib_trie *t, const uint8_t *key, unsigned len)
{
	struct node *n = find(t, key, len);

	if (!n || !n->nh)
		return -ENOENT;
	__atomic_store_n(&n->nh, 0, __ATOMIC_RELEASE);
	t->count--;
	return 0;
}

uint32_t fib_trie_get(const struct fib_trie *t, const uint8_t *key, unsigned len)
{
	const struct node *n = find(t, key, len);

	return n ? n->nh : 0;
}

uint32_t fib_trie_lookup(const struct fib_trie *t, const uint8_t *key, unsigned bits)
{
	const struct node *n = &t->root;
	uint32_t best = 0;

	for (unsigned i = 0; n; i++) {
		uint32_t nh = __atomic_load_n(&n->nh, __ATOMIC_ACQUIRE);

		if (nh)
			best = nh;
		if (i == bits)
			break;
		n = __atomic_load_n(&n->child[bit_of(key, i)], __ATOMIC_ACQUIRE);
	}
	return best;
}

struct walk {
	int (*fn)(void *ctx, const uint8_t key[16], unsigned len, uint32_t nh);
	void *ctx;
	uint8_t key[16];
};

static int walk_below(struct walk *w, const struct node *n, unsigned len)
{
	int rc = n->nh ? w->fn(w->ctx, w->key, len, n->nh) : 0;

	for (unsigned side = 0; !rc && side < 2; side++) {
		if (!n->child[side])
			continue;
		w->key[len / 8] |= (uint8_t)(side << (7 - len % 8));
		rc = walk_below(w, n->child[side], len + 1);
		w->key[len / 8] &= (uint8_t) ~(1u << (7 - len % 8));
	}
	return rc;
}

int fib_trie_walk(const struct fib_trie *t,
		  int (*fn)(void *ctx, const uint8_t key[16], unsigned len, uint32_t nh), void *ctx)
{
	struct walk w = { fn, ctx, { 0 } };

	return walk_below(&w, &t->root, 0);
}

size_t fib_trie_count(const struct fib_trie *t)
{
	return t->count;
}

size_t fib_trie_bytes(const struct fib_trie *t)
{
	return sizeof(*t) + t->nodes * sizeof(struct node);
}
