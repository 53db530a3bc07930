/*
 * reset.c
 *		Forged resets: the end of a TCP connection as a middlebox or a peer that came up anew brings it about.
 */
#include "switch.h"

#include <arpa/inet.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <string.h>

#define HEADERS_BYTES (sizeof(struct ether_header) + sizeof(struct iphdr) + sizeof(struct tcphdr))

static uint32_t
sum_of(const void *data, size_t bytes, uint32_t sum)
{
	const uint8_t *byte = data;

	for (size_t i = 0; i + 1 < bytes; i += 2)
		sum += (uint32_t) (byte[i] << 8 | byte[i + 1]);
	return sum;
}

static uint16_t
fold(uint32_t sum)
{
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t) ~sum);
}

/* A bare segment with the reset flag, with headers of these two ends. */
static void
write_reset(uint8_t *frame, const uint8_t *from_mac, const uint8_t *to_mac, const struct iphdr *ends,
            bool swap, const struct tcphdr *segment, uint32_t sequence)
{
	struct ether_header *ethernet = (struct ether_header *) frame;
	struct iphdr ip = {.ihl = 5, .version = 4, .ttl = 64, .protocol = IPPROTO_TCP};
	struct tcphdr tcp = {.doff = 5, .rst = 1};
	uint32_t sum;

	memcpy(ethernet->ether_shost, from_mac, ETH_ALEN);
	memcpy(ethernet->ether_dhost, to_mac, ETH_ALEN);
	ethernet->ether_type = htons(ETHERTYPE_IP);
	ip.tot_len = htons(sizeof(ip) + sizeof(tcp));
	ip.saddr = swap ? ends->daddr : ends->saddr;
	ip.daddr = swap ? ends->saddr : ends->daddr;
	ip.check = fold(sum_of(&ip, sizeof(ip), 0));
	tcp.source = swap ? segment->dest : segment->source;
	tcp.dest = swap ? segment->source : segment->dest;
	tcp.seq = sequence;
	sum = sum_of(&ip.saddr, 8, IPPROTO_TCP + (uint32_t) sizeof(tcp));
	tcp.check = fold(sum_of(&tcp, sizeof(tcp), sum));
	memcpy(frame + sizeof(*ethernet), &ip, sizeof(ip));
	memcpy(frame + sizeof(*ethernet) + sizeof(ip), &tcp, sizeof(tcp));
}

bool
reset_frames(const uint8_t *frame, size_t length, uint8_t *forward, uint8_t *backward, size_t *bytes)
{
	struct ether_header ethernet;
	struct iphdr ip;
	struct tcphdr tcp;

	if (length < HEADERS_BYTES)
		return false;
	memcpy(&ethernet, frame, sizeof(ethernet));
	memcpy(&ip, frame + sizeof(ethernet), sizeof(ip));
	if (ethernet.ether_type != htons(ETHERTYPE_IP) || ip.protocol != IPPROTO_TCP || ip.ihl != 5)
		return false;
	memcpy(&tcp, frame + sizeof(ethernet) + sizeof(ip), sizeof(tcp));
	/* A connection that is being made or is at its end already is left alone. */
	if (!tcp.ack || tcp.syn || tcp.rst || tcp.fin)
		return false;
	/* Each end believes a reset only at exactly the byte that it waits for: RFC 5961. */
	write_reset(forward, ethernet.ether_shost, ethernet.ether_dhost, &ip, false, &tcp, tcp.seq);
	write_reset(backward, ethernet.ether_dhost, ethernet.ether_shost, &ip, true, &tcp, tcp.ack_seq);
	*bytes = HEADERS_BYTES;
	return true;
}
