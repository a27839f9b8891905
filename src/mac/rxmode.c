// SPDX-License-Identifier: BSD-2-Clause
/* What all rx-modes share; and the table of them. */
#include "mac/rxmode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mac/rxmodes.h"

const struct mac_rxmode *const mac_rxmodes[] = {
	&mac_rxmode_direct,
	&mac_rxmode_napi,
	&mac_rxmode_poll,
	NULL,
};

static const struct mac_rxmode *find_mode(const char *name)
{
	for (const struct mac_rxmode *const *m = mac_rxmodes; *m; m++)
		if (!strcmp((*m)->name, name))
			return *m;
	return NULL;
}

/* The port's own parameter; false if it has none of that name. */
static bool port_value(struct port *port, const char *name, uint64_t *value)
{
	struct port_param p[32];
	unsigned n = port->ops->params ? port->ops->params(port, p, HO_ARRAY_LEN(p)) : 0;

	for (unsigned i = 0; i < HO_MIN(n, (unsigned)HO_ARRAY_LEN(p)); i++) {
		if (!strcmp(p[i].name, name)) {
			*value = p[i].value;
			return true;
		}
	}
	return false;
}

static int set_moderation(struct mac_rx *rx, struct ho_err *err)
{
	const struct mac_rx_config *c = &rx->config;
	enum mac_mod_kind kind = MAC_MOD_FIXED;
	uint64_t usecs;
	int rc;

	if (!c->moderation) {
		if (!port_value(rx->port, "rx-usecs", &usecs) || usecs != 1)
			return 0;
		kind = MAC_MOD_ADAPTIVE_2_6;
	} else {
		rc = mac_mod_from_name(c->moderation, &kind, err);
		if (rc < 0)
			return rc;
	}
	if (!rx->port->ops->spacing)
		return ho_err_set(err, -EINVAL, "%s: the port has no interrupt moderation",
				  rx->port->name);
	mac_moderation_init(&rx->moderation, kind, c->spacing_ns, rx->port->link_bps);
	rx->moderates = true;
	return 0;
}

int mac_rx_open(const struct mac_rx_config *config, struct mac_rx **out, struct ho_err *err)
{
	struct port *port = config->port;
	const struct mac_rxmode *mode = find_mode(config->mode);
	struct mac_rx *rx;
	int rc;

	if (!mode)
		return ho_err_set(err, -EINVAL,
				  "'%s' is no rx-mode; there are direct, napi and poll",
				  config->mode);
	if (config->queue >= port->n_rxq)
		return ho_err_set(err, -EINVAL, "%s: there is no queue %u, only %u", port->name,
				  config->queue, port->n_rxq);
	if (mode != &mac_rxmode_poll && !port->ops->rx_event)
		return ho_err_set(err, -EINVAL, "%s has no interrupt: use rx-mode poll",
				  port->name);
	if (config->weight < 0 || config->weight > 4096)
		return ho_err_set(err, -EINVAL, "weight %d: 1 to 4096 are possible",
				  config->weight);
	rx = calloc(1, sizeof(*rx));
	if (!rx)
		return ho_err_set(err, -ENOMEM, "out of memory for an rx-mode");
	rx->mode = mode;
	rx->config = *config;
	rx->rt = port->rt;
	rx->port = port;
	rx->rxq = port->rxq[config->queue];
	if (port->ops->clean && config->queue < port->n_txq)
		rx->txq = port->txq[config->queue];
	if (!rx->config.weight)
		rx->config.weight = MAC_WEIGHT_DEFAULT;
	if (!rx->config.tx_limit)
		rx->config.tx_limit = MAC_TX_LIMIT_DEFAULT;
	snprintf(rx->task_name, sizeof(rx->task_name), "%s",
		 config->name ? config->name : mode->name);
	rc = set_moderation(rx, err);
	if (rc < 0)
		goto free_rx;
	rc = pk_cache_create(port->arena, &rx->cache, err);
	if (rc < 0)
		goto free_rx;
	port_bind_rx(port, config->queue, rx->cache);
	if (rx->txq)
		port_bind_tx(port, config->queue, rx->cache);
	*out = rx;
	return 0;
free_rx:
	free(rx);
	return rc;
}

