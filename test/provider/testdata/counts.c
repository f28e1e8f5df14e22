/* SPDX-License-Identifier: Apache-2.0
 *
 * counts OWN-IP: the counter of a region has what may change the region, also if it returns
 * something: an endpoint operates on a region of its own.
 */
#include "fabric.h"

enum { NUMBER = 140, KEY = 9 };

int main(int argc, char **argv)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
	uint64_t word = 0, one = 1, two = 2, was;
	struct fid_cntr *changes;
	struct fid_mr *mr;
	fi_addr_t to;

	CHECK(argc == 2, "counts OWN-IP");
	open_all(NUMBER);
	OK(fi_cntr_open(domain, &attr, &changes, NULL));
	OK(fi_mr_reg(domain, &word, 8, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
	OK(fi_mr_bind(mr, &changes->fid, FI_REMOTE_WRITE));
	to = peer_at(argv[1], NUMBER);
	POST(fi_fetch_atomic(ep, NULL, 1, NULL, &was, NULL, to, 0, KEY, FI_UINT64, FI_ATOMIC_READ, NULL));
	take(txcq);
	CHECK(fi_cntr_read(changes) == 0, "%lu: a load changes nothing", fi_cntr_read(changes));
	POST(fi_fetch_atomic(ep, &one, 1, NULL, &was, NULL, to, 0, KEY, FI_UINT64, FI_SUM, NULL));
	take(txcq);
	CHECK(fi_cntr_read(changes) == 1, "%lu after a fetch-add", fi_cntr_read(changes));
	POST(fi_compare_atomic(ep, &two, 1, NULL, &one, NULL, &was, NULL, to, 0, KEY, FI_UINT64, FI_CSWAP, NULL));
	take(txcq);
	CHECK(fi_cntr_read(changes) == 2 && word == 2, "%lu after a compare-and-swap", fi_cntr_read(changes));
	POST(fi_atomic(ep, &one, 1, NULL, to, 0, KEY, FI_UINT64, FI_SUM, NULL));
	take(txcq);
	CHECK(fi_cntr_read(changes) == 3, "%lu after an add", fi_cntr_read(changes));
	OK(fi_close(&mr->fid));
	OK(fi_close(&changes->fid));
	close_all();
	printf("ok\n");
	return 0;
}
