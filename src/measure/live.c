// SPDX-License-Identifier: BSD-2-Clause
#include "measure/live.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "linux/iface.h"
#include "measure/explain_live.h"

/* Autonegotiation of copper takes up to about 4 s. */
#define LINK_WAIT_NS 8000000000u
#define LINK_LOOK_NS 20000000u
/* A driver that resets its chip takes the link down some time after the setting was made. */
#define LINK_SETTLE_NS 100000000u

struct ms_live {
	struct ms_live_config config;
	char ifname[LX_IF_BYTES];
	struct lx_journal *journal;
	struct ms_workload *workload;
	struct lx_sampler *sampler;
	struct lx_sample before, after;
	struct lx_delta delta;
	bool changed; /* since the last measurement */
	bool had_link;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* 0, or -EINTR when the run is to end. */
static int pause_until(const struct ms_live *live, uint64_t at_ns)
{
	for (;;) {
		uint64_t now = now_ns();
		struct pollfd fd = { .fd = live->config.stop_fd, .events = POLLIN };
		struct timespec left;

		if (now >= at_ns)
			return 0;
		left.tv_sec = (time_t)((at_ns - now) / 1000000000u);
		left.tv_nsec = (long)((at_ns - now) % 1000000000u);
		if (ppoll(&fd, 1, &left, NULL) > 0)
			return -EINTR;
	}
}

int ms_live_open(const struct ms_live_config *config, struct ms_live **out,
		 struct lx_restored *left, struct ho_err *err)
{
	const struct lx_sampler_config sampler = {
		.iface = &config->ifname,
		.n_ifaces = 1,
		.refresh_ns = UINT64_MAX / 2,
	};
	struct ms_live *live = calloc(1, sizeof(*live));
	struct lx_iface iface;
	int rc;

	if (!live)
		return ho_err_set(err, -ENOMEM, "%s: out of memory", config->ifname);
	live->config = *config;
	rc = ms_workload_create(&config->workload, &live->workload, err);
	if (rc == 0)
		rc = lx_journal_open(config->ifname, config->force, NULL, &live->journal, left,
				     err);
	if (rc == 0)
		rc = lx_iface_get(config->ifname, &iface, err);
	if (rc == 0) {
		memcpy(live->ifname, iface.name, sizeof(live->ifname));
		live->had_link = iface.running;
		rc = lx_sampler_open(&sampler, &live->sampler, err);
	}
	if (rc < 0) {
		ms_live_close(live, NULL);
		return rc;
	}
	*out = live;
	return 0;
}

int ms_live_settings(struct ms_live *live, struct lx_setting *out, unsigned room,
		     struct ho_err *err)
{
	return lx_param_list(live->ifname, out, room, err);
}

const char *ms_live_ifname(const struct ms_live *live)
{
	return live->ifname;
}

/* Changing a ring resets many a chip: its link goes and comes back. */
static int await_link(struct ms_live *live, struct ho_err *err)
{
	uint64_t until = now_ns() + LINK_WAIT_NS;
	struct lx_iface iface;
	int rc;

	if (!live->had_link)
		return 0;
	rc = pause_until(live, now_ns() + LINK_SETTLE_NS);
	while (rc == 0) {
		rc = lx_iface_get(live->ifname, &iface, err);
		if (rc < 0 || iface.running)
			return rc;
		if (now_ns() > until)
			return ho_err_set(err, -ENETDOWN,
					  "%s: its link did not come back within %d s after a "
					  "setting was changed",
					  live->ifname, (int)(LINK_WAIT_NS / 1000000000u));
		rc = pause_until(live, now_ns() + LINK_LOOK_NS);
	}
	return rc;
}

int ms_live_set(struct ms_live *live, const char *name, uint64_t value, uint64_t *got,
		struct ho_err *err)
{
	int rc = lx_journal_set(live->journal, name, value, got, err);

