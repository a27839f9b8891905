// SPDX-License-Identifier: BSD-2-Clause
/*
 * holdoff stat --live: the whole screen, with the last minutes as sparklines. Drawn again from what
 * is kept, so that a change of size costs nothing; what does not fit is cut at the bottom.
 */
#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/screen.h"
#include "base/units.h"
#include "cmd/stat.h"

#define HISTORY  240
#define IFS_MAX  LX_IFACES_MAX
#define CPUS_MAX 256
#define LABEL    60 /* columns in front of a sparkline */

struct series {
	float value[HISTORY]; /* a ring; live->n says where it is */
};

struct live_if {
	struct series rx, tx, irq;
};

struct stat_live {
	struct lx_delta delta; /* the last one, a copy of our own */
	bool any, utf8;
	unsigned n; /* intervals so far */
	struct live_if iface[IFS_MAX];
	struct series busy[CPUS_MAX];
	SCREEN *screen;
};

/* The terminal must be given back whatever ends us: for exit(), and for a crash. */
static void give_back(void)
{
	if (!isendwin())
		endwin();
}

static void on_crash(int signal)
{
	/* Not safe by the book, but the alternative is a terminal that shows nothing. */
	give_back();
	raise(signal); /* SA_RESETHAND: it ends us now */
}

static void catch_crashes(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT };
	struct sigaction action = { .sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND };

	for (size_t i = 0; i < HO_ARRAY_LEN(signals); i++)
		sigaction(signals[i], &action, NULL);
}

int stat_live_open(struct stat_live **out, struct ho_err *err)
{
	struct stat_live *live;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return ho_err_set(err, -ENOTTY,
				  "--live needs a terminal; without one, rows and -j "
				  "say the same");
	live = calloc(1, sizeof(*live));
	if (!live)
		return ho_err_set(err, -ENOMEM, "out of memory for the view");
	setlocale(LC_CTYPE, "");
	live->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	live->screen = newterm(NULL, stdout, stdin);
	if (!live->screen) {
		free(live);
		return ho_err_set(err, -ENOTTY,
				  "--live does not know the terminal '%s'; set TERM, or use rows",
				  getenv("TERM") ? getenv("TERM") : "");
	}
	atexit(give_back);
	catch_crashes();
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	*out = live;
	return 0;
}

void stat_live_close(struct stat_live *live)
{
	if (!live)
		return;
	give_back();
	delscreen(live->screen);
	lx_delta_fini(&live->delta);
	free(live);
}

static void add(const struct stat_live *live, struct series *series, double value)
{
	series->value[live->n % HISTORY] = (float)value;
}

/* A sparkline of the last `width` values, the newest at the right; top is its full height. */
static void spark(const struct stat_live *live, const struct series *series, int width, double top)
{
	static const char *const blocks[] = { " ",      "\u2581", "\u2582", "\u2583", "\u2584",
					      "\u2585", "\u2586", "\u2587", "\u2588" };
	static const char ascii[] = " .:-=+*#@";
	int have = (int)HO_MIN(live->n, (unsigned)HISTORY);

	for (int i = HO_MIN(width, HISTORY); i > 0; i--) {
		double value;
		int level;

		if (i > have) {
			addch(' ');
			continue;
		}
		value = (double)series->value[(live->n - (unsigned)i) % HISTORY];
		level = top > 0 ? (int)(8 * value / top + 0.5) : 0;
		/* Something is not nothing. */
		level = value > 0 && level < 1 ? 1 : level > 8 ? 8 : level;
		if (live->utf8)
			addstr(blocks[level]);
		else
			addch((chtype)ascii[level]);
	}
}

static double top_of(const struct stat_live *live, const struct series *series)
{
	unsigned have = HO_MIN(live->n, (unsigned)HISTORY);
	double top = 0;

	for (unsigned i = 1; i <= have; i++)
		top = HO_MAX(top, (double)series->value[(live->n - i) % HISTORY]);
	return top;
}

/* A line of text in front, a sparkline behind. */
static void line(const struct stat_live *live, int *y, const struct series *series, double top,
		 const char *text)
{
	if (*y >= LINES)
		return;
	mvaddnstr(*y, 0, text, HO_MIN(COLS, LABEL));
	if (series && COLS > LABEL + 8) {
		move(*y, LABEL);
		spark(live, series, COLS - LABEL - 1, top > 0 ? top : top_of(live, series));
	}
	++*y;
}

