/* SPDX-License-Identifier: Apache-2.0
 *
 * Enough of JSON to read what a daemon says, which is well-formed: a text that is not is read
 * as one that says less, and never beyond its end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"

static const char *space(const char *p) { return p + strspn(p, " \t\r\n"); }

/* The end of a string, behind its quote. */
static const char *skip_text(const char *p) {
	for (p++; *p && *p != '"'; p++)
		if (*p == '\\' && p[1])
			p++;
	return *p ? p + 1 : p;
}

/* What is behind a value. */
static const char *skip(const char *p) {
	int depth = 0;
	do {
		p = space(p);
		if (*p == '{' || *p == '[')
			depth++, p++;
		else if (*p == '}' || *p == ']')
			depth--, p++;
		else if (*p == ',' || *p == ':')
			p++;
		else if (*p == '"')
			p = skip_text(p);
		else
			p += strcspn(p, ",:]} \t\r\n");
	} while (depth > 0 && *p);
	return space(p);
}

/* The beginning of the first element of an array, or member of an object; NULL for none. */
static const char *first(const char *p, char open) {
	if (p == NULL || *(p = space(p)) != open)
		return NULL;
	p = space(p + 1);
	return *p == '}' || *p == ']' || *p == 0 ? NULL : p;
}

/* The beginning of the next one, from the end of the one before. */
static const char *next(const char *p) { return *p == ',' ? space(p + 1) : NULL; }

const char *json_member(const char *object, const char *name) {
	char is[64];
	for (const char *p = first(object, '{'); p != NULL;) {
		json_text(p, is, sizeof is);
		p = skip(p);
		if (*p++ != ':')
			return NULL;
		if (strcmp(is, name) == 0)
			return space(p);
		p = next(skip(p));
	}
	return NULL;
}

bool json_lists(const char *array, const char *text) {
	char is[64];
	for (const char *p = first(array, '['); p != NULL; p = next(skip(p))) {
		json_text(p, is, sizeof is);
		if (strcmp(is, text) == 0)
			return true;
	}
	return false;
}

uint64_t json_number(const char *value) { return value == NULL ? 0 : strtoull(value, NULL, 10); }

void json_text(const char *value, char *to, size_t room) {
	size_t n = 0;
	const char *p = value != NULL && *value == '"' ? value + 1 : "";
	for (; *p && *p != '"' && n + 1 < room; p++) {
		char c = *p;
		if (c == '\\' && p[1]) {
			c = *++p;
			if (c == 'n' || c == 'r' || c == 't')
				c = ' ';
			else if (c == 'u' && strspn(p + 1, "0123456789abcdefABCDEF") >= 4) {
				char digits[5] = {p[1], p[2], p[3], p[4], 0};
				unsigned long code = strtoul(digits, NULL, 16);
				c = code < 0x80 ? (char)code : '?';
				p += 4;
			}
		}
		to[n++] = c;
	}
	to[n] = 0;
}

int json_quote(const char *text, char *to, size_t room) {
	static const char hex[] = "0123456789abcdef";
	size_t n = 0;
	if (room < 3)
		return -E2BIG;
	to[n++] = '"';
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (n + 8 > room)
			return -E2BIG;
		if (c == '"' || c == '\\')
			to[n++] = '\\', to[n++] = (char)c;
		else if (c < 0x20)
			memcpy(to + n, "\\u00", 4), to[n + 4] = hex[c >> 4], to[n + 5] = hex[c & 15], n += 6;
		else
			to[n++] = (char)c;
	}
	to[n++] = '"', to[n] = 0;
	return 0;
}
