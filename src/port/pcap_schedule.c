// SPDX-License-Identifier: BSD-2-Clause
#include "port/pcap_schedule.h"

#include "base/compiler.h"

static uint64_t scale(const struct pcap_schedule *s, uint64_t ns)
{
	double scaled;

	if (s->speed == 1)
		return ns;
	scaled = (double)ns / s->speed;
	return scaled < (double)PCAP_TIME_MAX_NS ? (uint64_t)scaled : PCAP_TIME_MAX_NS;
}

uint64_t pcap_schedule_frame(struct pcap_schedule *s, __int128 stamp_ns, bool *back)
{
	__int128 at;

	if (!s->frames++)
		s->zero_ns = stamp_ns;
	at = stamp_ns - s->zero_ns;
	*back = at < s->at_ns;
	if (!*back)
		s->at_ns = at < PCAP_TIME_MAX_NS ? (uint64_t)at : PCAP_TIME_MAX_NS;
	else if (s->at_ns - at > PCAP_CLOCK_SET_NS)
		s->zero_ns = stamp_ns - s->at_ns;
	return scale(s, HO_MIN(s->pass_ns + s->at_ns, PCAP_TIME_MAX_NS));
}

void pcap_schedule_pass(struct pcap_schedule *s)
{
	s->pass_ns += s->at_ns;
	if (s->frames > 1)
		s->pass_ns += s->at_ns / (s->frames - 1);
	s->pass_ns = HO_MIN(s->pass_ns, PCAP_TIME_MAX_NS);
	s->frames = s->at_ns = 0;
}
