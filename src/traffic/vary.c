// SPDX-License-Identifier: BSD-2-Clause
#include "traffic/vary.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

/* RFC 6985 gives no fixed mix; this is the "simple IMIX" that testers use, without FCS. */
#define IMIX "60:7,590:4,1514:1"

/* One value: up to 128 bits, and a weight where the kind has one. */
struct value {
	uint64_t low, high;
	uint64_t weight;
};

/* Decimal or 0x hexadecimal, nothing else: strtoull alone would take signs, blanks and octal. */
static bool read_number(const char *text, uint64_t *out)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char *end;

	if (hex ? !isxdigit((unsigned char)text[2]) : !isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*out = strtoull(text, &end, hex ? 16 : 10);
	return !*end && !errno;
}

static bool read_mac(const char *text, uint64_t *out)
{
	unsigned b[6];
	char rest;

	/* %2x alone would take blanks and signs. */
	if (strspn(text, "0123456789abcdefABCDEF:") != strlen(text) ||
	    sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%c", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
		   &rest) != 6)
		return false;
	*out = 0;
	for (unsigned i = 0; i < 6; i++)
		*out = *out << 8 | b[i];
	return true;
}

static int bad_value(const char *text, const struct tr_domain *domain, struct ho_err *err)
{
	switch (domain->kind) {
	case TR_VALUE_MAC:
		return ho_err_set(err, -EINVAL,
				  "'%s' is not a MAC address; write 02:00:00:00:00:01", text);
	case TR_VALUE_IPV4:
		return ho_err_set(err, -EINVAL, "'%s' is not an IPv4 address", text);
	case TR_VALUE_IPV6:
		return ho_err_set(err, -EINVAL, "'%s' is not an IPv6 address", text);
	default:
		return ho_err_set(err, -EINVAL, "'%s' is not a number from %llu to %llu", text,
				  (unsigned long long)domain->min, (unsigned long long)domain->max);
	}
}

static int read_value(const char *text, const struct tr_domain *domain, struct value *out,
		      struct ho_err *err)
{
	uint8_t addr[16];
	uint32_t v4;
	bool good;

	out->high = 0;
	out->weight = 1;
	switch (domain->kind) {
	case TR_VALUE_MAC:
		good = read_mac(text, &out->low);
		break;
	case TR_VALUE_IPV4:
		good = inet_pton(AF_INET, text, &v4) == 1;
		out->low = good ? be32toh(v4) : 0;
		break;
	case TR_VALUE_IPV6:
		good = inet_pton(AF_INET6, text, addr) == 1;
		if (good) {
			memcpy(&out->high, addr, 8);
			memcpy(&out->low, addr + 8, 8);
			out->high = be64toh(out->high);
			out->low = be64toh(out->low);
		}
		break;
	default:
		good = read_number(text, &out->low) && out->low >= domain->min &&
		       out->low <= domain->max;
	}
	return good ? 0 : bad_value(text, domain, err);
}

/* Of one text: the words that say how, and the rest joined without blanks. */
struct words {
	char *set;
	bool random;
	uint64_t step, every; /* 0 = not given */
};

static int take_word(struct words *w, char **save, const char *word, struct ho_err *err)
{
	bool step = !strcmp(word, "step");
	uint64_t *to = step ? &w->step : &w->every;
	const char *number = strtok_r(NULL, " \t\n", save);

	if (*to)
		return ho_err_set(err, -EINVAL, "'%s' twice", word);
	if (!number || !read_number(number, to) || !*to)
		return ho_err_set(err, -EINVAL, "'%s' needs a number from 1 on, not '%s'", word,
				  number ? number : "");
	return 0;
}

/* w->set is allocated even on failure. */
static int split_words(const char *text, struct words *w, struct ho_err *err)
{
	char *copy = strdup(text), *save = NULL, *to;
	bool tail = false;
	int rc = 0;

	memset(w, 0, sizeof(*w));
	w->set = to = calloc(1, strlen(text) + sizeof(IMIX));
	if (!copy || !w->set) {
		rc = ho_err_set(err, -ENOMEM, "out of memory");
		goto out;
	}
	for (char *word = strtok_r(copy, " \t\n", &save); word && !rc;
	     word = strtok_r(NULL, " \t\n", &save)) {
		if (!strcmp(word, "random") && to == w->set && !w->random) {
			w->random = true;
		} else if (!strcmp(word, "step") || !strcmp(word, "every")) {
			tail = true;
			rc = take_word(w, &save, word, err);
		} else if (tail) {
			rc = ho_err_set(err, -EINVAL, "'%s': what is '%s' behind it?", w->set,
					word);
		} else {
			to = stpcpy(to, word);
		}
	}
	if (!rc && to == w->set)
		rc = ho_err_set(err, -EINVAL, "'%s' has no value", text);
	if (!w->every)
		w->every = 1;
out:
	free(copy);
	return rc;
}

