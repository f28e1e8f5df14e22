/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of operate.c, regions.c and memory.c.
 */
#include "../operate.h"

#include <errno.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xdpfab/ring.h>

#include "../memory.h"
#include "check.h"

enum { PAGE = 4096, EVERYTHING = 7, WHOLE = 8, RIGHTLESS = 9, PIECES = 10, VIRTUAL = 11 };

static struct regions table;
static uint8_t *pages; /* writable, hole, writable, read only */
static uint8_t whole[256] __attribute__((aligned(64)));
static uint8_t first[12] __attribute__((aligned(16))), second[64] __attribute__((aligned(16)));

static void add(uint64_t key, uint64_t base, uint32_t access, const struct iovec *pieces, size_t count)
{
	struct region *r = calloc(1, sizeof *r);

	CHECK(r, "no memory");
	*r = (struct region){.key = key, .base = base, .access = access, .incarnation = (uint32_t)key + 100};
	CHECK(region_init(r, pieces, count), "region_init");
	CHECK(regions_add(&table, r) == 0, "regions_add");
	CHECK(regions_add(&table, r) == EEXIST, "a key twice");
}

static void make_regions(void)
{
	const uint32_t all = REGION_READ | REGION_WRITE;
	const struct iovec everything = {NULL, SIZE_MAX}, one = {whole, sizeof whole};
	const struct iovec two[] = {{first, sizeof first}, {NULL, 0}, {second, sizeof second}};

	pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED && munmap(pages + PAGE, PAGE) == 0, "no memory");
	CHECK(mprotect(pages + 3 * PAGE, PAGE, PROT_READ) == 0, "mprotect");
	add(EVERYTHING, 0, all, &everything, 1);
	add(WHOLE, 0, all, &one, 1);
	add(RIGHTLESS, 0, REGION_WRITE, &one, 1);
	add(PIECES, 0, all, two, 3);
	add(VIRTUAL, (uintptr_t)whole, all, &one, 1);
	CHECK(regions_find(&table, EVERYTHING)->sparse && !regions_find(&table, WHOLE)->sparse, "sparse");
}

static const uint8_t ones[64] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static uint8_t result[3 * PAGE];

static enum operate_status transfer(uint8_t verb, uint64_t key, uint64_t offset, const void *from, uint32_t count)
{
	const struct operate_request o = {.key = key, .offset = offset, .count = count, .total = count, .verb = verb,
	                                  .operand = from, .operand_bytes = from ? count : 0};
	struct region *touched;

	return operate(&table, &o, result, &touched);
}

/* adds has count elements of uint64 increased by what `ones` says. */
static enum operate_status adds(uint64_t key, uint64_t offset, uint32_t count)
{
	const struct operate_request o = {.key = key, .offset = offset, .count = count, .total = count,
	                                  .verb = XDPFAB_FETCH, .op = FI_SUM, .datatype = FI_UINT64,
	                                  .operand = ones, .operand_bytes = count * sizeof(uint64_t)};
	struct region *touched;

	return operate(&table, &o, result, &touched);
}

#define WANT(status, call) \
	do { \
		const int got = (int)(call); \
		CHECK(got == (status), "%d", got); \
	} while (0)

/* unchanged checks that memory has only zeros. */
static void unchanged(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK(p[i] == 0, "byte %zu is %d", i, p[i]);
}

