// SPDX-License-Identifier: BSD-2-Clause
/* A sweep on the terminal: the first axis down, the last one across, a grid for each combination
 * of those between. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "measure/sweep.h"
#include "measure/sweep_effect.h"

#define TEXT_WIDTH  78 /* of sentences, if the terminal is not narrower */
#define TEXT_INDENT 3
#define NEAR        0.01 /* of the best value: as good */

/*
 * From the worst to the best value: xterm's 256 colours along viridis, whose lightness rises
 * steadily, so that it can be read in grey and by people who do not see red and green.
 */
static const struct {
	unsigned char back, text;
} colours[] = {
	{ 54, 15 }, { 60, 15 }, { 24, 15 }, { 30, 15 }, { 36, 0 },
	{ 72, 0 },  { 78, 0 },  { 113, 0 }, { 149, 0 }, { 185, 0 },
};

struct table {
	const struct ms_sweep *sweep;
	const struct ms_metric *metric;
	FILE *out;
	bool colour;
	int width; /* 0 = no limit */
	double min, max;
	double unit; /* values are shown in this many */
	const char *prefix;
	int decimals, digits; /* digits: of the widest value */
	int label, column;    /* widths */
	unsigned best;
};

/* --- numbers -------------------------------------------------------------------------------- */

static void choose_scale(struct table *t)
{
	const struct ms_sweep *s = t->sweep;
	double top;

	t->min = INFINITY;
	t->max = -INFINITY;
	for (unsigned i = 0; i < s->points; i++) {
		double value = s->cell[i].value[s->metric];

		if (!s->cell[i].present || isnan(value))
			continue;
		t->min = HO_MIN(t->min, value);
		t->max = HO_MAX(t->max, value);
	}
	t->unit = 1;
	t->prefix = "";
	if (t->metric->si && t->max >= 1e6) {
		t->unit = 1e6;
		t->prefix = "M";
	} else if (t->metric->si && t->max >= 1e4) {
		t->unit = 1e3;
		t->prefix = "k";
	}
	/* Four digits of the largest. */
	top = t->max / t->unit;
	t->decimals = top >= 1000 || !(top > 0) ? 0 : top >= 100 ? 1 : top >= 10 ? 2 : 3;
	t->digits = HO_MAX(snprintf(NULL, 0, "%.*f", t->decimals, HO_MAX(top, 0.0)), 1);
}

static const char *number(const struct table *t, unsigned point, char buf[32])
{
	const struct ms_cell *c = &t->sweep->cell[point];
	double value = c->value[t->sweep->metric];

	if (!c->present)
		snprintf(buf, 32, "%s", "");
	else if (isnan(value))
		snprintf(buf, 32, "%s", "-");
	else
		snprintf(buf, 32, "%.*f", t->decimals, value / t->unit);
	return buf;
}

/* --- cells ---------------------------------------------------------------------------------- */

static void begin_colour(const struct table *t, unsigned point)
{
	double value = t->sweep->cell[point].value[t->sweep->metric];
	unsigned last = HO_ARRAY_LEN(colours) - 1, i = last;

	if (!t->colour || isnan(value))
		return;
	if (t->max > t->min) {
		double good = (value - t->min) / (t->max - t->min);

		good = t->sweep->less ? 1 - good : good;
		i = (unsigned)lround(good * last);
	}
	fprintf(t->out, "\033[48;5;%u;38;5;%um", colours[i].back, colours[i].text);
	if (point == t->best)
		fputs("\033[1m", t->out);
}

/* A mark, the value and a letter, t->column wide with the blank before it. */
static void print_cell(const struct table *t, unsigned point)
{
	const struct ms_cell *c = &t->sweep->cell[point];
	char text[32];

	putc(' ', t->out);
	if (!c->present) {
		fprintf(t->out, "%*s  ", t->column - 3, ".");
		return;
	}
	begin_colour(t, point);
	fprintf(t->out, "%c%*s %c", point == t->best ? '*' : ' ', t->column - 4,
		number(t, point, text), t->sweep->kind->limit_letters[c->limit]);
	if (t->colour)
		fputs("\033[0m", t->out);
}

/* --- grids ---------------------------------------------------------------------------------- */

static int value_width(const struct ms_axis *axis)
{
	int width = 0;

	for (unsigned i = 0; i < axis->n; i++)
		width = HO_MAX(width, (int)strlen(axis->value[i]));
	return width;
}

static void choose_widths(struct table *t)
{
	const struct ms_axes *axes = &t->sweep->axes;
	const struct ms_axis *rows = axes->n ? &axes->axis[0] : NULL;
	const struct ms_axis *columns = axes->n > 1 ? &axes->axis[axes->n - 1] : NULL;
	int head = columns ? value_width(columns) : (int)strlen(t->metric->name);

	t->label = rows ? HO_MAX(value_width(rows), (int)strlen(rows->name)) : 0;
	/* Blank, mark, value, blank, letter; heads end where the values do. */
	t->column = HO_MAX(t->digits, head) + 4;
}

