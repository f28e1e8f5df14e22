/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that a program shares with the daemon which has the interface (xdpfabd), or
 * with another program that lends one: two rings and an arena in one memfd, the segment. The
 * program makes and seals the memfd, hands it over on the control socket, and learns there
 * the numbers of endpoints and peers: docs/sharing.md has the conversation.
 *
 *   0                      struct xdpfab_header, 4096 bytes
 *   4096                   entries of the submission ring, 128 bytes each
 *   + 128 * entries        entries of the completion ring, 64 bytes each
 *   + 64 * entries         the arena: operands, results and extents
 *   + arena                the ring of arrivals: bytes that peers send
 *
 * To post: fill in the entry at (posted % entries), then store posted + 1 with release
 * order; if host_sleeps is not 0 then, exchange it for 0 and send a byte on the doorbell.
 * At most `entries` may be posted beyond `taken`.
 * To complete: load completed with acquire order, read the entries from `seen` on, then
 * store seen. To sleep: store 1 into guest_sleeps, look at completed once more, and wait
 * until the doorbell can be read.
 * To receive: load arrived with acquire order, take the records from `read` on (each begins
 * at a multiple of 64 and may wrap around the end of the ring), then store read; if
 * host_waits is not 0 then, exchange it for 0 and send a byte on the doorbell.
 * A message comes as XDPFAB_ANNOUNCE first. When there is a receive for it, or room to hold
 * it, answer with XDPFAB_ADMIT; then it comes as XDPFAB_BEGIN. Room that is granted with that
 * is for messages that come at once: each takes one of `messages` and, if it is longer than 64
 * bytes, its length in whole 2048 bytes of `bytes`.
 *
 * Everything is little-endian. The layout is that of package internal/share, version 3.
 */
#ifndef XDPFAB_RING_H
#define XDPFAB_RING_H

#include <stdint.h>

#define XDPFAB_MAGIC 0x66706478u /* "xdpf" */
#define XDPFAB_VERSION 3u
#define XDPFAB_PAGE 4096u

/* Positions count entries since the beginning. */
struct xdpfab_header {
	uint32_t magic, version, entries, reserved;
	uint64_t arena; /* bytes */
	uint8_t pad0[40];
	uint64_t posted; /* submission entries filled in; written by the program */
	uint8_t pad1[56];
	uint64_t taken; /* those that the host has copied; written by the host */
	uint8_t pad2[56];
	uint64_t completed; /* completion entries filled in; written by the host */
	uint8_t pad3[56];
	uint64_t seen; /* those that the program has copied; written by the program */
	uint8_t pad4[56];
	uint32_t host_sleeps; /* set by the host; cleared by the side that wakes it */
	uint8_t pad5[60];
	uint32_t guest_sleeps; /* set by the program; cleared likewise */
	uint8_t pad6[60];
	uint64_t arrived; /* bytes of arrivals filled in; written by the host */
	uint8_t pad7[56];
	uint64_t read; /* those that the program has copied; written by the program */
	uint8_t pad8[56];
	uint32_t host_waits; /* for room among the arrivals; set by the host; cleared by the program */
	uint8_t pad9[60];
};

#define XDPFAB_INLINE 80u
#define XDPFAB_INLINE_RESULT 32u

/* A submission entry: one operation. */
struct xdpfab_entry {
	uint64_t cookie; /* comes back with the completion */
	uint64_t key;    /* of the region */
	uint64_t offset; /* bytes, or a virtual address; of a lookup, where in the arena its result goes */
	uint64_t data;   /* with XDPFAB_DATA: of the event at the target */
	uint32_t count;  /* elements; bytes of a transfer; length of the name of a lookup */
	uint32_t incarnation; /* of the region meant, 0 for any */
	uint32_t peer;        /* as the host has numbered it */
	uint8_t verb, op, datatype, flags;
	uint8_t operands[XDPFAB_INLINE]; /* and compare operands behind them, or a struct xdpfab_places */
};

/* In place of the operands, with XDPFAB_OUTSIDE: offsets into the arena. A result of more
 * than XDPFAB_INLINE_RESULT bytes needs it. */
struct xdpfab_places {
	uint64_t operand, compare, result;
	uint64_t extents; /* struct xdpfab_extent, with XDPFAB_EXTENTS */
	uint32_t extent_count;
};

/* Room for messages that are held. */
struct xdpfab_room {
	uint32_t messages, bytes;
};

/* In place of the operands, with XDPFAB_ADMIT. */
struct xdpfab_admission {
	uint64_t identity;  /* of the endpoint, as it was made */
	uint64_t values;    /* of an atomic on a receive: where in the arena what its elements hold is, */
	uint32_t length;    /* if it returns that, in so many bytes, until it comes */
	uint16_t endpoint;  /* for which there is more room */
	uint8_t status;     /* of such an atomic that has to be matched: 0, or why it will fail */
	uint8_t pad0;
	struct xdpfab_room room; /* that there is more */
};

