// SPDX-License-Identifier: MIT
/*
 * The least a sender through a packet socket can cost: one constant frame,
 * sendmmsg(2) in batches, nothing counted but what the kernel took.
 *
 *	bare_mmsg LINK CPU COUNT HEX
 *
 * sends the frame written in HEX and prints nanoseconds per packet.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define BATCH		64
#define FRAME_MAX	1514
#define SEND_BUFFER	(4 << 20)

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "CPU %d", cpu);
}

static size_t parse_frame(const char *hex, uint8_t *frame)
{
	size_t length = strlen(hex) / 2;
	size_t i;

	if (length < 14 || length > FRAME_MAX)
		errx(1, "a frame has 14 to %d bytes", FRAME_MAX);
	for (i = 0; i < length; i++)
		if (sscanf(hex + 2 * i, "%2hhx", &frame[i]) != 1)
			errx(1, "%s is not hexadecimal", hex);
	return length;
}

/* Protocol 0: nothing is received, so own frames do not come back. */
static int open_link(const char *link)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_ifindex = if_nametoindex(link),
	};
	int one = 1, size = SEND_BUFFER;
	int fd;

	if (!address.sll_ifindex)
		err(1, "%s", link);
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	if (fd < 0)
		err(1, "packet socket");
	if (setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)))
		err(1, "PACKET_QDISC_BYPASS");
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		err(1, "SO_SNDBUFFORCE");
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)))
		err(1, "bind to %s", link);
	return fd;
}

static void send_frames(int fd, uint8_t *frame, size_t length, uint64_t count)
{
	struct iovec vector = { .iov_base = frame, .iov_len = length };
	struct mmsghdr message[BATCH] = { 0 };
	int i, sent;

	for (i = 0; i < BATCH; i++) {
		message[i].msg_hdr.msg_iov = &vector;
		message[i].msg_hdr.msg_iovlen = 1;
	}
	while (count) {
		sent = sendmmsg(fd, message, count < BATCH ? count : BATCH, 0);
		if (sent > 0)
			count -= sent;
		else if (errno != ENOBUFS && errno != EINTR)
			err(1, "sendmmsg");
	}
}

int main(int argc, char **argv)
{
	uint8_t frame[FRAME_MAX];
	uint64_t count, start;
	size_t length;
	int fd;

	if (argc != 5)
		errx(2, "usage: bare_mmsg LINK CPU COUNT HEX");
	pin(atoi(argv[2]));
	count = strtoull(argv[3], NULL, 10);
	length = parse_frame(argv[4], frame);
	fd = open_link(argv[1]);
	start = monotonic_ns();
	send_frames(fd, frame, length, count);
	printf("%.2f\n", (double)(monotonic_ns() - start) / count);
	return 0;
}