/* Some columns of the grid whose first cell is `origin`. A row is `stride` points on. */
static void print_block(const struct table *t, unsigned origin, unsigned stride, unsigned from,
			unsigned to)
{
	const struct ms_axes *axes = &t->sweep->axes;
	const struct ms_axis *rows = axes->n ? &axes->axis[0] : NULL;
	const struct ms_axis *columns = axes->n > 1 ? &axes->axis[axes->n - 1] : NULL;

	if (columns)
		fprintf(t->out, "%*s   %s\n", t->label, "", columns->name);
	fprintf(t->out, "%*s", t->label, rows ? rows->name : "");
	for (unsigned c = from; c < to; c++)
		fprintf(t->out, "%*s  ", t->column - 2,
			columns ? columns->value[c] : t->metric->name);
	putc('\n', t->out);
	for (unsigned r = 0; r < (rows ? rows->n : 1); r++) {
		fprintf(t->out, "%*s", t->label, rows ? rows->value[r] : "");
		for (unsigned c = from; c < to; c++)
			print_cell(t, origin + r * stride + c);
		putc('\n', t->out);
	}
	putc('\n', t->out);
}

static void print_grid(const struct table *t, unsigned origin, unsigned stride)
{
	const struct ms_axes *axes = &t->sweep->axes;
	unsigned n = axes->n > 1 ? axes->axis[axes->n - 1].n : 1, fit = n;

	if (t->width > 0)
		fit = (unsigned)HO_MAX((t->width - t->label) / t->column, 1);
	for (unsigned from = 0; from < n; from += fit)
		print_block(t, origin, stride, from, HO_MIN(from + fit, n));
}

/* The values between the first and the last axis, for each combination of which there is a grid. */
static void print_grids(const struct table *t)
{
	const struct ms_axes *axes = &t->sweep->axes;
	unsigned columns = axes->n > 1 ? axes->axis[axes->n - 1].n : 1;
	unsigned stride = axes->n ? t->sweep->points / axes->axis[0].n : 1;

	for (unsigned origin = 0; origin < stride; origin += columns) {
		unsigned at[MS_AXES_MAX];

		ms_axes_at(axes, origin, at);
		for (unsigned a = 1; a + 1 < axes->n; a++)
			fprintf(t->out, "%s%s=%s", a > 1 ? " " : "", axes->axis[a].name,
				axes->axis[a].value[at[a]]);
		if (axes->n > 2)
			putc('\n', t->out);
		print_grid(t, origin, stride);
	}
}

/* --- words ---------------------------------------------------------------------------------- */

/* In lines of at most t->width, each after some blanks. */
static void print_text(const struct table *t, const char *text)
{
	int width = t->width > 20 ? HO_MIN(t->width, TEXT_WIDTH) : TEXT_WIDTH, at = 0;

	while (*text) {
		int n = (int)strcspn(text, " ");

		if (at && at + 1 + n > width) {
			putc('\n', t->out);
			at = 0;
		}
		at += fprintf(t->out, "%*s%.*s", at ? 1 : TEXT_INDENT, "", n, text);
		text += n;
		text += strspn(text, " ");
	}
	putc('\n', t->out);
}

static const char *with_unit(const struct table *t, unsigned point, char *buf, size_t bytes)
{
	const char *unit = t->metric->unit;
	char text[32];

	/* "3.930 Mpps", but "97.5 k/s" and "35.1 %". */
	snprintf(buf, bytes, "%s %s%s", number(t, point, text), t->prefix, unit);
	return buf;
}

static const char *name_of(const struct table *t, unsigned point, char *buf, size_t bytes)
{
	if (!t->sweep->axes.n)
		return "the one point";
	return ms_sweep_point_name(t->sweep, point, buf, bytes);
}

/* The point that this limit holds back most: there its arithmetic is plainest. */
static unsigned worst_with(const struct table *t, unsigned limit, unsigned *count)
{
	const struct ms_sweep *s = t->sweep;
	unsigned worst = s->points;

	*count = 0;
	for (unsigned i = 0; i < s->points; i++) {
		double value = s->cell[i].value[s->metric], least;

		if (!s->cell[i].present || s->cell[i].limit != limit)
			continue;
		++*count;
		least = worst < s->points ? s->cell[worst].value[s->metric] : NAN;
		if (worst == s->points || (t->sweep->less ? value > least : value < least))
			worst = i;
	}
	return worst;
}

