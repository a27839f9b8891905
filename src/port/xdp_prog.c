// SPDX-License-Identifier: BSD-2-Clause
/*
 * The XDP program of xdp.bpf.c: loaded by libbpf from the skeleton in this binary, attached by a
 * BPF link. No bpffs and no dispatcher: nothing is left when the process is gone, and a second
 * process gets EBUSY instead of a race.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "port/xdp.h"
#include "port/xdp_shared.h"
#include "port/xdp_skel.h"

/* A link of a process that was just killed goes away in a work item. */
#define BUSY_TRIES   60
#define BUSY_WAIT_NS 20000000
#define LOG_BYTES    65536 /* of the verifier */

struct xdp_prog {
	struct xdp_skel *skel;
	int link_fd;   /* -1 = not attached */
	int filter_fd; /* -1 = no filter */
	unsigned cpus; /* that per-CPU values come from */
};

static int on_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[512];

	if (level > LIBBPF_WARN)
		return 0;
	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\n")] = '\0';
	ho_verbose("%s", line);
	return 0;
}

/* The host's addresses, so that ICMP to them stays the kernel's. */
static void add_own_addresses(struct xdp_skel *skel)
{
	int map = bpf_map__fd(skel->maps.own_addresses);
	struct ifaddrs *list;
	uint8_t yes = 1;

	if (getifaddrs(&list) < 0) {
		ho_warn("cannot read this host's addresses: %s; ping to it will not be answered",
			ho_strerror(errno));
		return;
	}
	for (struct ifaddrs *a = list; a; a = a->ifa_next) {
		struct in6_addr key = { 0 };

		if (!a->ifa_addr)
			continue;
		if (a->ifa_addr->sa_family == AF_INET)
			memcpy(&key.s6_addr[12], &((struct sockaddr_in *)a->ifa_addr)->sin_addr, 4);
		else if (a->ifa_addr->sa_family == AF_INET6)
			key = ((struct sockaddr_in6 *)a->ifa_addr)->sin6_addr;
		else
			continue;
		bpf_map_update_elem(map, &key, &yes, BPF_ANY);
	}
	freeifaddrs(list);
}

static int set_step(struct xdp_skel *skel, uint32_t step, int fd)
{
	return bpf_map_update_elem(bpf_map__fd(skel->maps.steps), &step, &fd, BPF_ANY);
}

/* Loads the translated filter and puts it before the sockets. */
static int load_filter(struct xdp_prog *prog, const char *expression, bool frags,
		       struct ho_err *err)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = frags ? BPF_F_XDP_HAS_FRAGS : 0,
		    .expected_attach_type = BPF_XDP);
	struct bpf_insn *insns = NULL;
	char *log = NULL;
	size_t n;
	int rc = xdp_filter_translate(expression, bpf_map__fd(prog->skel->maps.steps), &insns, &n,
				      err);

	if (rc < 0)
		return rc;
	prog->filter_fd =
		bpf_prog_load(BPF_PROG_TYPE_XDP, "holdoff_filter", "Dual BSD/GPL", insns, n, &opts);
	if (prog->filter_fd < 0) {
		rc = -errno;
		log = calloc(1, LOG_BYTES);
		opts.log_buf = log;
		opts.log_size = LOG_BYTES;
		opts.log_level = 1;
		if (log)
			prog->filter_fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "holdoff_filter",
							"Dual BSD/GPL", insns, n, &opts);
		ho_verbose("the verifier about filter '%s': %s", expression, log ? log : "");
	}
	if (prog->filter_fd < 0)
		ho_err_set(err, rc, "filter '%s': the kernel refuses the program made of it: %s",
			   expression, ho_strerror(rc));
	else if (set_step(prog->skel, XDP_STEP_FILTER, prog->filter_fd) < 0)
		rc = ho_err_set(err, -errno, "filter '%s' cannot be installed: %s", expression,
				ho_strerror(errno));
	else
		rc = 0;
	free(log);
	free(insns);
	return rc;
}

void xdp_quiet_libbpf(void)
{
	libbpf_set_print(on_libbpf);
}

int xdp_prog_load(const struct xdp_port *port, const char *filter, struct xdp_prog **out,
		  struct ho_err *err)
{
	struct xdp_prog *prog = calloc(1, sizeof(*prog));
	struct xdp_skel *skel;
	struct bpf_program *p;
	int rc, cpus = libbpf_num_possible_cpus();

