/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <stdio.h>
#include <string.h>

enum { DEEPEST = 16 }; /* objects and arrays in one another that the daemon's texts never reach */

static const char *blank(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
		at++;
	return at;
}

/* The functions that skip return where a value ends, NULL if it is none. */
static const char *skip_text(const char *at, const char *end)
{
	for (at++; at < end; at++) {
		if (*at == '"')
			return at + 1;
		if (*at == '\\')
			at++;
	}
	return NULL;
}

static const char *skip(const char *at, const char *end, int depth);

static const char *skip_list(const char *at, const char *end, int depth)
{
	const bool object = *at == '{';
	const char last = object ? '}' : ']';

	at = blank(at + 1, end);
	if (at < end && *at == last)
		return at + 1;
	while (at < end) {
		if (object) {
			if (*at != '"')
				return NULL;
			at = skip_text(at, end);
			at = at == NULL ? NULL : blank(at, end);
			if (at == NULL || at == end || *at != ':')
				return NULL;
			at = blank(at + 1, end);
		}
		at = skip(at, end, depth + 1);
		at = at == NULL ? NULL : blank(at, end);
		if (at == NULL || at == end || (*at != ',' && *at != last))
			return NULL;
		if (*at == last)
			return at + 1;
		at = blank(at + 1, end);
	}
	return NULL;
}

static const char *skip(const char *at, const char *end, int depth)
{
	const char *from = at;

	if (at == end || depth > DEEPEST)
		return NULL;
	if (*at == '"')
		return skip_text(at, end);
	if (*at == '{' || *at == '[')
		return skip_list(at, end, depth);
	while (at < end && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *at) != NULL && *at != 0)
		at++; /* a number, true, false or null */
	return at == from ? NULL : at;
}

struct json json_of(const char *text, size_t len)
{
	const char *end = text + len, *from = blank(text, end), *to = skip(from, end, 0);

	return to == NULL ? (struct json){NULL, NULL} : (struct json){from, to};
}

struct json json_member(struct json object, const char *name)
{
	const struct json none = {NULL, NULL};
	const size_t len = strlen(name);
	const char *at, *end = object.to;

	if (object.from == NULL || *object.from != '{')
		return none;
	at = blank(object.from + 1, end);
	while (*at == '"') { /* the object has been skipped, so it is well-formed */
		const char *key = at + 1, *behind = skip_text(at, end);
		const char *value = blank(blank(behind, end) + 1, end);
		const char *after = skip(value, end, 1);

		if (after == NULL)
			return none;
		if ((size_t)(behind - 1 - key) == len && memcmp(key, name, len) == 0)
			return (struct json){value, after};
		at = blank(after, end);
		if (*at == ',')
			at = blank(at + 1, end);
	}
	return none;
}

bool json_next(struct json *array, struct json *element)
{
	const char *after;

	if (array->from == NULL || (*array->from != '[' && *array->from != ','))
		return false;
	element->from = blank(array->from + 1, array->to);
	after = skip(element->from, array->to, 1);
	if (after == NULL)
		return false;
	element->to = after;
	array->from = blank(after, array->to);
	return true;
}

uint64_t json_number(struct json v, uint64_t otherwise)
{
	uint64_t n = 0;

	if (v.from == NULL || v.from == v.to)
		return otherwise;
	for (const char *at = v.from; at < v.to; at++) {
		const uint64_t digit = (uint64_t)(unsigned char)*at - '0';

		if (digit > 9 || n > (UINT64_MAX - digit) / 10)
			return otherwise;
		n = n * 10 + digit;
	}
	return n;
}

/* Writes a character as UTF-8. */
static size_t utf8(unsigned c, char *to)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	to[0] = (char)(0xe0 | c >> 12);
	to[1] = (char)(0x80 | (c >> 6 & 63));
	to[2] = (char)(0x80 | (c & 63));
	return 3;
}

/* Reads the escape behind a backslash. Halves of surrogate pairs become question marks:
 * only texts for people could have them. */
static const char *escape(const char *at, const char *end, char *to, size_t *len)
{
	static const char from[] = "nrtbf", into[] = "\n\r\t\b\f";
	const char *found = strchr(from, *at);
	unsigned c;

	*len = 1;
	if (*at == 'u' && end - at > 4 && sscanf((char[]){at[1], at[2], at[3], at[4], 0}, "%x", &c) == 1) {
		*len = utf8(c >= 0xd800 && c < 0xe000 ? '?' : c, to);
		return at + 5;
	}
	*to = found != NULL && *found != 0 ? into[found - from] : *at;
	return at + 1;
}

size_t json_text(struct json v, char *to, size_t room)
{
	size_t n = 0;

	if (room == 0)
		return 0;
	if (v.from != NULL && *v.from == '"') {
		const char *at = v.from + 1, *end = v.to - 1;

		while (at < end) {
			char c[4] = {*at};
			size_t len = 1;

			at = *at == '\\' && at + 1 < end ? escape(at + 1, end, c, &len) : at + 1;
			if (n + len >= room)
				break;
			memcpy(to + n, c, len);
			n += len;
		}
	}
	to[n] = 0;
	return n;
}

bool json_quote(const char *text, char *to, size_t room)
{
	size_t n = 0;

	if (room < 3)
		return false;
	to[n++] = '"';
	for (; *text != 0; text++) {
		const unsigned char c = (unsigned char)*text;

		if (n + 8 > room)
			return false;
		if (c == '"' || c == '\\')
			to[n++] = '\\';
		if (c < 0x20)
			n += (size_t)sprintf(to + n, "\\u%04x", c);
		else
			to[n++] = (char)c;
	}
	to[n++] = '"';
	to[n] = 0;
	return true;
}
