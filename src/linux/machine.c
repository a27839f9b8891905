// SPDX-License-Identifier: BSD-2-Clause
#include "linux/machine.h"

#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/sockios.h>

static void add(struct lx_machine *m, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void add(struct lx_machine *m, const char *name, const char *fmt, ...)
{
	va_list ap;

	if (m->n == LX_MACHINE_FACTS)
		return;
	va_start(ap, fmt);
	vsnprintf(m->fact[m->n].text, LX_MACHINE_TEXT, fmt, ap);
	va_end(ap);
	m->fact[m->n].text[strcspn(m->fact[m->n].text, "\n")] = 0;
	if (m->fact[m->n].text[0])
		m->fact[m->n++].name = name;
}

/* The first line of a file; "" if there is none. */
static const char *line_of(const char *path, char *buf, size_t bytes)
{
	FILE *f = fopen(path, "re");

	buf[0] = 0;
	if (f) {
		if (!fgets(buf, (int)bytes, f))
			buf[0] = 0;
		fclose(f);
	}
	buf[strcspn(buf, "\n")] = 0;
	return buf;
}

static void processor(struct lx_machine *m)
{
	char line[256], path[96], text[LX_MACHINE_TEXT];
	FILE *f = fopen("/proc/cpuinfo", "re");

	while (f && fgets(line, sizeof(line), f)) {
		const char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) || !colon)
			continue;
		add(m, "cpu", "%s", colon + 2);
		break;
	}
	if (f)
		fclose(f);
	add(m, "cpus", "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	add(m, "governor", "%s",
	    line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", text, sizeof(text)));
	add(m, "cpufreq driver", "%s",
	    line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", text, sizeof(text)));
	add(m, "idle driver", "%s",
	    line_of("/sys/devices/system/cpu/cpuidle/current_driver", text, sizeof(text)));
	/* The deepest C-state that is not disabled, with its exit latency. */
	for (int state = 15; state >= 0; state--) {
		char name[64], latency[32];

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cpuidle/state%d/disable",
			 state);
		if (strcmp(line_of(path, text, sizeof(text)), "0"))
			continue;
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cpuidle/state%d/name",
			 state);
		line_of(path, name, sizeof(name));
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cpuidle/state%d/latency",
			 state);
		add(m, "deepest C-state", "%s, %s us to leave", name,
		    line_of(path, latency, sizeof(latency)));
		break;
	}
	add(m, "SMT", "%s", line_of("/sys/devices/system/cpu/smt/control", text, sizeof(text)));
	add(m, "clock source", "%s",
	    line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource", text,
		    sizeof(text)));
}

static void driver(struct lx_machine *m, const char *ifname)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq request = { .ifr_data = (char *)&info };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	add(m, "interface", "%s", ifname);
	if (fd < 0)
		return;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
	if (ioctl(fd, SIOCETHTOOL, &request) == 0) {
		add(m, "driver", "%.32s %.32s", info.driver, info.version);
		add(m, "firmware", "%.32s", strcmp(info.fw_version, "N/A") ? info.fw_version : "");
		add(m, "bus", "%.32s", info.bus_info);
	}
	close(fd);
}

void lx_machine_describe(const char *ifname, struct lx_machine *out)
{
	char text[LX_MACHINE_TEXT], when[64];
	struct utsname uts;
	time_t now = time(NULL);
	struct tm tm;

	memset(out, 0, sizeof(*out));
	if (gmtime_r(&now, &tm) && strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm))
		add(out, "date", "%s", when);
	if (uname(&uts) == 0) {
		add(out, "kernel", "%.64s %.64s", uts.sysname, uts.release);
		add(out, "kernel build", "%.64s %.64s", uts.version, uts.machine);
	}
	add(out, "kernel command line", "%s", line_of("/proc/cmdline", text, sizeof(text)));
	add(out, "hypervisor", "%s", line_of("/sys/hypervisor/type", text, sizeof(text)));
	add(out, "product", "%s", line_of("/sys/class/dmi/id/product_name", text, sizeof(text)));
	processor(out);
	if (ifname)
		driver(out, ifname);
}
