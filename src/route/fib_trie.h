/* SPDX-License-Identifier: BSD-2-Clause */
/* A binary trie over the bits of a key of up to 16 bytes. */
#ifndef HOLDOFF_ROUTE_FIB_TRIE_H
#define HOLDOFF_ROUTE_FIB_TRIE_H

#include "route/fib.h"

struct fib_trie;

int fib_trie_create(struct fib_trie **out);
void fib_trie_destroy(struct fib_trie *t);
int fib_trie_set(struct fib_trie *t, const uint8_t *key, unsigned len, uint32_t nh);
int fib_trie_del(struct fib_trie *t, const uint8_t *key, unsigned len);
uint32_t fib_trie_get(const struct fib_trie *t, const uint8_t *key, unsigned len);
uint32_t fib_trie_lookup(const struct fib_trie *t, const uint8_t *key, unsigned bits);
int fib_trie_walk(const struct fib_trie *t,
		  int (*fn)(void *ctx, const uint8_t key[16], unsigned len, uint32_t nh),
		  void *ctx);
size_t fib_trie_count(const struct fib_trie *t);
size_t fib_trie_bytes(const struct fib_trie *t);

#endif
