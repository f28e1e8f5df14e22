// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"math"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A guest's message may be as long as EndpointInfo.MaxMsgSize says. It takes no memory
// here: nobody has written to the sender's, and the receive takes the beginning alone.
func TestLongestMessage(t *testing.T) {
	if os.Getenv("XDPFAB_LONG") == "" {
		t.Skip("takes minutes: make test-long")
	}
	zeros, err := unix.Mmap(-1, 0, math.MaxUint32, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	h := pipeHall(t, fi.DomainAttr{Attach: fi.AttachAlways}, fi.DomainAttr{})
	x, y := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
	dest := h.knows(x, y)
	const held = 1 << 20
	h.ok(errors.Join(y.ep.Receive(&fi.Receive{Buf: make([]byte, held), Context: "got"}, 0),
		x.ep.Send(&fi.Message{Buf: zeros, Dest: dest, Context: "sent"}, 0)))
	h.ok(y.got.Wait(t.Context(), 1)) // without a limit: it takes long on a busy machine
	if c := h.failure(y.got, "got", fi.ErrTruncated); c.Bytes != held || c.Overflow != math.MaxUint32-held {
		t.Errorf("%d bytes and %d more, want %d in all", c.Bytes, c.Overflow, uint32(math.MaxUint32))
	}
	h.ok(x.sent.Wait(t.Context(), 1))
	h.success(x.sent, "sent")
	if err := errors.Join(h.a.CloseAll(), unix.Munmap(zeros)); err != nil {
		t.Error(err)
	}
}
