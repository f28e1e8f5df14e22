// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// borrowing is what a household has of lent queues.
type borrowing struct {
	lending  *lending       // nil where no queue can be lent
	borrower *xdpfab.Domain // another program, which drives a queue
}

// lendOne adds a queue to lend, and reports whether the kernel can.
func lendOne(t *testing.T, attr *fi.DomainAttr) bool {
	_, v := testnet.Kernel(t)
	if !v.AtLeast(kernel.AdoptRings) {
		return false
	}
	attr.Lend = 1
	return true
}

func (b *borrowing) borrowers() int {
	if b.borrower != nil {
		return 1
	}
	return 0
}

// borrows is another program, which drives a queue of the host's. Each of the others adds
// to its memory, and it to theirs.
func (h *household) borrows() {
	h.t.Helper()
	if h.lending == nil {
		return
	}
	h.lending.dial = h.connect
	h.borrower = h.lending.mustBorrow()
	h.lending.endpoint(h.borrower, 30)
	for _, x := range []struct {
		from, to *xdpfab.Domain
		name     string
		region   string // made for it, if the host does not own it
	}{
		{h.b, h.borrower, h.borrower.Name(30), "of the borrower, for the peer"},
		{h.g, h.borrower, h.borrower.Name(30), "of the borrower, for the program"},
		{h.borrower, h.b, h.b.Name(6), "of the peer, for the borrower"},
		{h.borrower, h.g, h.g.Name(20), "of the program, for the borrower"},
		{h.borrower, h.dom, h.dom.Name(0), "words"},
	} {
		if x.to != h.dom {
			must[*mr.Region](h.t)(x.to.NewRegion(x.region, 4096))
		}
		h.load.adds(must[*xdpfab.Peer](h.t)(x.from.Dial(h.t.Context(), x.name)), x.region)
	}
}

// lent checks that the borrower has its queue.
func (h *household) lent() {
	h.t.Helper()
	if all := h.dom.Hosting().LentQueues(); h.borrower != nil && (len(all) != 1 || all[0].State != "lent") {
		h.t.Errorf("queues to lend: %+v", all)
	}
}
