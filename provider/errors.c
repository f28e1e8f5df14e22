/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "op.h"

struct meaning {
	int error;
	const char *text;
};

static const struct meaning statuses[] = {
	[XDPFAB_STATUS_NO_KEY] = {FI_ENOKEY, "no region has the key"},
	[XDPFAB_STATUS_NO_ACCESS] = {FI_EACCES, "the region does not grant the right"},
	[XDPFAB_STATUS_OUT_OF_BOUNDS] = {FI_EINVAL, "outside the region"},
	[XDPFAB_STATUS_MISALIGNED] = {FI_EINVAL, "misaligned"},
	[XDPFAB_STATUS_UNSUPPORTED] = {FI_EOPNOTSUPP, "no such operation for this datatype"},
	[XDPFAB_STATUS_BAD_COUNT] = {FI_EMSGSIZE, "impossible number of elements"},
	[XDPFAB_STATUS_NOT_FOUND] = {FI_ENOKEY, "no such region"},
	[XDPFAB_STATUS_NOT_EXECUTED] = {FI_ECONNRESET, "the peer has closed before it"},
	[XDPFAB_STATUS_STALE] = {FI_ENOKEY, "the region that was meant is gone"},
	[XDPFAB_STATUS_NO_ROOM] = {FI_EAGAIN, "the peer holds as many requests as it may"},
};

static const struct meaning reasons[] = {
	[XDPFAB_REASON_PEER_SILENT] = {FI_ETIMEDOUT, "the peer does not answer"},
	[XDPFAB_REASON_GAVE_UP] = {FI_ETIMEDOUT, "the peer has ceased to answer"},
	[XDPFAB_REASON_PEER_RESTARTED] = {FI_ECONNRESET, "the peer has restarted"},
	[XDPFAB_REASON_FORGOTTEN] = {FI_ECONNRESET, "the peer no longer knows the session"},
	[XDPFAB_REASON_PEER_CLOSED] = {FI_ECONNRESET, "the peer has closed"},
	[XDPFAB_REASON_REFUSED_ENDPOINT] = {FI_ECONNREFUSED, "the peer has no such endpoint"},
	[XDPFAB_REASON_REFUSED_FULL] = {FI_ECONNREFUSED, "the daemon, or the peer's, has no room for another session (--sessions)"},
	[XDPFAB_REASON_REFUSED_VERSION] = {FI_ECONNREFUSED, "the peer speaks another version of the protocol"},
	[XDPFAB_REASON_REFUSED_CLOSING] = {FI_ECONNREFUSED, "the peer is shutting down"},
	[XDPFAB_REASON_PROTOCOL_ERROR] = {EPROTO, "the peer has violated the protocol"},
	[XDPFAB_REASON_CLOSED_HERE] = {FI_ECANCELED, "the endpoint, or its peer, is closed"},
	[XDPFAB_REASON_IDLE] = {FI_ECONNRESET, "the session was idle"},
	[XDPFAB_REASON_SETTLED] = {FI_ECONNRESET, "the session has been settled"},
	[XDPFAB_REASON_OUTDATED] = {EPROTO, "the peer answers for a former session"},
	[XDPFAB_REASON_RENAMED] = {FI_ECONNRESET, "the peer has another address"},
	[XDPFAB_REASON_CANCELLED] = {FI_ECANCELED, "cancelled"},
	[XDPFAB_REASON_NO_EVENTS] = {FI_ENORX, "the peer takes no events"},
	[XDPFAB_REASON_NO_MESSAGES] = {FI_ENORX, "the peer takes no messages"},
	[XDPFAB_REASON_REFUSED_KEYLESS] = {FI_ECONNREFUSED, "the peer wants an authorization key"},
	[XDPFAB_REASON_REFUSED_KEY] = {FI_ECONNREFUSED, "the peer has no authorization key"},
	[XDPFAB_REASON_REFUSED_OTHER_KEY] = {FI_ECONNREFUSED, "the peer has another authorization key"},
	[XDPFAB_REASON_UNPROVEN] = {FI_ECONNREFUSED, "the peer does not prove its authorization key"},
	[XDPFAB_REASON_REJECTED] = {FI_ECONNREFUSED, "the peer's program has rejected the connection"},
	[XDPFAB_REASON_UNANSWERED] = {FI_ETIMEDOUT, "the peer's program has not answered"},
	[XDPFAB_REASON_HOST_LOST] = {FI_ENETDOWN, "the daemon that has the interface has ended"},
};

static const struct meaning *meaning(unsigned status, unsigned reason)
{
	static const struct meaning other = {FI_EOTHER, "unknown"};
	const size_t n = sizeof statuses / sizeof *statuses, m = sizeof reasons / sizeof *reasons;

	if (status < n && statuses[status].error != 0)
		return &statuses[status];
	if (reason < m && reasons[reason].error != 0)
		return &reasons[reason];
	return &other;
}

int error_of(const struct xdpfab_completion *c)
{
	return c->outcome == XDPFAB_SUCCESS ? 0 : meaning(c->status, c->reason)->error;
}

/* prov_errno is outcome << 16 | status << 8 | reason. */
const char *error_text(int prov_errno, char *buf, size_t len)
{
	static const char *const outcomes[] = {"", "it never ran", "it ran at most once",
					       "it ran at most once, and the peer's memory may be new"};
	static _Thread_local char own[160];
	const struct meaning *m = meaning(prov_errno >> 8 & 0xff, prov_errno & 0xff);
	const unsigned outcome = (unsigned)prov_errno >> 16 & 3;

	if (buf == NULL || len == 0) {
		buf = own;
		len = sizeof own;
	}
	snprintf(buf, len, outcome == 0 ? "%s%s" : "%s: %s", m->text, outcomes[outcome]);
	return buf;
}