static void test_checks(void)
{
	struct operate_request o = {.key = WHOLE, .count = 2, .total = 2, .verb = XDPFAB_ATOMIC, .op = FI_SUM,
	                            .datatype = FI_UINT64, .operand = ones, .operand_bytes = 16};
	struct operate_request other;
	struct region *touched = NULL;

	WANT(OPERATE_NO_KEY, adds(6, 0, 1));
	WANT(OPERATE_NO_ACCESS, adds(RIGHTLESS, 0, 1));
	WANT(OPERATE_NO_ACCESS, transfer(XDPFAB_READ, RIGHTLESS, 0, NULL, 0));
	WANT(OPERATE_OUT_OF_BOUNDS, adds(WHOLE, 256, 1));
	WANT(OPERATE_OUT_OF_BOUNDS, adds(WHOLE, UINT64_MAX - 7, 1));
	WANT(OPERATE_OUT_OF_BOUNDS, adds(VIRTUAL, (uintptr_t)whole - 8, 1));
	WANT(OPERATE_OUT_OF_BOUNDS, transfer(XDPFAB_WRITE, WHOLE, 255, ones, 2));
	WANT(OPERATE_OUT_OF_BOUNDS, transfer(XDPFAB_READ, WHOLE, 257, NULL, 0));
	WANT(OPERATE_MISALIGNED, adds(WHOLE, 4, 1));
	WANT(OPERATE_UNSUPPORTED, transfer(0x20, WHOLE, 0, ones, 8));
	WANT(OPERATE_BAD_COUNT, transfer(XDPFAB_WRITE, WHOLE, 0, NULL, 8));
	other = o, other.datatype = 20;
	WANT(OPERATE_UNSUPPORTED, operate(&table, &other, result, &touched));
	other = o, other.verb = XDPFAB_COMPARE;
	WANT(OPERATE_UNSUPPORTED, operate(&table, &other, result, &touched));
	other = o, other.operand_bytes = 8;
	WANT(OPERATE_BAD_COUNT, operate(&table, &other, result, &touched));
	other = o, other.total = 33;
	WANT(OPERATE_OUT_OF_BOUNDS, operate(&table, &other, result, &touched));
	other = o, other.incarnation = WHOLE;
	WANT(OPERATE_STALE, operate(&table, &other, result, &touched));
	other = o, other.verb = XDPFAB_FETCH, other.op = FI_ATOMIC_READ;
	WANT(OPERATE_BAD_COUNT, operate(&table, &other, result, &touched));
	CHECK(!touched, "an operation that fails touches nothing");
	unchanged(whole, sizeof whole);

	other = o, other.total = 32, other.incarnation = WHOLE + 100;
	WANT(OPERATE_OK, operate(&table, &other, result, &touched));
	CHECK(touched->key == WHOLE && !memcmp(whole, ones, 16) && operate_result(&other) == 0, "the sum");
	WANT(OPERATE_OK, adds(VIRTUAL, (uintptr_t)whole + 8, 1));
	CHECK(whole[8] == 2 && !memcmp(result, ones, 8), "a fetch returns what was there");
	other = o, other.verb = XDPFAB_COMPARE, other.op = FI_CSWAP, other.compare = whole, other.compare_bytes = 16,
	other.operand = "abcdefghijklmnop";
	CHECK(operate_result(&other) == 16, "the result of a comparison");
	WANT(OPERATE_OK, operate(&table, &other, result, &touched));
	CHECK(!memcmp(whole, "abcdefghijklmnop", 16) && result[8] == 2, "a comparison");
	WANT(OPERATE_OK, transfer(XDPFAB_WRITE, RIGHTLESS, 3, "xyz", 3));
	WANT(OPERATE_OK, transfer(XDPFAB_READ, WHOLE, 1, NULL, 6));
	CHECK(!memcmp(result, "bcxyzg", 6), "%.6s", (char *)result);
	memset(whole, 0, sizeof whole);
}

/* Elements that lie in two pieces are refused, transfers are not. */
static void test_pieces(void)
{
	WANT(OPERATE_MISALIGNED, adds(PIECES, 0, 2)); /* the second one would begin in the first piece */
	unchanged(first, sizeof first);
	WANT(OPERATE_OK, adds(PIECES, 12, 2));
	CHECK(!memcmp(second, ones, 16), "the second piece");
	WANT(OPERATE_OK, transfer(XDPFAB_WRITE, PIECES, 10, "abcd", 4));
	CHECK(!memcmp(first + 10, "ab", 2) && !memcmp(second, "cd", 2), "a write to two pieces");
	WANT(OPERATE_OK, transfer(XDPFAB_READ, PIECES, 9, NULL, 6));
	CHECK(!memcmp(result, "\0abcd\1", 6), "a read of two pieces");
	WANT(OPERATE_OUT_OF_BOUNDS, transfer(XDPFAB_WRITE, PIECES, 75, "ab", 2));
}

