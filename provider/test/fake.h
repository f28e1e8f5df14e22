/* SPDX-License-Identifier: Apache-2.0
 *
 * A daemon of a kind: a thread that answers the calls of a program as xdpfabd does, or with
 * texts that are cut or damaged.
 */
#ifndef PROVIDER_FAKE_H
#define PROVIDER_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake {
	long cut;	/* it ends after so many bytes to all of its programs, -1 for never */
	bool in_bytes;	/* it sends each byte by itself */
	int late;	/* ms before it begins to answer a program */
	uint32_t damage; /* seed of what is damaged, 0 for nothing */
	const char *refusal; /* it attaches no program, and this is the errno of the answer, or NULL */
	/* results */
	long said; /* bytes to its programs so far; atomic */
	int attached; /* programs; atomic */
};

/* Serves the control socket of a path until fake_stop, which may be called twice. */
void fake_start(struct fake *f, const char *path);
void fake_stop(void);

/* A number at random below n, of a sequence that a seed begins. */
uint32_t draw(uint32_t *seed, uint32_t n);

#endif
