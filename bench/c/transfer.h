/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of messages and of remote memory access, which all peers share, so that
 * they measure the same. A program defines the functions of a transport, and includes
 * this file.
 *
 *	PROGRAM server TEST SIZE ARGUMENT...
 *	PROGRAM client TEST SIZE FLIGHT SECONDS WARMUP ARGUMENT...
 *
 * The arguments are the transport's; the server prints "ready" and those that a client
 * has to add to its own.
 *
 *	trip    tagged messages of SIZE bytes there and back, one at a time (FLIGHT 1)
 *	stream  tagged messages of SIZE bytes one way; FLIGHT of them without a credit
 *	write   writes of SIZE bytes, FLIGHT at a time; each batch is complete at the other
 *	        side before the next one begins
 *	read    reads, in the same way
 *
 * A stream counts messages that the receiver has: it answers each CREDIT messages with
 * a message of 8 bytes.
 */
#ifndef BENCH_TRANSFER_H
#define BENCH_TRANSFER_H

#include <unistd.h>

#include "measure.h"

#define LIMIT (600 * SECOND) /* time after which a server ends by itself */
#define STALL (5 * SECOND)   /* time without progress that is an error */
#define MOST_MESSAGES 64     /* messages without a credit */
#define CREDIT 16            /* messages for a credit */
#define MOST_BATCH 8         /* writes or reads at a time */
#define MOST_MEMORY (8u << 20)
#define MOST_MESSAGE (MOST_MEMORY / MOST_MESSAGES)
#define MOST_ACCESS (MOST_MEMORY / MOST_BATCH)

/* memory receives messages, and is what the client of the other side writes and reads;
 * source has what is sent and written, and takes what is read. */
static uint8_t memory[MOST_MEMORY] __attribute__((aligned(4096)));
static uint8_t source[MOST_MEMORY] __attribute__((aligned(4096)));

/* The transport. Calls that post return 0 if there is no room for another operation. */

/* Opens the server's side, prints "ready", and returns when the client has said hello. */
static void transport_serve(char **argument, int count);
/* Opens the client's side, and returns when hello has been sent. */
static void transport_connect(char **argument, int count);
static int transport_send(const void *buffer, size_t length);
/* The slot, below MOST_MESSAGES, names a posted receive. */
static int transport_receive(void *buffer, size_t length, unsigned slot);
/* The offset is in the server's memory. */
static int transport_write(const void *buffer, uint64_t offset, size_t length);
static int transport_read(void *buffer, uint64_t offset, size_t length);
/* Makes writes that were posted complete at the other side. */
static void transport_flush(void);
static void transport_poll(void);
static void transport_close(void);

/* What a transport tells: slots whose message has arrived, in a ring, and how many
 * writes, reads and flushes have not completed. */
static struct {
	unsigned slot[MOST_MESSAGES], head, tail;
	unsigned accesses;
} told;

static inline void tell_arrival(unsigned slot)
{
	told.slot[told.tail++ % MOST_MESSAGES] = slot;
}

static struct {
	enum { TRIP, STREAM, WRITE, READ } test;
	size_t size;
	unsigned flight;
	uint64_t duration, warmup; /* ns */
} config;

static uint8_t *slot_memory(unsigned slot)
{
	return memory + slot * config.size;
}

static uint64_t heard;              /* ns; when something last happened */
static uint64_t patience = LIMIT;   /* ns; a client's is STALL */

/* Polls, and ends the program if nothing has happened for too long. */
static void poll_or_fail(uint64_t now)
{
	transport_poll();
	if (now - heard > patience)
		die("nothing has happened for %llu s", (unsigned long long)(patience / SECOND));
}

static void receive_or_fail(unsigned slot)
{
	if (!transport_receive(slot_memory(slot), config.size, slot))
		die("no room for a receive");
}

/* Sends, however long there is no room. */
static void send_surely(const void *buffer, size_t length)
{
	while (!transport_send(buffer, length) && !stopped)
		poll_or_fail(now_ns());
}

/* Waits for a message and takes its slot; returns 0 if the program is to stop. It looks
 * at the clock only now and then. */
static int arrival(unsigned *slot)
{
	for (unsigned empty = 1; told.head == told.tail; empty++) {
		if (stopped)
			return 0;
		if (empty & 0xffff)
			transport_poll();
		else
			poll_or_fail(now_ns());
	}
	*slot = told.slot[told.head++ % MOST_MESSAGES];
	return 1;
}

/* The server of messages: returns each, or gives credits. */
static void answer(void)
{
	unsigned slot, slots = config.test == TRIP ? 1 : MOST_MESSAGES;
	uint64_t arrived = 0;

	for (slot = 0; slot < slots; slot++)
		receive_or_fail(slot);
	while (arrival(&slot)) {
		heard = now_ns();
		arrived++;
		receive_or_fail(slot);
		if (config.test == TRIP)
			send_surely(source, config.size);
		else if (arrived % CREDIT == 0)
			send_surely(source, sizeof(uint64_t));
	}
}

static uint64_t trips(struct histogram *h, uint64_t duration)
{
	uint64_t now = now_ns(), end = now + duration, done = 0;
	unsigned slot;

	while ((now < end || !done) && !stopped) {
		uint64_t sent = heard = now;

		receive_or_fail(0);
		send_surely(source, config.size);
		if (!arrival(&slot))
			break;
		now = now_ns();
		histogram_add(h, now - sent);
		done++;
	}
	return done;
}