/* Operations on the whole address space end at holes, and have changed nothing then. */
static void test_holes(void)
{
	const uintptr_t at = (uintptr_t)pages;
	uint8_t *from = calloc(2, PAGE);
	struct operate_request read = {.key = EVERYTHING, .offset = at + 3 * PAGE, .count = 2, .total = 2,
	                               .verb = XDPFAB_FETCH, .op = FI_ATOMIC_READ, .datatype = FI_UINT128};
	struct region *touched;

	CHECK(from, "no memory");
	memset(from, 0x77, 2 * PAGE);
	WANT(OPERATE_OUT_OF_BOUNDS, adds(EVERYTHING, 0, 1));
	WANT(OPERATE_OUT_OF_BOUNDS, adds(EVERYTHING, UINT64_MAX - 15, 1));
	WANT(OPERATE_OUT_OF_BOUNDS, adds(EVERYTHING, at + PAGE, 1));
	WANT(OPERATE_OUT_OF_BOUNDS, adds(EVERYTHING, at + PAGE - 8, 2));
	WANT(OPERATE_OUT_OF_BOUNDS, adds(EVERYTHING, at + 3 * PAGE - 8, 2));
	WANT(OPERATE_OUT_OF_BOUNDS, transfer(XDPFAB_WRITE, EVERYTHING, at + PAGE - 5, from, 6));
	WANT(OPERATE_OUT_OF_BOUNDS, transfer(XDPFAB_WRITE, EVERYTHING, at + 2 * PAGE, from, 2 * PAGE));
	WANT(OPERATE_OUT_OF_BOUNDS, transfer(XDPFAB_WRITE, EVERYTHING, 0, from, 1));
	WANT(OPERATE_OUT_OF_BOUNDS, transfer(XDPFAB_READ, EVERYTHING, at + PAGE - 5, NULL, 6));
	WANT(OPERATE_OUT_OF_BOUNDS, transfer(XDPFAB_READ, EVERYTHING, UINT64_MAX - 9, NULL, 8));
	unchanged(pages, PAGE);
	unchanged(pages + 2 * PAGE, 2 * PAGE);

	WANT(OPERATE_OK, adds(EVERYTHING, at + PAGE - 8, 1));
	CHECK(!memcmp(pages + PAGE - 8, ones, 8), "the sum");
	WANT(OPERATE_OK, transfer(XDPFAB_WRITE, EVERYTHING, at + 2 * PAGE + 1, from, PAGE - 1));
	CHECK(pages[2 * PAGE] == 0 && !memcmp(pages + 2 * PAGE + 1, from, PAGE - 1), "the write");
	WANT(OPERATE_OK, transfer(XDPFAB_READ, EVERYTHING, at + 3 * PAGE - 3, NULL, 7));
	CHECK(!memcmp(result, "www\0\0\0\0", 7), "the read");
	memset(result, 0x77, sizeof result);
	WANT(OPERATE_OK, operate(&table, &read, result, &touched));
	unchanged(result, 32);
	WANT(OPERATE_OK, transfer(XDPFAB_WRITE, EVERYTHING, 0, from, 0));
	free(from);
}

/* Whether a region may have holes is seen when it is made. */
static void test_mapped(void)
{
	const uintptr_t at = (uintptr_t)pages;

	CHECK(memory_mapped(at, PAGE, true, true) && !memory_mapped(at, PAGE + 1, true, true), "a hole");
	CHECK(memory_mapped(at + 2 * PAGE, 2 * PAGE, true, false), "two mappings");
	CHECK(!memory_mapped(at + 2 * PAGE, 2 * PAGE, true, true), "one cannot be written");
	CHECK(!memory_mapped(UINTPTR_MAX - 9, 20, false, false), "beyond the end");
	CHECK(memory_mapped((uintptr_t)whole, sizeof whole, true, true) && memory_mapped((uintptr_t)&at, 8, true, true),
	      "data and stack");
	CHECK(memory_readable(at + 2 * PAGE, 2 * PAGE) && !memory_readable(at + PAGE - 1, 2), "readable");
	CHECK(memory_writable(at + 2 * PAGE, PAGE) && !memory_writable(at + 3 * PAGE - 1, 2), "writable");
}

/* Regions come and go at random, and each key finds its own. */
static void test_table(void)
{
	enum { KEYS = 300, STEPS = 100000 };
	struct regions t = {NULL, 0, 0};
	static struct region all[KEYS];
	static bool in[KEYS];
	uint32_t random = 1;
	size_t n = 0;

	for (size_t i = 0; i < KEYS; i++)
		all[i].key = i % 2 ? i : (uintptr_t)&all[i];
	for (int i = 0; i < STEPS; i++) {
		const size_t at = (random = random * 1664525 + 1013904223) >> 8, k = at % KEYS;

		if (at / KEYS % 2) {
			CHECK(regions_add(&t, &all[k]) == (in[k] ? EEXIST : 0), "add");
			n += !in[k];
			in[k] = true;
		} else {
			regions_remove(&t, all[k].key);
			n -= in[k];
			in[k] = false;
		}
		CHECK(t.n == n, "%zu of %zu", t.n, n);
		for (size_t j = 0; i % 64 == 0 && j < KEYS; j++)
			CHECK(regions_find(&t, all[j].key) == (in[j] ? &all[j] : NULL), "key %zu", j);
	}
	regions_release(&t);
	CHECK(!regions_find(&t, 1), "an empty table");
}

