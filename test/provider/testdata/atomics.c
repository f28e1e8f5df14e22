/* SPDX-License-Identifier: Apache-2.0
 *
 * atomics PEER-IP KEY LENGTH ADDS: operations on a region of a daemon, which is at number 0.
 * Prints the last value that a fetch-add has found.
 */
#include "fabric.h"

static fi_addr_t peer;
static uint64_t key, length;

static void done(uint64_t flags)
{
	const struct fi_cq_tagged_entry e = take(txcq);

	CHECK(e.flags == flags && e.op_context == &key, "flags %#lx: want %#lx", (unsigned long)e.flags,
	      (unsigned long)flags);
}

static void fails(int error)
{
	const struct fi_cq_err_entry bad = take_error(txcq);

	CHECK(bad.err == error && bad.op_context == &key, "%s: want %s", fi_strerror(bad.err), fi_strerror(error));
}

static void swaps(void)
{
	uint64_t was = 0, compare = 0, value = 5;

	POST(fi_compare_atomic(ep, &value, 1, NULL, &compare, NULL, &was, NULL, peer, 8, key, FI_UINT64, FI_CSWAP,
			       &key));
	done(FI_ATOMIC | FI_READ);
	CHECK(was == 0, "%lu", was);
	value = 6;
	POST(fi_compare_atomic(ep, &value, 1, NULL, &compare, NULL, &was, NULL, peer, 8, key, FI_UINT64, FI_CSWAP,
			       &key));
	done(FI_ATOMIC | FI_READ);
	POST(fi_fetch_atomic(ep, NULL, 1, NULL, &value, NULL, peer, 8, key, FI_UINT64, FI_ATOMIC_READ, &key));
	done(FI_ATOMIC | FI_READ);
	CHECK(was == 5 && value == 5, "%lu %lu: want 5 and 5", was, value);
	value = 0;
	POST(fi_atomic(ep, &value, 1, NULL, peer, 8, key, FI_UINT64, FI_ATOMIC_WRITE, &key));
	done(FI_ATOMIC | FI_WRITE);
}

/* Many elements at a time, in two places, from and to several buffers. */
static void lists(void)
{
	enum { N = 1000 };
	static uint64_t ones[N], found[N];
	struct fi_ioc from[] = {{ones, 300}, {ones + 300, N - 300}}, into[] = {{found, 700}, {found + 700, N - 700}};
	struct fi_rma_ioc there[] = {{4096, 500, key}, {16384, N - 500, key}};
	struct fi_msg_atomic m = {.msg_iov = from, .iov_count = 2, .addr = peer, .rma_iov = there, .rma_iov_count = 2,
				  .datatype = FI_UINT64, .op = FI_SUM, .context = &key};

	for (int i = 0; i < N; i++)
		ones[i] = (uint64_t)i + 1;
	for (uint64_t round = 0; round < 2; round++) {
		POST(fi_fetch_atomicmsg(ep, &m, into, NULL, 2, FI_COMPLETION));
		done(FI_ATOMIC | FI_READ);
		for (uint64_t i = 0; i < N; i++)
			CHECK(found[i] == round * (i + 1), "element %lu: %lu", i, found[i]);
	}
}

/* Writes and reads, the longest in parts. */
static void transfers(void)
{
	static const size_t lens[] = {1, 32, 33, 80, 81, 4097, 1 << 20, (1 << 20) + 1, 3333333};
	uint8_t *out = malloc(4 << 20), *in = malloc(4 << 20);

	for (unsigned i = 0; i < sizeof lens / sizeof *lens; i++) {
		const size_t n = lens[i];
		struct iovec from[] = {{out, n / 3}, {out + n / 3, n - n / 3}};
		struct fi_rma_iov there[] = {{40960 + i, n / 2, key}, {40960 + i + n / 2, n - n / 2, key}};
		struct fi_msg_rma m = {.msg_iov = from, .iov_count = 2, .addr = peer, .rma_iov = there,
				       .rma_iov_count = 2, .context = &key};

		fill(out, n, i);
		memset(in, 0, n);
		POST(fi_writemsg(ep, &m, FI_COMPLETION));
		done(FI_RMA | FI_WRITE);
		POST(fi_read(ep, in, n, NULL, peer, 40960 + i, key, &key));
		done(FI_RMA | FI_READ);
		check(in, n, i);
		fill(out, n, i + 100);
		POST(fi_write(ep, out, n, NULL, peer, 40960 + i, key, &key));
		done(FI_RMA | FI_WRITE);
		memset(in, 0, n);
		from[0].iov_base = in;
		from[1].iov_base = in + n / 3;
		POST(fi_readmsg(ep, &m, FI_COMPLETION));
		done(FI_RMA | FI_READ);
		check(in, n, i + 100);
	}
	free(out);
	free(in);
}

