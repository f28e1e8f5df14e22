// SPDX-License-Identifier: Apache-2.0
//
// Prints the frames request-signal*.hex and request-bounded.hex, each as "name: bytes in
// hex", by the tables of docs/wire-format.md alone: it shares no line with the encoder.
// TestSignalFramesOfC compares them.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint8_t frame[1500];
static size_t at;

static void put(uint64_t v, size_t bytes)
{
	for (; bytes > 0; bytes--, v >>= 8)
		frame[at++] = v & 0xff;
}

static void bytes(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put(p[i], 1);
	for (; n % 4 != 0; n++)
		put(0, 1);
}

// The bytes 1, 2, 3 and so on.
static void counting(size_t n)
{
	uint8_t b[256];
	for (size_t i = 0; i < n; i++)
		b[i] = i + 1;
	bytes(b, n);
}

static void all(uint8_t value, size_t n)
{
	uint8_t b[256];
	memset(b, value, n);
	bytes(b, n);
}

static void begin(int ops)
{
	at = 0;
	put(0x13, 1);                                       // version 1, request
	put(0, 1);                                          // flags
	put(2u << 26 | 5u << 20 | 1000u << 6 | 33, 4);      // session: lane, queue, index, tag
	put(0xa1a2a3a4, 4);                                 // epoch
	put(0xfffffffe, 4);                                 // psn
	put(0xfffffffd, 4);                                 // ack
	put(0, 8);                                          // sack
	put(64, 2);                                         // credit
	put(ops, 1);
	put(3, 1);                                          // lane
	put(0, 4);                                          // checksum
}

// CRC32C, a bit at a time.
static uint32_t checksum(void)
{
	uint32_t c = ~0u;
	for (size_t i = 0; i < at; i++) {
		c ^= frame[i];
		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ 0x82f63b78 : c >> 1;
	}
	return ~c;
}

static void end(const char *name)
{
	while (at < 46)
		put(0, 1);
	size_t n = at;
	uint32_t sum = checksum();
	at = 30;
	put(sum, 4);
	printf("%s: ", name);
	for (size_t i = 0; i < n; i++)
		printf("%02x", frame[i]);
	printf("\n");
}

enum { KEY = 1, FAR = 2, COUNT = 4, TOTAL = 8, RUN = 0x10, SHARED = 0x20, INCARNATION = 0x40 }; // flags of a record
enum { UINT8 = 1, UINT64 = 7 };
enum { SUM = 2, WRITE = 11, SUM_AT_MOST = 32, SUM_SAT = 34, DIFF_SAT = 35, MSUM = 36 };

static const uint64_t key = 0x8877665544332211;
static const uint32_t incarnation = 0x5a5b5c5d;

static void record(int verb, int op, int datatype, int flags)
{
	put(verb, 1);
	put(op, 1);
	put(datatype, 1);
	put(flags, 1);
	if (flags & KEY)
		put(key, 8);
	if (flags & INCARNATION)
		put(incarnation, 4);
}

static void signal_of(uint64_t of, uint64_t offset, uint64_t operand, uint32_t meant, int op, int datatype)
{
	put(of, 8);
	put(offset, 8);
	put(operand, 8);
	put(meant, 4);
	put(op, 1);
	put(datatype, 1);
	put(0, 2);
}

// A write with a signal of n bytes, as its count says.
static void write_of(int flags, uint64_t offset, size_t n)
{
	record(0x12, WRITE, UINT8, flags | COUNT);
	put(offset, flags & FAR ? 8 : 4);
	put(n, 4);
	if (flags & TOTAL)
		put(1 << 20, 4);
	counting(n);
}

int main(void)
{
	begin(1);
	write_of(KEY, 64, 11);
	signal_of(key, 8, 1, 0, SUM, UINT64);
	end("request-signal");

	begin(1);
	write_of(KEY | INCARNATION | FAR | TOTAL, (1ull << 33) + 5, 19);
	signal_of(3, 1ull << 40, 0xd8d7d6d5d4d3d2d1, incarnation + 1, WRITE, UINT64);
	end("request-signal-part");

	begin(1);
	write_of(KEY, 4096, 0);
	signal_of(3, 5, 0x7f, 0, SUM, UINT8);
	end("request-signal-alone");

	begin(3);
	write_of(KEY, 64, 11);
	signal_of(3, 5, 0x7f, 0, SUM, UINT8);
	record(0x02, SUM, UINT64, 0);
	put(64, 4);
	counting(8);
	write_of(0, 72, 8);
	signal_of(key, 8, 1, 0, SUM, UINT64);
	end("request-signal-mixed");

	begin(5);
	record(0x03, SUM_AT_MOST, UINT64, KEY | RUN | SHARED);
	put(2, 4);
	counting(8);
	all(0x7f, 8);
	put(64, 4);
	put(72, 4);
	record(0x03, MSUM, UINT64, COUNT);
	put(64, 4);
	put(2, 4);
	counting(16);
	all(0x80, 16);
	record(0x02, SUM_SAT, UINT8, COUNT);
	put(64, 4);
	put(3, 4);
	counting(3);
	record(0x01, DIFF_SAT, UINT64, 0);
	put(64, 4);
	counting(8);
	end("request-bounded");
	return 0;
}
