/* SPDX-License-Identifier: Apache-2.0
 *
 * What the calls of fi_msg, fi_tagged, fi_rma and fi_atomic have in common.
 */
#ifndef XDPFAB_CALL_H
#define XDPFAB_CALL_H

#include "kernels.h"
#include "op.h"

/* The flags that calls with a message structure may have. */
#define SEND_FLAGS                                                                                                     \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |                \
	 FI_MATCH_COMPLETE | FI_MORE | FI_FENCE | FI_REMOTE_CQ_DATA | FI_TRIGGER)

/* Not a flag of libfabric: the call is an inject, which has no completion. */
#define NO_COMPLETION (1ull << 63)

/* The flags of a call that has none of its own, and of one that has: its completion then is
 * as the endpoint was bound. */
static inline uint64_t tx_flags(const struct ep *name)
{
	return name->tx_flags | (name->base->tx_selective ? 0 : FI_COMPLETION);
}

static inline uint64_t tx_msg_flags(const struct ep *name, uint64_t flags)
{
	return flags | (name->base->tx_selective ? 0 : FI_COMPLETION);
}

/* Begins a work: returns 0, or the negative error of flags that it cannot have. */
static inline int work_init(struct work *w, struct ep *name, fi_addr_t to, uint64_t flags, void *context)
{
	if ((flags & ~(SEND_FLAGS | NO_COMPLETION)) != 0)
		return -FI_EBADFLAGS;
	w->ep = name->base;
	w->to = to;
	w->context = context;
	w->flags = (flags & NO_COMPLETION) != 0 ? 0 : flags;
	w->deferred = false;
	w->from_count = w->compare_count = w->result_count = w->place_count = 0;
	w->operand_len = w->compare_len = w->result_len = 0;
	memset(&w->e, 0, offsetof(struct xdpfab_entry, operands));
	if ((flags & FI_FENCE) != 0)
		w->e.flags |= XDPFAB_FENCE;
	return 0;
}

/* Gives it operands. */
static inline int work_from(struct work *w, const struct iovec *iov, size_t count, uint64_t flags)
{
	if (count > MOST_IOV)
		return -FI_EINVAL;
	if (count > 0)
		memcpy(w->from, iov, count * sizeof *iov);
	w->from_count = count;
	w->operand_len = iov_len(iov, count);
	if ((flags & FI_INJECT) != 0 && w->operand_len > INJECT_SIZE)
		return -FI_EMSGSIZE;
	return w->operand_len > w->ep->dom->g.longest ? -FI_EMSGSIZE : 0;
}

static inline struct ep *name_of(struct fid_ep *fid)
{
	return container_of(fid, struct ep, fid);
}

static inline struct iovec buffer(const void *buf, size_t len)
{
	return (struct iovec){.iov_base = (void *)(uintptr_t)buf, .iov_len = len};
}

/* Makes the work of a message; its tag is NULL for none. call_send posts it, too. */
int send_work(struct work *w, struct ep *name, const struct iovec *iov, size_t count, fi_addr_t to,
	      const uint64_t *tag, uint64_t data, uint64_t flags, void *context);
ssize_t call_send(struct ep *name, const struct iovec *iov, size_t count, fi_addr_t to, const uint64_t *tag,
		  uint64_t data, uint64_t flags, void *context);

/* What a receive wants. */
struct wanted {
	const struct iovec *iov;
	size_t count;
	fi_addr_t from;
	bool tagged;
	uint64_t tag, ignore;
	uint64_t flags;
	void *context;
};

ssize_t call_recv(struct ep *name, const struct wanted *r);

/* Posts a receive of an endpoint that is enabled, in a domain that lives: 0 or a negative
 * error. The lock is held. A note comes back with its end: see defer_received. */
int call_receive(struct ep *ep, const struct wanted *r, void *note);

/* Makes the work of a transfer. */
int rma_work(struct work *w, struct ep *name, const struct fi_msg_rma *msg, bool reads, uint64_t flags);

/* The buffers of an atomic beside its operands, each a list of elements. */
struct lists {
	enum kernel_form form;
	const struct fi_ioc *compare, *result;
	size_t compare_count, result_count;
};

int atomic_work(struct work *w, struct ep *name, const struct fi_msg_atomic *msg, const struct lists *l,
		uint64_t flags);

static inline uint64_t rx_flags(const struct ep *name)
{
	return name->rx_flags | (name->base->rx_selective ? 0 : FI_COMPLETION);
}

#endif
