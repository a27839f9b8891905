// SPDX-License-Identifier: BSD-2-Clause
#include "linux/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "linux/iface.h"

#define ROUNDS     4
#define PATH_BYTES 512
#define LINE_BYTES 160

/* What a journal's file says. */
struct record {
	char boot[40];
	unsigned ifindex;
	uint64_t netns; /* inode of /proc/self/ns/net */
	uint8_t mac[6];
	int pid;
	char ifname[LX_IF_BYTES]; /* at the time of writing */
	unsigned n;
	struct {
		char name[LX_COUNTER_BYTES];
		uint64_t value;
	} before[LX_PARAMS_MAX];
};

struct lx_journal {
	const struct lx_journal_backend *backend;
	char path[PATH_BYTES];
	int fd; /* holds the lock */
	bool written, keep;
	struct record record;
};

static const struct lx_journal_backend machine = { lx_param_list, lx_param_set };

static const char *journal_dir(void)
{
	const char *dir = getenv("HOLDOFF_RUN_DIR");

	return dir && *dir ? dir : LX_JOURNAL_DIR;
}

static void read_boot_id(char out[40])
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	out[0] = 0;
	if (f && fscanf(f, "%39s", out) != 1)
		out[0] = 0;
	if (f)
		fclose(f);
	if (!out[0])
		strcpy(out, "unknown");
}

static uint64_t netns_inode(void)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* --- the file ------------------------------------------------------------------------------ */

/* The whole of the record in one write, so that a reader finds all or nothing of the end line. */
static int record_write(int fd, const struct record *r)
{
	size_t room = (LX_PARAMS_MAX + 8) * LINE_BYTES, at = 0;
	char *text = malloc(room);
	int rc = 0;

	if (!text)
		return -ENOMEM;
	at += (size_t)snprintf(text + at, room - at,
			       "holdoff-journal 1\nboot %s\niface %u %s\nnetns %" PRIu64
			       "\nmac %02x:%02x:%02x:%02x:%02x:%02x\npid %d\n",
			       r->boot, r->ifindex, r->ifname, r->netns, r->mac[0], r->mac[1],
			       r->mac[2], r->mac[3], r->mac[4], r->mac[5], r->pid);
	for (unsigned i = 0; i < r->n; i++)
		at += (size_t)snprintf(text + at, room - at, "was %s %" PRIu64 "\n",
				       r->before[i].name, r->before[i].value);
	at += (size_t)snprintf(text + at, room - at, "end\n");
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, at, 0) != (ssize_t)at || fdatasync(fd) < 0)
		rc = errno ? -errno : -EIO;
	free(text);
	return rc;
}

/* 0; -ENODATA: empty or cut short, so that nothing had been changed yet; -EBADMSG. */
static int record_read(int fd, struct record *r)
{
	FILE *f;
	char line[LINE_BYTES];
	bool first = true, complete = false;
	int copy = dup(fd), rc = 0;

	memset(r, 0, sizeof(*r));
	if (copy < 0)
		return -errno;
	f = fdopen(copy, "r");
	if (!f) {
		close(copy);
		return -ENOMEM;
	}
	rewind(f);
	while (rc == 0 && !complete && fgets(line, sizeof(line), f)) {
		unsigned m[6];
		char name[LX_COUNTER_BYTES];
		uint64_t value;

		if (!strchr(line, '\n')) {
			break;
		} else if (first) {
			rc = strcmp(line, "holdoff-journal 1\n") ? -EBADMSG : 0;
			first = false;
		} else if (sscanf(line, "was %31s %" SCNu64, name, &value) == 2) {
			if (r->n == LX_PARAMS_MAX) {
				rc = -EBADMSG;
				break;
			}
			memcpy(r->before[r->n].name, name, sizeof(name));
			r->before[r->n++].value = value;
		} else if (sscanf(line, "mac %2x:%2x:%2x:%2x:%2x:%2x", &m[0], &m[1], &m[2], &m[3],
				  &m[4], &m[5]) == 6) {
			for (int i = 0; i < 6; i++)
				r->mac[i] = (uint8_t)m[i];
		} else if (!strcmp(line, "end\n")) {
			complete = true;
		} else if (sscanf(line, "boot %39s", r->boot) != 1 &&
			   sscanf(line, "iface %u %15s", &r->ifindex, r->ifname) != 2 &&
			   sscanf(line, "netns %" SCNu64, &r->netns) != 1 &&
			   sscanf(line, "pid %d", &r->pid) != 1) {
			rc = -EBADMSG;
		}
	}
	fclose(f);
	if (rc == 0 && !complete)
		rc = -ENODATA;
	return rc;
}

