// SPDX-License-Identifier: BSD-2-Clause
/*
 * The link's two directions are servers: up_free and down_free say until when they are taken.
 * Posted writes to memory stand in one queue with one event, for the first that somebody can
 * notice; posted register writes in a ring with one event for the first.
 */
#include "lab/pci.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "lab/fifo.h"
#include "lab/rate.h"

#define POSTED     64             /* register writes on their way: the root's write buffer */
#define FIRST_IOVA 0x100000000ull /* above 4 GB: a driver that drops the high half fails */
#define IOVA_HOLE  0x100000ull    /* between mappings */

enum post_kind {
	POST_DATA,
	POST_MESSAGE,
	POST_LINE,
};

struct post {
	sim_ps at;
	uint64_t iova;
	uint32_t bytes;
	uint16_t kind;   /* enum post_kind */
	uint16_t vector; /* or level */
	bool quiet;
	uint8_t data[];
};

struct register_write {
	sim_ps at;
	uint32_t reg, value;
	unsigned width;
};

struct region {
	uint64_t iova;
	size_t bytes;
	uint8_t *va;
};

struct lab_pci {
	struct sim *sim;
	struct lab_pci_config config;
	struct lab_rate up, down;
	struct lab_chip *chip;
	struct lab_pci_host host;
	struct lab_pci_stats stats;

	struct region *regions; /* by iova */
	unsigned n_regions, room_regions;
	uint64_t next_iova;

	struct register_write posted[POSTED];
	uint32_t posted_head, posted_tail;
	sim_ps posted_last; /* arrival of the last one; nothing overtakes it */
	struct sim_event posted_ev;

	sim_ps up_free, down_free;
	struct lab_fifo posts;
	struct sim_event post_ev;
	unsigned post_hint;
	sim_ps tag_free[LAB_PCI_TAGS]; /* when the completion of the request that holds it is in */
	unsigned tag;                  /* to be taken next */
	sim_ps read_last;              /* completions come in order */
};

static inline sim_ps max_ps(sim_ps a, sim_ps b)
{
	return a > b ? a : b;
}

static inline void use_up(struct lab_pci *pci, uint64_t bytes)
{
	sim_ps time = lab_rate_time(pci->up, bytes);

	pci->stats.up_bytes += bytes;
	pci->stats.up_busy += time;
	pci->up_free = max_ps(pci->up_free, sim_now(pci->sim)) + time;
}

static inline void use_down(struct lab_pci *pci, uint64_t bytes)
{
	sim_ps time = lab_rate_time(pci->down, bytes);

	pci->stats.down_bytes += bytes;
	pci->stats.down_busy += time;
	pci->down_free = max_ps(pci->down_free, sim_now(pci->sim)) + time;
}

/* --- host memory -------------------------------------------------------------------------- */

int lab_pci_map(struct lab_pci *pci, void *va, size_t bytes, uint64_t *iova, struct ho_err *err)
{
	if (!bytes)
		return ho_err_set(err, -EINVAL, "a mapping of 0 bytes");
	if (pci->n_regions == pci->room_regions) {
		unsigned room = pci->room_regions ? 2 * pci->room_regions : 16;
		struct region *more = realloc(pci->regions, room * sizeof(*more));

		if (!more)
			return ho_err_set(err, -ENOMEM, "no memory for a DMA mapping");
		pci->regions = more;
		pci->room_regions = room;
	}
	pci->regions[pci->n_regions++] =
		(struct region){ .iova = pci->next_iova, .bytes = bytes, .va = va };
	*iova = pci->next_iova;
	pci->next_iova += HO_ALIGN_UP(bytes, 4096) + IOVA_HOLE;
	return 0;
}

void lab_pci_unmap(struct lab_pci *pci, const void *va)
{
	for (unsigned i = 0; i < pci->n_regions; i++) {
		if (pci->regions[i].va != va)
			continue;
		memmove(&pci->regions[i], &pci->regions[i + 1],
			(pci->n_regions - i - 1) * sizeof(pci->regions[0]));
		pci->n_regions--;
		return;
	}
}

static inline bool holds(const struct region *r, uint64_t iova, size_t bytes)
{
	return iova >= r->iova && iova - r->iova <= r->bytes &&
	       bytes <= r->bytes - (iova - r->iova);
}

