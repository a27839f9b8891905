// SPDX-License-Identifier: BSD-2-Clause
/*
 * sendmmsg IFACE SECONDS [BATCH]: sends one 60-byte UDP frame again and again through a packet
 * socket with sendmmsg(), as simply as it can be done. Prints the frames a second that the kernel
 * took. A peer in the benches.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define BATCH_MAX 1024
#define BYTES     60

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static unsigned char frame[BYTES] = {
		2,
		0,
		0,
		0,
		0,
		2,
		2,
		0,
		0,
		0,
		0,
		1,
		8,
		0,
		0x45,
		0,
		0,
		46,
		0,
		0,
		0,
		0,
		64,
		17,
		/* checksum of the header */ 0xee,
		0x99,
		198,
		18,
		0,
		1,
		198,
		18,
		0,
		2,
		0x13,
		0x88,
		0,
		9,
		0,
		26,
		0,
		0,
	};
	static struct mmsghdr messages[BATCH_MAX];
	struct iovec part = { frame, sizeof(frame) };
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_halen = 6 };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), one = 1;
	unsigned batch = argc > 3 ? (unsigned)atoi(argv[3]) : 64;
	unsigned long long sent = 0;
	double start, end;

	if (argc < 3 || fd < 0 || batch < 1 || batch > BATCH_MAX) {
		fprintf(stderr, "usage: %s IFACE SECONDS [BATCH]; needs cap_net_raw\n", argv[0]);
		return 1;
	}
	to.sll_ifindex = (int)if_nametoindex(argv[1]);
	setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one));
	for (unsigned i = 0; i < batch; i++)
		messages[i].msg_hdr = (struct msghdr){ .msg_name = &to,
						       .msg_namelen = sizeof(to),
						       .msg_iov = &part,
						       .msg_iovlen = 1 };
	start = now();
	end = start + atof(argv[2]);
	while (now() < end) {
		int n = sendmmsg(fd, messages, batch, 0);

		if (n < 0 && errno != ENOBUFS && errno != EAGAIN) {
			perror("sendmmsg");
			return 1;
		}
		sent += n > 0 ? (unsigned long long)n : 0;
	}
	printf("%.0f\n", (double)sent / (now() - start));
	return 0;
}
