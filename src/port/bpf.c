// SPDX-License-Identifier: BSD-2-Clause
#include "port/bpf.h"

#include <errno.h>

#include "packet/slot.h"

int port_bpf_compile(const char *text, struct bpf_program *out, struct ho_err *err)
{
	pcap_t *dead = pcap_open_dead(DLT_EN10MB, PK_FRAME_MAX_BYTES);
	int rc = 0;

	if (!dead)
		return ho_err_set(err, -ENOMEM, "out of memory for the filter");
	/* Without a netmask 'ip broadcast' is an error, which is right: nobody told us one. */
	if (pcap_compile(dead, out, text, 1, PCAP_NETMASK_UNKNOWN) < 0)
		rc = ho_err_set(err, -EINVAL,
				"filter '%s': %s; 'man pcap-filter' describes the language", text,
				pcap_geterr(dead));
	pcap_close(dead);
	return rc;
}
