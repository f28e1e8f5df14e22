/* SPDX-License-Identifier: Apache-2.0
 *
 * What the provider can do, as infos say it.
 */
#ifndef XDPFAB_INFO_H
#define XDPFAB_INFO_H

#include <rdma/fabric.h>

#include "offer.h"

enum {
	MOST_IOV = 8,
	INJECT_SIZE = 4096,
	TX_SIZE = 1024,
	RX_SIZE = 4096,
	MOST_QUEUE = 65536,	 /* entries of tx, rx and completion queues */
	BUFFERED = 4 << 20,	 /* bytes of messages that wait for a receive */
	MOST_BUFFERED = 1 << 30, /* likewise */
	PROTOCOL_VERSION = 1,
	CONTEXT_BITS = 8, /* at most, of the number of a receive context in an fi_addr_t */
	MOST_CONTEXTS = 1 << CONTEXT_BITS,
};

#define PROTOCOL 0x80007864u /* private: libfabric leaves the upper half to providers */
/* Bytes of a message or a transfer: at most, and with a daemon that does not know longer ones. */
#define MOST_MESSAGE ((size_t)INT64_MAX)
#define SHORT_MESSAGE ((size_t)UINT32_MAX)

/* The parts that an endpoint can have. */
#define MSG_CAPS (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_MULTI_RECV | FI_DIRECTED_RECV)
#define RMA_CAPS (FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE)
#define TX_CAPS (FI_NAMED_RX_CTX | FI_MSG | FI_TAGGED | FI_SEND | FI_TRIGGER | RMA_CAPS)
#define RX_CAPS                                                                                                        \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | TARGET_CAPS | FI_RECV | FI_MULTI_RECV | FI_DIRECTED_RECV |          \
	 FI_TRIGGER | FI_SOURCE)
/* These need a daemon that hands over what peers do to memory of the program. */
#define TARGET_CAPS (FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT)
#define ALL_CAPS                                                                                                       \
	(MSG_CAPS | RMA_CAPS | TARGET_CAPS | FI_TRIGGER | FI_NAMED_RX_CTX | FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM)

#define OP_FLAGS                                                                                                       \
	(FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

#define ORDERS                                                                                                         \
	(FI_ORDER_STRICT | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW |                 \
	 FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)

/* Whether an info asks for no more than there is. The reason is logged. */
bool info_fits(const struct fi_info *hints);

/* Whether hints of an API version ask for no more than a domain has. */
bool info_within(const struct fi_domain_attr *hints, const struct fi_domain_attr *domain, uint32_t version);

/* Whether queues of a size can be made; the log says which cannot. Attributes may be NULL. */
bool info_sizes(const struct fi_tx_attr *tx, const struct fi_rx_attr *rx);

/* The text of the network that an address is in, which is the name of its fabric. */
void info_fabric(const struct network *n, char *to, size_t room);

#endif
