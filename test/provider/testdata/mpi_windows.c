/* SPDX-License-Identifier: Apache-2.0
 *
 * One-sided operations on windows: part of the program mpi.
 */
#include "mpi_common.h"

#include <stdlib.h>
#include <string.h>

enum {
	SLOT = 70001,	/* bytes that each rank puts; an odd number, so that most are unaligned */
	ELEMENTS = 100, /* of an accumulate */
};

struct window {
	MPI_Win win;
	uint8_t *memory; /* of this rank: counters, elements, and a slot for each rank */
	MPI_Aint *base;	 /* of each rank */
	const char *kind;
};

static MPI_Aint counter(const struct window *w, int of, int at)
{
	return w->base[of] + 8 * at;
}

static MPI_Aint elements(const struct window *w, int of)
{
	return w->base[of] + 64;
}

static MPI_Aint slot(const struct window *w, int of, int from)
{
	return elements(w, of) + 8 * ELEMENTS + (MPI_Aint)SLOT * from;
}

static void window_open(struct window *w, char kind)
{
	const MPI_Aint len = 64 + 8 * ELEMENTS + (MPI_Aint)SLOT * ranks;
	MPI_Aint base = 0;

	w->base = room(sizeof *w->base * (size_t)ranks);
	if (kind == 'a') {
		w->kind = "allocated";
		MPI_Win_allocate(len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->memory, &w->win);
	} else {
		w->memory = room((size_t)len);
	}
	if (kind == 'c') {
		w->kind = "created";
		MPI_Win_create(w->memory, len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w->win);
	}
	if (kind == 'd') {
		w->kind = "dynamic";
		MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w->win);
		MPI_Win_attach(w->win, w->memory, len);
		MPI_Get_address(w->memory, &base);
	}
	MPI_Allgather(&base, 1, MPI_AINT, w->base, 1, MPI_AINT, MPI_COMM_WORLD);
	MPI_Win_lock_all(0, w->win);
	memset(w->memory, 0, (size_t)len);
	MPI_Win_sync(w->win);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void window_close(struct window *w, char kind)
{
	MPI_Win_unlock_all(w->win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (kind == 'd')
		MPI_Win_detach(w->win, w->memory);
	MPI_Win_free(&w->win);
	if (kind != 'a')
		free(w->memory);
	free(w->base);
}

static uint64_t fetch_add(const struct window *w, int of, int at, uint64_t n)
{
	uint64_t was = 0;

	MPI_Fetch_and_op(&n, &was, MPI_UINT64_T, of, counter(w, of, at), MPI_SUM, w->win);
	MPI_Win_flush(of, w->win);
	return was;
}

static uint64_t compare_and_swap(const struct window *w, int of, int at, uint64_t want, uint64_t next)
{
	uint64_t was = 0;

	MPI_Compare_and_swap(&next, &want, &was, MPI_UINT64_T, of, counter(w, of, at), w->win);
	MPI_Win_flush(of, w->win);
	return was;
}

/* Everyone adds to a word of every rank: each value is found once. */
static void fetch_adds(const struct window *w)
{
	const uint64_t all = (uint64_t)rounds * (uint64_t)ranks;
	uint64_t found = 0, sum = 0;

	for (int of = 0; of < ranks; of++)
		for (int i = 0; i < rounds; i++)
			found += fetch_add(w, of, 0, 1);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Allreduce(&found, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	check("sum of the values that fetch_and_op has found", sum, (uint64_t)ranks * (all * (all - 1) / 2));
	for (int of = 0; of < ranks; of++)
		check("sum of fetch_and_op", fetch_add(w, of, 0, 0), all);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Everyone counts a word up by compare_and_swap: whoever finds another value tries again. */
static void swaps(const struct window *w)
{
	uint64_t was = 0, now;

	for (int i = 0; i < rounds; i++) {
		while ((now = compare_and_swap(w, 0, 1, was, was + 1)) != was)
			was = now;
		was++;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	check("sum of compare_and_swap", fetch_add(w, 0, 1, 0), (uint64_t)rounds * (uint64_t)ranks);
}

/* Everyone adds to many elements of a rank at a time. */
static void accumulates(const struct window *w)
{
	const int of = ranks - 1;
	uint64_t add[ELEMENTS], got[ELEMENTS];
	const uint64_t shares = (uint64_t)rounds * (uint64_t)ranks * (uint64_t)(ranks + 1) / 2;

	for (int i = 0; i < ELEMENTS; i++)
		add[i] = (uint64_t)(rank + 1) * (uint64_t)(i + 1);
	for (int i = 0; i < rounds; i++) {
		MPI_Accumulate(add, ELEMENTS, MPI_UINT64_T, of, elements(w, of), ELEMENTS, MPI_UINT64_T, MPI_SUM, w->win);
		if (i % 8 == 7)
			MPI_Win_flush(of, w->win);
	}
	MPI_Win_flush(of, w->win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Get_accumulate(add, ELEMENTS, MPI_UINT64_T, got, ELEMENTS, MPI_UINT64_T, of, elements(w, of), ELEMENTS,
			   MPI_UINT64_T, MPI_NO_OP, w->win);
	MPI_Win_flush(of, w->win);
	for (int i = 0; i < ELEMENTS; i++)
		check("sum of accumulate", got[i], shares * (uint64_t)(i + 1));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Everyone puts bytes into a slot of every rank, from an odd address on, and gets them back. */
static void transfers(const struct window *w)
{
	uint8_t *from = room(SLOT), *back = room(SLOT);

	fill(from, rank, SLOT);
	for (int of = 0; of < ranks; of++) {
		MPI_Put(from, 1, MPI_BYTE, of, slot(w, of, rank), 1, MPI_BYTE, w->win);
		MPI_Put(from + 1, SLOT - 1, MPI_BYTE, of, slot(w, of, rank) + 1, SLOT - 1, MPI_BYTE, w->win);
	}
	MPI_Win_flush_all(w->win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(w->win);
	for (int of = 0; of < ranks; of++)
		compare("a byte that was put", w->memory + (slot(w, rank, of) - w->base[rank]), of, SLOT);
	for (int of = 0; of < ranks; of++) {
		memset(back, 0, SLOT);
		MPI_Get(back, SLOT, MPI_BYTE, of, slot(w, of, (rank + 1) % ranks), SLOT, MPI_BYTE, w->win);
		MPI_Win_flush(of, w->win);
		compare("a byte that was got", back, (rank + 1) % ranks, SLOT);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	free(from);
	free(back);
}

/* Rank 1 operates on rank 0, which waits for it. */
static void measure_window(const struct window *w)
{
	const char *names[] = {"fetch_and_op", "compare_and_swap", "accumulate", "put", "get"};

	for (int what = 0; what < 5; what++) {
		for (int i = 0; rank == 1 && i < rounds; i++) {
			const double begin = MPI_Wtime();
			uint64_t word = 1;

			if (what == 0)
				fetch_add(w, 0, 2, 1);
			if (what == 1)
				compare_and_swap(w, 0, 3, (uint64_t)i, (uint64_t)i + 1);
			if (what == 2)
				MPI_Accumulate(&word, 1, MPI_UINT64_T, 0, counter(w, 0, 4), 1, MPI_UINT64_T, MPI_SUM, w->win);
			if (what == 3)
				MPI_Put(&word, 8, MPI_BYTE, 0, counter(w, 0, 5), 8, MPI_BYTE, w->win);
			if (what == 4)
				MPI_Get(&word, 8, MPI_BYTE, 0, counter(w, 0, 5), 8, MPI_BYTE, w->win);
			if (what > 1)
				MPI_Win_flush(0, w->win);
			times[i] = MPI_Wtime() - begin;
		}
		report_of_1(w->kind, names[what]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int at = 2; rank == 1 && at < 5; at++)
		check("sum of what was measured", fetch_add(w, 0, at, 0), (uint64_t)rounds);
}

void window(char kind)
{
	struct window w = {0};

	window_open(&w, kind);
	fetch_adds(&w);
	swaps(&w);
	accumulates(&w);
	transfers(&w);
	measure_window(&w);
	window_close(&w, kind);
}
