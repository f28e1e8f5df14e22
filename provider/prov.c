/* SPDX-License-Identifier: Apache-2.0 */
#include "prov.h"

struct fi_provider xdpfab_provider = {
	.version = FI_VERSION(0, 1),
	.name = "xdpfab",
	.getinfo = xdpfab_getinfo,
	.fabric = xdpfab_fabric,
};

const char *param_text(const char *name)
{
	char *value = NULL;

	return fi_param_get_str(&xdpfab_provider, name, &value) == 0 ? value : NULL;
}

int param_number(const char *name, int otherwise)
{
	int value;

	return fi_param_get_int(&xdpfab_provider, name, &value) == 0 ? value : otherwise;
}

static void define(const char *name, enum fi_param_type type, const char *help)
{
	fi_param_define(&xdpfab_provider, name, type, "%s", help);
}

static void cleanup(void)
{
}

/* The provider is built with the headers of the oldest libfabric that it supports, and says
 * that it is of the version of the running one, which otherwise passes it over. The running
 * libfabric allocates all structures that it may have made longer. */
__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
	xdpfab_provider.fi_version = fi_version();
	xdpfab_provider.cleanup = cleanup;
	define("control", FI_PARAM_STRING,
	       "Path of the daemon's control socket (default: XDPFAB_CONTROL, or else each of /run/xdpfabd/*.sock)");
	define("iface", FI_PARAM_STRING, "Name of the one interface to use (default: all that have a daemon)");
	define("entries", FI_PARAM_INT, "Operations in flight of a domain: a power of two, at most what the daemon's rule "
					"allows (default: 4096)");
	define("arena", FI_PARAM_INT, "Bytes for operands and results that are under way, likewise (default: 16777216)");
	define("arrivals", FI_PARAM_INT, "Bytes for what peers send, likewise (default: 1048576)");
	define("addr", FI_PARAM_STRING,
	       "ipv4 or ipv6: addresses of that kind come first (default: as the interface has them)");
	define("give_up", FI_PARAM_INT, "Milliseconds without an answer after which a peer counts as lost, up to four hours "
					"(default: as the daemon has it)");
	define("yield", FI_PARAM_INT, "The most looks at empty queues before a program lets others have its CPU for a moment, 0 "
				      "for never (default: 1024)");
	return &xdpfab_provider;
}