/* Opens (with create: makes) the file and takes its lock. -EWOULDBLOCK: somebody has it. */
static int file_lock(const char *path, bool create)
{
	for (;;) {
		struct stat by_fd, by_path;
		int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600);

		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
			int rc = -errno;

			close(fd);
			return rc;
		}
		/* Its last owner may have removed the file between our open and our lock. */
		if (fstat(fd, &by_fd) == 0 && stat(path, &by_path) == 0 &&
		    by_fd.st_ino == by_path.st_ino && by_fd.st_dev == by_path.st_dev)
			return fd;
		close(fd);
	}
}

/* Who holds the lock, as far as the file tells; 0 if it does not. */
static int owner_of(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), pid = 0;
	struct record r;

	if (fd >= 0) {
		if (record_read(fd, &r) == 0)
			pid = r.pid;
		close(fd);
	}
	return pid;
}

/* --- restoring ----------------------------------------------------------------------------- */

static const struct lx_setting *find(const struct lx_setting *s, int n, const char *name)
{
	for (int i = 0; i < n; i++) {
		if (!strcmp(s[i].name, name))
			return &s[i];
	}
	return NULL;
}

static void append(char *text, size_t bytes, const char *fmt, const char *name, uint64_t from,
		   uint64_t to)
{
	size_t at = strlen(text);

	if (at)
		at += (size_t)snprintf(text + at, bytes - at, ", ");
	if (at < bytes)
		snprintf(text + at, bytes - at, fmt, name, from, to);
}

/* One round: sets what differs. Returns how many still differed at its beginning. */
static int restore_round(const struct lx_journal_backend *backend, const struct record *r,
			 const char *ifname, bool last, struct lx_restored *done,
			 struct ho_err *err)
{
	struct lx_setting now[LX_PARAMS_MAX];
	int n = backend->list(ifname, now, LX_PARAMS_MAX, err), differ = 0;

	if (n < 0)
		return n;
	for (unsigned i = 0; i < r->n; i++) {
		const struct lx_setting *s = find(now, n, r->before[i].name);
		uint64_t want = r->before[i].value;

		if (!s || s->value == want)
			continue;
		differ++;
		if (last) {
			const struct lx_param *param = lx_param_of(r->before[i].name);
			char command[128];

			done->failed++;
			if (done->failed == 1)
				ho_err_set(err, -EIO,
					   "%s: %s is %" PRIu64 " and could not be put back to "
					   "%" PRIu64 "; try: %s",
					   ifname, r->before[i].name, s->value, want,
					   param ? lx_param_command(ifname, param, want, command,
								    sizeof(command))
						 : "by hand");
			continue;
		}
		if (backend->set(ifname, r->before[i].name, want, NULL, NULL) == 0) {
			done->changed++;
			append(done->text, sizeof(done->text), "%s %" PRIu64 " -> %" PRIu64,
			       r->before[i].name, s->value, want);
		}
	}
	return differ;
}

static int restore(const struct lx_journal_backend *backend, const struct record *r,
		   const char *ifname, struct lx_restored *done, struct ho_err *err)
{
	int differ = 1;

	memset(done, 0, sizeof(*done));
	snprintf(done->ifname, sizeof(done->ifname), "%s", ifname);
	for (int round = 0; differ > 0 && round <= ROUNDS; round++)
		differ = restore_round(backend, r, ifname, round == ROUNDS, done, err);
	if (differ < 0)
		return differ;
	return done->failed ? -EIO : 0;
}

/* The name that the journal's interface has now, in this namespace. false: it is gone. */
static bool still_there(const struct record *r, char ifname[LX_IF_BYTES])
{
	char name[IF_NAMESIZE], boot[40];
	struct lx_iface iface;

	read_boot_id(boot);
	if (strcmp(boot, r->boot) || r->netns != netns_inode() || !if_indextoname(r->ifindex, name))
		return false;
	if (lx_iface_get(name, &iface, NULL) < 0 || memcmp(iface.mac, r->mac, 6))
		return false;
	memcpy(ifname, name, LX_IF_BYTES);
	return true;
}

