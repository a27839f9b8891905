// SPDX-License-Identifier: BSD-2-Clause
#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct suffix {
	const char *text;
	double factor;
};

static const struct suffix count_suffixes[] = {
	{ "", 1 }, { "k", 1e3 }, { "m", 1e6 }, { "g", 1e9 }, { "t", 1e12 }, { NULL, 0 },
};

static const struct suffix time_suffixes[] = {
	{ "ns", 1 },     { "us", 1e3 },   { "ms", 1e6 }, { "s", 1e9 },
	{ "min", 60e9 }, { "h", 3600e9 }, { NULL, 0 },
};

static const struct suffix *find_suffix(const struct suffix *table, const char *text)
{
	for (; table->text; table++) {
		if (!strcasecmp(table->text, text))
			return table;
	}
	return NULL;
}

/*
 * Reads a plain decimal number (no sign, hex, inf or nan, which strtod would take). *end is what
 * follows it. false if there is none.
 */
static bool read_number(const char *text, double *value, const char **end)
{
	const char *p = text;
	char *stop;

	if (!isdigit((unsigned char)*p) && !(*p == '.' && isdigit((unsigned char)p[1])))
		return false;
	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
		*value = 0;
		*end = p + 1;
		return true;
	}
	*value = strtod(text, &stop);
	*end = stop;
	return true;
}

static int to_whole(const char *text, double value, uint64_t *out, struct ho_err *err)
{
	double rounded = nearbyint(value);

	if (value > 1.8e19)
		return ho_err_set(err, -ERANGE, "'%s' is too large", text);
	if (fabs(value - rounded) > 1e-6 * fmax(1, value * 1e-6))
		return ho_err_set(err, -EINVAL, "'%s' is not a whole number", text);
	*out = (uint64_t)rounded;
	return 0;
}

/* Whole decimal digits are read exactly: a double would lose the last ones above 2^53. */
static bool read_exact(const char *text, uint64_t *out)
{
	char *stop;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*out = strtoull(text, &stop, 10);
	return *stop == '\0' && errno == 0;
}

int ho_parse_count(const char *text, uint64_t *out, struct ho_err *err)
{
	const struct suffix *suffix;
	const char *end;
	double value;

	if (read_exact(text, out))
		return 0;
	if (!read_number(text, &value, &end) || !(suffix = find_suffix(count_suffixes, end)))
		return ho_err_set(err, -EINVAL,
				  "'%s' is not a number; write digits, with k, m, g or t behind",
				  text);
	return to_whole(text, value * suffix->factor, out, err);
}

int ho_parse_time_ns(const char *text, uint64_t *out, struct ho_err *err)
{
	const struct suffix *suffix;
	const char *end;
	double value;

	if (!strcmp(text, "0")) {
		*out = 0;
		return 0;
	}
	if (!read_number(text, &value, &end) || !(suffix = find_suffix(time_suffixes, end)))
		return ho_err_set(err, -EINVAL,
				  "'%s' is not a time; write a number with ns, us, ms, s, min or h",
				  text);
	return to_whole(text, value * suffix->factor, out, err);
}

int ho_parse_rate(const char *text, struct ho_rate *out, struct ho_err *err)
{
	static const struct {
		const char *name;
		enum ho_rate_unit unit;
	} units[] = {
		{ "pps", HO_RATE_PPS },       { "bps-l1", HO_RATE_L1_BPS },
		{ "bit-l1", HO_RATE_L1_BPS }, { "bps-l2", HO_RATE_L2_BPS },
		{ "bit-l2", HO_RATE_L2_BPS }, { "bps", HO_RATE_L2_BPS },
		{ "bit", HO_RATE_L2_BPS },
	};
	const struct suffix *suffix;
	const char *end;
	double value;

	if (!strcasecmp(text, "max")) {
		*out = (struct ho_rate){ .unit = HO_RATE_MAX };
		return 0;
	}
	if (!read_number(text, &value, &end))
		goto bad;
	if (value <= 0)
		return ho_err_set(err, -EINVAL, "a rate of '%s' sends nothing", text);
	if (!strcmp(end, "%")) {
		if (value > 100)
			return ho_err_set(err, -EINVAL, "'%s' is more than the link", text);
		*out = (struct ho_rate){ .unit = HO_RATE_PERCENT, .value = value };
		return 0;
	}
	suffix = find_suffix(time_suffixes, end);
	if (suffix) {
		*out = (struct ho_rate){ .unit = HO_RATE_GAP,
					 .value = value * suffix->factor / 1e9 };
		return 0;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t len = strlen(end), unit_len = strlen(units[i].name);
		char prefix[4] = "";

		if (len < unit_len || len - unit_len >= sizeof(prefix) ||
		    strcasecmp(end + len - unit_len, units[i].name))
			continue;
		memcpy(prefix, end, len - unit_len);
		suffix = find_suffix(count_suffixes, prefix);
		if (!suffix)
			continue;
		*out = (struct ho_rate){ .unit = units[i].unit, .value = value * suffix->factor };
		return 0;
	}
bad:
	return ho_err_set(err, -EINVAL,
			  "'%s' is not a rate; write max, 10mpps, 5gbps (layer 2), 5gbps-l1, "
			  "50%% (of the link), or a gap such as 20us",
			  text);
}

int ho_parse_fraction(const char *text, double *out, struct ho_err *err)
{
	const char *end;
	double value;

	if (!read_number(text, &value, &end) || (*end && strcmp(end, "%")))
		return ho_err_set(err, -EINVAL, "'%s' is not a fraction; write 0.1%% or 0.001",
				  text);
	if (*end)
		value /= 100;
	if (value > 1)
		return ho_err_set(err, -EINVAL, "'%s' is more than all", text);
	*out = value;
	return 0;
}

const char *ho_format_si(double value, char *buf)
{
	static const char *const prefix[] = { " ", " k", " M", " G", " T" };
	unsigned i = 0;

	while (fabs(value) >= 999.9995 && i + 1 < sizeof(prefix) / sizeof(prefix[0])) {
		value /= 1000;
		i++;
	}
	snprintf(buf, HO_UNIT_TEXT, i ? "%.3f%s" : "%.6g%s", value, prefix[i]);
	return buf;
}

const char *ho_format_ns(double ns, char *buf)
{
	if (ns < 1e3)
		snprintf(buf, HO_UNIT_TEXT, "%.0f ns", ns);
	else if (ns < 1e6)
		snprintf(buf, HO_UNIT_TEXT, "%.2f us", ns / 1e3);
	else if (ns < 1e9)
		snprintf(buf, HO_UNIT_TEXT, "%.2f ms", ns / 1e6);
	else
		snprintf(buf, HO_UNIT_TEXT, "%.2f s", ns / 1e9);
	return buf;
}

const char *ho_format_count(uint64_t value, char *buf)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
	char *to = buf;

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return buf;
}