static void draw_iface(const struct stat_live *live, int *y, unsigned at)
{
	const struct lx_delta *d = &live->delta;
	const struct lx_ifdata *iface = &d->iface[at];
	const struct rtnl_link_stats64 *link = &iface->link;
	char text[400], speed[HO_UNIT_TEXT], named[STAT_NAMED_BYTES];
	const char *list = named;

	if (*y >= LINES)
		return;
	attron(A_BOLD);
	if (!iface->index)
		snprintf(text, sizeof(text), "%s  %s", iface->name,
			 iface->vanished ? "has vanished" : "is not there");
	else
		snprintf(text, sizeof(text), "%s  %s%s%s%s%s", iface->name, iface->facts.driver,
			 iface->facts.link_bps ? "  " : "",
			 iface->facts.link_bps ? ho_format_si((double)iface->facts.link_bps, speed)
					       : "",
			 iface->facts.link_bps ? "bit/s" : "",
			 iface->facts.running ? "" : "  no link");
	mvaddnstr((*y)++, 0, text, COLS);
	attroff(A_BOLD);
	if (!iface->index)
		return;
	snprintf(text, sizeof(text), "  rx %11.0f pkt/s %10.2f Mbit/s %9.0f drops/s",
		 stat_rate(d, link->rx_packets), 8e-6 * stat_rate(d, link->rx_bytes),
		 stat_rate(d, stat_drops(link, LX_FIELD_RX)));
	line(live, y, &live->iface[at].rx, 0, text);
	snprintf(text, sizeof(text), "  tx %11.0f pkt/s %10.2f Mbit/s %9.0f drops/s",
		 stat_rate(d, link->tx_packets), 8e-6 * stat_rate(d, link->tx_bytes),
		 stat_rate(d, stat_drops(link, LX_FIELD_TX)));
	line(live, y, &live->iface[at].tx, 0, text);
	if (iface->has & LX_IF_IRQS) {
		snprintf(text, sizeof(text), "  irq%11.0f /s", stat_rate(d, lx_irqs_sum(iface)));
		line(live, y, &live->iface[at].irq, 0, text);
	}
	stat_named(d, iface, at == 0, named, sizeof(named));
	while (list && *list && *y < LINES) {
		const char *line = list;
		size_t bytes;

		list = ho_list_line(line, STAT_BETWEEN, (unsigned)HO_MAX(COLS - 2, 1), &bytes);
		mvaddnstr((*y)++, 2, line, HO_MIN((int)bytes, HO_MAX(COLS - 2, 1)));
	}
}

static void draw_cpus(const struct stat_live *live, int *y)
{
	const struct lx_delta *d = &live->delta;

	if (*y < LINES) {
		attron(A_BOLD);
		mvaddnstr((*y)++, 0,
			  "CPU    usr   sys   irq  soft  idle    irq/s  softnet/s squeezed", COLS);
		attroff(A_BOLD);
	}
	for (unsigned i = 0; i < d->host.n_cpus && i < CPUS_MAX; i++) {
		const struct lx_cpu *cpu = &d->host.cpu[i];
		char text[160];

		snprintf(text, sizeof(text), "%-4u %5.1f %5.1f %5.1f %5.1f %5.1f %8.0f %8.0f %5.0f",
			 cpu->id, 100 * lx_cpu_share(cpu, LX_TIME_USER),
			 100 * lx_cpu_share(cpu, LX_TIME_SYSTEM),
			 100 * lx_cpu_share(cpu, LX_TIME_IRQ),
			 100 * lx_cpu_share(cpu, LX_TIME_SOFTIRQ),
			 100 * lx_cpu_share(cpu, LX_TIME_IDLE), stat_rate(d, cpu->interrupts),
			 stat_rate(d, cpu->softnet.processed), stat_rate(d, cpu->softnet.squeezed));
		line(live, y, &live->busy[i], 1, text);
	}
}

static void draw(const struct stat_live *live)
{
	char text[200], clock[16];
	time_t now = time(NULL);
	struct tm tm;
	int y = 1;

	erase();
	localtime_r(&now, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	snprintf(text, sizeof(text),
		 "holdoff stat  %s  every %.2f s  %.0f context switches/s  q quits", clock,
		 1e-9 * (double)live->delta.interval_ns,
		 stat_rate(&live->delta, live->delta.host.switches));
	attron(A_REVERSE);
	mvaddnstr(0, 0, text, COLS);
	attroff(A_REVERSE);
	for (unsigned i = 0; i < live->delta.n_ifaces && i < IFS_MAX; i++)
		draw_iface(live, &y, i);
	draw_cpus(live, &y);
	refresh();
}

void stat_live_add(struct stat_live *live, const struct lx_delta *delta)
{
	for (unsigned i = 0; i < delta->n_ifaces && i < IFS_MAX; i++) {
		const struct lx_ifdata *iface = &delta->iface[i];

		add(live, &live->iface[i].rx, stat_rate(delta, iface->link.rx_packets));
		add(live, &live->iface[i].tx, stat_rate(delta, iface->link.tx_packets));
		add(live, &live->iface[i].irq, stat_rate(delta, lx_irqs_sum(iface)));
	}
	for (unsigned i = 0; i < delta->host.n_cpus && i < CPUS_MAX; i++) {
		const struct lx_cpu *cpu = &delta->host.cpu[i];

		add(live, &live->busy[i],
		    1 - lx_cpu_share(cpu, LX_TIME_IDLE) - lx_cpu_share(cpu, LX_TIME_IOWAIT));
	}
	live->n++;
	live->any = true;
	if (lx_delta_copy(delta, &live->delta) < 0)
		lx_delta_fini(&live->delta);
	draw(live);
}

bool stat_live_input(struct stat_live *live)
{
	bool again = false;
	int key;

	while ((key = getch()) != ERR) {
		if (key == 'q' || key == 'Q' || key == 27)
			return false;
		again = again || key == KEY_RESIZE || key == ' ' || key == '\f';
	}
	if (again && live->any)
		draw(live);
	return true;
}
