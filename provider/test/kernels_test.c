/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of kernels.c. `run` applies what it reads to memory and prints the outcomes,
 * which the caller compares with those of Go's package atomic; the others are whole
 * tests.
 */
#include <fenv.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <string.h>
#include <sys/mman.h>

#include "../kernels.h"
#include "../word.h"
#include "check.h"

/* A request to `run`; the target, operands and comparands follow, `count` elements
 * each. */
struct request {
	uint8_t form, op, datatype;
	uint8_t away; /* bytes that the target is beyond a multiple of 32 */
	uint32_t count;
};

/* buffer returns n bytes in memory that has no others, `away` bytes beyond a multiple of
 * 32. */
static uint8_t *buffer(size_t n, size_t away)
{
	uint8_t *p;

	CHECK(posix_memalign((void **)&p, 32, n + away) == 0, "no memory");
	memset(p, 0, n + away);
	return p + away;
}

static void release(uint8_t *p, size_t away)
{
	free(p - away);
}

static void receive(uint8_t *p, size_t n)
{
	CHECK(fread(p, 1, n, stdin) == n, "the request is cut off");
}

/* run prints for each request the target and the results; those of a base operation are
 * zeros. Operands, comparands and results are misaligned by a byte. */
static int run(void)
{
	struct request r;

	while (fread(&r, sizeof r, 1, stdin) == 1) {
		const size_t n = r.count * kernel_size(r.datatype), away = r.away;
		kernel_fn *kernel = kernel_of(r.form, r.op, r.datatype);
		uint8_t *target = buffer(n, away), *operand = buffer(n, 1), *compare = buffer(n, 1), *result = buffer(n, 1);
		const bool compares = r.form == KERNEL_COMPARE, reads = r.op == FI_ATOMIC_READ;

		CHECK(kernel, "form %d op %d datatype %d: no kernel", r.form, r.op, r.datatype);
		receive(target, n);
		receive(operand, n);
		receive(compare, n);
		kernel(target, reads ? NULL : operand, compares ? compare : NULL, r.form == KERNEL_BASE ? NULL : result,
		       r.count);
		fwrite(target, 1, n, stdout);
		fwrite(result, 1, n, stdout);
		release(target, away);
		release(operand, 1);
		release(compare, 1);
		release(result, 1);
	}
	return 0;
}

/* list prints which kernels there are, and the sizes and alignments. */
static int list(void)
{
	for (uint32_t datatype = 0; datatype < 300; datatype++) {
		if (kernel_size(datatype))
			printf("%u %zu %zu\n", datatype, kernel_size(datatype), kernel_align(datatype));
		for (uint32_t form = 0; form < 10; form++)
			for (uint32_t op = 0; op < 300; op++)
				if (kernel_of(form, op, datatype))
					printf("%u %u %u\n", form, op, datatype);
	}
	return 0;
}

enum { ROUNDS = 20000 };

static struct {
	u128 wide;
	uint64_t eight;
	uint32_t four;
	uint16_t two[2];
	uint8_t one[4];
	_Alignas(16) float half[6]; /* complex, the middle one aligned as a part alone */
	_Alignas(32) long double _Complex pair;
	_Alignas(16) float odd[12]; /* complex, at 1 and 6 aligned as parts alone */
	double real;
} shared;

static void add(uint32_t datatype, void *at, const void *operand)
{
	kernel_of(KERNEL_BASE, FI_SUM, datatype)(at, operand, NULL, NULL, 1);
}

/* use_locked runs all kernels on an element that the CPU cannot exchange, and uses it as
 * others do that hold its lock. TSan tells of a kernel that goes without. */
static void use_locked(uint32_t datatype, float *at)
{
	const float numbers[4] = {1, 0, 1, 0};
	float result[4];
	struct word_lock *l;

	for (uint32_t op = 0; op < KERNEL_OPS; op++)
		for (uint32_t form = 0; form < KERNEL_FORMS; form++) {
			kernel_fn *kernel = kernel_of(form, op, datatype);

			if (kernel)
				kernel(at, numbers, form == KERNEL_COMPARE ? numbers : NULL, form ? result : NULL, 1);
		}
	l = word_lock(at);
	at[0] = at[1] = 0;
	word_unlock(l);
}

/* add_locked adds likewise: nothing is lost. */
static void add_locked(void)
{
	struct word_lock *l = word_lock(shared.half + 1);

	shared.half[1]++;
	shared.half[2]++;
	word_unlock(l);
}

static void *adder(void *unused)
{
	const u128 wide = ((u128)1 << 64) + 1;
	const uint64_t eight = 1;
	const uint32_t four = 3;
	const uint16_t two[2] = {1, 2};
	const uint8_t one[4] = {1, 2, 3, 4};
	const float _Complex half[2] = {1, 2};
	const long double _Complex pair = 2;
	const double real = 0.5;

	for (int i = 0; i < ROUNDS; i++) {
		add(FI_UINT128, &shared.wide, &wide);
		add(FI_INT64, &shared.eight, &eight);
		add(FI_UINT32, &shared.four, &four);
		kernel_of(KERNEL_BASE, FI_SUM, FI_UINT16)(shared.two, two, NULL, NULL, 2);
		kernel_of(KERNEL_BASE, FI_SUM, FI_INT8)(shared.one, one, NULL, NULL, 4);
		kernel_of(KERNEL_BASE, FI_SUM, FI_FLOAT_COMPLEX)(shared.half + 1, half, NULL, NULL, 2);
		add_locked();
		if (kernel_size(FI_LONG_DOUBLE_COMPLEX))
			add(FI_LONG_DOUBLE_COMPLEX, &shared.pair, &pair);
		if (i % 16 == 0) {
			use_locked(FI_FLOAT_COMPLEX, shared.odd + 1);
			use_locked(FI_DOUBLE_COMPLEX, shared.odd + 6);
		}
		add(FI_DOUBLE, &shared.real, &real);
	}
	return unused;
}

