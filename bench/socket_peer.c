// SPDX-License-Identifier: BSD-2-Clause
/*
 * The plainest programs that can send and receive frames through the kernel: what the ports
 * packet: and tap: are measured against. 60-byte frames, batches of 64.
 *
 *   socket_peer sendmmsg|recvmmsg IFACE SECONDS     packet socket
 *   socket_peer write|read TAP SECONDS              tap without virtio headers
 *
 * Prints millions of frames a second, from the first frame to the last.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCH       64
#define FRAME_BYTES 60
#define ROOM        2048

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int packet_socket(const char *iface, int protocol)
{
	int one = 1, buffer = 8 << 20, fd = socket(AF_PACKET, SOCK_RAW, 0);
	struct sockaddr_ll addr = { .sll_family = AF_PACKET,
				    .sll_protocol = htons((uint16_t)protocol),
				    .sll_ifindex = (int)if_nametoindex(iface) };

	setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one));
	setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		perror(iface);
		exit(1);
	}
	return fd;
}

static int tap(const char *name)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK), s = socket(AF_INET, SOCK_DGRAM, 0);

	strncpy(ifr.ifr_name, name, IFNAMSIZ - 1);
	if (ioctl(fd, TUNSETIFF, &ifr) < 0) {
		perror(name);
		exit(1);
	}
	ioctl(s, SIOCGIFFLAGS, &ifr);
	ifr.ifr_flags |= IFF_UP;
	ioctl(s, SIOCSIFFLAGS, &ifr);
	close(s);
	return fd;
}

static uint8_t buffer[BATCH][ROOM];

int main(int argc, char **argv)
{
	struct mmsghdr msg[BATCH] = { 0 };
	struct iovec iov[BATCH];
	const char *mode = argc > 3 ? argv[1] : "";
	int fd, sends = !strcmp(mode, "sendmmsg") || !strcmp(mode, "write");
	int mmsg = !strcmp(mode, "sendmmsg") || !strcmp(mode, "recvmmsg");
	double seconds = argc > 3 ? atof(argv[3]) : 0, start, first = 0, last = 0;
	uint64_t frames = 0;

	if (!mmsg && strcmp(mode, "write") && strcmp(mode, "read")) {
		fprintf(stderr, "socket_peer: sendmmsg|recvmmsg|write|read IFACE SECONDS\n");
		return 1;
	}
	for (int i = 0; i < BATCH; i++) {
		memcpy(buffer[i], "\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x88\xb5", 14);
		iov[i] = (struct iovec){ buffer[i], sends ? FRAME_BYTES : ROOM };
		msg[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
	}
	fd = mmsg ? packet_socket(argv[2], sends ? 0 : ETH_P_ALL) : tap(argv[2]);
	printf("ready\n");
	fflush(stdout);
	for (start = now(); now() - start < seconds;) {
		int n = 0;

		if (mmsg) {
			n = sends ? sendmmsg(fd, msg, BATCH, MSG_DONTWAIT)
				  : recvmmsg(fd, msg, BATCH, MSG_DONTWAIT, NULL);
		} else {
			while (n < BATCH && (sends ? write(fd, buffer[n], FRAME_BYTES)
						   : read(fd, buffer[n], ROOM)) > 0)
				n++;
		}
		if (n <= 0)
			continue;
		last = now();
		first = first ? first : last;
		frames += (uint64_t)n;
	}
	printf("%.4f\n", last > first ? (double)frames / (last - first) / 1e6 : 0.0);
	return 0;
}
