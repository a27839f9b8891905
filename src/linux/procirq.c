// SPDX-License-Identifier: BSD-2-Clause
/* /proc/interrupts, and what the names of network vectors say. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "linux/procfs.h"

/* "CPU0       CPU2 ..." */
static bool read_columns(struct lx_scan *line, struct lx_vectors *out)
{
	const char *word;
	size_t n;

	out->n_columns = 0;
	while (lx_scan_word(line, &word, &n)) {
		unsigned long id;
		char *end;

		if (n < 4 || memcmp(word, "CPU", 3) || !isdigit((unsigned char)word[3]))
			return false;
		/* The text ends with a zero byte, so this ends somewhere. */
		id = strtoul(word + 3, &end, 10);
		if (end != word + n || id >= LX_CPUS_MAX)
			return false;
		if (out->n_columns == out->columns_room) {
			unsigned room = out->columns_room ? 2 * out->columns_room : 16;
			unsigned *grown = realloc(out->column, room * sizeof(*grown));

			if (!grown)
				return false;
			out->column = grown;
			out->columns_room = room;
		}
		out->column[out->n_columns++] = (unsigned)id;
	}
	return out->n_columns > 0;
}

/* Room for one more vector; NULL: no memory. */
static struct lx_irq *add_vector(struct lx_vectors *out)
{
	size_t counts = (size_t)(out->n + 1) * out->n_columns;

	if (out->n == out->room) {
		unsigned room = out->room ? 2 * out->room : 64;
		struct lx_irq *grown = realloc(out->irq, room * sizeof(*grown));

		if (!grown)
			return NULL;
		out->irq = grown;
		out->room = room;
	}
	if (counts > out->counts_room) {
		size_t room = 2 * counts;
		uint32_t *grown = realloc(out->counts, room * sizeof(*grown));

		if (!grown)
			return NULL;
		out->counts = grown;
		out->counts_room = room;
	}
	out->irq[out->n] = (struct lx_irq){ .queue = -1 };
	return &out->irq[out->n++];
}

/* The action's name comes after two blanks; before it are the chip, the vector's number there and
 * the kind, in forms that differ by architecture and version. */
static void read_name(struct lx_scan *line, char *buf)
{
	const char *end = line->end;

	while (end > line->p && isspace((unsigned char)end[-1]))
		end--;
	for (const char *p = end; p - 2 >= line->p; p--) {
		if (p[-1] == ' ' && p[-2] == ' ') {
			line->p = p;
			break;
		}
	}
	line->end = end;
	lx_scan_rest(line, buf, LX_IRQ_BYTES);
}

/* "LOC:", "RES:": by CPU, into the member. */
static void read_special(struct lx_scan *line, const struct lx_vectors *v, struct lx_host *host,
			 size_t offset)
{
	uint64_t value;

	for (unsigned i = 0; i < v->n_columns && lx_scan_u64(line, 10, &value); i++) {
		struct lx_cpu *cpu = lx_host_cpu(host, v->column[i]);

		if (cpu)
			*(uint64_t *)((char *)cpu + offset) = value;
	}
}

