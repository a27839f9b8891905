// SPDX-License-Identifier: BSD-2-Clause
/*
 * The plainest programs that can send and receive frames through the kernel: what the ports
 * packet: and tap: are measured against. 60-byte frames, batches of 64.
 *
 *   socket_peer sendmmsg|recvmmsg IFACE SECONDS     packet socket
 *   socket_peer write|read TAP SECONDS              tap without virtio headers
 *   socket_peer write-vnet|read-vnet TAP SECONDS    tap with the virtio header before each frame
 * and offloads on, so that frames of 64 KB may come
 *
 * Prints millions of frames a second, from the first frame to the last.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <stdbool.h>
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
#define HEADER      sizeof(struct virtio_net_hdr)
#define ROOM_VNET   (65536 + 14 + HEADER + 120) /* not all in one cache set */

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

static int tap(const char *name, bool vnet)
{
	struct ifreq ifr = { .ifr_flags = IFF_TAP | IFF_NO_PI | (vnet ? IFF_VNET_HDR : 0) };
	const unsigned offloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK), s = socket(AF_INET, SOCK_DGRAM, 0);

	strncpy(ifr.ifr_name, name, IFNAMSIZ - 1);
	if (ioctl(fd, TUNSETIFF, &ifr) < 0 || (vnet && ioctl(fd, TUNSETOFFLOAD, offloads) < 0)) {
		perror(name);
		exit(1);
	}
	ioctl(s, SIOCGIFFLAGS, &ifr);
	ifr.ifr_flags |= IFF_UP;
	ioctl(s, SIOCSIFFLAGS, &ifr);
	close(s);
	return fd;
}

static uint8_t buffer[BATCH * ROOM_VNET];

int main(int argc, char **argv)
{
	struct mmsghdr msg[BATCH] = { 0 };
	struct iovec iov[BATCH];
	const char *mode = argc > 3 ? argv[1] : "";
	bool vnet = strstr(mode, "-vnet"), mmsg = strstr(mode, "mmsg");
	bool sends = !strncmp(mode, "send", 4) || !strncmp(mode, "write", 5);
	size_t head = vnet ? HEADER : 0, room = vnet ? ROOM_VNET : ROOM;
	size_t size = sends ? head + FRAME_BYTES : room;
	int fd;
	double seconds = argc > 3 ? atof(argv[3]) : 0, start, first = 0, last = 0;
	uint64_t frames = 0;

	if (strcmp(mode, "sendmmsg") && strcmp(mode, "recvmmsg") && strcmp(mode, "write") &&
	    strcmp(mode, "read") && strcmp(mode, "write-vnet") && strcmp(mode, "read-vnet")) {
		fprintf(stderr,
			"socket_peer: sendmmsg|recvmmsg|write|read|write-vnet|read-vnet IFACE "
			"SECONDS\n");
		return 1;
	}
	for (int i = 0; i < BATCH; i++) {
		memcpy(buffer + i * room + head, "\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x88\xb5", 14);
		iov[i] = (struct iovec){ buffer + i * room, size };
		msg[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
	}
	fd = mmsg ? packet_socket(argv[2], sends ? 0 : ETH_P_ALL) : tap(argv[2], vnet);
	printf("ready\n");
	fflush(stdout);
	for (start = now(); now() - start < seconds;) {
		int n = 0;

		if (mmsg) {
			n = sends ? sendmmsg(fd, msg, BATCH, MSG_DONTWAIT)
				  : recvmmsg(fd, msg, BATCH, MSG_DONTWAIT, NULL);
		} else {
			while (n < BATCH && (sends ? write(fd, iov[n].iov_base, size)
						   : read(fd, iov[n].iov_base, size)) > 0)
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
