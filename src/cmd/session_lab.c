// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/session_lab.h"

#include <errno.h>

int cmd_lab_open(struct cmd_session *s, const char *spec, bool sends, struct ho_err *err)
{
	const struct lab_live_config config = {
		.target = spec + sizeof(CMD_LAB_PREFIX) - 1,
		.sends = sends,
		.queues = s->options->queues,
		.rx_ring = s->options->rx_ring,
		.tx_ring = s->options->tx_ring,
		.buffers = s->options->buffers,
	};
	int rc = lab_live_open(&config, &s->lab, err);

	if (rc < 0)
		return rc;
	s->rt = (sends ? lab_live_tx(s->lab) : lab_live_rx(s->lab))->rt;
	return rt_event_create(s->rt, &s->done_event, err);
}

int cmd_lab_port(struct cmd_session *s, bool tx, struct port **out, struct ho_err *err)
{
	*out = tx ? lab_live_tx(s->lab) : lab_live_rx(s->lab);
	if (!*out)
		return ho_err_set(err, -EINVAL, "lab:%s: nobody is at the other end of the wire",
				  lab_live_name(s->lab));
	return 0;
}
