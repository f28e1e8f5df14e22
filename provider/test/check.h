/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROVIDER_CHECK_H
#define PROVIDER_CHECK_H

#include <stdio.h>
#include <stdlib.h>

/* CHECK ends the test unless the condition holds; the rest is printed. */
#define CHECK(condition, ...) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr); \
			exit(1); \
		} \
	} while (0)

#endif