int mac_rx_start(struct mac_rx *rx, struct ho_err *err)
{
	if (rx->moderates) {
		rx->moderation.link_bps = rx->port->link_bps;
		rx->port->ops->spacing(rx->rxq, rx->moderation.spacing_ns);
	}
	rx->quit = 0;
	return rx->mode->start(rx, err);
}

void mac_rx_stop(struct mac_rx *rx)
{
	if (__atomic_exchange_n(&rx->quit, 1, __ATOMIC_ACQ_REL))
		return;
	rx->mode->stop(rx);
}

void mac_rx_close(struct mac_rx *rx)
{
	if (!rx)
		return;
	pk_cache_destroy(rx->cache);
	free(rx);
}

struct mac_rx_stats mac_rx_stats(const struct mac_rx *rx)
{
	return (struct mac_rx_stats){
		.interrupts = ho_ctr_read(&rx->stats.interrupts),
		.passes = ho_ctr_read(&rx->stats.passes),
		.exhausted = ho_ctr_read(&rx->stats.exhausted),
		.completes = ho_ctr_read(&rx->stats.completes),
		.deferrals = ho_ctr_read(&rx->stats.deferrals),
		.packets = ho_ctr_read(&rx->stats.packets),
	};
}

/* Cleans the transmit queue; true when more may be waiting. */
static bool clean(struct mac_rx *rx)
{
	struct port_work done = { 0 };
	bool more = rx->port->ops->clean(rx->txq, rx->config.tx_limit, &done);

	rx->since.tx_packets += done.packets;
	rx->since.tx_bytes += done.bytes;
	if (rx->config.bql)
		mac_bql_completed(rx->config.bql, &done);
	return more;
}

int mac_rx_pass(struct mac_rx *rx, int budget)
{
	struct pk_slot slots[PK_BURST];
	bool more = false;
	int frames = 0;

	rt_spend(rx->rt, RT_COST_POLL, 1);
	ho_ctr_add(&rx->stats.passes, 1);
	if (rx->txq)
		more = clean(rx);
	while (frames < budget) {
		/* port_rx must be offered room for the longest frame: the last burst of a pass
		 * may bring a few frames more than the budget. */
		int want = HO_MIN(budget - frames, PK_BURST), got = 0;
		unsigned n = port_rx(rx->rxq, slots, (unsigned)HO_MAX(want, PK_FRAME_MAX_SLOTS));

		if (!n)
			break;
		for (unsigned i = 0; i < n; i++) {
			got += !(slots[i].flags & PK_MORE);
			rx->since.rx_bytes += slots[i].len;
		}
		frames += got;
		rx->since.rx_packets += (uint32_t)got;
		rx->config.consume(rx->config.arg, rx->cache, slots, n);
	}
	ho_ctr_add(&rx->stats.packets, (uint64_t)frames);
	if (!more && frames < budget)
		return frames;
	ho_ctr_add(&rx->stats.exhausted, 1);
	return budget;
}

void mac_rx_complete(struct mac_rx *rx)
{
	ho_ctr_add(&rx->stats.completes, 1);
	if (rx->moderates) {
		const uint32_t before = rx->moderation.spacing_ns;

		rx->since.now_ns = rt_now_ns(rx->rt);
		if (mac_moderation_update(&rx->moderation, &rx->since) != before)
			rx->port->ops->spacing(rx->rxq, rx->moderation.spacing_ns);
	}
	rx->since = (struct mac_mod_sample){ 0 };
}

bool mac_rx_arm(struct mac_rx *rx)
{
	return rx->port->ops->arm && rx->port->ops->arm(rx->rxq);
}

void mac_rx_interrupted(struct mac_rx *rx)
{
	ho_ctr_add(&rx->stats.interrupts, 1);
	if (!rx->port->irq_self_masks && rx->port->ops->disarm)
		rx->port->ops->disarm(rx->rxq);
}
