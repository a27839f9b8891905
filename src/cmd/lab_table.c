// SPDX-License-Identifier: BSD-2-Clause
/* holdoff lab run, for a scenario with a published table. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/screen.h"
#include "base/table.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/lab.h"
#include "cmd/session.h"

static const char *value_text(double value, char text[HO_UNIT_TEXT])
{
	return ho_format_count((uint64_t)llround(fmax(value, 0)), text);
}

/* As wide as the widest of a column's cells, at least `least`. */
static int width_of(const struct ms_compare *c, const char *column, int least)
{
	const struct lab_table *t = c->scenario->table;
	unsigned k = (unsigned)lab_table_column(t, column);

	for (unsigned i = 0; i < c->n_rows; i++)
		least = HO_MAX(least, (int)strlen(lab_table_cell(t, c->row[i].row, k)));
	return least;
}

static void print_rows(const struct ms_compare *c)
{
	const struct lab_scenario *s = c->scenario;
	const struct lab_published_spec *p = s->published;
	struct ho_table table;
	char text[HO_UNIT_TEXT];

	ho_table_init(&table, stdout);
	if (p->series_column)
		ho_table_column(&table, p->series_column, -width_of(c, p->series_column, 6));
	for (uint32_t i = 0; i < p->parameters_count; i++)
		ho_table_column(&table, p->parameters[i].axis,
				width_of(c, p->parameters[i].column, 8));
	for (unsigned r = 0; r < c->n_results; r++) {
		if (p->results[r].column)
			ho_table_column(&table, "published", 10);
		ho_table_column(&table, p->results[r].result, 10);
		if (p->results[r].column)
			ho_table_column(&table, "error %", 7);
	}
	ho_table_column(&table, "", -1);
	ho_table_column(&table, "limit", -7);
	ho_table_header(&table);
	for (unsigned i = 0; i < c->n_rows; i++) {
		const struct ms_compare_row *row = &c->row[i];

		if (p->series_column)
			ho_table_cell(&table, "%s",
				      lab_table_cell(s->table, row->row,
						     (unsigned)lab_table_column(s->table,
										p->series_column)));
		for (uint32_t k = 0; k < p->parameters_count; k++)
			ho_table_cell(&table, "%s",
				      lab_table_cell(s->table, row->row,
						     (unsigned)lab_table_column(
							     s->table, p->parameters[k].column)));
		for (unsigned r = 0; r < c->n_results; r++) {
			const struct ms_compare_value *v = &row->value[r];

			if (p->results[r].column)
				ho_table_cell(&table, "%s",
					      v->published
						      ? value_text(v->reference -
									   p->results[r].background,
								   text)
						      : "-");
			ho_table_cell(&table, "%s", value_text(v->simulated, text));
			if (v->published)
				ho_table_cell(&table, "%+.2f%s", v->error_percent,
					      v->exceeds ? "!" : "");
			else if (p->results[r].column)
				ho_table_cell(&table, "-");
		}
		ho_table_cell(&table, "%s", row->fitted ? "*" : "");
		ho_table_cell(&table, "%s", lab_limit_name(row->limiter.what));
		ho_table_row(&table);
	}
}

static void print_errors(const struct ms_compare *c)
{
	const struct lab_published_spec *p = c->scenario->published;
	char name[128];
	unsigned row = 0;

	for (unsigned r = 0; r < c->n_results; r++) {
		double fitted = ms_compare_worst(c, r, true, &row);
		double predicted = ms_compare_worst(c, r, false, &row);

		if (predicted < 0)
			continue;
		printf("%s: predicted rows are within %.2f %% (%s)", p->results[r].result,
		       predicted,
		       ms_compare_row_name(c->scenario, c->row[row].row, name, sizeof(name)));
		if (fitted >= 0)
			printf(", fitted ones (*) within %.2f %%", fitted);
		printf("\n");
		if (p->results[r].background > 0) {
			snprintf(name, sizeof(name), "%.0f", p->results[r].background);
			printf("%s: %s are taken off the published ones: ", p->results[r].result,
			       name);
			printf("%s\n",
			       p->results[r].background_from ? p->results[r].background_from : "");
		}
	}
}

