/* SPDX-License-Identifier: BSD-2-Clause */
/* Many reads and writes by one system call: order, results, and what would have to wait. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <cmocka.h>

#include "linux/uring.h"

#define ENTRIES 8

static struct lx_uring *open_or_skip(void)
{
	struct lx_uring *u;
	struct ho_err err = { 0 };
	int rc = lx_uring_open(ENTRIES, &u, &err);

	if (rc == -EPERM || rc == -ENOSYS) {
		print_message("skipped: %s\n", err.text);
		skip();
	}
	assert_int_equal(rc, 0);
	return u;
}

/* Messages keep their borders and their order; a read more than there are says EAGAIN and does not
 * wait. Again and again, so that the rings go round. */
static void messages_pass_in_order(void **state)
{
	struct lx_uring *u = open_or_skip();
	char text[ENTRIES][16], got[ENTRIES][16];
	int32_t res[ENTRIES];
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
	for (unsigned round = 0; round < 100; round++) {
		unsigned n = 1 + round % ENTRIES, reads = n < ENTRIES ? n + 1 : n;

		for (unsigned i = 0; i < n; i++) {
			struct io_uring_sqe *e = lx_uring_entry(u);

			memset(text[i], (int)('a' + round % 26), sizeof(text[i]));
			io_uring_prep_write(e, fd[0], text[i], i + 1, 0);
			e->rw_flags = RWF_NOWAIT;
		}
		assert_in_range(lx_uring_run(u, res), 1, 2);
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(res[i], i + 1);
		for (unsigned i = 0; i < reads; i++) {
			struct io_uring_sqe *e = lx_uring_entry(u);

			io_uring_prep_read(e, fd[1], got[i], sizeof(got[i]), 0);
			e->rw_flags = RWF_NOWAIT;
		}
		lx_uring_run(u, res);
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(res[i], i + 1);
			assert_memory_equal(got[i], text[i], i + 1);
		}
		for (unsigned i = n; i < reads; i++)
			assert_int_equal(res[i], -EAGAIN);
	}
	close(fd[0]);
	close(fd[1]);
	lx_uring_close(u);
}

/* Each entry has its own result, as from write(). */
static void errors_stay_with_their_entry(void **state)
{
	struct lx_uring *u = open_or_skip();
	int32_t res[3];
	char byte = 0;
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
	for (unsigned i = 0; i < 3; i++)
		io_uring_prep_write(lx_uring_entry(u), i == 1 ? -1 : fd[0], &byte, 1, 0);
	lx_uring_run(u, res);
	assert_int_equal(res[0], 1);
	assert_int_equal(res[1], -EBADF);
	assert_int_equal(res[2], 1);
	close(fd[0]);
	close(fd[1]);
	lx_uring_close(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_pass_in_order),
		cmocka_unit_test(errors_stay_with_their_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