	live->changed = true;
	return rc;
}

/* --- what a delta says --------------------------------------------------------------------- */

static double busiest(const struct lx_host *host, double (*share)(const struct lx_cpu *cpu))
{
	double most = 0;

	if (!(host->has & LX_HOST_TIMES))
		return NAN;
	for (unsigned i = 0; i < host->n_cpus; i++)
		most = HO_MAX(most, share(&host->cpu[i]));
	return most * 100;
}

static double not_idle(const struct lx_cpu *cpu)
{
	return 1 - lx_cpu_share(cpu, LX_TIME_IDLE) - lx_cpu_share(cpu, LX_TIME_IOWAIT);
}

static double in_irq(const struct lx_cpu *cpu)
{
	return lx_cpu_share(cpu, LX_TIME_IRQ) + lx_cpu_share(cpu, LX_TIME_SOFTIRQ);
}

static void from_delta(const struct lx_delta *d, struct ms_live_result *out)
{
	const struct lx_ifdata *i = &d->iface[0];
	double s = (double)d->interval_ns / 1e9, drops = 0;

	out->seconds = s;
	if (i->has & LX_IF_LINK && !i->appeared && !i->vanished && !i->replaced) {
		out->value[MS_LIVE_RX_PPS] = (double)i->link.rx_packets / s;
		out->value[MS_LIVE_TX_PPS] = (double)i->link.tx_packets / s;
		out->value[MS_LIVE_PPS] = (double)(i->link.rx_packets + i->link.tx_packets) / s;
		out->value[MS_LIVE_GBPS] =
			(double)(i->link.rx_bytes + i->link.tx_bytes) * 8 / s / 1e9;
		for (const struct lx_field *f = lx_link_fields; f->name; f++)
			if (f->flags & LX_FIELD_DROP && !(f->flags & LX_FIELD_PART))
				drops += (double)lx_field_get(&i->link, f);
		out->value[MS_LIVE_DROPS] = drops / s;
	}
	if (i->has & LX_IF_IRQS)
		out->value[MS_LIVE_IRQS] = (double)lx_irqs_sum(i) / s;
	out->value[MS_LIVE_CPU] = busiest(&d->host, not_idle);
	out->value[MS_LIVE_SOFTIRQ] = busiest(&d->host, in_irq);
	if (d->host.has & LX_HOST_TIMES)
		out->value[MS_LIVE_SWITCHES] = (double)d->host.switches / s;
}

static void explain(const struct lx_delta *d, struct ms_live_result *out)
{
	struct ms_evidence evidence;
	struct ms_verdict verdict;

	ms_explain_live(d, 0, &evidence, &verdict);
	out->cause = (unsigned)(verdict.cause - ms_causes);
	out->certainty = verdict.finding.certainty;
	snprintf(out->why, sizeof(out->why), "%.99s: %.295s", verdict.finding.sentence,
		 verdict.finding.arithmetic);
}

int ms_live_settle(struct ms_live *live, struct ho_err *err)
{
	int rc = await_link(live, err);

	return rc < 0 ? rc : pause_until(live, now_ns() + live->config.settle_ns);
}

int ms_live_measure(struct ms_live *live, struct ms_live_result *out, struct ho_err *err)
{
	int rc = 0;

	for (unsigned m = 0; m < MS_LIVE_METRICS; m++)
		out->value[m] = NAN;
	if (live->changed) {
		lx_sampler_refresh(live->sampler);
		rc = ms_live_settle(live, err);
	}
	if (rc == 0)
		rc = lx_sampler_read(live->sampler, &live->before, err);
	if (rc == 0)
		rc = ms_workload_start(live->workload, err);
	if (rc == 0)
		rc = ms_workload_wait(live->workload, now_ns() + live->config.measure_ns,
				      live->config.stop_fd, &out->value[MS_LIVE_VALUE], err);
	if (rc == 0)
		rc = lx_sampler_read(live->sampler, &live->after, err);
	if (rc == 0)
		rc = lx_delta_make(&live->before, &live->after, &live->delta);
	if (rc < 0)
		return rc;
	live->changed = false;
	if (!live->after.iface[0].has)
		return ho_err_set(err, -ENODEV, "%s: the interface is gone", live->ifname);
	from_delta(&live->delta, out);
	explain(&live->delta, out);
	return 0;
}

/* --- the end ------------------------------------------------------------------------------- */

int ms_live_restore(struct ms_live *live, struct lx_restored *done, struct ho_err *err)
{
	live->changed = true;
	return lx_journal_restore(live->journal, done, err);
}

int ms_live_keep(struct ms_live *live, struct ho_err *err)
{
	return lx_journal_keep(live->journal, err);
}

int ms_live_close(struct ms_live *live, struct ho_err *err)
{
	int rc;

	if (!live)
		return 0;
	/* The workload ends first: it must not run on settings that change under it. */
	ms_workload_destroy(live->workload);
	rc = lx_journal_close(live->journal, err);
	lx_sampler_close(live->sampler);
	lx_sample_fini(&live->before);
	lx_sample_fini(&live->after);
	lx_delta_fini(&live->delta);
	free(live);
	return rc;
}
