/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses of endpoints: an IP address or a MAC, and the endpoint's number, which takes the
 * place of a port. As texts they are xdpfab://10.0.0.2/3, xdpfab://[fd00::2]/3 or
 * xdpfab://02:00:00:00:00:0b/3.
 */
#ifndef XDPFAB_ADDR_H
#define XDPFAB_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct addr {
	uint8_t ip[16]; /* in the first 4 bytes for AF_INET */
	uint8_t mac[6]; /* if there is no IP */
	sa_family_t family; /* AF_INET, AF_INET6, or AF_UNSPEC for a MAC */
	uint16_t endpoint;
};

enum { ADDR_TEXT = 80 }; /* bytes of any address as a text */

bool addr_equal(const struct addr *a, const struct addr *b);
uint32_t addr_hash(const struct addr *a);

/* Reads an address of an addr_format of libfabric; of a text, until its zero. Returns false
 * if it is none. */
bool addr_read(struct addr *a, uint32_t format, const void *from);

/* Writes an address in a format, cut to the room that *len says, and sets *len to its
 * length. */
void addr_write(const struct addr *a, uint32_t format, void *to, size_t *len);

/* The length of addresses of a format, 0 for one that is not known. */
size_t addr_len(uint32_t format);

void addr_text(const struct addr *a, char *to, size_t room);

/* Reads a node, by number or name, and an endpoint's number. NULL is any node, or 0. Returns
 * 0 or a negative error. */
int addr_resolve(struct addr *a, uint32_t format, const char *node, const char *service, bool numeric);

/* Writes the address as the conversation has it. */
void addr_json(const struct addr *a, char *to, size_t room);

#endif
