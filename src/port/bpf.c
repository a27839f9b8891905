// SPDX-License-Identifier: BSD-2-Clause
#include "port/bpf.h"

#include <errno.h>

#include "packet/slot.h"

static int compile(pcap_t *on, const char *text, struct bpf_program *out, struct ho_err *err)
{
	/* Without a netmask 'ip broadcast' is an error, which is right: nobody told us one. */
	if (pcap_compile(on, out, text, 1, PCAP_NETMASK_UNKNOWN) < 0)
		return ho_err_set(err, -EINVAL,
				  "filter '%s': %s; 'man pcap-filter' describes the language", text,
				  pcap_geterr(on));
	return 0;
}

int port_bpf_compile(const char *text, struct bpf_program *out, struct ho_err *err)
{
	pcap_t *dead = pcap_open_dead(DLT_EN10MB, PK_FRAME_MAX_BYTES);
	int rc;

	if (!dead)
		return ho_err_set(err, -ENOMEM, "out of memory for the filter");
	rc = compile(dead, text, out, err);
	pcap_close(dead);
	return rc;
}

int port_bpf_compile_live(const char *iface, const char *text, struct bpf_program *out,
			  struct ho_err *err)
{
	char says[PCAP_ERRBUF_SIZE] = "";
	pcap_t *live = pcap_create(iface, says);
	int rc;

	if (!live)
		return ho_err_set(err, -EIO, "filter: %s", says);
	/* Only an active handle knows how the kernel shows tags; it receives nothing. */
	rc = pcap_activate(live);
	if (rc < 0)
		rc = ho_err_set(err, -EIO, "filter: %s", pcap_geterr(live));
	else
		rc = compile(live, text, out, err);
	pcap_close(live);
	return rc;
}
