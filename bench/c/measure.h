/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that the C contestants of the benchmark share: the clock, a histogram of
 * latencies, and the report they print. The program that starts them pins them.
 *
 * A client prints the line "begin" when its warm-up is over, waits for a line of its
 * input or the end of it, prints "end" when it has measured, and then its report, one
 * JSON object on one line. A server prints
 * "ready" and what a client has to know. bench/contest.go reads these lines.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define SECOND 1000000000ull

static inline void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* Nanoseconds of the monotonic clock, which Go's time.Now reads as well. */
static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* Makes standard output flush each line, so that it reaches the reader at once. */
static inline void lines(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}

static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
	(void)signal;
	stopped = 1;
}

static inline void stop_on_signals(void)
{
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
}

/*
 * A log-linear histogram: SUB buckets for each power of two, so that the error of a
 * value is at most 1/SUB of it.
 */
#define SUB_BITS 8
#define SUB (1u << SUB_BITS)
#define BUCKETS (SUB * (64 - SUB_BITS + 1))

struct histogram {
	uint64_t count, min, max;
	uint32_t bucket[BUCKETS];
};

static inline void histogram_reset(struct histogram *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

static inline unsigned bucket_of(uint64_t v)
{
	unsigned exponent;

	if (v < SUB)
		return v;
	exponent = 63 - __builtin_clzll(v) - SUB_BITS;
	return (exponent + 1) * SUB + (unsigned)(v >> exponent) - SUB;
}

/* The middle of a bucket. */
static inline uint64_t value_of(unsigned bucket)
{
	unsigned exponent;

	if (bucket < SUB)
		return bucket;
	exponent = bucket / SUB - 1;
	return ((uint64_t)(bucket % SUB + SUB) << exponent) + (1ull << exponent) / 2;
}

static inline void histogram_add(struct histogram *h, uint64_t v)
{
	h->count++;
	h->bucket[bucket_of(v)]++;
	if (v < h->min)
		h->min = v;
	if (v > h->max)
		h->max = v;
}

static inline uint64_t histogram_quantile(const struct histogram *h, double q)
{
	uint64_t wanted = (uint64_t)(q * (double)h->count), seen = 0;

	for (unsigned i = 0; i < BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen > wanted) {
			uint64_t v = value_of(i);
			return v < h->min ? h->min : v > h->max ? h->max : v;
		}
	}
	return h->max;
}

static inline double cpu_seconds(const struct rusage *r)
{
	return (double)(r->ru_utime.tv_sec + r->ru_stime.tv_sec) +
	       (double)(r->ru_utime.tv_usec + r->ru_stime.tv_usec) / 1e6;
}

/* One measurement, from "begin" to "end". */
struct measurement {
	struct histogram latency;
	struct rusage usage;
	uint64_t begun; /* ns */
};

static inline void measure_begin(struct measurement *m)
{
	histogram_reset(&m->latency);
	puts("begin");
	getchar(); /* the end of the input is as good as a line */
	getrusage(RUSAGE_SELF, &m->usage);
	m->begun = now_ns();
}

/* ops were completed since measure_begin; lost were not. */
static inline void measure_end(const struct measurement *m, uint64_t ops, uint64_t lost)
{
	double seconds = (double)(now_ns() - m->begun) / 1e9;
	const struct histogram *h = &m->latency;
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	puts("end");
	printf("{\"ops\":%llu,\"lost\":%llu,\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"involuntary\":%ld,"
	       "\"latency\":{\"count\":%llu,\"min_ns\":%llu,\"p50_ns\":%llu,\"p90_ns\":%llu,\"p99_ns\":%llu,"
	       "\"p99_9_ns\":%llu,\"p99_99_ns\":%llu,\"max_ns\":%llu}}\n",
	       (unsigned long long)ops, (unsigned long long)lost, seconds,
	       cpu_seconds(&usage) - cpu_seconds(&m->usage), usage.ru_nivcsw - m->usage.ru_nivcsw,
	       (unsigned long long)h->count, (unsigned long long)(h->count ? h->min : 0),
	       (unsigned long long)histogram_quantile(h, 0.5), (unsigned long long)histogram_quantile(h, 0.9),
	       (unsigned long long)histogram_quantile(h, 0.99), (unsigned long long)histogram_quantile(h, 0.999),
	       (unsigned long long)histogram_quantile(h, 0.9999), (unsigned long long)h->max);
}

#endif