struct xdpfab_extent {
	uint64_t offset, key;
	uint32_t count, reserved; /* elements */
};

enum xdpfab_verb {
	XDPFAB_ATOMIC = 1,
	XDPFAB_FETCH = 2,
	XDPFAB_COMPARE = 3,
	XDPFAB_READ = 10,
	XDPFAB_WRITE = 11,
	XDPFAB_CONNECT = 0xf0, /* completes when the session to the peer is open */
	XDPFAB_WATCH = 0xf1,   /* completes when it has ended */
	XDPFAB_FORGET = 0xf2,  /* the peer is not needed any more; has no completion */
	XDPFAB_LEAVE = 0xf3,   /* ends the watch whose cookie is in key; has no completion */
	XDPFAB_FEED = 0xf5,    /* the next part of the operation with XDPFAB_STREAM whose cookie is in
	                        * key: count elements, with struct xdpfab_places. Its completion says
	                        * that they have been taken and their results are in place, or, if it
	                        * is no success, that the operation has ended without them */
	XDPFAB_SEVER = 0xf6,   /* no other part of the operation whose cookie is in key comes: it
	                        * completes with what is known of it; has no completion itself */
	XDPFAB_ADMIT = 0xf4,   /* struct xdpfab_admission: the message that the session in key has
	                        * announced may come, or with key 0 there is more room; likewise */
};

enum xdpfab_flag {
	XDPFAB_FENCE = 1,
	XDPFAB_OUTSIDE = 2,
	XDPFAB_EXTENTS = 4,
	XDPFAB_DATA = 16,
	XDPFAB_STREAM = 64, /* operands, results and extents come with XDPFAB_FEED; its completion tells its outcome */
};

/* A completion entry. */
struct xdpfab_completion {
	uint64_t cookie;
	uint64_t life;   /* names the process of the target that has answered last, 0 for none */
	uint64_t length; /* bytes of the result, or of the operand if there is none */
	uint32_t reserved;
	uint8_t outcome, status, reason, flags;
	uint8_t result[XDPFAB_INLINE_RESULT]; /* if it has no place in the arena */
};

enum xdpfab_fate {
	XDPFAB_SUCCESS = 0,      /* it ran exactly once */
	XDPFAB_NOT_EXECUTED = 1, /* it never ran and never will */
	XDPFAB_UNKNOWN = 2,      /* it ran at most once */
	XDPFAB_RESTARTED = 3,    /* likewise, and the target's memory may be new */
};

/* A flag of completions: the outcome is XDPFAB_UNKNOWN so far, and another completion with the
 * same cookie tells the outcome when it is known, or that it never will be. Until then the
 * program keeps the place of the result in the arena. */
#define XDPFAB_OPEN 32u

/* A record of the ring of arrivals; `bytes` bytes follow. */
struct xdpfab_arrival {
	uint8_t kind, flags;
	uint16_t endpoint; /* of this program */
	uint32_t bytes;
	uint64_t session; /* whose messages follow one another */
	uint64_t length;  /* of the message, or of the operand or result of the operation */
	uint64_t tag, data;
	uint16_t source; /* endpoint number of the sender */
	uint8_t pad0[6];
	uint8_t mac[6]; /* of the sender, if it has no IP */
	uint8_t has_ip, pad1;
	uint8_t ip[16];
	uint8_t form, op, datatype; /* form: XDPFAB_ATOMIC, _FETCH or _COMPARE: the message is an */
	uint8_t pad2;               /* atomic on the receive, its bytes operands and compare operands */
	uint32_t count;             /* elements */
	uint64_t offset;            /* of the first one in the buffer */
	struct xdpfab_room unused;  /* of XDPFAB_ANNOUNCE: that is given back */
	uint8_t pad3[32];
};

enum xdpfab_arrival_kind {
	XDPFAB_BEGIN = 1,    /* a message begins; the bytes are its first part */
	XDPFAB_PART = 2,     /* the next part */
	XDPFAB_DROP = 3,     /* there are no more parts */
	XDPFAB_END = 4,      /* the session has ended */
	XDPFAB_EVENT = 5,    /* an operation with data has been executed */
	XDPFAB_ANNOUNCE = 6, /* a message wants XDPFAB_ADMIT before it comes; it may be told again */
};

enum xdpfab_arrival_flag {
	XDPFAB_TAGGED = 1,
	XDPFAB_HAS_DATA = 2,
	XDPFAB_MATCHED = 4,  /* it was announced */
	XDPFAB_RETURNS = 8,  /* of an event: the operation returned what it found */
	XDPFAB_TRANSFER = 16, /* of an event: it was a remote read or write */
	XDPFAB_MATCH = 32,    /* of an announced message: it wants a receive, and must not be held */
};

#endif
