// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"testing"

	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Frames fill the MTU: a write of 1 MiB takes 729 of them at 1500, some 305 at 3498, the
// largest at which a packet lies in one buffer of veth, and 117 at 9000, where it lies in
// three. It is read back, and a message of the same bytes arrives as well. On NICs the
// MTU is 3000, with some 360 frames: igb takes no program above 3046.
func TestVethLargeMTU(t *testing.T) {
	if testnet.Borrowed(t) != nil {
		largeMTU(t, 3000, 350)
		return
	}
	t.Run("MTU 3498", func(t *testing.T) { largeMTU(t, 3498, 300) })
	t.Run("MTU 9000", func(t *testing.T) {
		if _, v := testnet.Kernel(t); !v.AtLeast(kernel.MultiBuffer) {
			t.Skipf("this kernel has no packets of several buffers; it takes %v", kernel.MultiBuffer)
		}
		largeMTU(t, 9000, 117)
	})
}

func largeMTU(t *testing.T, mtu int, least uint64) {
	attr := fi.DomainAttr{Progress: fi.ProgressManual, Threading: fi.ThreadDomain}
	one, other, _ := openVeth(t, testnet.Options{MTU: mtu}, attr, attr)
	if got := one.Interface().MTU; got != mtu {
		t.Fatalf("MTU %d, want %d", got, mtu)
	}
	const size = 1 << 20
	most := 2 * least
	sides := sidesOf(t, one, other, size)
	from, to := sides[0], sides[1]
	data, back, message := make([]byte, size), make([]byte, size), make([]byte, size)
	for i := range data {
		data[i] = byte(i ^ i>>8*7)
	}
	frames := func(d *xdpfab.Domain) uint64 {
		stats, err := d.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return stats["packets_sent"]
	}
	done := func(post error, came func(sent, received int) bool) {
		t.Helper()
		if post != nil {
			t.Fatal(post)
		}
		sent, received := 0, 0
		for !came(sent, received) {
			n, _ := from.collect(t)
			_, k := to.collect(t)
			sent, received = sent+n, received+k
		}
	}
	before := frames(one)
	done(from.ep.Write(&fi.RMA{Buf: data, Dest: from.peer, Key: 1}, 0), func(sent, _ int) bool { return sent == 1 })
	if n := frames(one) - before; n < least || n > most { // some may be sent again
		t.Errorf("the write took %d packets, want %d or some more", n, least)
	}
	before = frames(other)
	done(from.ep.Read(&fi.RMA{Buf: back, Dest: from.peer, Key: 1}, 0), func(sent, _ int) bool { return sent == 1 })
	if n := frames(other) - before; n < least || n > most {
		t.Errorf("the answers of the read took %d packets, want %d or some more", n, least)
	}
	if err := to.ep.ReceiveTagged(&fi.Receive{Buf: message}, 0); err != nil {
		t.Fatal(err)
	}
	before = frames(one)
	done(from.ep.SendTagged(&fi.Message{Buf: data, Dest: from.peer}, 0), func(sent, received int) bool { return sent == 1 && received == 1 })
	if n := frames(one) - before; n < least || n > most {
		t.Errorf("the message took %d packets, want %d or some more", n, least)
	}
	if !bytes.Equal(back, data) || !bytes.Equal(message, data) {
		t.Error("the bytes differ")
	}
}
