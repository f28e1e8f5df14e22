/* SPDX-License-Identifier: Apache-2.0
 *
 * adder PEER-IP KEY ADDS: adds 1 so many times to the first word of a region of a daemon, and
 * prints what it has then. ADDS of "-" is as many as there is time for until its input ends:
 * then it prints how many these were.
 */
#include <poll.h>
#include <stdbool.h>

#include "fabric.h"

static bool input_ends(void)
{
	struct pollfd p = {.fd = 0, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

int main(int argc, char **argv)
{
	const uint64_t one = 1;
	uint64_t n, key, i, value = 0;
	bool endless;
	fi_addr_t peer;

	CHECK(argc == 4, "adder PEER-IP KEY ADDS");
	open_all(0);
	peer = peer_at(argv[1], 0);
	key = strtoull(argv[2], NULL, 0);
	endless = strcmp(argv[3], "-") == 0;
	n = endless ? UINT64_MAX : strtoull(argv[3], NULL, 0);
	for (i = 0; i < n && !(endless && i % 1000 == 999 && input_ends()); i++)
		POST(fi_inject_atomic(ep, &one, 1, peer, 0, key, FI_UINT64, FI_SUM));
	POST(fi_fetch_atomic(ep, NULL, 1, NULL, &value, NULL, peer, 0, key, FI_UINT64, FI_ATOMIC_READ, NULL));
	take(txcq);
	close_all();
	printf("%lu\n", endless ? i : value);
	return 0;
}