static void errors(void)
{
	uint64_t value = 1, was;

	POST(fi_write(ep, &value, 8, NULL, peer, 0, key ^ 1, &key));
	fails(FI_ENOKEY);
	POST(fi_write(ep, &value, 8, NULL, peer, length - 4, key, &key));
	fails(FI_EINVAL);
	POST(fi_fetch_atomic(ep, &value, 1, NULL, &was, NULL, peer, 3, key, FI_UINT64, FI_SUM, &key));
	fails(FI_EINVAL);
	CHECK(fi_atomic(ep, &value, 1, NULL, peer, 0, key, FI_DOUBLE, FI_BOR, &key) == -FI_EOPNOTSUPP, "no such one");
	CHECK(fi_inject_write(ep, &value, info->tx_attr->inject_size + 1, peer, 0, key) == -FI_EMSGSIZE, "too long");
	CHECK(fi_write(ep, &value, 8, NULL, 12345, 0, key, &key) == -FI_EINVAL, "no such peer");
}

/* Fetch-adds with many under way. */
static uint64_t adds(uint64_t n)
{
	static uint64_t found[64];
	static const uint64_t one = 1;
	uint64_t most = 0, posted = 0, ended = 0;

	for (; ended < n; ended++) {
		struct fi_cq_tagged_entry e;

		while (posted < n && posted - ended < 64) {
			uint64_t *to = &found[posted % 64];

			POST(fi_fetch_atomic(ep, &one, 1, NULL, to, NULL, peer, 0, key, FI_UINT64, FI_SUM, to));
			posted++;
		}
		e = take(txcq);
		CHECK(e.op_context == &found[ended % 64], "completions are not in order");
		most = *(uint64_t *)e.op_context > most ? *(uint64_t *)e.op_context : most;
	}
	return most;
}

/* An inject has no completion, and counts; a counter can be waited for. */
static void counters(void)
{
	struct fid_cntr *cntr;
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fid_ep *other;
	const uint64_t two = 2;
	uint64_t was = 0;

	OK(fi_cntr_open(domain, &attr, &cntr, NULL));
	OK(fi_endpoint(domain, info, &other, NULL));
	OK(fi_ep_bind(other, &av->fid, 0));
	OK(fi_ep_bind(other, &cntr->fid, FI_WRITE | FI_READ));
	OK(fi_ep_bind(other, &txcq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION));
	OK(fi_ep_bind(other, &rxcq->fid, FI_RECV));
	OK(fi_enable(other));
	POST(fi_inject_atomic(other, &two, 1, peer, 24, key, FI_UINT64, FI_SUM));
	POST(fi_atomic(other, &two, 1, NULL, peer, 24, key, FI_UINT64, FI_SUM, NULL));
	POST(fi_read(other, &was, 8, NULL, peer, 24, key, NULL));
	CHECK(fi_cntr_wait(cntr, 99, 10) == -FI_ETIMEDOUT, "three operations");
	OK(fi_cntr_wait(cntr, 3, SECONDS * 1000));
	CHECK(was == 4 && fi_cntr_read(cntr) == 3 && fi_cntr_readerr(cntr) == 0, "%lu", was);
	POST(fi_read(other, &was, 8, NULL, peer, 24, key ^ 1, NULL));
	CHECK(fi_cntr_wait(cntr, 4, SECONDS * 1000) == -FI_EAVAIL, "an error");
	CHECK(take_error(txcq).err == FI_ENOKEY, "an error, although success is told of by counters alone");
	OK(fi_close(&other->fid));
	OK(fi_close(&cntr->fid));
}

int main(int argc, char **argv)
{
	struct fi_cq_tagged_entry e;
	uint64_t most;

	CHECK(argc == 5, "atomics PEER-IP KEY LENGTH ADDS");
	open_all(0);
	peer = peer_at(argv[1], 0);
	key = strtoull(argv[2], NULL, 0);
	length = strtoull(argv[3], NULL, 0);
	swaps();
	lists();
	transfers();
	errors();
	counters();
	most = adds(strtoull(argv[4], NULL, 0));
	CHECK(fi_cq_sread(txcq, &e, 1, NULL, 20) == -FI_EAGAIN, "a completion too many");
	close_all();
	printf("%lu\n", most);
	return 0;
}
