/* SPDX-License-Identifier: Apache-2.0 */
#include "addr.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

static const char scheme[] = "xdpfab://";

bool addr_equal(const struct addr *a, const struct addr *b)
{
	return a->family == b->family && a->endpoint == b->endpoint && memcmp(a->ip, b->ip, sizeof a->ip) == 0 &&
	       memcmp(a->mac, b->mac, sizeof a->mac) == 0;
}

/* FNV-1a. */
uint32_t addr_hash(const struct addr *a)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < sizeof a->ip; i++)
		h = (h ^ a->ip[i]) * 16777619u;
	for (size_t i = 0; i < sizeof a->mac; i++)
		h = (h ^ a->mac[i]) * 16777619u;
	return (h ^ a->endpoint) * 16777619u;
}

static bool read_mac(struct addr *a, const char *text)
{
	unsigned m[6];
	int n = 0;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5], &n) != 6 ||
	    text[n] != 0)
		return false;
	for (size_t i = 0; i < sizeof a->mac; i++)
		a->mac[i] = (uint8_t)m[i];
	return true;
}

/* Reads a MAC or an IP address, in brackets or not. */
static bool read_host(struct addr *a, char *text)
{
	const size_t n = strlen(text);

	if (read_mac(a, text))
		return true;
	if (n > 1 && text[0] == '[' && text[n - 1] == ']') {
		text[n - 1] = 0;
		text++;
	}
	a->family = strchr(text, ':') == NULL ? AF_INET : AF_INET6;
	return inet_pton(a->family, text, a->ip) == 1;
}

static bool read_number(uint16_t *to, const char *text)
{
	char *end;
	const unsigned long n = strtoul(text, &end, 10);

	*to = (uint16_t)n;
	return *text >= '0' && *text <= '9' && *end == 0 && n <= UINT16_MAX;
}

static bool read_text(struct addr *a, const char *text)
{
	char host[ADDR_TEXT], *slash;

	if (strncmp(text, scheme, sizeof scheme - 1) != 0)
		return false;
	if (snprintf(host, sizeof host, "%s", text + sizeof scheme - 1) >= (int)sizeof host)
		return false;
	slash = strrchr(host, '/');
	if (slash == NULL)
		return false;
	*slash = 0;
	return read_number(&a->endpoint, slash + 1) && read_host(a, host);
}

static bool read_sockaddr(struct addr *a, const struct sockaddr *from)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	switch (from->sa_family) {
	case AF_INET:
		memcpy(&in, from, sizeof in);
		memcpy(a->ip, &in.sin_addr, sizeof in.sin_addr);
		a->endpoint = ntohs(in.sin_port);
		break;
	case AF_INET6:
		memcpy(&in6, from, sizeof in6);
		memcpy(a->ip, &in6.sin6_addr, sizeof in6.sin6_addr);
		a->endpoint = ntohs(in6.sin6_port);
		break;
	default:
		return false;
	}
	a->family = from->sa_family;
	return true;
}

bool addr_read(struct addr *a, uint32_t format, const void *from)
{
	*a = (struct addr){.family = AF_UNSPEC};
	if (format == FI_ADDR_STR)
		return read_text(a, from);
	return addr_len(format) > 0 && read_sockaddr(a, from);
}

size_t addr_len(uint32_t format)
{
	switch (format) {
	case FI_SOCKADDR:
	case FI_SOCKADDR_IN:
		return sizeof(struct sockaddr_in);
	case FI_SOCKADDR_IN6:
		return sizeof(struct sockaddr_in6);
	case FI_ADDR_STR:
		return ADDR_TEXT;
	}
	return 0;
}

static void host_text(const struct addr *a, char *to, socklen_t room)
{
	if (a->family == AF_UNSPEC)
		snprintf(to, room, "%02x:%02x:%02x:%02x:%02x:%02x", a->mac[0], a->mac[1], a->mac[2],
			 a->mac[3], a->mac[4], a->mac[5]);
	else if (inet_ntop(a->family, a->ip, to, room) == NULL)
		to[0] = 0;
}

void addr_text(const struct addr *a, char *to, size_t room)
{
	char host[INET6_ADDRSTRLEN];

	host_text(a, host, sizeof host);
	snprintf(to, room, a->family == AF_INET6 ? "%s[%s]/%u" : "%s%s/%u", scheme, host, a->endpoint);
}

void addr_write(const struct addr *a, uint32_t format, void *to, size_t *len)
{
	union {
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		char text[ADDR_TEXT];
	} all;
	size_t n;

	memset(&all, 0, sizeof all);
	if (format == FI_ADDR_STR) {
		addr_text(a, all.text, sizeof all.text);
		n = strlen(all.text) + 1;
	} else if (a->family == AF_INET6) {
		all.in6.sin6_family = AF_INET6;
		all.in6.sin6_port = htons(a->endpoint);
		memcpy(&all.in6.sin6_addr, a->ip, sizeof all.in6.sin6_addr);
		n = sizeof all.in6;
	} else {
		all.in.sin_family = AF_INET;
		all.in.sin_port = htons(a->endpoint);
		memcpy(&all.in.sin_addr, a->ip, sizeof all.in.sin_addr);
		n = sizeof all.in;
	}
	memcpy(to, &all, n < *len ? n : *len);
	*len = n;
}

int addr_resolve(struct addr *a, uint32_t format, const char *node, const char *service, bool numeric)
{
	struct addrinfo hints = {.ai_flags = numeric ? AI_NUMERICHOST : 0, .ai_socktype = SOCK_DGRAM}, *found = NULL;
	bool ok;

	*a = (struct addr){.family = AF_UNSPEC};
	if (node != NULL && strncmp(node, scheme, sizeof scheme - 1) == 0) /* it has the number, too */
		return read_text(a, node) ? 0 : -FI_EINVAL;
	if (format == FI_ADDR_STR) {
		char host[ADDR_TEXT];

		snprintf(host, sizeof host, "%s", node == NULL ? "00:00:00:00:00:00" : node);
		return read_mac(a, host) && (service == NULL || read_number(&a->endpoint, service)) ? 0 : -FI_ENODATA;
	}
	hints.ai_family = format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
	if (node == NULL)
		hints.ai_flags |= AI_PASSIVE;
	if (getaddrinfo(node, service == NULL ? "0" : service, &hints, &found) != 0)
		return -FI_ENODATA;
	ok = read_sockaddr(a, found->ai_addr);
	freeaddrinfo(found);
	return ok ? 0 : -FI_ENODATA;
}

void addr_json(const struct addr *a, char *to, size_t room)
{
	char host[INET6_ADDRSTRLEN];

	host_text(a, host, sizeof host);
	snprintf(to, room, "\"%s/%u\"", host, a->endpoint);
}