static void *find_memory(struct lab_pci *pci, uint64_t iova, size_t bytes, unsigned *hint)
{
	unsigned low = 0, high = pci->n_regions;

	while (low < high) {
		unsigned mid = (low + high) / 2;

		if (pci->regions[mid].iova <= iova)
			low = mid + 1;
		else
			high = mid;
	}
	if (low && holds(&pci->regions[low - 1], iova, bytes)) {
		*hint = low - 1;
		return pci->regions[low - 1].va + (iova - pci->regions[low - 1].iova);
	}
	pci->stats.faults++;
	return NULL;
}

void *lab_pci_memory(struct lab_pci *pci, uint64_t iova, size_t bytes, unsigned *hint)
{
	if (ho_likely(*hint < pci->n_regions && holds(&pci->regions[*hint], iova, bytes)))
		return pci->regions[*hint].va + (iova - pci->regions[*hint].iova);
	return find_memory(pci, iova, bytes, hint);
}

/* --- register accesses -------------------------------------------------------------------- */

static void deliver_posted(struct lab_pci *pci, sim_ps until)
{
	while (pci->posted_head != pci->posted_tail) {
		struct register_write w = pci->posted[pci->posted_head % POSTED];

		if (w.at > until)
			break;
		pci->posted_head++;
		if (pci->chip)
			pci->chip->ops->write(pci->chip, w.reg, w.value, w.width);
	}
}

static void posted_arrive(void *arg)
{
	struct lab_pci *pci = arg;

	deliver_posted(pci, sim_now(pci->sim));
	if (pci->posted_head != pci->posted_tail)
		sim_schedule(pci->sim, &pci->posted_ev, lab_pci_posted_at(pci));
}

bool lab_pci_register_write(struct lab_pci *pci, uint32_t reg, uint32_t value, unsigned width)
{
	struct register_write *w;

	if (ho_unlikely(pci->posted_tail - pci->posted_head == POSTED)) {
		pci->stats.posted_full++;
		return false;
	}
	pci->stats.register_writes++;
	use_down(pci, pci->config.tlp_bytes + 4);
	pci->posted_last = max_ps(pci->posted_last, sim_now(pci->sim) + pci->config.latency) +
			   lab_rate_time(pci->down, pci->config.tlp_bytes + 4);
	w = &pci->posted[pci->posted_tail++ % POSTED];
	*w = (struct register_write){
		.at = pci->posted_last, .reg = reg, .value = value, .width = width
	};
	if (!sim_scheduled(&pci->posted_ev))
		sim_schedule(pci->sim, &pci->posted_ev, w->at);
	return true;
}

sim_ps lab_pci_posted_at(const struct lab_pci *pci)
{
	if (pci->posted_head == pci->posted_tail)
		return SIM_NEVER;
	return pci->posted[pci->posted_head % POSTED].at;
}

void lab_pci_posted_flush(struct lab_pci *pci)
{
	deliver_posted(pci, SIM_NEVER);
	pci->posted_last = sim_now(pci->sim);
	sim_cancel(pci->sim, &pci->posted_ev);
}

/* The completion goes up behind all posted writes. */
static void read_arrive(void *arg)
{
	struct lab_pci_register_read *read = arg;
	struct lab_pci *pci = read->pci;

	deliver_posted(pci, sim_now(pci->sim));
	read->value = pci->chip ? pci->chip->ops->read(pci->chip, read->reg, read->width)
				: 0xffffffffu >> (32 - 8 * read->width);
	read->arrived = true;
	use_up(pci, pci->config.tlp_bytes + 4);
	read->back = max_ps(sim_now(pci->sim) + pci->config.register_read, pci->up_free) +
		     pci->config.latency;
}

sim_ps lab_pci_register_read(struct lab_pci *pci, struct lab_pci_register_read *read, uint32_t reg,
			     unsigned width)
{
	sim_ps at = max_ps(pci->posted_last, sim_now(pci->sim) + pci->config.latency) +
		    lab_rate_time(pci->down, pci->config.tlp_bytes);

	pci->stats.register_reads++;
	use_down(pci, pci->config.tlp_bytes);
	*read = (struct lab_pci_register_read){ .pci = pci, .reg = reg, .width = width };
	sim_event_init_at(&read->arrival, pci->config.host, read_arrive, read);
	sim_schedule(pci->sim, &read->arrival, at);
	return at;
}

