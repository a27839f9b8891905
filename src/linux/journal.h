/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of an interface's settings that can always be taken back.
 *
 * Before anything is changed, all that can be set (linux/params.h) is written to a journal. The
 * journal is removed when everything is as it was, or when its owner says that the settings are
 * to stay. If the owner dies, kill -9 included, the journal stays: whoever opens it next, or
 * lx_journal_recover, puts the settings back first.
 *
 *   lx_journal_open ----> lx_journal_set ... ----> lx_journal_close        as it was
 *      | lock, guard,        | value, read back \-> lx_journal_keep, close    as it is now
 *      | what a dead         |
 *      | owner left          +-- death: the journal stays, the lock goes with the process
 *
 * The journal is a text file, DIR/IFINDEX-NETNS.journal, locked (flock) while its owner lives:
 * a second owner is refused. An interface is known by its number, its address and its network
 * namespace, so that one that was renamed is found and one that took the number of another is
 * left alone. After a reboot nothing is left of the settings, so DIR is on a tmpfs; the boot id
 * says whether a journal is of this boot.
 *
 * Restoring sets every value that differs from the journal's, in up to four rounds because one
 * setting can refuse or change another (adaptive moderation and rx-usecs; channels and rings).
 */
#ifndef HOLDOFF_LINUX_JOURNAL_H
#define HOLDOFF_LINUX_JOURNAL_H

#include <stdbool.h>

#include "linux/params.h"

/* Where journals are, unless HOLDOFF_RUN_DIR says otherwise. */
#define LX_JOURNAL_DIR "/run/holdoff"

/* How settings are read and written: linux/params.h, or something else in tests. */
struct lx_journal_backend {
	int (*list)(const char *ifname, struct lx_setting *out, unsigned room, struct ho_err *err);
	int (*set)(const char *ifname, const char *name, uint64_t value, uint64_t *got,
		   struct ho_err *err);
};

/* What restoring did, for people. */
struct lx_restored {
	char ifname[LX_IF_BYTES]; /* its name now; "" if it is gone */
	unsigned changed;         /* settings put back */
	unsigned failed;          /* that could not be */
	bool obsolete;            /* nothing to restore: the interface is gone or another one */
	char text[HO_ERR_TEXT];   /* "rx 512 -> 256, rx-usecs 10 -> 3", or why it failed */
};

struct lx_journal;

/*
 * Becomes the owner of the interface's settings. If a dead owner left a journal, restores first
 * and fills *left (may be NULL; left->ifname is "" when there was none). -EBUSY: another process
 * owns it (err names its pid), or the interface carries the default route and force is not given.
 * -ENODEV. -EACCES and the like: the directory cannot be written, with the way out. backend NULL:
 * this machine's.
 */
int lx_journal_open(const char *ifname, bool force, const struct lx_journal_backend *backend,
		    struct lx_journal **out, struct lx_restored *left, struct ho_err *err);

/* Sets a value and reads it back into *got (may be NULL). The journal is on its way to the file
 * system before. Errors of lx_param_set. */
int lx_journal_set(struct lx_journal *j, const char *param, uint64_t value, uint64_t *got,
		   struct ho_err *err);

/* What the parameter was before; false if the interface does not have it. */
bool lx_journal_before(const struct lx_journal *j, const char *param, uint64_t *value);

/* Everything back, now; the owner may go on setting. -EIO if something could not be put back:
 * err says what, and with which command to do it by hand. done may be NULL. */
int lx_journal_restore(struct lx_journal *j, struct lx_restored *done, struct ho_err *err);

/* The settings as they are now are to stay: close will not restore. Setting again revokes it. */
int lx_journal_keep(struct lx_journal *j, struct ho_err *err);

/* Restores unless the settings are to stay, removes the journal, frees. What could not be put
 * back leaves the journal in place; returns as lx_journal_restore. NULL is allowed. */
int lx_journal_close(struct lx_journal *j, struct ho_err *err);

/*
 * Restores what dead owners left in this network namespace: of one interface, or of all (ifname
 * NULL). Calls done for each journal found. Journals of living owners are left alone: -EBUSY if
 * one was asked for by name. Returns the number restored or removed, or a negative errno when one
 * failed.
 */
int lx_journal_recover(const char *ifname, const struct lx_journal_backend *backend,
		       void (*done)(void *arg, const struct lx_restored *restored), void *arg,
		       struct ho_err *err);

#endif
