/* SPDX-License-Identifier: Apache-2.0 */

#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	PAGE = 4096, /* the smallest that there is */
	PROBES = 64, /* pages a system call */
};

/* step returns the size of the word that begins at an address and lies in n bytes. */
static size_t step(const void *at, size_t n)
{
	size_t size = 8;

	while (size > n || ((uintptr_t)at & (size - 1)) != 0)
		size /= 2;
	return size;
}

/* STORE and LOAD move one word of a type. */
#define STORE(word) \
	do { \
		word v; \
		memcpy(&v, from, sizeof v); \
		__atomic_store_n((word *)to, v, __ATOMIC_RELEASE); \
	} while (0)
#define LOAD(word) \
	do { \
		word v = __atomic_load_n((const word *)from, __ATOMIC_ACQUIRE); \
		memcpy(to, &v, sizeof v); \
	} while (0)

static void store_words(uint64_t *to, const char *from, size_t count)
{
	uint64_t v;

	for (size_t i = 0; i < count; i++) {
		memcpy(&v, from + 8 * i, sizeof v);
		__atomic_store_n(to + i, v, __ATOMIC_RELEASE);
	}
}

static void load_words(char *to, const uint64_t *from, size_t count)
{
	uint64_t v;

	for (size_t i = 0; i < count; i++) {
		v = __atomic_load_n(from + i, __ATOMIC_ACQUIRE);
		memcpy(to + 8 * i, &v, sizeof v);
	}
}

void memory_write(void *to, const void *from, size_t n)
{
	for (size_t size; n > 0; to = (char *)to + size, from = (const char *)from + size, n -= size) {
		size = step(to, n);
		switch (size) {
		case 8:
			size = n & ~(size_t)7;
			store_words(to, from, size / 8);
			break;
		case 4: STORE(uint32_t); break;
		case 2: STORE(uint16_t); break;
		default: STORE(uint8_t);
		}
	}
#ifndef __SANITIZE_THREAD__ /* it knows no fences */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

void memory_read(void *to, const void *from, size_t n)
{
	for (size_t size; n > 0; to = (char *)to + size, from = (const char *)from + size, n -= size) {
		size = step(from, n);
		switch (size) {
		case 8:
			size = n & ~(size_t)7;
			load_words(to, from, size / 8);
			break;
		case 4: LOAD(uint32_t); break;
		case 2: LOAD(uint16_t); break;
		default: LOAD(uint8_t);
		}
	}
}

/* pages returns how many pages n bytes touch. */
static size_t pages(uintptr_t at, size_t n)
{
	return n > 0 ? (at % PAGE + n - 1) / PAGE + 1 : 0;
}

/* page returns the first byte of page number i of those that the bytes at `at` touch. */
static uintptr_t page(uintptr_t at, size_t i)
{
	return i > 0 ? (at / PAGE + i) * PAGE : at;
}

bool memory_readable(uintptr_t at, size_t n)
{
	const size_t count = pages(at, n);
	struct iovec far[PROBES];
	char byte[PROBES];

	for (size_t i = 0, k; i < count; i += k) {
		for (k = 0; k < PROBES && i + k < count; k++)
			far[k] = (struct iovec){(void *)page(at, i + k), 1};
		if (process_vm_readv(getpid(), &(struct iovec){byte, k}, 1, far, k, 0) != (ssize_t)k)
			return false;
	}
	return true;
}

/* The kernel has one operation that finds out whether a page can be written and changes
 * nothing, whoever else writes there: an atomic or with 0, which FUTEX_WAKE_OP makes. It
 * wakes nobody but one waiter of that word at most, if the word is 0; waiters look
 * again. */
bool memory_writable(uintptr_t at, size_t n)
{
	static uint32_t nobody;
	const size_t count = pages(at, n);

	for (size_t i = 0; i < count; i++) {
		void *word = (void *)(page(at, i) & ~(uintptr_t)3);

		if (syscall(SYS_futex, &nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, NULL, word,
		            FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0)) < 0)
			return false;
	}
	return true;
}

bool memory_write_sparse(uintptr_t to, const void *from, size_t n)
{
	const struct iovec near = {(void *)(uintptr_t)from, n}, far = {(void *)to, n};

	return n == 0 || process_vm_writev(getpid(), &near, 1, &far, 1, 0) == (ssize_t)n;
}

bool memory_read_sparse(void *to, uintptr_t from, size_t n)
{
	const struct iovec near = {to, n}, far = {(void *)from, n};

	return n == 0 || process_vm_readv(getpid(), &near, 1, &far, 1, 0) == (ssize_t)n;
}

/* A line of /proc/self/maps as it is read: "begin-end rwxp ...". */
struct line {
	uintptr_t bounds[2];
	int field; /* 0, 1: bounds; 2: rights; 3: the rest */
	bool reads, writes;
};

/* take reads the next character of a line, and reports whether its bounds and rights are
 * complete now. */
static bool take(struct line *l, char c)
{
	if (c == '\n') {
		*l = (struct line){.field = 0};
		return false;
	}
	if (l->field < 2) {
		if (c == '-' || c == ' ')
			l->field++;
		else
			l->bounds[l->field] = l->bounds[l->field] << 4 | (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	} else if (l->field == 2) {
		l->reads = l->reads || c == 'r';
		l->writes = l->writes || c == 'w';
		l->field += c == ' ';
		return c == ' ';
	}
	return false;
}

bool memory_mapped(uintptr_t at, size_t n, bool reads, bool writes)
{
	const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	const uintptr_t end = at + n;
	struct line line = {.field = 0};
	char text[PAGE];
	ssize_t got = 0;

	if (fd < 0 || end < at) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (at < end && ((got = read(fd, text, sizeof text)) > 0 || (got < 0 && errno == EINTR)))
		for (ssize_t i = 0; i < got; i++)
			if (take(&line, text[i]) && line.bounds[0] <= at && at < line.bounds[1] && (line.reads || !reads) &&
			    (line.writes || !writes))
				at = line.bounds[1];
	close(fd);
	return at >= end;
}