void lab_pci_register_read_now(struct lab_pci_register_read *read)
{
	sim_cancel(read->pci->sim, &read->arrival);
	lab_pci_posted_flush(read->pci);
	read_arrive(read);
}

/* --- memory reads ------------------------------------------------------------------------- */

sim_ps lab_pci_read_at(const struct lab_pci *pci)
{
	return pci->tag_free[pci->tag];
}

sim_ps lab_pci_read(struct lab_pci *pci, uint32_t bytes)
{
	const struct lab_pci_config *c = &pci->config;
	sim_ps now = sim_now(pci->sim);

	pci->stats.reads++;
	pci->stats.read_bytes += bytes;
	do {
		uint32_t part = HO_MIN(bytes, c->max_read_request);
		uint32_t packets =
			part ? (part + c->completion_payload - 1) / c->completion_payload : 1;
		uint64_t span = part + (uint64_t)packets * c->tlp_bytes;
		sim_ps time = lab_rate_time(pci->down, span);
		sim_ps issue, answer;

		issue = max_ps(max_ps(now, pci->tag_free[pci->tag]), pci->up_free);
		use_up(pci, c->tlp_bytes);
		answer = issue + lab_rate_time(pci->up, c->tlp_bytes) + c->latency + c->memory_read;
		pci->stats.down_bytes += span;
		pci->stats.down_busy += time;
		pci->down_free = max_ps(answer, pci->down_free) + time;
		pci->read_last = pci->down_free + c->latency;
		pci->tag_free[pci->tag] = pci->read_last;
		pci->tag = pci->tag + 1 == c->tags ? 0 : pci->tag + 1;
		bytes -= part;
	} while (bytes);
	return pci->read_last;
}

/* --- memory writes and messages ----------------------------------------------------------- */

static inline void apply(struct lab_pci *pci, struct post *p)
{
	uint8_t *to;

	switch (p->kind) {
	case POST_DATA:
		to = lab_pci_memory(pci, p->iova, p->bytes, &pci->post_hint);
		if (ho_likely(to))
			memcpy(to, p->data, p->bytes);
		break;
	case POST_MESSAGE:
		if (pci->host.message)
			pci->host.message(pci->host.arg, p->vector);
		break;
	case POST_LINE:
		if (pci->host.line)
			pci->host.line(pci->host.arg, p->vector);
		break;
	}
}

static void posts_arrive(void *arg)
{
	struct lab_pci *pci = arg;
	uint64_t cursor;
	struct post *p;

	while ((p = lab_fifo_head(&pci->posts)) != NULL && p->at <= sim_now(pci->sim)) {
		apply(pci, p);
		lab_fifo_pop(&pci->posts);
	}
	cursor = pci->posts.head;
	while ((p = lab_fifo_next(&pci->posts, &cursor)) != NULL) {
		if (p->quiet)
			continue;
		sim_schedule(pci->sim, &pci->post_ev, p->at);
		break;
	}
}

void *lab_pci_write_begin(struct lab_pci *pci, uint64_t iova, uint32_t bytes)
{
	struct post *p = lab_fifo_put(&pci->posts, (uint32_t)sizeof(*p) + bytes);

	p->iova = iova;
	p->bytes = bytes;
	p->kind = POST_DATA;
	p->vector = 0;
	return p->data;
}

sim_ps lab_pci_write_end(struct lab_pci *pci, bool quiet)
{
	const struct lab_pci_config *c = &pci->config;
	struct post *p = (struct post *)(lab_fifo_mark_at(&pci->posts, pci->posts.tail) + 1);
	uint32_t packets = HO_MAX((p->bytes + c->max_payload - 1) / c->max_payload, 1u);

	if (p->kind == POST_DATA) {
		pci->stats.writes++;
		pci->stats.write_bytes += p->bytes;
	} else {
		pci->stats.messages++;
	}
	use_up(pci, p->bytes + (uint64_t)packets * c->tlp_bytes);
	p->at = pci->up_free + c->latency + c->memory_write;
	p->quiet = quiet;
	lab_fifo_keep(&pci->posts, (uint32_t)sizeof(*p) + p->bytes);
	if (!quiet && !sim_scheduled(&pci->post_ev))
		sim_schedule(pci->sim, &pci->post_ev, p->at);
	return p->at;
}