static int set_list(const struct value *values, uint32_t n, const struct tr_domain *domain,
		    struct tr_vary *out, struct ho_err *err)
{
	uint64_t *weights = calloc(n, sizeof(*weights));
	uint32_t *reduced = calloc(n, sizeof(*reduced)), *order = NULL, places;
	int rc = -ENOMEM;

	if (!weights || !reduced)
		goto out;
	for (uint32_t i = 0; i < n; i++)
		weights[i] = values[i].weight;
	rc = tr_reduce_weights(weights, n, reduced, &places, err);
	if (rc)
		goto out;
	rc = -ENOMEM;
	order = calloc(places, sizeof(*order));
	out->list = calloc(places, sizeof(*out->list));
	if (domain->kind == TR_VALUE_IPV6)
		out->list_high = calloc(places, sizeof(*out->list_high));
	if (!order || !out->list || (domain->kind == TR_VALUE_IPV6 && !out->list_high) ||
	    tr_interleave(reduced, n, places, order))
		goto out;
	for (uint32_t i = 0; i < places; i++) {
		out->list[i] = values[order[i]].low;
		if (out->list_high)
			out->list_high[i] = values[order[i]].high;
	}
	out->span = places - 1;
	rc = 0;
out:
	free(weights);
	free(reduced);
	free(order);
	return rc == -ENOMEM ? ho_err_set(err, rc, "out of memory") : rc;
}

static int parse_list(char *set, const struct tr_domain *domain, struct tr_vary *out,
		      struct ho_err *err)
{
	uint32_t n = 1, i = 0;
	struct value *values;
	char *next = set;
	int rc = 0;

	for (const char *p = set; *p; p++)
		n += *p == ',';
	if (n > TR_VARY_LIST_MAX)
		return ho_err_set(err, -EINVAL, "a list of %u values; at most %u are possible", n,
				  TR_VARY_LIST_MAX);
	values = calloc(n, sizeof(*values));
	if (!values)
		return ho_err_set(err, -ENOMEM, "out of memory");
	while (!rc && next) {
		char *item = strsep(&next, ",");
		char *colon = domain->kind == TR_VALUE_SIZE ? strchr(item, ':') : NULL;
		uint64_t weight = 1;

		if (colon) {
			*colon = '\0';
			if (!read_number(colon + 1, &weight) || weight > UINT32_MAX) {
				rc = ho_err_set(err, -EINVAL, "'%s' is not a weight", colon + 1);
				break;
			}
		}
		rc = read_value(item, domain, &values[i], err);
		values[i++].weight = weight;
	}
	if (!rc)
		rc = set_list(values, n, domain, out, err);
	free(values);
	return rc;
}

static int parse_range(char *set, char *dash, const struct words *w, const struct tr_domain *domain,
		       struct tr_vary *out, struct ho_err *err)
{
	uint64_t step = w->step ? w->step : 1, distance;
	struct value a, b;
	int rc;

	*dash = '\0';
	rc = read_value(set, domain, &a, err);
	if (!rc)
		rc = read_value(dash + 1, domain, &b, err);
	if (rc)
		return rc;
	if (a.high != b.high)
		return ho_err_set(err, -EINVAL,
				  "'%s-%s': both ends must have the same first 64 bits", set,
				  dash + 1);
	distance = a.low <= b.low ? b.low - a.low : a.low - b.low;
	if (distance > INT64_MAX)
		return ho_err_set(err, -EINVAL, "'%s-%s': more than 2^63 addresses", set, dash + 1);
	if (w->step > distance && distance)
		return ho_err_set(err, -EINVAL, "'%s-%s step %llu': the step leaves one value", set,
				  dash + 1, (unsigned long long)step);
	out->first = a.low;
	out->high = a.high;
	out->span = distance / step;
	out->step = a.low <= b.low ? step : -step;
	return 0;
}

static int parse_prefix(char *set, char *slash, const struct words *w,
			const struct tr_domain *domain, struct tr_vary *out, struct ho_err *err)
{
	unsigned width = domain->kind == TR_VALUE_IPV4 ? 32 : 128;
	unsigned least = width - HO_MIN(width, 64u);
	uint64_t bits, step = w->step ? w->step : 1, mask;
	struct value a;
	int rc;

	*slash = '\0';
	rc = read_value(set, domain, &a, err);
	if (rc)
		return rc;
	if (!read_number(slash + 1, &bits) || bits < least || bits > width)
		return ho_err_set(err, -EINVAL, "'%s/%s': a prefix of %u to %u bits is possible",
				  set, slash + 1, least, width);
	mask = width - bits == 64 ? UINT64_MAX : (UINT64_C(1) << (width - bits)) - 1;
	if (w->step > mask)
		return ho_err_set(err, -EINVAL, "'%s/%s step %llu': the step leaves one value", set,
				  slash + 1, (unsigned long long)step);
	out->first = a.low & ~mask;
	out->high = a.high;
	out->span = step == 1 ? mask : mask / step;
	out->step = step;
	/* Counting must not pass 2^64 in a state of 64 bits; 2^64 itself wraps as it should. */
	if (out->span > INT64_MAX && out->span != UINT64_MAX)
		out->span = INT64_MAX;
	return 0;
}