static void print_fitted(const struct ms_compare *c)
{
	printf("%u constant%s fitted, to %u rows; 'holdoff lab show %s' says where all others "
	       "are from\n",
	       c->n_fitted, c->n_fitted == 1 ? " is" : "s are", c->fitted_rows, c->scenario->name);
	for (unsigned i = 0; i < c->n_fitted; i++)
		printf("    %-14s %-14s %8g  to %s\n", c->fitted[i].profile, c->fitted[i].key,
		       c->fitted[i].value, c->fitted[i].rows);
}

/* One row for each thing that limits, with its arithmetic. */
static void print_examples(const struct ms_compare *c)
{
	char name[128];

	for (unsigned what = 0; what < LAB_LIMIT_COUNT; what++) {
		for (unsigned i = 0; i < c->n_rows; i++) {
			const struct ms_compare_row *row = &c->row[i];
			const struct ms_compare_row *best = NULL;

			/* The one whose knob would give most. */
			for (; i < c->n_rows; i++) {
				row = &c->row[i];
				if (row->limiter.what != (enum lab_limit)what)
					continue;
				if (!best || row->limiter.knob[0].pps / row->limiter.pps >
						     best->limiter.knob[0].pps / best->limiter.pps)
					best = row;
			}
			if (best) {
				printf("%s is limited by %s:\n",
				       ms_compare_row_name(c->scenario, best->row, name,
							   sizeof(name)),
				       lab_limit_title(best->limiter.what));
				ho_print_words(stdout, best->limiter.text, 4);
			}
		}
	}
}

static void print_text(const struct ms_compare *c)
{
	char text[MS_VERDICT_TEXT], frames[HO_UNIT_TEXT];

	printf("%s: %s\n", c->scenario->name, c->scenario->title);
	if (c->scenario->text)
		ho_print_words(stdout, c->scenario->text, 0);
	printf("\n");
	print_rows(c);
	printf("\n");
	print_errors(c);
	print_fitted(c);
	printf("\n");
	print_examples(c);
	printf("\n");
	ms_compare_verdict(c, text);
	ho_print_words(stdout, text, 0);
	printf("\n%s frames in %.2f s of one CPU (%.2f s): %s frames a second; digest %016llx\n",
	       value_text((double)c->sim_frames, frames), c->cpu_seconds, c->wall_seconds,
	       ho_format_si((double)c->sim_frames / c->cpu_seconds, text),
	       (unsigned long long)c->digest);
	fflush(stdout);
}

static void progress(void *arg, unsigned done, unsigned rows)
{
	fprintf(stderr, "\r%u of %u rows%s", done, rows, done == rows ? "\r\033[K" : "");
	fflush(stderr);
}

int cmd_lab_table(const struct cmd_lab *lab, struct ho_err *err)
{
	struct ms_compare_config config = {
		.scenario = lab->scenario,
		.set = lab->set,
		.n_set = lab->n_set,
		.series = lab->series,
		.jobs = lab->jobs,
		.progress = lab->quiet || !isatty(STDERR_FILENO) ? NULL : progress,
	};
	struct ms_compare c;
	unsigned exceeding;
	int rc = ms_compare_run(&config, &c, err);

	if (rc < 0) {
		ms_compare_free(&c);
		return cmd_status_of(rc);
	}
	if (lab->json)
		cmd_lab_table_json(&c);
	else
		print_text(&c);
	exceeding = ms_compare_exceeding(&c);
	if (exceeding)
		ho_err_set(err, -ERANGE,
			   "%u of %u rows are farther from the published ones than %s "
			   "allows",
			   exceeding, c.n_rows, c.scenario->name);
	ms_compare_free(&c);
	return exceeding ? CMD_THRESHOLD : CMD_DONE;
}
