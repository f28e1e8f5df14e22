/* SPDX-License-Identifier: Apache-2.0
 *
 * messages NUMBER PEER-IP PEER-NUMBER: two of these exchange messages of many lengths, both
 * ways at a time, and messages with tags, and operate on the memory of each other. Each
 * says "ready", and begins with the first line of its input.
 */
#include "fabric.h"

static const size_t lengths[] = {0,	 1,	63,	 64,	      65,	     80,	    81,
				 4095,	 4096,	4097,	 65536,	      (1 << 20) - 1, 1 << 20,	    (1 << 20) + 1,
				 5 << 20, 9000000};

enum { LENGTHS = sizeof lengths / sizeof *lengths, LONGEST = 9000000 };

static fi_addr_t peer;
static uint8_t *out, *in;

static void expect(const struct fi_cq_tagged_entry *e, uint64_t flags, size_t len, void *context)
{
	CHECK(e->flags == flags && e->len == len && e->op_context == context,
	      "flags %#lx, %zu bytes, context %p: want %#lx, %zu, %p",
	      (unsigned long)e->flags, e->len, e->op_context, (unsigned long)flags, len, context);
}

/* Each sends a message, and takes that of the other. */
static void swap(unsigned i, uint64_t kind)
{
	const size_t n = lengths[i];
	struct fi_cq_tagged_entry e;

	fill(out, n, i);
	memset(in, 0xee, n);
	if (kind == FI_MSG) {
		POST(fi_recv(ep, in, n, NULL, FI_ADDR_UNSPEC, &in[0]));
		POST(fi_senddata(ep, out, n, NULL, i, peer, &out[0]));
	} else {
		POST(fi_trecv(ep, in, n, NULL, peer, 0xabc0 + i, 0, &in[0]));
		POST(fi_tsenddata(ep, out, n, NULL, i, peer, 0xabc0 + i, &out[0]));
	}
	e = take(rxcq);
	expect(&e, FI_RECV | kind | FI_REMOTE_CQ_DATA, n, in);
	CHECK(e.data == i && (kind == FI_MSG || e.tag == 0xabc0 + i), "data %lu, tag %#lx", e.data, e.tag);
	check(in, n, i);
	e = take(txcq);
	CHECK(e.flags == (FI_SEND | kind) && e.op_context == out, "flags %#lx", (unsigned long)e.flags);
}

/* Tags with bits that do not count, in the order of posting; the buffer of an inject can be
 * used again at once. */
static void tags(void)
{
	uint64_t got[4] = {0}, value;
	struct fi_cq_tagged_entry e;

	POST(fi_trecv(ep, &got[0], 8, NULL, FI_ADDR_UNSPEC, 0x10, 0x0f, &got[0]));
	POST(fi_trecv(ep, &got[1], 8, NULL, FI_ADDR_UNSPEC, 0x10, 0x0f, &got[1]));
	POST(fi_trecv(ep, &got[2], 8, NULL, FI_ADDR_UNSPEC, 0x20, 0, &got[2]));
	for (value = 1; value <= 4; value++) {
		static const uint64_t order[] = {0, 0x20, 0x17, 0x1a, 0x99};
		uint64_t sent = value;

		POST(fi_tinject(ep, &sent, 8, peer, order[value]));
		sent = 77;
	}
	for (int i = 0; i < 3; i++) {
		e = take(rxcq);
		CHECK(e.flags == (FI_RECV | FI_TAGGED) && e.len == 8, "flags %#lx", (unsigned long)e.flags);
	}
	CHECK(got[0] == 2 && got[1] == 3 && got[2] == 1, "%lu %lu %lu", got[0], got[1], got[2]);
	POST(fi_trecv(ep, &got[3], 4, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &got[3]));
	CHECK(take_error(rxcq).err == FI_ETRUNC, "8 bytes into 4");
	CHECK(got[3] == 4, "%lu", got[3]);
}