int tr_vary_parse(const char *text, const struct tr_domain *domain, struct tr_vary *out,
		  struct ho_err *err)
{
	bool address = domain->kind == TR_VALUE_IPV4 || domain->kind == TR_VALUE_IPV6;
	struct words w;
	char *at;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = split_words(text, &w, err);
	if (rc)
		goto out;
	out->every = w.every;
	out->random = w.random;
	if (domain->kind == TR_VALUE_SIZE && !strcmp(w.set, "imix"))
		strcpy(w.set, IMIX);
	if (strchr(w.set, ',') || (domain->kind == TR_VALUE_SIZE && strchr(w.set, ':'))) {
		rc = parse_list(w.set, domain, out, err);
		if (!rc && w.step)
			rc = ho_err_set(err, -EINVAL, "'%s': a list has no step", text);
	} else if ((at = strchr(w.set, '-')) && at != w.set) {
		rc = parse_range(w.set, at, &w, domain, out, err);
	} else if (address && (at = strchr(w.set, '/'))) {
		rc = parse_prefix(w.set, at, &w, domain, out, err);
	} else {
		struct value value;

		rc = read_value(w.set, domain, &value, err);
		out->first = value.low;
		out->high = value.high;
		if (!rc && w.step)
			rc = ho_err_set(err, -EINVAL, "'%s': a single value has no step", text);
	}
	/* One value, however it was written. */
	if (!rc && !out->span) {
		if (out->list) {
			out->first = out->list[0];
			out->high = out->list_high ? out->list_high[0] : 0;
		}
		free(out->list);
		free(out->list_high);
		out->list = out->list_high = NULL;
		out->random = false;
		out->every = 1;
	}
out:
	free(w.set);
	if (rc)
		tr_vary_free(out);
	return rc;
}

struct tr_vary tr_vary_fixed(uint64_t value, uint64_t high)
{
	return (struct tr_vary){ .first = value, .high = high, .every = 1 };
}

void tr_vary_free(struct tr_vary *vary)
{
	free(vary->list);
	free(vary->list_high);
	vary->list = vary->list_high = NULL;
	vary->span = 0;
}

struct place {
	uint32_t kind, turn, weight;
};

/* The turn'th of w places of a kind is best at (turn + 1/2) / w of the way. */
static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	uint64_t x_at = (2 * (uint64_t)x->turn + 1) * y->weight;
	uint64_t y_at = (2 * (uint64_t)y->turn + 1) * x->weight;

	if (x_at != y_at)
		return x_at < y_at ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

int tr_interleave(const uint32_t *weights, unsigned n, uint32_t places, uint32_t *out)
{
	struct place *order = calloc(places, sizeof(*order));
	uint32_t filled = 0;

	if (!order)
		return -ENOMEM;
	for (uint32_t kind = 0; kind < n; kind++) {
		for (uint32_t turn = 0; turn < weights[kind] && filled < places; turn++)
			order[filled++] = (struct place){ kind, turn, weights[kind] };
	}
	qsort(order, filled, sizeof(*order), compare_places);
	for (uint32_t i = 0; i < filled; i++)
		out[i] = order[i].kind;
	free(order);
	return 0;
}

int tr_reduce_weights(uint64_t *weights, unsigned n, uint32_t *out, uint32_t *places,
		      struct ho_err *err)
{
	uint64_t sum = 0, divisor = 0;

	for (unsigned i = 0; i < n; i++) {
		uint64_t a = divisor, b = weights[i];

		sum += weights[i];
		while (b) {
			uint64_t rest = a % b;

			a = b;
			b = rest;
		}
		divisor = a;
	}
	if (!sum)
		return ho_err_set(err, -EINVAL, "the weights sum to 0: nothing would be sent");
	if (sum / divisor > TR_VARY_LIST_MAX)
		return ho_err_set(err, -EINVAL,
				  "the weights sum to %llu; at most %u are possible (round them)",
				  (unsigned long long)(sum / divisor), TR_VARY_LIST_MAX);
	for (unsigned i = 0; i < n; i++)
		out[i] = (uint32_t)(weights[i] / divisor);
	*places = (uint32_t)(sum / divisor);
	return 0;
}
