/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that a program shares with the daemon which has the interface (xdpfabd), or
 * with another program that lends one: two rings and an arena in one memfd, the segment. The
 * program makes and seals the memfd, hands it over on the control socket, and learns there
 * the numbers of endpoints and peers: docs/attach-protocol.md has the conversation.
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
 * store seen; if one had XDPFAB_COMPLETED_OPEN, wake the host as after a post. To sleep:
 * store 1 into guest_sleeps, look at completed and arrived once more, and wait until the
 * doorbell can be read.
 * To receive: load arrived with acquire order, take the records from `read` on (each begins
 * at a multiple of 64 and may wrap around the end of the ring), then store read; if
 * host_waits is not 0 then, exchange it for 0 and send a byte on the doorbell.
 * Operations on other memory than the host's come as XDPFAB_OPERATE, if the endpoint attends.
 * A message comes as XDPFAB_ANNOUNCE first. When there is a receive for it, or room to hold
 * it, answer with XDPFAB_ADMIT; then it comes as XDPFAB_BEGIN. Room that is granted with that
 * is for messages that come at once: each takes one of `messages` and, if it is longer than 64
 * bytes, its length in whole 2048 bytes of `bytes`.
 *
 * Everything is little-endian, and all that is reserved or padding is 0. The numbers of
 * operations and datatypes are those of libfabric, enum fi_op and enum fi_datatype. The
 * layout is that of package internal/share, version 3; its TestHeaderForC compares each
 * number and each place here with those of the Go sources.
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
#define XDPFAB_NO_LIMIT 0xffffffffu

/* A submission entry: one operation. What an operation does not use is 0. */
struct xdpfab_entry {
	uint64_t cookie; /* comes back with the completion */
	uint64_t key;    /* of the region; of a tagged message or an atomic on a receive, the tag */
	uint64_t offset; /* bytes, or a virtual address; of an atomic on a receive, bytes in its buffer;
	                  * of XDPFAB_LOOKUP and XDPFAB_LIST, where in the arena the result goes */
	uint64_t data;   /* with XDPFAB_DATA */
	uint32_t count;  /* elements; bytes of a transfer or a message; length of the name to look up;
	                  * number of the catalogue entry to list, from 0 on */
	uint32_t incarnation; /* of the region meant, 0 for any */
	uint32_t peer;        /* as the host has numbered it */
	uint8_t verb, op, datatype, flags;
	uint8_t operands[XDPFAB_INLINE]; /* and compare operands behind them, or a message, or the name
	                                  * to look up, or a struct xdpfab_places */
};

/* In place of the operands, with XDPFAB_OUTSIDE: offsets into the arena. A result of more
 * than XDPFAB_INLINE_RESULT bytes needs it. */
struct xdpfab_places {
	uint64_t operand, compare, result;
	uint64_t extents; /* struct xdpfab_extent, with XDPFAB_EXTENTS */
	uint32_t extent_count;
};

/* With XDPFAB_SIGNAL: an atomic without a result on one element of at most 8 bytes, applied
 * behind the write. */
struct xdpfab_signal {
	uint64_t key, offset; /* of the element */
	uint64_t operand;     /* as many of its lower bytes as the element has */
	uint32_t incarnation; /* of the region meant, 0 for any */
	uint8_t op, datatype, pad0[2];
};

/* Room for messages that are held. */
struct xdpfab_room {
	uint32_t messages, bytes;
};

