// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// With an MTU of 3498, veth's largest, buffers have 4 KiB and frames fill them: a write
// of 1 MiB takes some 305 of them, where 1500 bytes take 729. It is read back, and a
// message of the same bytes arrives as well. On NICs the MTU is 3000, with some 360
// frames: igb takes no program above 3046.
func TestVethLargeMTU(t *testing.T) {
	attr := fi.DomainAttr{Progress: fi.ProgressManual, Threading: fi.ThreadDomain}
	mtu := 3498
	if testnet.Borrowed(t) != nil {
		mtu = 3000
	}
	one, other, _ := openVeth(t, testnet.Options{MTU: mtu}, attr, attr)
	if got := one.Interface().MTU; got != mtu {
		t.Fatalf("MTU %d, want %d", got, mtu)
	}
	const size, least, most = 1 << 20, 300, 600
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
		t.Errorf("the write took %d packets, want 305 or some more", n)
	}
	before = frames(other)
	done(from.ep.Read(&fi.RMA{Buf: back, Dest: from.peer, Key: 1}, 0), func(sent, _ int) bool { return sent == 1 })
	if n := frames(other) - before; n < least || n > most {
		t.Errorf("the answers of the read took %d packets, want 305 or some more", n)
	}
	if err := to.ep.ReceiveTagged(&fi.Receive{Buf: message}, 0); err != nil {
		t.Fatal(err)
	}
	before = frames(one)
	done(from.ep.SendTagged(&fi.Message{Buf: data, Dest: from.peer}, 0), func(sent, received int) bool { return sent == 1 && received == 1 })
	if n := frames(one) - before; n < least || n > most {
		t.Errorf("the message took %d packets, want 305 or some more", n)
	}
	if !bytes.Equal(back, data) || !bytes.Equal(message, data) {
		t.Error("the bytes differ")
	}
}