/* A message that waits is peeked at, claimed and taken; one that is not there is not found. */
static void peeks(void)
{
	struct fi_msg_tagged m = {.addr = FI_ADDR_UNSPEC, .tag = 0x55, .context = &m};
	struct iovec iov;
	uint64_t sent = 9, got = 0;
	const time_t end = time(NULL) + SECONDS;
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry bad;
	ssize_t n;

	POST(fi_tinject(ep, &sent, 8, peer, 0x55));
	for (;;) {
		OK(fi_trecvmsg(ep, &m, FI_PEEK | FI_CLAIM));
		n = fi_cq_read(rxcq, &e, 1);
		if (n == 1)
			break;
		CHECK(n == -FI_EAVAIL && fi_cq_readerr(rxcq, &bad, 0) == 1 && bad.err == FI_ENOMSG, "%zd", n);
		CHECK(time(NULL) < end, "no message");
	}
	CHECK(e.len == 8 && e.tag == 0x55 && e.op_context == &m, "%zu bytes", e.len);
	iov = (struct iovec){&got, 8};
	m.msg_iov = &iov;
	m.iov_count = 1;
	OK(fi_trecvmsg(ep, &m, FI_CLAIM));
	e = take(rxcq);
	CHECK(got == 9, "%lu", got);
	POST(fi_trecv(ep, in, 8, NULL, FI_ADDR_UNSPEC, 0xdead, 0, in));
	OK(fi_cancel(&ep->fid, in));
	CHECK(take_error(rxcq).err == FI_ECANCELED, "cancelled");
	CHECK(fi_cancel(&ep->fid, in) == -FI_ENOENT, "there is none");
}

/* Returns when the other one has come so far, too. */
static void meet(void)
{
	uint8_t here = 1;

	POST(fi_trecv(ep, in, 1, NULL, peer, 0x3ee7, 0, in));
	POST(fi_tsend(ep, &here, 1, NULL, peer, 0x3ee7, &here));
	take(rxcq);
	take(txcq);
}

/* An atomic on the buffer of the receive with a tag. */
static void combine(enum fi_op op, const uint64_t *values, const uint64_t *compare, uint64_t *found, uint64_t tag)
{
	struct fi_ioc operand = {(void *)(uintptr_t)values, 2}, with = {(void *)(uintptr_t)compare, 2}, result = {found, 2};
	struct fi_rma_ioc there = {.addr = 8, .count = 2, .key = tag};
	struct fi_msg_atomic m = {.msg_iov = &operand, .iov_count = 1, .addr = peer, .rma_iov = &there, .rma_iov_count = 1,
				  .datatype = FI_UINT64, .op = op, .context = found};

	if (compare != NULL)
		POST(fi_compare_atomicmsg(ep, &m, &with, NULL, 1, &result, NULL, 1, FI_TAGGED));
	else if (found != NULL)
		POST(fi_fetch_atomicmsg(ep, &m, &result, NULL, 1, FI_TAGGED));
	else
		POST(fi_atomicmsg(ep, &m, FI_TAGGED));
}

