/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading of JSON texts, which are left where they are: a value is a piece of its text.
 */
#ifndef XDPFAB_JSON_H
#define XDPFAB_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A value as it stands in a text; from is NULL for none. */
struct json {
	const char *from, *to;
};

/* The first value of a text; none unless it is well-formed as far as it was read. */
struct json json_of(const char *text, size_t len);

/* The member of an object that has a name of ASCII letters, none if there is none. */
struct json json_member(struct json object, const char *name);

/* The elements of an array: each call takes the next one off it, and returns false after
 * the last one. An array is given as a copy of the value. */
bool json_next(struct json *array, struct json *element);

/* The number of a value, or otherwise the default: not negative, and without a fraction. */
uint64_t json_number(struct json v, uint64_t otherwise);

/* The text of a value, without its quotes and escapes, cut to what fits in a buffer.
 * Returns its length, 0 if the value is no text. */
size_t json_text(struct json v, char *to, size_t room);

/* Writes a text with quotes and escapes. Returns false, and writes nothing, unless it fits
 * with a zero behind it. */
bool json_quote(const char *text, char *to, size_t room);

#endif