/* Of a journal whose lock is ours: restores, and removes the file if all is well. */
static int recover_locked(const char *path, int fd, const struct lx_journal_backend *backend,
			  struct lx_restored *done, struct ho_err *err)
{
	struct record r;
	char ifname[LX_IF_BYTES] = "";
	int rc = record_read(fd, &r);

	memset(done, 0, sizeof(*done));
	if (rc == -ENODATA) {
		done->obsolete = true;
		rc = 0;
	} else if (rc < 0) {
		return ho_err_set(err, rc,
				  "%s: no journal of this program; look into it, then remove it",
				  path);
	} else if (!still_there(&r, ifname)) {
		done->obsolete = true;
		snprintf(done->text, sizeof(done->text),
			 "%s is gone, or is another interface now: nothing to restore", r.ifname);
	} else {
		rc = restore(backend, &r, ifname, done, err);
	}
	if (rc == 0)
		unlink(path);
	return rc;
}

/* --- the owner ----------------------------------------------------------------------------- */

static int make_dir(struct ho_err *err)
{
	const char *dir = journal_dir();

	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return ho_err_set(err, -errno,
				  "%s: cannot be made: %s; changed settings are noted there before "
				  "they are changed: run as root, or set HOLDOFF_RUN_DIR",
				  dir, ho_strerror(errno));
	return 0;
}

static int take_snapshot(struct lx_journal *j, const char *ifname, struct ho_err *err)
{
	struct lx_setting now[LX_PARAMS_MAX];
	int n = j->backend->list(ifname, now, LX_PARAMS_MAX, err);

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		if (now[i].fixed)
			continue;
		snprintf(j->record.before[j->record.n].name, LX_COUNTER_BYTES, "%s", now[i].name);
		j->record.before[j->record.n++].value = now[i].value;
	}
	return 0;
}

int lx_journal_open(const char *ifname, bool force, const struct lx_journal_backend *backend,
		    struct lx_journal **out, struct lx_restored *left, struct ho_err *err)
{
	struct lx_restored unused;
	struct lx_iface iface;
	struct lx_journal *j;
	struct record old;
	int rc;

	if (!left)
		left = &unused;
	memset(left, 0, sizeof(*left));
	rc = lx_iface_claim(ifname, force, &iface, err);
	if (rc < 0)
		return rc;
	rc = make_dir(err);
	if (rc < 0)
		return rc;
	j = calloc(1, sizeof(*j));
	if (!j)
		return ho_err_set(err, -ENOMEM, "%s: out of memory", ifname);
	j->backend = backend ? backend : &machine;
	read_boot_id(j->record.boot);
	j->record.ifindex = iface.index;
	j->record.netns = netns_inode();
	j->record.pid = (int)getpid();
	memcpy(j->record.mac, iface.mac, 6);
	snprintf(j->record.ifname, sizeof(j->record.ifname), "%s", iface.name);
	snprintf(j->path, sizeof(j->path), "%s/%u-%" PRIu64 ".journal", journal_dir(), iface.index,
		 j->record.netns);

	rc = file_lock(j->path, true);
	if (rc == -EWOULDBLOCK) {
		int pid = owner_of(j->path);

		/* A lock without a record: its owner is about to write it, or has just died. */
		if (pid)
			rc = ho_err_set(err, -EBUSY,
					"%s: process %d changes its settings now; let it end first",
					ifname, pid);
		else
			rc = ho_err_set(err, -EBUSY,
					"%s: another process is about to change its settings; let "
					"it end first",
					ifname);
		goto free_journal;
	}
	if (rc < 0) {
		ho_err_set(err, rc, "%s: %s; run as root, or set HOLDOFF_RUN_DIR", j->path,
			   ho_strerror(rc));
		goto free_journal;
	}
	j->fd = rc;
	if (record_read(j->fd, &old) != -ENODATA) {
		rc = recover_locked(j->path, j->fd, j->backend, left, err);
		if (rc < 0)
			goto close_file;
		/* Recovery removed the file; ours is a new one. */
		close(j->fd);
		rc = file_lock(j->path, true);
		if (rc < 0) {
			ho_err_set(err, rc, "%s: %s", j->path, ho_strerror(rc));
			goto free_journal;
		}
		j->fd = rc;
	}
	rc = take_snapshot(j, iface.name, err);
	if (rc < 0)
		goto remove_file;
	*out = j;
	return 0;

remove_file:
	unlink(j->path);
close_file:
	close(j->fd);
free_journal:
	free(j);
	return rc;
}