static void receives(void)
{
	static const uint64_t adds[] = {10, 20}, compare[] = {2, 0}, swap[] = {7, 7};
	uint64_t buffers[3][4] = {{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}}, found[2][2];
	struct fi_atomic_attr attr;
	struct fi_cq_tagged_entry e;

	for (uint64_t i = 0; i < 2; i++)
		POST(fi_trecv(ep, buffers[i], 32, NULL, peer, 0xc0 + i, 0, buffers[i]));
	meet();
	combine(FI_SUM, adds, NULL, found[0], 0xc0);
	combine(FI_CSWAP, swap, compare, found[1], 0xc1);
	combine(FI_SUM, adds, NULL, NULL, 0xc2); /* it waits for its receive */
	for (int i = 0; i < 3; i++)
		take(txcq);
	CHECK(found[0][0] == 2 && found[0][1] == 3 && found[1][0] == 2 && found[1][1] == 3, "what was found");
	for (int i = 0; i < 2; i++) {
		e = take(rxcq);
		CHECK(e.op_context == buffers[i] && e.len == 16, "%zu bytes", e.len);
	}
	meet();
	POST(fi_trecv(ep, buffers[2], 32, NULL, peer, 0xc2, 0, buffers[2]));
	CHECK(take(rxcq).op_context == buffers[2], "the receive that came late");
	for (int i = 0; i < 3; i += 2)
		CHECK(buffers[i][0] == 1 && buffers[i][1] == 12 && buffers[i][2] == 23 && buffers[i][3] == 4, "sums");
	CHECK(buffers[1][1] == 7 && buffers[1][2] == 3, "%lu, %lu", buffers[1][1], buffers[1][2]);
	OK(fi_query_atomic(domain, FI_UINT64, FI_SUM, &attr, FI_TAGGED | FI_FETCH_ATOMIC));
	CHECK(attr.count >= 64 && attr.count < 256 && attr.size == 8, "%zu elements: want what a frame carries", attr.count);
}

/* Memory of malloc, with the number as its key. */
static void memory(uint64_t own, uint64_t other)
{
	enum { ADDS = 100, BYTES = 2000000, AT = 4096, LENGTH = AT + BYTES };
	uint8_t *mine = calloc(1, LENGTH);
	const uint64_t one = 1;
	uint64_t was = 0, value;
	struct fid_mr *mr, *again;

	OK(fi_mr_reg(domain, mine, LENGTH, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, own, 0, &mr, NULL));
	CHECK(fi_mr_key(mr) == own, "%lu", fi_mr_key(mr));
	CHECK(fi_mr_reg(domain, mine, 8, FI_REMOTE_READ, 0, own, 0, &again, NULL) == -FI_ENOKEY, "the key is in use");
	meet();
	for (uint64_t i = 0; i < ADDS; i++) {
		POST(fi_fetch_atomic(ep, &one, 1, NULL, &was, NULL, peer, 8, other, FI_UINT64, FI_SUM, NULL));
		take(txcq);
		CHECK(was == i, "%lu: want %lu", was, i);
	}
	fill(out, BYTES, (unsigned)own);
	POST(fi_write(ep, out, BYTES, NULL, peer, AT, other, NULL));
	take(txcq);
	memset(in, 0, BYTES);
	POST(fi_read(ep, in, BYTES, NULL, peer, AT, other, NULL));
	take(txcq);
	check(in, BYTES, (unsigned)own);
	POST(fi_write(ep, out, 8, NULL, peer, LENGTH - 4, other, NULL));
	CHECK(take_error(txcq).err == FI_EINVAL, "beyond the region");
	meet();
	memcpy(&value, mine + 8, sizeof value);
	CHECK(value == ADDS, "%lu", value);
	check(mine + AT, BYTES, (unsigned)other);
	OK(fi_close(&mr->fid));
	meet();
	POST(fi_write(ep, out, 8, NULL, peer, 0, other, NULL));
	CHECK(take_error(txcq).err == FI_ENOKEY, "the region is closed");
	free(mine);
}

int main(int argc, char **argv)
{
	CHECK(argc == 4, "messages NUMBER PEER-IP PEER-NUMBER");
	open_all(atoi(argv[1]));
	peer = peer_at(argv[2], atoi(argv[3]));
	out = malloc(LONGEST);
	in = malloc(LONGEST);
	puts("ready");
	fflush(stdout);
	CHECK(getchar() != EOF, "no input");
	for (unsigned i = 0; i < LENGTHS; i++) {
		swap(i, FI_MSG);
		swap(i, FI_TAGGED);
	}
	tags();
	peeks();
	receives();
	memory((uint64_t)atoi(argv[1]), (uint64_t)atoi(argv[3]));
	meet();
	close_all();
	puts("ok");
	return 0;
}
