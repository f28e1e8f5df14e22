/* SPDX-License-Identifier: Apache-2.0
 *
 * adder PEER-IP KEY ADDS: adds 1 so many times to the first word of a region of a daemon, and
 * prints what it has then.
 */
#include "fabric.h"

int main(int argc, char **argv)
{
	const uint64_t one = 1;
	uint64_t n, key, value = 0;
	fi_addr_t peer;

	CHECK(argc == 4, "adder PEER-IP KEY ADDS");
	open_all(0);
	peer = peer_at(argv[1], 0);
	key = strtoull(argv[2], NULL, 0);
	n = strtoull(argv[3], NULL, 0);
	for (uint64_t i = 0; i < n; i++)
		POST(fi_inject_atomic(ep, &one, 1, peer, 0, key, FI_UINT64, FI_SUM));
	POST(fi_fetch_atomic(ep, NULL, 1, NULL, &value, NULL, peer, 0, key, FI_UINT64, FI_ATOMIC_READ, NULL));
	take(txcq);
	close_all();
	printf("%lu\n", value);
	return 0;
}