int lx_journal_set(struct lx_journal *j, const char *param, uint64_t value, uint64_t *got,
		   struct ho_err *err)
{
	if (!j->written || j->keep) {
		int rc = record_write(j->fd, &j->record);

		if (rc < 0)
			return ho_err_set(err, rc, "%s: %s; nothing was changed", j->path,
					  ho_strerror(rc));
		j->written = true;
		j->keep = false;
	}
	return j->backend->set(j->record.ifname, param, value, got, err);
}

bool lx_journal_before(const struct lx_journal *j, const char *param, uint64_t *value)
{
	for (unsigned i = 0; i < j->record.n; i++) {
		if (!strcmp(j->record.before[i].name, param)) {
			*value = j->record.before[i].value;
			return true;
		}
	}
	return false;
}

int lx_journal_restore(struct lx_journal *j, struct lx_restored *done, struct ho_err *err)
{
	struct lx_restored unused;
	char ifname[LX_IF_BYTES];

	if (!done)
		done = &unused;
	memset(done, 0, sizeof(*done));
	if (!j->written)
		return 0;
	if (!still_there(&j->record, ifname)) {
		done->obsolete = true;
		return 0;
	}
	return restore(j->backend, &j->record, ifname, done, err);
}

int lx_journal_keep(struct lx_journal *j, struct ho_err *err)
{
	if (j->written && ftruncate(j->fd, 0) < 0)
		return ho_err_set(err, -errno, "%s: %s", j->path, ho_strerror(errno));
	j->keep = true;
	return 0;
}

int lx_journal_close(struct lx_journal *j, struct ho_err *err)
{
	int rc = 0;

	if (!j)
		return 0;
	if (!j->keep)
		rc = lx_journal_restore(j, NULL, err);
	if (rc == 0)
		unlink(j->path);
	close(j->fd);
	free(j);
	return rc;
}

int lx_journal_recover(const char *ifname, const struct lx_journal_backend *backend,
		       void (*done)(void *arg, const struct lx_restored *restored), void *arg,
		       struct ho_err *err)
{
	const char *dir = journal_dir();
	unsigned wanted = 0;
	int found = 0, failed = 0;
	struct dirent *entry;
	DIR *d;

	if (ifname) {
		struct lx_iface iface;
		int rc = lx_iface_get(ifname, &iface, err);

		if (rc < 0)
			return rc;
		wanted = iface.index;
	}
	d = opendir(dir);
	if (!d)
		return errno == ENOENT ? 0
				       : ho_err_set(err, -errno, "%s: %s", dir, ho_strerror(errno));
	while ((entry = readdir(d))) {
		struct lx_restored restored;
		char path[PATH_BYTES];
		unsigned index;
		uint64_t netns;
		int end = 0, fd, rc;

		if (sscanf(entry->d_name, "%u-%" SCNu64 ".journal%n", &index, &netns, &end) != 2 ||
		    !end || entry->d_name[end] || netns != netns_inode() ||
		    (wanted && index != wanted))
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) >= (int)sizeof(path))
			continue;
		fd = file_lock(path, false);
		if (fd == -EWOULDBLOCK && wanted) {
			failed = ho_err_set(err, -EBUSY,
					    "%s: process %d changes its settings now; let it end "
					    "first, it restores them",
					    ifname, owner_of(path));
			continue;
		}
		if (fd == -EWOULDBLOCK || fd == -ENOENT)
			continue;
		if (fd < 0) {
			failed = ho_err_set(err, fd, "%s: %s; run as root", path, ho_strerror(fd));
			continue;
		}
		rc = recover_locked(path, fd, backend ? backend : &machine, &restored, err);
		close(fd);
		if (rc < 0)
			failed = rc;
		else
			found++;
		if (done)
			done(arg, &restored);
	}
	closedir(d);
	return failed ? failed : found;
}