/* Two threads add to the same elements and no addition is lost. */
static void add_by_two(bool native)
{
	pthread_t other;
	const uint32_t all = 2 * ROUNDS;

	word_native16 = native;
	memset(&shared, 0, sizeof shared);
	CHECK(pthread_create(&other, NULL, adder, NULL) == 0, "no thread");
	adder(NULL);
	CHECK(pthread_join(other, NULL) == 0, "no thread");
	CHECK(shared.wide == all * (((u128)1 << 64) + 1), "native %d", native);
	CHECK(shared.eight == all && shared.four == 3 * all && shared.real == all / 2, "a sum is not exact");
	for (uint32_t i = 0; i < 4; i++)
		CHECK(shared.one[i] == (uint8_t)(all * (i + 1)), "byte %u", i);
	CHECK(shared.two[0] == (uint16_t)all && shared.two[1] == (uint16_t)(2 * all), "words of 2 bytes");
	CHECK(shared.half[1] == (float)(2 * all) && shared.half[2] == (float)all && shared.half[3] == (float)(2 * all),
	      "complex of 4-byte parts");
	if (kernel_size(FI_LONG_DOUBLE_COMPLEX))
		CHECK(shared.pair == 2.0L * all, "complex of long doubles");
}

static int threads(void)
{
	const bool native = word_native16;

	add_by_two(false);
	if (native)
		add_by_two(true);
	printf("%d sums of each, native 16 bytes: %d\n", 2 * ROUNDS, native);
	return 0;
}

#if defined(__x86_64__)

/* What the program has set in its floating-point environment neither kills it nor changes
 * results, and is as it was afterwards. */
static int environment(void)
{
	const uint32_t rough = 0xe000 | 0x8040; /* toward zero, subnormals flushed, all unmasked */
	const uint16_t rough87 = 0xc00;         /* toward zero, 24 bits, all unmasked */
	uint32_t mxcsr = 0;
	uint16_t x87 = 0;
	float infinity, zero = 0, tiny = 1e-45f, sum = tiny;
	double third = 1.0 / 3, seven = 7;
	long double third87 = 1.0L / 3, seven87 = 7, infinity87, zero87 = 0;

	infinity = __builtin_inff();
	infinity87 = infinity;
	const double product = third * seven;
	const long double product87 = third87 * seven87;

	__asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(rough), "m"(rough87) : "memory");
	kernel_of(KERNEL_BASE, FI_PROD, FI_FLOAT)(&infinity, &zero, NULL, NULL, 1);
	kernel_of(KERNEL_BASE, FI_SUM, FI_FLOAT)(&sum, &tiny, NULL, NULL, 1);
	kernel_of(KERNEL_BASE, FI_PROD, FI_DOUBLE)(&third, &seven, NULL, NULL, 1);
	kernel_of(KERNEL_BASE, FI_PROD, FI_LONG_DOUBLE)(&third87, &seven87, NULL, NULL, 1);
	kernel_of(KERNEL_BASE, FI_PROD, FI_LONG_DOUBLE)(&infinity87, &zero87, NULL, NULL, 1);
	__asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(x87) : : "memory");
	feholdexcept(&(fenv_t){0});
	fesetenv(FE_DFL_ENV);
	CHECK(mxcsr == rough && (x87 & 0xf3f) == (rough87 & 0xf3f), "the environment is %x %x", mxcsr, x87);
	CHECK(infinity != infinity && infinity87 != infinity87, "0 * infinity is no NaN");
	CHECK(sum == 2 * tiny, "a subnormal was flushed");
	CHECK(third == product && third87 == product87, "rounded in another way");
	return 0;
}

#else

static int environment(void)
{
	return 0;
}

#endif

/* Reads and comparisons that fail do not write: they work on pages that cannot be
 * written. */
static int readonly(void)
{
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t other[32], result[32];
	int kernels = 0;

	CHECK(page != MAP_FAILED, "no memory");
	memset(page, 0x41, 4096);
	memset(other, 0x42, sizeof other);
	CHECK(mprotect(page, 4096, PROT_READ) == 0, "mprotect");
	for (uint32_t datatype = 0; datatype < KERNEL_DATATYPES; datatype++) {
		kernel_fn *read = kernel_of(KERNEL_FETCH, FI_ATOMIC_READ, datatype);
		kernel_fn *swap = kernel_of(KERNEL_COMPARE, FI_CSWAP, datatype);

		if (!read)
			continue;
		read(page, NULL, NULL, result, 1);
		CHECK(!memcmp(result, page, kernel_size(datatype)), "datatype %u", datatype);
		swap(page, other, other, result, 1);
		CHECK(!memcmp(result, page, kernel_size(datatype)), "datatype %u", datatype);
		kernels += 2;
	}
	printf("%d kernels\n", kernels);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*test)(void);
	} tests[] = {{"run", run}, {"list", list}, {"threads", threads}, {"environment", environment},
	             {"readonly", readonly}};

	for (size_t i = 0; argc == 2 && i < sizeof tests / sizeof *tests; i++)
		if (!strcmp(argv[1], tests[i].name))
			return tests[i].test();
	fprintf(stderr, "usage: kernels_test run|list|threads|environment|readonly\n");
	return 2;
}
