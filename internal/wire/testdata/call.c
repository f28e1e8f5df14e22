// SPDX-License-Identifier: Apache-2.0
//
// Prints the frames request-call*.hex and response-call*.hex, each as "name: bytes in hex",
// by the tables of docs/wire-format.md alone: it shares no line with the encoder.
// TestCallFramesOfC compares them.
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

static void begin(int type, int flags)
{
	at = 0;
	put(0x10 | type, 1);                                // version 1
	put(flags, 1);
	put(2u << 26 | 5u << 20 | 1000u << 6 | 33, 4);      // session: lane, queue, index, tag
	put(0xa1a2a3a4, 4);                                 // epoch
	put(0xfffffffe, 4);                                 // psn
	put(0xfffffffd, 4);                                 // ack
	put(0, 8);                                          // sack
	put(64, 2);                                         // credit
	put(1, 1);                                          // ops
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

enum { REQUEST = 3, RESPONSE = 4, STATUS = 1 };

static void call(size_t n, uint32_t most)
{
	begin(REQUEST, 0);
	put(0x23, 1);
	put(0, 1);    // flags
	put(4711, 2); // source
	put(n, 4);
	put(most, 4);
	counting(n);
}

static void reply(int kind, uint32_t length)
{
	begin(RESPONSE, 0);
	put(length, 4);
	put(kind, 1);
	put(0, 3);
}

int main(void)
{
	call(11, 300);
	end("request-call");

	call(0, 0);
	end("request-call-empty");

	reply(0, 9);
	counting(5);
	end("response-call");

	reply(1, 9);
	bytes((const uint8_t *)"too large", 9);
	end("response-call-failed");

	reply(2, 4);
	end("response-call-panic");

	begin(RESPONSE, STATUS);
	put(1, 2);  // statuses
	put(0, 1);  // of the first record
	put(10, 1); // no room
	end("response-call-refused");
	return 0;
}