bool lx_parse_interrupts(const struct lx_text *text, struct lx_vectors *out, struct lx_host *host)
{
	struct lx_scan scan = lx_scan_text(text), line;

	out->n = 0;
	if (!lx_scan_line(&scan, &line) || !read_columns(&line, out))
		return false;
	for (unsigned i = 0; i < host->n_cpus; i++)
		host->cpu[i].interrupts = 0;
	while (lx_scan_line(&scan, &line)) {
		struct lx_irq *irq;
		const char *word;
		char *end;
		unsigned long number;
		uint32_t *on_cpu;
		size_t n;

		if (lx_scan_take(&line, "LOC:")) {
			read_special(&line, out, host, offsetof(struct lx_cpu, local_timer));
			continue;
		}
		if (lx_scan_take(&line, "RES:")) {
			read_special(&line, out, host, offsetof(struct lx_cpu, resched));
			continue;
		}
		if (!lx_scan_word(&line, &word, &n) || !isdigit((unsigned char)*word))
			continue;
		number = strtoul(word, &end, 10);
		if (end != word + n - 1 || *end != ':' || number > INT32_MAX)
			continue;
		irq = add_vector(out);
		if (!irq)
			return false;
		irq->irq = (unsigned)number;
		on_cpu = out->counts + (size_t)(out->n - 1) * out->n_columns;
		memset(on_cpu, 0, out->n_columns * sizeof(*on_cpu));
		for (unsigned i = 0; i < out->n_columns; i++) {
			uint64_t value;
			struct lx_cpu *cpu;

			if (!lx_scan_u64(&line, 10, &value))
				break;
			on_cpu[i] = (uint32_t)value;
			irq->count += value;
			cpu = lx_host_cpu(host, out->column[i]);
			if (cpu)
				cpu->interrupts += value;
		}
		read_name(&line, irq->name);
	}
	/* Only now do the counts stay where they are. */
	for (unsigned i = 0; i < out->n; i++)
		out->irq[i].on_cpu = out->counts + (size_t)i * out->n_columns;
	return true;
}

void lx_vectors_fini(struct lx_vectors *v)
{
	free(v->irq);
	free(v->counts);
	free(v->column);
	*v = (struct lx_vectors){ 0 };
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Where `name` stands in text as a word of its own; NULL. */
static const char *find_word(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = text; n && (p = strstr(p, name)); p++) {
		if ((p == text || !in_word(p[-1])) && !in_word(p[n]))
			return p;
	}
	return NULL;
}

bool lx_irq_is_of(const char *irq_name, const char *ifname, const char *virtio)
{
	const char *dev = *virtio ? find_word(irq_name, virtio) : NULL;

	return find_word(irq_name, ifname) || (dev && dev[strlen(virtio)] == '-');
}

/* The words that say what a vector is for, the longer ones first. A queue's number follows. */
static const struct {
	const char *word;
	bool rx, tx;
} kinds[] = {
	{ "txrx", true, true },   { "rxtx", true, true },     { "tx-rx", true, true },
	{ "rx-tx", true, true },  { "combined", true, true }, { "comp", true, true },
	{ "input", true, false }, { "output", false, true },  { "rx", true, false },
	{ "tx", false, true },    { "queue", true, true },    { "fp", true, true },
	{ "q", true, true },
};

void lx_irq_queue(const char *irq_name, const char *ifname, int *queue, bool *rx, bool *tx)
{
	char text[LX_IRQ_BYTES];
	const char *own = find_word(irq_name, ifname), *from = text;
	size_t n = 0;

	*queue = -1;
	*rx = *tx = false;
	/* What follows the interface's name, or all of it; its own digits must not be taken. */
	for (const char *p = own ? own + strlen(ifname) : irq_name; *p && n < sizeof(text) - 1; p++)
		text[n++] = (char)tolower((unsigned char)*p);
	text[n] = '\0';
	if (own && text[0] == '-' && isdigit((unsigned char)text[1])) {
		from = text + 1;
		*rx = *tx = true;
	}
	for (size_t i = 0; i < HO_ARRAY_LEN(kinds) && from == text; i++) {
		const char *p = strstr(text, kinds[i].word);
		const char *after;

		/* A word, not the end of one. */
		while (p && p > text && isalpha((unsigned char)p[-1]))
			p = strstr(p + 1, kinds[i].word);
		if (!p)
			continue;
		after = p + strlen(kinds[i].word);
		if (*after == '-' || *after == '.' || *after == '_')
			after++;
		if (!isdigit((unsigned char)*after))
			continue;
		from = after;
		*rx = kinds[i].rx;
		*tx = kinds[i].tx;
	}
	if (from != text && strspn(from, "0123456789") < 6)
		*queue = atoi(from);
	else
		*rx = *tx = false;
}
