/* SPDX-License-Identifier: Apache-2.0 */
#include "offer.h"

#include <arpa/inet.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prov.h"

enum { OFFER_MS = 10000 }; /* for each daemon to answer, as one of a crowded node may be late */

static unsigned digit(char c)
{
	static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c == 0 ? NULL : strchr(all, c);

	return at == NULL ? 64 : (unsigned)(at - all);
}

/* Decodes base64, up to the first character that is none. */
static size_t decode(const char *text, char *to, size_t room)
{
	size_t n = 0;
	unsigned bits = 0, have = 0;

	for (; n < room && digit(*text) < 64; text++) {
		bits = bits << 6 | digit(*text);
		have += 6;
		if (have >= 8) {
			have -= 8;
			to[n++] = (char)(bits >> have);
		}
	}
	return n;
}

/* The name of the interface is in a JSON text within the text. */
static void read_name(struct json result, struct offer *o)
{
	char text[4096], info[4096];

	json_text(json_member(result, "interface"), text, sizeof text);
	json_text(json_member(json_of(info, decode(text, info, sizeof info)), "name"), o->name, sizeof o->name);
}

static bool read_network(struct json v, struct network *n)
{
	char text[64], *slash;

	json_text(v, text, sizeof text);
	slash = strchr(text, '/');
	if (slash == NULL)
		return false;
	*slash = 0;
	n->prefix = (unsigned)strtoul(slash + 1, NULL, 10);
	n->family = strchr(text, ':') == NULL ? AF_INET : AF_INET6;
	return inet_pton(n->family, text, n->addr) == 1;
}

bool offer_has(struct json features, const char *name)
{
	char text[32];
	struct json v;

	while (json_next(&features, &v))
		if (json_text(v, text, sizeof text) > 0 && strcmp(text, name) == 0)
			return true;
	return false;
}

static int read_offer(struct json result, struct offer *o)
{
	const struct json sizes = json_member(result, "sizes");
	struct json mac = json_member(result, "mac"), all = json_member(result, "networks"), v;

	read_name(result, o);
	for (size_t i = 0; i < sizeof o->mac && json_next(&mac, &v); i++)
		o->mac[i] = (uint8_t)json_number(v, 0);
	while (o->network_count < MOST_NETWORKS && json_next(&all, &v))
		o->network_count += read_network(v, &o->networks[o->network_count]);
	o->attended = offer_has(json_member(result, "features"), "attended");
	o->longer = offer_has(json_member(result, "features"), "long");
	o->mtu = json_number(json_member(result, "mtu"), 0);
	o->entries = json_number(json_member(sizes, "entries"), 0);
	o->arena = json_number(json_member(sizes, "arena"), 0);
	o->arrivals = json_number(json_member(sizes, "arrivals"), 0);
	o->endpoints = json_number(json_member(result, "endpoints"), 0);
	o->peers = json_number(json_member(result, "peers"), 0);
	return o->name[0] == 0 || o->entries == 0 ? -EPROTO : 0;
}

int offer_ask(struct talk *t, const char *path, int limit, struct offer *o)
{
	struct reply r;
	int error = talk_call(t, "offer", "{}", -1, limit, &r);

	*o = (struct offer){.name = ""};
	snprintf(o->path, sizeof o->path, "%s", path);
	if (error == 0)
		error = read_offer(r.result, o);
	if (error != 0)
		WARN(FABRIC, "daemon at %s: %s\n", path, r.error != 0 ? r.text : "its offer lacks an interface");
	if (r.fd >= 0)
		close(r.fd);
	return error;
}

/* Adds the offer of one daemon, if it makes one. */
static size_t add(struct offer **offers, size_t n, const char *path)
{
	struct talk t;
	struct offer *more;
	int error = talk_open(&t, path, OFFER_MS);

	if (error != 0) {
		WARN(FABRIC, "daemon at %s: %s\n", path, t.why);
		return n;
	}
	more = realloc(*offers, (n + 1) * sizeof **offers);
	if (more != NULL) {
		*offers = more;
		if (offer_ask(&t, path, OFFER_MS, &more[n]) == 0)
			n++;
	}
	talk_close(&t);
	return n;
}

size_t offer_all(struct offer **offers)
{
	const char *path = param_text("control");
	glob_t found = {.gl_pathc = 0};
	size_t n = 0;

	*offers = NULL;
	if (path == NULL)
		path = getenv("XDPFAB_CONTROL");
	if (path != NULL)
		return add(offers, 0, path);
	if (glob("/run/xdpfabd/*.sock", 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			n = add(offers, n, found.gl_pathv[i]);
	globfree(&found);
	return n;
}