/* In place of the operands, with XDPFAB_ADMIT. */
struct xdpfab_admission {
	uint64_t identity;  /* origin of the endpoint: the random number that it was made with */
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

/* What an entry asks for. A transfer has the datatype XDPFAB_TYPE_UINT8, and the operation
 * XDPFAB_OP_READ or XDPFAB_OP_WRITE. */
enum xdpfab_verb {
	XDPFAB_ATOMIC = 0x01,
	XDPFAB_FETCH = 0x02,   /* returns the values before */
	XDPFAB_COMPARE = 0x03, /* likewise; has compare operands */
	XDPFAB_WAIT = 0x04,    /* with the feature "waits": a compare on one element of at most 8 bytes
	                        * that waits at the target until its condition holds. The last 4 bytes
	                        * of operands say for how many microseconds at most, or
	                        * XDPFAB_NO_LIMIT; XDPFAB_LEAVE recalls it */
	XDPFAB_READ = 0x10,
	XDPFAB_WRITE = 0x11,
	XDPFAB_SIGNAL = 0x12, /* a write with a signal: struct xdpfab_signal in the last 32 bytes of
	                       * operands, so that the others have room for 48 */
	XDPFAB_SEND = 0x20,   /* a message */
	XDPFAB_TAGGED = 0x21, /* a message with a tag */
	XDPFAB_CALL = 0x23,   /* a request that a function answers; offset is the longest reply that
	                       * there is room for, and the result 8 bytes longer */
	XDPFAB_TAGGED_ATOMIC = 0x31, /* the three forms of an atomic on the buffer of a tagged receive; */
	XDPFAB_TAGGED_FETCH = 0x32,  /* those that return something need XDPFAB_MATCH */
	XDPFAB_TAGGED_COMPARE = 0x33,
	XDPFAB_LOOKUP = 0x40, /* a struct xdpfab_region, by its name */
	XDPFAB_LIST = 0x41,   /* likewise, by its number in the catalogue */
	XDPFAB_CONNECT = 0xf0, /* completes when the session to the peer is open */
	XDPFAB_WATCH = 0xf1,   /* completes when it has ended */
	XDPFAB_FORGET = 0xf2,  /* the peer is not needed any more; has no completion */
	XDPFAB_LEAVE = 0xf3,   /* ends the watch whose cookie is in key, or recalls the operation that
	                        * waits at its target, which completes when the target has answered;
	                        * has no completion itself */
	XDPFAB_ADMIT = 0xf4,   /* struct xdpfab_admission: the message that the session in key has
	                        * announced may come, or with key 0 there is more room; likewise */
	XDPFAB_FEED = 0xf5,    /* the next part of the operation with XDPFAB_STREAM whose cookie is in
	                        * key: count elements, with struct xdpfab_places. Its completion says
	                        * that they have been taken and their results are in place, or, if it
	                        * is no success, that the operation has ended without them */
	XDPFAB_SEVER = 0xf6,   /* no other part of the operation whose cookie is in key comes: it
	                        * completes with what is known of it; has no completion itself */
	XDPFAB_ANSWER = 0xf7,  /* answers the XDPFAB_OPERATE of session key whose tag is cookie, with
	                        * count bytes: they are in place of the operands, or, with
	                        * XDPFAB_OUTSIDE, where operand says, and then they must stay until
	                        * the entry is taken; has no completion */
	XDPFAB_FLUSH = 0xf8,   /* completes when all has completed that was posted to the peer before; an
	                        * older daemon refuses it with XDPFAB_STATUS_BAD_COUNT */
	XDPFAB_REPLY = 0xf9,   /* replies to the XDPFAB_REQUEST of session key whose tag is cookie: count
	                        * bytes, as of XDPFAB_ANSWER, of a reply of offset bytes, or fewer if
	                        * the caller has no room for more. opcode is 0, 1 if they are the text
	                        * of an error, or 2 of a panic. datatype is the status, no success if
	                        * the function never had the request. Has no completion */
};

/* Flags of an entry. */
enum xdpfab_flag {
	XDPFAB_FENCE = 1,   /* not before every earlier operation to the peer has completed */
	XDPFAB_OUTSIDE = 2, /* struct xdpfab_places */
	XDPFAB_EXTENTS = 4, /* with XDPFAB_OUTSIDE: the elements lie where the extents say */
	XDPFAB_DATA = 16,   /* data is for an event at the target; of a message, it goes along */
	XDPFAB_MATCH = 32,  /* the message waits for a receive that it matches, and is not held */
	XDPFAB_STREAM = 64, /* operands, results and extents come with XDPFAB_FEED; its completion tells its
	                     * outcome. With the feature "long" count is 0 if a message or a transfer has more
	                     * than 4 GiB less one byte: a uint64_t in place of the operands is its length */
};

/* enum fi_op; from 32 on those that libfabric does not have */
enum xdpfab_op {
	XDPFAB_OP_MIN = 0,
	XDPFAB_OP_MAX = 1,
	XDPFAB_OP_SUM = 2,
	XDPFAB_OP_PROD = 3,
	XDPFAB_OP_LOR = 4,
	XDPFAB_OP_LAND = 5,
	XDPFAB_OP_BOR = 6,
	XDPFAB_OP_BAND = 7,
	XDPFAB_OP_LXOR = 8,
	XDPFAB_OP_BXOR = 9,
	XDPFAB_OP_READ = 10,
	XDPFAB_OP_WRITE = 11,
	XDPFAB_OP_CSWAP = 12,
	XDPFAB_OP_CSWAP_NE = 13,
	XDPFAB_OP_CSWAP_LE = 14,
	XDPFAB_OP_CSWAP_LT = 15,
	XDPFAB_OP_CSWAP_GE = 16,
	XDPFAB_OP_CSWAP_GT = 17,
	XDPFAB_OP_MSWAP = 18,
	XDPFAB_OP_DIFF = 19,
	XDPFAB_OP_SUM_AT_MOST = 32,
	XDPFAB_OP_DIFF_AT_LEAST = 33,
	XDPFAB_OP_SUM_SAT = 34,
	XDPFAB_OP_DIFF_SAT = 35,
	XDPFAB_OP_MSUM = 36,
};

/* enum fi_datatype */
enum xdpfab_datatype {
	XDPFAB_TYPE_INT8 = 0,
	XDPFAB_TYPE_UINT8 = 1,
	XDPFAB_TYPE_INT16 = 2,
	XDPFAB_TYPE_UINT16 = 3,
	XDPFAB_TYPE_INT32 = 4,
	XDPFAB_TYPE_UINT32 = 5,
	XDPFAB_TYPE_INT64 = 6,
	XDPFAB_TYPE_UINT64 = 7,
	XDPFAB_TYPE_FLOAT = 8,
	XDPFAB_TYPE_DOUBLE = 9,
	XDPFAB_TYPE_FLOAT_COMPLEX = 10,
	XDPFAB_TYPE_DOUBLE_COMPLEX = 11,
	XDPFAB_TYPE_LONG_DOUBLE = 12,         /* x87, 16 bytes */
	XDPFAB_TYPE_LONG_DOUBLE_COMPLEX = 13, /* two of them */
	XDPFAB_TYPE_INT128 = 14,
	XDPFAB_TYPE_UINT128 = 15,
	XDPFAB_TYPE_FLOAT16 = 16,
	XDPFAB_TYPE_BFLOAT16 = 17,
	XDPFAB_TYPE_FLOAT8_E4M3 = 18,
	XDPFAB_TYPE_FLOAT8_E5M2 = 19,
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

enum xdpfab_outcome {
	XDPFAB_SUCCESS = 0,      /* it ran exactly once */
	XDPFAB_NOT_EXECUTED = 1, /* it never ran and never will */
	XDPFAB_UNKNOWN = 2,      /* it ran at most once */
	XDPFAB_RESTARTED = 3,    /* likewise, and the target's memory may be new */
};

/* Flags of a completion. All but the last describe the operation. */
enum xdpfab_completed {
	XDPFAB_COMPLETED_READ = 1,     /* it returns what it found in memory */
	XDPFAB_COMPLETED_WRITE = 2,    /* it does not */
	XDPFAB_COMPLETED_TRANSFER = 4, /* a remote read or write */
	XDPFAB_COMPLETED_SEND = 8,     /* a message */
	XDPFAB_COMPLETED_TAGGED = 16,  /* a message with a tag, or an atomic on a receive */
	/* The outcome is XDPFAB_UNKNOWN so far, and another completion with the same cookie
	 * tells it when it is known, or that it never will be. Until then the program keeps
	 * the place of the result in the arena. */
	XDPFAB_COMPLETED_OPEN = 32,
};

/* Why the target has refused an operation. */
enum xdpfab_status {
	XDPFAB_STATUS_OK = 0,
	XDPFAB_STATUS_NO_KEY = 1,        /* unknown, or withdrawn */
	XDPFAB_STATUS_NO_ACCESS = 2,     /* the region does not grant the right */
	XDPFAB_STATUS_OUT_OF_BOUNDS = 3, /* outside the region */
	XDPFAB_STATUS_MISALIGNED = 4,
	XDPFAB_STATUS_UNSUPPORTED = 5, /* no such operation for this datatype */
	XDPFAB_STATUS_BAD_COUNT = 6,   /* or, with XDPFAB_REASON_ALIVE, the entry is no operation */
	XDPFAB_STATUS_NOT_FOUND = 7,   /* no such region in the catalogue */
	XDPFAB_STATUS_NOT_EXECUTED = 8,
	XDPFAB_STATUS_STALE = 9, /* the key belongs to another incarnation than the one meant */
	XDPFAB_STATUS_NO_ROOM = 10, /* of a call: the target holds as many as it may */
};

/* Why the session to the peer has ended, or never began. */
enum xdpfab_reason {
	XDPFAB_REASON_ALIVE = 0,
	XDPFAB_REASON_PEER_SILENT = 1, /* no answer to the beginning of the session */
	XDPFAB_REASON_GAVE_UP = 2,     /* no answer to a request */
	XDPFAB_REASON_PEER_RESTARTED = 3,
	XDPFAB_REASON_FORGOTTEN = 4, /* the peer lives, and no longer knows the session */
	XDPFAB_REASON_PEER_CLOSED = 5,
	XDPFAB_REASON_REFUSED_ENDPOINT = 6, /* the peer has no such endpoint */
	XDPFAB_REASON_REFUSED_FULL = 7,
	XDPFAB_REASON_REFUSED_VERSION = 8,
	XDPFAB_REASON_REFUSED_CLOSING = 9,
	XDPFAB_REASON_PROTOCOL_ERROR = 10,
	XDPFAB_REASON_CLOSED_HERE = 11, /* also: the entry names no peer */
	XDPFAB_REASON_IDLE = 12,
	XDPFAB_REASON_SETTLED = 13,
	XDPFAB_REASON_OUTDATED = 14,
	XDPFAB_REASON_RENAMED = 15,
	XDPFAB_REASON_CANCELLED = 16,
	XDPFAB_REASON_NO_EVENTS = 17,   /* the peer takes no events */
	XDPFAB_REASON_NO_MESSAGES = 18, /* the peer takes no messages */
	XDPFAB_REASON_REFUSED_KEYLESS = 19, /* authorization keys: only the peer's endpoint has one, */
	XDPFAB_REASON_REFUSED_KEY = 20,     /* only this one, */
	XDPFAB_REASON_REFUSED_OTHER_KEY = 21, /* both have, and not the same, */
	XDPFAB_REASON_UNPROVEN = 22,          /* or the peer does not prove that it has it */
	XDPFAB_REASON_REJECTED = 23,   /* a request for a connection: by the peer's program, */
	XDPFAB_REASON_UNANSWERED = 24, /* or not answered */
	XDPFAB_REASON_HOST_LOST = 25,
	XDPFAB_REASON_CROWDED = 26, /* as many operations wait as may, of the program or at the target */
};

/* The result of XDPFAB_LOOKUP and XDPFAB_LIST: a region that the peer serves under a name. */
struct xdpfab_region {
	uint64_t key, size;
	uint8_t access, name_len, datatype, pad0[5]; /* enum xdpfab_access; a hint, XDPFAB_NO_DATATYPE for none */
	uint32_t total;       /* regions in the catalogue */
	uint32_t incarnation; /* of this registration; never 0 */
	char name[64];        /* 0 behind name_len */
	uint64_t base;        /* the offset of its first byte: 0, or a virtual address */
};

enum xdpfab_access {
	XDPFAB_ACCESS_READ = 1,
	XDPFAB_ACCESS_WRITE = 2,
	XDPFAB_ACCESS_KEYED = 4, /* these rights need an authorization key; older nodes do not say so */
};

#define XDPFAB_NO_DATATYPE 0xffu

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
	XDPFAB_OPERATE = 7,  /* count operations on memory that the host has not mapped, for an endpoint
	                      * that attends: struct xdpfab_operation for each */
	XDPFAB_REQUEST = 8,  /* for an endpoint that serves calls: the bytes are the request,
	                      * and length is the longest reply that the caller has room for. The
	                      * program replies with XDPFAB_REPLY, once, in any order */
	XDPFAB_RECALL = 9,   /* requests of the session that no function has begun with are to end
	                      * with XDPFAB_STATUS_NOT_EXECUTED; the others are still replied to */
};

/* An operation that the program is to execute, among those of XDPFAB_OPERATE. Operands and
 * compare operands follow, and then zeros up to a multiple of 8 bytes. The program executes
 * all of a record in their order, each record once, and answers with XDPFAB_ANSWER, of one
 * session in the order in which they came. A program that gives another answer is turned out. */
struct xdpfab_operation {
	uint64_t key, offset;
	uint32_t count;            /* elements; bytes of a transfer */
	uint32_t total;            /* elements, these first, that must lie within the region */
	uint32_t incarnation;      /* of the region meant, 0 for any */
	uint32_t operand, compare; /* bytes that follow */
	uint8_t verb, op, datatype, pad0[9];
};

/* An answer begins with one of these for each operation. The results follow without gaps. */
struct xdpfab_said {
	uint16_t length; /* of the result, bytes: as the operation says if it succeeded, and else 0 */
	uint8_t status, pad0;
};

enum xdpfab_arrival_flag {
	XDPFAB_ARRIVAL_TAGGED = 1,
	XDPFAB_ARRIVAL_DATA = 2,      /* the message has data */
	XDPFAB_ARRIVAL_MATCHED = 4,   /* it was announced */
	XDPFAB_ARRIVAL_RETURNS = 8,   /* of an event: the operation returned what it found */
	XDPFAB_ARRIVAL_TRANSFER = 16, /* of an event: it was a remote read or write */
	XDPFAB_ARRIVAL_MATCH = 32,    /* of an announced message: it wants a receive, and must not be held */
};

#endif