	if (!prog || cpus < 1) {
		free(prog);
		return ho_err_set(err, -ENOMEM, "out of memory for the XDP program");
	}
	prog->link_fd = -1;
	prog->filter_fd = -1;
	prog->cpus = (unsigned)cpus;
	prog->skel = skel = xdp_skel__open();
	if (!skel) {
		rc = ho_err_set(err, -errno, "cannot open the XDP program: %s", ho_strerror(errno));
		goto fail;
	}
	skel->rodata->keep = port->opts.keep;
	skel->rodata->filtered = filter != NULL;
	skel->rodata->completes = port->iface.kind[0] != 0; /* as xdp.c says */
	/* Drivers refuse a long MTU for a program that does not know frames of several buffers,
	 * and take a slower path for one that does. */
	bpf_object__for_each_program(p, skel->obj)
		bpf_program__set_flags(p, port->sg ? BPF_F_XDP_HAS_FRAGS : 0);
	rc = xdp_skel__load(skel);
	if (rc < 0) {
		ho_err_set(err, rc, "the kernel refuses the XDP program: %s%s", ho_strerror(rc),
			   rc == -EPERM ? "; it needs cap_bpf and cap_net_admin" : "");
		goto fail;
	}
	/* Before it is attached: without its address the program leaves all to the kernel. */
	memcpy(skel->bss->host_mac, port->iface.mac, sizeof(port->iface.mac));
	add_own_addresses(skel);
	if (set_step(skel, XDP_STEP_TAKE, bpf_program__fd(skel->progs.xdp_take)) < 0 ||
	    set_step(skel, XDP_STEP_UNMATCHED, bpf_program__fd(skel->progs.xdp_unmatched)) < 0) {
		rc = ho_err_set(err, -errno, "cannot link the parts of the XDP program: %s",
				ho_strerror(errno));
		goto fail;
	}
	rc = filter ? load_filter(prog, filter, port->sg, err) : 0;
	if (rc < 0)
		goto fail;
	*out = prog;
	return 0;
fail:
	xdp_prog_destroy(prog);
	return rc;
}

/* Says who is there when a program cannot be attached. */
static int attach_failed(const struct xdp_port *port, int rc, struct ho_err *err)
{
	const struct lx_iface *iface = &port->iface;
	uint32_t id = 0;

	if (rc == -EBUSY || rc == -EEXIST) {
		bpf_xdp_query_id((int)iface->index, 0, &id);
		return ho_err_set(
			err, -EBUSY,
			"an XDP program (id %u) is attached already; 'bpftool prog show "
			"id %u' says which, 'ip link set dev %s xdp off' removes one that "
			"no running program holds",
			id, id, iface->name);
	}
	if ((rc == -ERANGE || rc == -EINVAL || rc == -EOPNOTSUPP || rc == -E2BIG) &&
	    iface->mtu > 1500)
		return ho_err_set(
			err, rc,
			"the %s driver refuses XDP at an MTU of %u: %s; lower it with "
			"'ip link set dev %s mtu 1500' or open the port with mode=generic",
			iface->kind[0] ? iface->kind : "interface's", iface->mtu, ho_strerror(rc),
			iface->name);
	return ho_err_set(err, rc, "cannot attach the XDP program: %s", ho_strerror(rc));
}

int xdp_prog_attach(struct xdp_prog *prog, const struct xdp_port *port, bool generic,
		    struct ho_err *err)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE);
	const struct timespec wait = { .tv_nsec = BUSY_WAIT_NS };
	int fd = -1;

	for (unsigned i = 0; i < BUSY_TRIES; i++) {
		fd = bpf_link_create(bpf_program__fd(prog->skel->progs.xdp_main),
				     (int)port->iface.index, BPF_XDP, &opts);
		if (fd >= 0 || (errno != EBUSY && errno != EEXIST))
			break;
		nanosleep(&wait, NULL);
	}
	if (fd < 0)
		return attach_failed(port, -errno, err);
	prog->link_fd = fd;
	return 0;
}

int xdp_prog_add(struct xdp_prog *prog, unsigned queue, int fd, struct ho_err *err)
{
	if (bpf_map_update_elem(bpf_map__fd(prog->skel->maps.sockets), &queue, &fd, BPF_ANY) == 0)
		return 0;
	return ho_err_set(err, -errno, "cannot give queue %u its socket: %s", queue,
			  ho_strerror(errno));
}

struct xdp_skel *xdp_prog_skel(const struct xdp_prog *prog)
{
	return prog->skel;
}

void xdp_prog_detach(struct xdp_prog *prog)
{
	if (prog->link_fd < 0)
		return;
	/* Now, not whenever the last reference goes. */
	bpf_link_detach(prog->link_fd);
	close(prog->link_fd);
	prog->link_fd = -1;
}

uint64_t xdp_prog_count(const struct xdp_prog *prog, unsigned which)
{
	uint64_t values[prog->cpus], sum = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(prog->skel->maps.counts), &which, values) < 0)
		return 0;
	for (unsigned i = 0; i < prog->cpus; i++)
		sum += values[i];
	return sum;
}

void xdp_prog_destroy(struct xdp_prog *prog)
{
	if (!prog)
		return;
	xdp_prog_detach(prog);
	if (prog->filter_fd >= 0)
		close(prog->filter_fd);
	xdp_skel__destroy(prog->skel);
	free(prog);
}
