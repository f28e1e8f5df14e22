// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// measured also has the length that a completion tells.
type measured struct {
	outcomes
	length uint64
}

func (r *measured) Complete(s *Submission, c *Completion, later *Later) {
	r.length = c.Length
	r.outcomes.Complete(s, c, later)
}

// A transfer in parts may be longer than fits in Entry.Count: its bytes before and behind
// 4 GiB go to their places. All but its beginning and its end is passed over here, as if
// it had been packed.
func TestTransferBeyondCount(t *testing.T) {
	const begin, total = 1000, 1<<32 + 5000
	memory, err := unix.Mmap(-1, 0, total, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	adopted, err := mr.Adopt(memory)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []wire.Verb{wire.VerbWrite, wire.VerbRead} {
		c := newCable(t, session.Config{Features: wire.FeatureMemory})
		key := uint64(2)
		if _, err := c.nodes[1].table.Register(adopted, mr.Options{Key: &key, Access: mr.RemoteRead | mr.RemoteWrite}); err != nil {
			t.Fatal(err)
		}
		p := c.peer(ethernet())
		c.write(p, 0, 7)
		s, r := &Stream{Elements: total}, &measured{}
		op := c.nodes[0].ring.Claim()
		op.Peer, op.Context, op.Key, op.Offset, op.Flags, op.Result = p.ID(), r, key, 0, 0, nil
		op.Transfer(verb, 0)
		op.SetOperands(nil, nil)
		op.SetStream(s)
		op.Publish()
		var got [][]byte
		feed := func(n int, fill byte) {
			own := bytes.Repeat([]byte{fill}, n)
			part := &Part{Count: uint32(n), Operand: own}
			if verb == wire.VerbRead {
				copy(memory[s.Fed():], own)
				own = make([]byte, n)
				part = &Part{Count: uint32(n), Result: own}
			}
			got = append(got, own)
			s.Feed(part)
		}
		feed(begin, 'a')
		c.idle(100 * time.Millisecond)
		f := s.waits.head
		const left = 4096 + 2000
		f.sent, s.fed = total-left, total-left // passed over
		feed(4096, 'b')                        // across 4 GiB
		feed(left-4096, 'c')
		if o := c.done(&r.outcomes); o.Outcome != Success || r.length != total {
			t.Errorf("%v: %+v of %d bytes, want %d", verb, o, r.length, total)
		}
		for i, at := range []int{0, total - left, total - left + 4096} {
			n := []int{begin, 4096, left - 4096}[i]
			if want := bytes.Repeat([]byte{'a' + byte(i)}, n); !bytes.Equal(got[i], want) || !bytes.Equal(memory[at:at+n], want) {
				t.Errorf("%v: the bytes from %d on are others", verb, at)
			}
		}
		if i := bytes.IndexByte(memory[begin:2*begin], 'b'); i >= 0 {
			t.Errorf("%v: byte %d is one of the end", verb, begin+i)
		}
		clear(memory[:begin])
		clear(memory[total-left:])
	}
}