/* Copies of every alignment and length are exact. */
static void test_copies(void)
{
	uint8_t from[40], to[48], back[40];

	for (uint8_t i = 0; i < sizeof from; i++)
		from[i] = (uint8_t)(i + 1);
	for (size_t at = 0; at < 8; at++)
		for (size_t n = 0; n <= sizeof from; n++) {
			memset(to, 0, sizeof to);
			memset(back, 0, sizeof back);
			memory_write(to + at, from, n);
			unchanged(to, at);
			CHECK(!memcmp(to + at, from, n), "%zu bytes at %zu", n, at);
			unchanged(to + at + n, sizeof to - at - n);
			memory_read(back, to + at, n);
			CHECK(!memcmp(back, from, n), "%zu bytes at %zu", n, at);
			unchanged(back + n, sizeof back - n);
		}
}

enum { ROUNDS = 20000 };

static struct {
	uint64_t sum;
	uint64_t words[7]; /* each is as a whole one of two values, or a part of them at the ends */
} shared;

static const uint64_t patterns[2] = {0, UINT64_MAX};

static void *writer(void *unused)
{
	uint64_t from[7];

	for (int i = 0; i < ROUNDS; i++) {
		memset(from, i & 1 ? 0xff : 0, sizeof from);
		WANT(OPERATE_OK, transfer(XDPFAB_WRITE, 1, 8 + (uint64_t)(i % 8), from, (uint32_t)(sizeof from - 8)));
		memory_write(shared.words, from, 8);
	}
	return unused;
}

static void *adder(void *unused)
{
	const uint64_t one = 1;
	const struct operate_request o = {.key = 1, .count = 1, .total = 1, .verb = XDPFAB_ATOMIC, .op = FI_SUM,
	                                  .datatype = FI_UINT64, .operand = &one, .operand_bytes = 8};
	struct region *touched;

	for (int i = 0; i < ROUNDS; i++)
		WANT(OPERATE_OK, operate(&table, &o, NULL, &touched));
	return unused;
}

/* Sums are exact while others write next to them, and no word is torn. */
static int threads(void)
{
	const struct iovec piece = {&shared, sizeof shared};
	pthread_t others[2];
	uint64_t seen[7];
	const struct region *r;

	add(1, 0, REGION_READ | REGION_WRITE, &piece, 1);
	r = regions_find(&table, 1);
	CHECK(!r->sparse, "sparse");
	CHECK(!pthread_create(&others[0], NULL, writer, NULL) && !pthread_create(&others[1], NULL, adder, NULL), "threads");
	for (int i = 0; i < ROUNDS; i++) {
		memory_read(seen, shared.words, sizeof seen);
		for (size_t j = 2; j < 6; j++)
			CHECK(seen[j] == patterns[0] || seen[j] == patterns[1], "word %zu is %jx", j, (uintmax_t)seen[j]);
	}
	adder(NULL);
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_join(others[i], NULL), "threads");
	CHECK(shared.sum == 2 * ROUNDS, "%ju", (uintmax_t)shared.sum);
	return 0;
}

static int statuses(void)
{
	printf("ok %d\nno such key %d\nno access %d\nout of bounds %d\nmisaligned %d\nunsupported %d\nbad count %d\n"
	       "stale incarnation %d\n",
	       OPERATE_OK, OPERATE_NO_KEY, OPERATE_NO_ACCESS, OPERATE_OUT_OF_BOUNDS, OPERATE_MISALIGNED,
	       OPERATE_UNSUPPORTED, OPERATE_BAD_COUNT, OPERATE_STALE);
	return 0;
}

static void release(void)
{
	for (uint64_t key = EVERYTHING; key <= VIRTUAL; key++) {
		struct region *r = regions_find(&table, key);

		regions_remove(&table, key);
		free(r);
	}
	CHECK(table.n == 0, "%zu regions are left", table.n);
	regions_release(&table);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "threads"))
		return threads();
	if (argc > 1)
		return statuses();
	make_regions();
	test_checks();
	test_pieces();
	test_holes();
	test_mapped();
	test_table();
	test_copies();
	release();
	return 0;
}
