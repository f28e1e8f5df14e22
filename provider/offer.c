/* SPDX-License-Identifier: Apache-2.0 */
#include "offer.h"

#include <arpa/inet.h>
#include <glob.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prov.h"
#include "wait.h"

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

/* Takes the answer of a daemon, and returns 0 or a negative error. */
static int take(const struct reply *r, const char *path, struct offer *o)
{
	int error = -r->error;

	*o = (struct offer){.name = ""};
	snprintf(o->path, sizeof o->path, "%s", path);
	if (error == 0)
		error = read_offer(r->result, o);
	if (error != 0)
		WARN(FABRIC, "daemon at %s: %s\n", path, r->error != 0 ? r->text : "its offer lacks an interface");
	if (r->fd >= 0)
		close(r->fd);
	return error;
}

int offer_ask(struct talk *t, const char *path, int limit, struct offer *o)
{
	struct reply r;

	talk_call(t, "offer", "{}", -1, limit, &r);
	return take(&r, path, o);
}

/* A daemon that is asked with others. */
struct asked {
	struct call call;
	struct talk talk; /* its fd is -1 if there is none */
	const char *path;
	bool answered, made;
	struct offer offer;
};

static void answered(struct call *call, const struct reply *r)
{
	struct asked *a = (struct asked *)call;

	a->answered = true;
	a->made = take(r, a->path, &a->offer) == 0;
}

static void ask(struct asked *a, const char *path)
{
	a->path = path;
	a->call.done = answered;
	a->answered = talk_open(&a->talk, path) != 0;
	if (a->answered)
		WARN(FABRIC, "daemon at %s: %s\n", path, a->talk.why);
	else
		talk_begin(&a->talk, &a->call, "offer", "{}", -1);
}

/* Whether it goes on to wait: for all, or for the one with a name. */
static bool waits(const struct asked *all, size_t n, const char *name)
{
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		if (all[i].made && name != NULL && strcmp(all[i].offer.name, name) == 0)
			return false;
		any |= !all[i].answered;
	}
	return any;
}

static void hear(struct asked *all, struct pollfd *sockets, size_t n, const char *name)
{
	const int64_t deadline = deadline_of(OFFER_MS);

	while (waits(all, n, name) && left_of(deadline) > 0) {
		for (size_t i = 0; i < n; i++)
			sockets[i] = (struct pollfd){.fd = all[i].answered ? -1 : all[i].talk.fd,
						     .events = talk_events(&all[i].talk)};
		poll(sockets, n, left_of(deadline)); /* the deadline ends the loop, also if it fails for good */
		for (size_t i = 0; i < n; i++)
			if (!all[i].answered)
				talk_step(&all[i].talk);
	}
	for (size_t i = 0; i < n && left_of(deadline) == 0; i++)
		if (!all[i].answered)
			WARN(FABRIC, "daemon at %s: no answer for %d ms: it is stopped, or lacks a CPU; its interface is left out\n",
			     all[i].path, OFFER_MS);
}

size_t offers_of(char *const *paths, size_t count, const char *name, struct offer **offers)
{
	struct asked *all = calloc(count, sizeof *all);
	struct pollfd *sockets = calloc(count, sizeof *sockets);
	size_t n = 0;

	*offers = calloc(count, sizeof **offers);
	if (all != NULL && sockets != NULL && *offers != NULL) {
		for (size_t i = 0; i < count; i++)
			ask(&all[i], paths[i]);
		hear(all, sockets, count, name);
		for (size_t i = 0; i < count; i++) {
			if (all[i].made)
				(*offers)[n++] = all[i].offer;
			talk_close(&all[i].talk);
		}
	}
	free(all);
	free(sockets);
	return n;
}

size_t offer_all(const char *name, struct offer **offers)
{
	char *path = (char *)(uintptr_t)param_text("control");
	glob_t found = {.gl_pathc = 0};
	size_t n = 0;

	*offers = NULL;
	if (path == NULL)
		path = getenv("XDPFAB_CONTROL");
	if (path != NULL)
		return offers_of(&path, 1, name, offers);
	if (glob("/run/xdpfabd/*.sock", 0, NULL, &found) == 0)
		n = offers_of(found.gl_pathv, found.gl_pathc, name, offers);
	globfree(&found);
	return n;
}
