// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A target without room for messages holds back their sender, and what it has posted
// behind them; a receive lets it go on. Nothing is lost, and the order stays.
func TestHeldBack(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		for _, order := range []fi.Order{0, fi.OrderNone} {
			a, other := h.talker(h.a, fi.EndpointAttr{MsgOrder: order}), h.talker(h.a, fi.EndpointAttr{})
			b := h.talker(h.b, fi.EndpointAttr{BufferedReceive: -1, ReceiveSize: 8})
			dest := h.knows(a, b)
			h.told(a, dest, "at most 64 bytes take no memory") // so it is kept
			text := bytes.Repeat([]byte("long"), 100)
			const n = 40
			for i := range n {
				h.ok(a.ep.Send(&fi.Message{Buf: append(text[:len(text):len(text)], byte(i)), Dest: dest, Context: i}, 0))
			}
			h.ok(other.ep.InjectSend(&fi.Message{Buf: text[:65], Dest: h.knows(other, b)}))
			h.nothing(a.sent, b.got)
			buf := make([]byte, 1000)
			r := fi.Receive{Buf: buf}
			h.ok(b.ep.Receive(&r, 0))
			h.success(b.got, nil)
			h.nothing(a.sent)
			next := 0
			for range n + 1 { // one of them is the other sender's, whenever it comes
				h.ok(b.ep.Receive(&r, 0))
				switch c := h.success(b.got, nil); {
				case c.Bytes == 65:
				case c.Bytes != len(text)+1 || buf[len(text)] != byte(next):
					h.Fatalf("message %d: %+v, %d", next, c, buf[len(text)])
				default:
					h.success(a.sent, next)
					next++
				}
			}
			// Short messages are kept up to ReceiveSize, and one more waits.
			for i := range 9 {
				h.ok(a.ep.Send(&fi.Message{Dest: dest, Context: i}, 0))
			}
			for i := range 8 {
				h.success(a.sent, i)
			}
			h.nothing(a.sent)
			h.ok(b.ep.Receive(&r, 0))
			h.success(a.sent, 8)
		}
	})
}

// A sender that is held back, and whose target ends, learns that its messages did not
// arrive.
func TestHeldBackAndClosed(t *testing.T) {
	onEveryPath(t, func(h *hall) {
		a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{BufferedReceive: -1})
		dest := h.knows(a, b)
		for i, n := range []int{10, 100, 5000} {
			h.ok(a.ep.Send(&fi.Message{Buf: make([]byte, n), Dest: dest, Context: i}, 0))
		}
		h.success(a.sent, 0)
		h.nothing(a.sent)
		h.ok(b.ep.Close())
		for i := 1; i < 3; i++ {
			h.failure(a.sent, i, fi.ErrNotExecuted)
		}
	})
}

// The memory for messages that are kept is bounded by EndpointAttr.BufferedReceive, and
// all of it comes back.
func TestBufferedReceive(t *testing.T) {
	h := pipeHall(t, fi.DomainAttr{})
	a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{BufferedReceive: 1 << 20})
	dest := h.knows(a, b)
	for range 3 {
		const n, size = 20, 100 << 10
		for i := range n {
			h.ok(a.ep.Send(&fi.Message{Buf: bytes.Repeat([]byte{byte(i)}, size), Dest: dest, Context: i}, 0))
		}
		for i := range 10 {
			h.success(a.sent, i)
		}
		h.nothing(a.sent)
		buf := make([]byte, size)
		for i := range n {
			h.ok(b.ep.Receive(&fi.Receive{Buf: buf, Context: i}, 0))
			if c := h.success(b.got, i); c.Bytes != size || buf[0] != byte(i) || buf[size-1] != byte(i) {
				t.Fatalf("message %d: %+v", i, c)
			}
		}
		for i := 10; i < n; i++ {
			h.success(a.sent, i)
		}
	}
}

// A message of 100 MiB arrives byte for byte, and neither side copies it elsewhere.
func TestLongMessage(t *testing.T) {
	size := 100 << 20 // more packets than 16 bits count
	var machine syscall.Sysinfo_t
	if err := syscall.Sysinfo(&machine); err != nil || raceDetector || testing.Short() || machine.Totalram*uint64(machine.Unit) < 2<<30 {
		size = 16 << 20 // a small virtual machine has no room for two of them
	}
	a, b, _ := onVeth(t, 1, fi.DomainAttr{}, fi.DomainAttr{})
	h := &hall{t, a, b, (*xdpfab.Domain).Name}
	x, y := h.talker(a, fi.EndpointAttr{}), h.talker(b, fi.EndpointAttr{})
	dest := h.knows(x, y)
	data, to := make([]byte, size), make([]byte, size)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(data)
	want := sha256.Sum256(data)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h.ok(errors.Join(x.ep.Send(&fi.Message{Buf: data, Dest: dest, Context: "sent"}, 0), // begins before there is a receive
		y.ep.Receive(&fi.Receive{Pieces: [][]byte{to[:12345], to[12345:]}, Context: "got"}, 0)))
	h.ok(y.got.Wait(t.Context(), 1)) // without a limit: it takes long on a busy machine
	if c := h.success(y.got, "got"); c.Bytes != size || sha256.Sum256(to) != want {
		t.Errorf("%d bytes, which are others", c.Bytes)
	}
	h.success(x.sent, "sent")
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
		t.Errorf("%d MiB allocated on the way", n>>20)
	}
}

// A round of a send and a receive allocates nothing, nor does it where the receiver is a
// guest.
func TestMessagesDoNotAllocate(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	for far, rounds := range map[fi.AttachMode]int{fi.AttachAuto: 200, fi.AttachAlways: 30} {
		h := pipeHall(t, fi.DomainAttr{Progress: fi.ProgressManual}, fi.DomainAttr{Progress: fi.ProgressManual, Attach: far})
		messagesDoNotAllocate(t, h, rounds)
	}
}

func messagesDoNotAllocate(t *testing.T, h *hall, rounds int) {
	a, b := h.talker(h.a, fi.EndpointAttr{}), h.talker(h.b, fi.EndpointAttr{})
	dest := h.knows(a, b)
	for _, n := range []int{8, 3000} {
		for _, late := range []bool{false, true} {
			m := fi.Message{Buf: make([]byte, n), Dest: dest, Tag: 1}
			r := fi.Receive{Buf: make([]byte, n), Tag: 1}
			var c [1]fi.Completion
			wait := func(cq *fi.CompletionQueue) {
				for {
					if n, err := cq.Read(c[:]); err != nil {
						t.Fatal(err)
					} else if n == 1 {
						return
					}
					h.step()
				}
			}
			round := func() {
				if !late {
					h.ok(b.ep.ReceiveTagged(&r, 0))
				}
				h.ok(a.ep.SendTagged(&m, 0))
				wait(a.sent)
				if late {
					h.ok(b.ep.ReceiveTagged(&r, 0))
				}
				wait(b.got)
			}
			for range rounds + rounds/2 {
				round()
			}
			if got := testing.AllocsPerRun(rounds, round); got != 0 {
				t.Errorf("%d bytes, kept: %v: %v allocations a round", n, late, got)
			}
		}
	}
}
