/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers as people write them. Suffixes are decimal (k, m, g, t = 10^3, 10^6, ...), case does not
 * matter, fractions are allowed where the result is whole: "1.5k" is 1500. Nothing may follow the
 * number; errors name the text.
 */
#ifndef HOLDOFF_BASE_UNITS_H
#define HOLDOFF_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* "10m" -> 10000000. -EINVAL, -ERANGE. */
int ho_parse_count(const char *text, uint64_t *out, struct ho_err *err);

/* "20us", "1.5ms", "3s", "500ns", "2min" -> nanoseconds. A unit is required except for 0. */
int ho_parse_time_ns(const char *text, uint64_t *out, struct ho_err *err);

/* How a rate was given. */
enum ho_rate_unit {
	HO_RATE_MAX,     /* "max": as fast as possible */
	HO_RATE_PPS,     /* "10mpps", "5pps" */
	HO_RATE_L2_BPS,  /* "5gbps", "5gbit": bits of the frames, FCS included */
	HO_RATE_L1_BPS,  /* "5gbps-l1": with preamble, FCS and gap (20 bytes a frame) as well */
	HO_RATE_PERCENT, /* "50%": of the link's speed at layer 1 */
	HO_RATE_GAP,     /* "20us": between the beginnings of two frames */
};

struct ho_rate {
	enum ho_rate_unit unit;
	double value; /* packets/s, bits/s, percent or seconds; 0 for HO_RATE_MAX */
};

int ho_parse_rate(const char *text, struct ho_rate *out, struct ho_err *err);

/* "50%" -> 0.5, "0.1%" -> 0.001, "0.25" -> 0.25; 0 to 1. */
int ho_parse_fraction(const char *text, double *out, struct ho_err *err);

/* 8917043 -> "8.917 M", 42 -> "42 ": the unit follows at once. buf holds at least HO_UNIT_TEXT.
 * Returns buf. */
#define HO_UNIT_TEXT 32
const char *ho_format_si(double value, char *buf);
/* 12345 -> "12.35 us" */
const char *ho_format_ns(double ns, char *buf);
/* 8917043 -> "8,917,043" */
const char *ho_format_count(uint64_t value, char *buf);

#endif