static sim_ps post_signal(struct lab_pci *pci, enum post_kind kind, unsigned vector)
{
	struct post *p;

	memset(lab_pci_write_begin(pci, 0, 4), 0, 4);
	p = (struct post *)(lab_fifo_mark_at(&pci->posts, pci->posts.tail) + 1);
	p->kind = (uint16_t)kind;
	p->vector = (uint16_t)vector;
	return lab_pci_write_end(pci, false);
}

sim_ps lab_pci_message(struct lab_pci *pci, unsigned vector)
{
	return post_signal(pci, POST_MESSAGE, vector);
}

sim_ps lab_pci_line(struct lab_pci *pci, bool asserted)
{
	return post_signal(pci, POST_LINE, asserted);
}

/* --- the link itself ---------------------------------------------------------------------- */

static void set_defaults(struct lab_pci_config *c)
{
#define DEFAULT(field, value) c->field = c->field ? c->field : (value)
	DEFAULT(down_bps, 32000000000ull);
	DEFAULT(up_bps, 32000000000ull);
	DEFAULT(tlp_bytes, 24);
	DEFAULT(max_payload, 256);
	DEFAULT(completion_payload, 256);
	DEFAULT(max_read_request, 512);
	DEFAULT(tags, 32);
	DEFAULT(latency, 150 * SIM_PS_PER_NS);
	DEFAULT(memory_read, 230 * SIM_PS_PER_NS);
	DEFAULT(memory_write, 20 * SIM_PS_PER_NS);
	DEFAULT(register_read, 550 * SIM_PS_PER_NS);
#undef DEFAULT
}

int lab_pci_create(struct sim *sim, const struct lab_pci_config *config, struct lab_pci **out,
		   struct ho_err *err)
{
	struct lab_pci *pci;

	if (config->tags > LAB_PCI_TAGS)
		return ho_err_set(err, -EINVAL, "%u PCI read tags; a link has at most %u",
				  config->tags, LAB_PCI_TAGS);
	pci = calloc(1, sizeof(*pci));
	if (!pci)
		return ho_err_set(err, -ENOMEM, "no memory for a PCI link");
	pci->sim = sim;
	pci->config = *config;
	set_defaults(&pci->config);
	pci->up = lab_rate_of(pci->config.up_bps);
	pci->down = lab_rate_of(pci->config.down_bps);
	pci->next_iova = FIRST_IOVA;
	sim_event_init_at(&pci->posted_ev, config->host, posted_arrive, pci);
	sim_event_init_at(&pci->post_ev, config->host, posts_arrive, pci);
	if (lab_fifo_init(&pci->posts, 65536)) {
		free(pci);
		return ho_err_set(err, -ENOMEM, "no memory for the writes on a PCI link");
	}
	*out = pci;
	return 0;
}

void lab_pci_destroy(struct lab_pci *pci)
{
	if (!pci)
		return;
	sim_cancel(pci->sim, &pci->posted_ev);
	sim_cancel(pci->sim, &pci->post_ev);
	lab_fifo_free(&pci->posts);
	free(pci->regions);
	free(pci);
}

void lab_pci_set_chip(struct lab_pci *pci, struct lab_chip *chip)
{
	pci->chip = chip;
}

void lab_pci_set_host(struct lab_pci *pci, const struct lab_pci_host *host)
{
	pci->host = *host;
}

const struct lab_pci_config *lab_pci_config(const struct lab_pci *pci)
{
	return &pci->config;
}

void lab_pci_stats(const struct lab_pci *pci, struct lab_pci_stats *out)
{
	sim_ps now = sim_now(pci->sim);

	*out = pci->stats;
	if (pci->up_free > now)
		out->up_busy -= HO_MIN(out->up_busy, pci->up_free - now);
	if (pci->down_free > now)
		out->down_busy -= HO_MIN(out->down_busy, pci->down_free - now);
}