/* What each axis does to the metric, and to the interrupts that it causes. */
static void print_effects(const struct table *t)
{
	const struct ms_sweep *s = t->sweep;

	for (unsigned a = 0; a < s->axes.n; a++) {
		const struct ms_axis *axis = &s->axes.axis[a];

		for (unsigned m = 0; m < s->kind->n_metrics; m++) {
			const char *metric = s->kind->metric[m].name;
			struct ms_effect e;

			if (m != s->metric && strcmp(metric, "irqs_per_s"))
				continue;
			ms_sweep_effect(s, a, m, &e);
			if (!e.known)
				continue;
			if (e.stands_out)
				fprintf(t->out,
					"%s changes %s by %.1f %%, from %s (least) to %s; "
					"chance explains %.1f %%\n",
					axis->name, metric, 100 * e.between, axis->value[e.least],
					axis->value[e.most], 100 * e.noise);
			else
				fprintf(t->out,
					"%s has no effect on %s that stands out: %.1f %% between "
					"its values, chance explains %.1f %%\n",
					axis->name, metric, 100 * e.between, 100 * e.noise);
		}
	}
}

static void print_limits(const struct table *t)
{
	const struct ms_target_kind *kind = t->sweep->kind;
	unsigned present = 0;
	char name[256];

	for (unsigned i = 0; i < t->sweep->points; i++)
		present += t->sweep->cell[i].present;
	for (unsigned limit = 0; kind->limit_letters[limit]; limit++) {
		unsigned count, worst = worst_with(t, limit, &count);

		if (!count)
			continue;
		/* A live machine does not always tell; a letter without words says nothing. */
		if (kind->live && worst < t->sweep->points && !*t->sweep->cell[worst].text)
			continue;
		if (kind->live) {
			fprintf(t->out, "%c  %s at %u of %u, as at %s:\n",
				kind->limit_letters[limit], kind->limit_title(limit), count,
				present, name_of(t, worst, name, sizeof(name)));
			print_text(t, t->sweep->cell[worst].text);
			continue;
		}
		fprintf(t->out, "%c  %s limits %u of %u", kind->limit_letters[limit],
			kind->limit_title(limit), count, present);
		if (worst == t->best) {
			fputs(": the best\n", t->out);
			continue;
		}
		fprintf(t->out, ", most at %s:\n", name_of(t, worst, name, sizeof(name)));
		print_text(t, t->sweep->cell[worst].text);
	}
}

/* Other points that are as good, as far as a person cares. */
static unsigned as_good(const struct table *t)
{
	const struct ms_sweep *s = t->sweep;
	double best = s->cell[t->best].value[s->metric];
	unsigned n = 0;

	for (unsigned i = 0; i < s->points; i++)
		n += i != t->best && s->cell[i].present &&
		     fabs(s->cell[i].value[s->metric] - best) <= NEAR * fabs(best);
	return n;
}

static void print_best(const struct table *t)
{
	const struct ms_sweep *s = t->sweep;
	unsigned others;
	char name[256], value[64];

	if (t->best == s->points) {
		fprintf(t->out, "no point has %s (%s)\n", t->metric->name, t->metric->what);
		return;
	}
	others = as_good(t);
	fprintf(t->out, "*  best: %s, %s", name_of(t, t->best, name, sizeof(name)),
		with_unit(t, t->best, value, sizeof(value)));
	if (others)
		fprintf(t->out, " (%u other%s within 1 %%)", others, others > 1 ? "s" : "");
	if (!*s->cell[t->best].text) {
		putc('\n', t->out);
		return;
	}
	fputs(":\n", t->out);
	print_text(t, s->cell[t->best].text);
}

static void print_head(const struct table *t)
{
	const struct ms_sweep *s = t->sweep;

	fprintf(t->out, "%s: %s\n", s->target, s->title);
	fprintf(t->out, "%s: %s", t->metric->name, t->metric->what);
	if (*t->prefix)
		fprintf(t->out, ", in %s", *t->prefix == 'M' ? "millions" : "thousands");
	if (s->shards > 1)
		fprintf(t->out, "; shard %u of %u", s->shard + 1, s->shards);
	putc('\n', t->out);
	for (unsigned i = 0; i < s->set.n; i++)
		fprintf(t->out, "%s%s=%s%s", i ? " " : "with ", s->set.axis[i].name,
			s->set.axis[i].value[0], i + 1 == s->set.n ? "\n" : "");
	putc('\n', t->out);
}

int ms_sweep_table(const struct ms_sweep *s, FILE *out, bool colour, int width)
{
	struct table t = {
		.sweep = s,
		.metric = &s->kind->metric[s->metric],
		.out = out,
		.colour = colour,
		.width = width,
		.best = ms_sweep_best(s),
	};

	errno = 0;
	choose_scale(&t);
	choose_widths(&t);
	print_head(&t);
	print_grids(&t);
	print_limits(&t);
	print_effects(&t);
	print_best(&t);
	return fflush(out) == 0 && !ferror(out) ? 0 : errno ? -errno : -EIO;
}
