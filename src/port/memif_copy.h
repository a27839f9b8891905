/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of packet data. Most frames have up to 128 bytes: for them a few 16-byte moves that
 * overlap in the middle are exact, never touch a byte beyond the frame, and take no call.
 */
#ifndef HOLDOFF_PORT_MEMIF_COPY_H
#define HOLDOFF_PORT_MEMIF_COPY_H

#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

typedef uint8_t memif_v16 __attribute__((vector_size(16), aligned(1), may_alias));

static inline memif_v16 memif_load16(const uint8_t *p)
{
	return *(const memif_v16 *)p;
}

static inline void memif_store16(uint8_t *p, memif_v16 v)
{
	*(memif_v16 *)p = v;
}

/* 32 to 64 bytes. */
static inline void memif_copy64(uint8_t *to, const uint8_t *from, uint32_t len)
{
	memif_v16 a = memif_load16(from), b = memif_load16(from + 16);
	memif_v16 c = memif_load16(from + len - 32), d = memif_load16(from + len - 16);

	memif_store16(to, a);
	memif_store16(to + 16, b);
	memif_store16(to + len - 32, c);
	memif_store16(to + len - 16, d);
}

static inline void memif_copy(uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (ho_likely(len - 32 <= 32)) {
		memif_copy64(to, from, len);
	} else if (len - 64 <= 64) {
		memif_copy64(to, from, 64);
		memif_copy64(to + len - 64, from + len - 64, 64);
	} else {
		memcpy(to, from, len);
	}
}

#endif
