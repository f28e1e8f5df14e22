/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of JSON: what it reads of texts like the daemon's, and that it stays within
 * texts that are damaged. Arguments: rounds, seed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../json.h"

#define CHECK(ok)                                                                                                      \
	do {                                                                                                           \
		if (!(ok)) {                                                                                           \
			fprintf(stderr, "line %d: %s\n", __LINE__, #ok);                                               \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static const char sample[] =
	"{\"id\":18446744073709551615,\"result\":{\"mac\":[2,0,0,0,0,10],\"name\":\"e\\u00e9\\\"\\\\th\\n\","
	"\"none\":null,\"sizes\":{\"entries\":4096,\"id\":7},\"networks\":[\"10.0.0.1/24\",\"fd00::1/64\"],"
	"\"empty\":{},\"list\":[]},\"error\":\"x\"}";

static void reads(void)
{
	const struct json text = json_of(sample, sizeof sample - 1), result = json_member(text, "result");
	struct json all = json_member(result, "networks"), v;
	char s[64];
	int n = 0;

	CHECK(json_number(json_member(text, "id"), 0) == UINT64_MAX);
	CHECK(json_number(json_member(json_member(result, "sizes"), "entries"), 0) == 4096);
	CHECK(json_number(json_member(result, "name"), 5) == 5 && json_number(json_member(result, "missing"), 6) == 6);
	CHECK(json_text(json_member(result, "name"), s, sizeof s) == 8 && strcmp(s, "e\xc3\xa9\"\\th\n") == 0);
	CHECK(json_text(json_member(result, "name"), s, 3) == 1 && strcmp(s, "e") == 0); /* whole characters */
	CHECK(json_text(json_member(result, "none"), s, sizeof s) == 0 && json_member(text, "resul").from == NULL);
	while (json_next(&all, &v))
		CHECK(json_text(v, s, sizeof s) > 0 && strcmp(s, n++ == 0 ? "10.0.0.1/24" : "fd00::1/64") == 0);
	CHECK(n == 2);
	all = json_member(result, "list");
	CHECK(!json_next(&all, &v) && json_of("{\"a\":1", 6).from == NULL && json_of("", 0).from == NULL);
}

/* Looks at everything in a value. */
static void walk(struct json v, int depth)
{
	static const char *const names[] = {"id", "result", "mac", "name", "sizes",
					    "entries", "networks", "empty", "error"};
	struct json element, list = v;
	char s[32];

	if (v.from == NULL || depth > 8)
		return;
	json_number(v, 0);
	CHECK(json_text(v, s, sizeof s) < sizeof s);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		walk(json_member(v, names[i]), depth + 1);
	for (int n = 0; n < 1000 && json_next(&list, &element); n++)
		walk(element, depth + 1);
}

int main(int argc, char **argv)
{
	const long rounds = argc > 1 ? atol(argv[1]) : 1;

	srand(argc > 2 ? (unsigned)atol(argv[2]) : 1);
	reads();
	for (long i = 0; i < rounds; i++) {
		static const char odd[] = "\"\\{}[],:u0 ";
		size_t n = sizeof sample - 1 - (rand() % 4 == 0 ? (size_t)rand() % (sizeof sample - 1) : 0);
		char *text = malloc(n + 1); /* of its own, so that a byte beyond it is noticed */

		memcpy(text, sample, n);
		for (int changes = rand() % 4; changes > 0 && n > 0; changes--)
			text[(size_t)rand() % n] =
				rand() % 2 == 0 ? odd[(size_t)rand() % (sizeof odd - 1)] : (char)rand();
		text = realloc(text, n == 0 ? 1 : n);
		walk(json_of(text, n), 0);
		free(text);
	}
	puts("ok");
	return 0;
}
