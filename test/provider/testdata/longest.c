/* SPDX-License-Identifier: Apache-2.0
 *
 * longest NUMBER PEER-IP PEER-NUMBER sends|takes: one of two sends a message, writes and reads
 * more than 4 GiB. Buffers lie on one another in memory: eight times the same. Each says
 * "ready", and begins with the first line of its input.
 */
#include "fabric.h"

enum { PIECES = 8 };

static const size_t piece = (1ul << 32) / PIECES + 12345, total = PIECES * ((1ul << 32) / PIECES + 12345);
static fi_addr_t peer;
static uint8_t *memory;
static struct iovec iov[PIECES];

static void meet(void)
{
	uint8_t here = 1, there;

	POST(fi_trecv(ep, &there, 1, NULL, peer, 0x3ee7, 0, &there));
	POST(fi_tsend(ep, &here, 1, NULL, peer, 0x3ee7, &here));
	CHECK(take(rxcq).len == 1, "another message");
	take(txcq);
}

/* The completion of what takes as long as it takes. */
static struct fi_cq_tagged_entry finish(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e;
	ssize_t n;

	while ((n = fi_cq_sread(cq, &e, 1, NULL, 1000)) == -FI_EAGAIN)
		;
	CHECK(n == 1, "%zd, %s", n, fi_strerror((int)-n));
	return e;
}

static void sends(uint64_t key)
{
	fill(memory, piece, 1);
	meet();
	POST(fi_sendv(ep, iov, NULL, PIECES, peer, &iov));
	CHECK(finish(txcq).op_context == &iov, "the send");
	fill(memory, piece, 2);
	POST(fi_writev(ep, iov, NULL, PIECES, peer, 0, key, &iov));
	CHECK(finish(txcq).op_context == &iov, "the write");
	memset(memory, 0, piece);
	POST(fi_readv(ep, iov, NULL, PIECES, peer, 0, key, &iov));
	CHECK(finish(txcq).op_context == &iov, "the read");
	check(memory, piece, 2);
	POST(fi_write(ep, memory, 8, NULL, peer, total - 4, key, &iov));
	CHECK(take_error(txcq).err == FI_EINVAL, "beyond the region");
}

static void takes(void)
{
	struct fi_cq_tagged_entry e;

	POST(fi_recvv(ep, iov, NULL, PIECES, FI_ADDR_UNSPEC, &iov));
	meet();
	e = finish(rxcq);
	CHECK(e.len == total && e.op_context == &iov, "%zu bytes, want %zu", e.len, total);
	check(memory, piece, 1);
}

int main(int argc, char **argv)
{
	struct fid_mr *mr;
	uint64_t own, other;

	CHECK(argc == 5, "longest NUMBER PEER-IP PEER-NUMBER sends|takes");
	own = strtoull(argv[1], NULL, 0);
	other = strtoull(argv[3], NULL, 0);
	open_all((int)own);
	CHECK(info->ep_attr->max_msg_size >= total, "%zu", info->ep_attr->max_msg_size);
	peer = peer_at(argv[2], (int)other);
	memory = malloc(piece);
	for (int i = 0; i < PIECES; i++)
		iov[i] = (struct iovec){memory, piece};
	OK(fi_mr_regv(domain, iov, PIECES, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, own, 0, &mr, NULL));
	puts("ready");
	fflush(stdout);
	CHECK(getchar() != EOF, "no input");
	if (strcmp(argv[4], "sends") == 0) {
		sends(other);
		POST(fi_send(ep, NULL, 0, NULL, peer, NULL));
		finish(txcq);
	} else {
		takes();
		POST(fi_recv(ep, NULL, 0, NULL, FI_ADDR_UNSPEC, NULL));
		finish(rxcq); /* serves memory meanwhile */
		check(memory, piece, 2);
	}
	OK(fi_close(&mr->fid));
	close_all();
	puts("ok");
	return 0;
}