static unsigned free_messages; /* that may be sent before the next credit */

static void take_credits(void)
{
	while (told.head != told.tail) {
		unsigned slot = told.slot[told.head++ % MOST_MESSAGES];

		heard = now_ns();
		receive_or_fail(slot);
		free_messages += CREDIT;
	}
}

/* Streams until the time is over and a credit has come; returns for how many messages
 * there were credits. */
static uint64_t stream(uint64_t duration)
{
	uint64_t begun = heard = now_ns(), now = begun, end = now + duration, sent = 0;
	unsigned before = config.flight - free_messages, turn = 0;

	while ((now < end || heard == begun) && !stopped) {
		while (free_messages && transport_send(source + turn * config.size, config.size)) {
			turn = (turn + 1) % config.flight;
			free_messages--;
			sent++;
		}
		poll_or_fail(now);
		take_credits();
		now = now_ns();
	}
	return before + sent - (config.flight - free_messages);
}

/* Posts a batch of writes or reads, and waits until it is complete at the other side. */
static void access_batch(void)
{
	for (unsigned i = 0; i < config.flight; i++) {
		size_t offset = i * config.size;

		while (!(config.test == WRITE ? transport_write(source + offset, offset, config.size) :
						transport_read(source + offset, offset, config.size)))
			poll_or_fail(now_ns());
	}
	transport_flush();
	while (told.accesses)
		poll_or_fail(now_ns());
	heard = now_ns();
}

/* There is a latency only of operations that are alone in their batch. */
static uint64_t accesses(struct histogram *h, uint64_t duration)
{
	uint64_t end = now_ns() + duration, done = 0;

	for (heard = now_ns(); (heard < end || !done) && !stopped; done += config.flight) {
		uint64_t begun = heard;

		access_batch();
		if (config.flight == 1)
			histogram_add(h, heard - begun);
	}
	return done;
}

static uint64_t drive(struct histogram *h, uint64_t duration)
{
	switch (config.test) {
	case TRIP:
		return trips(h, duration);
	case STREAM:
		return stream(duration);
	default:
		return accesses(h, duration);
	}
}

static void client(void)
{
	static struct measurement m;

	patience = STALL;
	free_messages = config.flight;
	if (config.test == STREAM)
		for (unsigned i = 0; i < config.flight / CREDIT; i++)
			receive_or_fail(i);
	drive(&m.latency, config.warmup);
	measure_begin(&m);
	uint64_t done = drive(&m.latency, config.duration);
	if (!done)
		die("stopped before anything was done");
	measure_end(&m, done, 0);
}

/* Makes progress for the accesses of the client, which nothing here tells of, as no
 * message arrives. */
static void serve_memory(void)
{
	unsigned slot;

	while (arrival(&slot))
		;
}

static uint64_t number(const char *text, uint64_t low, uint64_t high, const char *what)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10);

	if (*end || end == text || v < low || v > high)
		die("%s %s: want %llu to %llu", what, text, (unsigned long long)low, (unsigned long long)high);
	return v;
}

static void configure_test(char **argument)
{
	static const char *const names[] = {"trip", "stream", "write", "read"};
	unsigned i = 0;

	while (i < 4 && strcmp(argument[0], names[i]))
		i++;
	if (i == 4)
		die("test %s: want trip, stream, write or read", argument[0]);
	config.test = i;
	config.size = number(argument[1], 8, i < WRITE ? MOST_MESSAGE : MOST_ACCESS, "size");
}

static void configure_client(char **argument)
{
	double seconds = atof(argument[1]), warmup = atof(argument[2]);

	switch (config.test) {
	case TRIP:
		config.flight = number(argument[0], 1, 1, "messages in flight");
		break;
	case STREAM:
		config.flight = number(argument[0], 2 * CREDIT, MOST_MESSAGES, "messages in flight");
		if (config.flight % CREDIT)
			die("messages in flight %s: want a multiple of %d", argument[0], CREDIT);
		break;
	default:
		config.flight = number(argument[0], 1, MOST_BATCH, "operations at a time");
	}
	if (seconds <= 0 || seconds > 600 || warmup <= 0 || warmup > 600)
		die("%s seconds after a warm-up of %s: want more than 0, up to 600", argument[1], argument[2]);
	config.duration = (uint64_t)(seconds * SECOND);
	config.warmup = (uint64_t)(warmup * SECOND);
}

int main(int count, char **argument)
{
	lines();
	stop_on_signals();
	memset(source, 1, sizeof(source)); /* so that each page is there before it is needed */
	memset(memory, 2, sizeof(memory));
	heard = now_ns();
	if (count >= 4 && !strcmp(argument[1], "server")) {
		configure_test(argument + 2);
		transport_serve(argument + 4, count - 4);
		if (config.test < WRITE)
			answer();
		else
			serve_memory();
	} else if (count >= 7 && !strcmp(argument[1], "client")) {
		configure_test(argument + 2);
		configure_client(argument + 4);
		transport_connect(argument + 7, count - 7);
		client();
	} else {
		die("usage: %s server trip|stream|write|read SIZE ARGUMENT...\n"
		    "       %s client trip|stream|write|read SIZE FLIGHT SECONDS WARMUP ARGUMENT...", argument[0], argument[0]);
	}
	transport_close();
	return 0;
}

#endif
