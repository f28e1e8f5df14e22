// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// mailbox makes a mailbox on the server and dials it from the client.
func mailbox(t *testing.T, client, server *xdpfab.Domain, attr xdpfab.MailboxAttr) (*xdpfab.Mailbox, *xdpfab.Peer) {
	t.Helper()
	attr.Number = fi.AnyNumber
	box, err := server.NewMailbox(attr)
	if err != nil {
		t.Fatal(err)
	}
	defer stir(server)()
	p, err := client.Dial(ctx(t), box.Name())
	if err != nil {
		t.Fatal(err)
	}
	return box, p
}

// stir makes progress in a domain until the returned function is called.
func stir(d *xdpfab.Domain) (end func()) {
	var stirring sync.WaitGroup
	done := make(chan struct{})
	stirring.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				d.Progress()
				runtime.Gosched()
			}
		}
	})
	return func() { close(done); stirring.Wait() }
}

// pipe joins two domains in memory.
func pipe(t *testing.T, attr ...fi.DomainAttr) (a, b *xdpfab.Domain) {
	t.Helper()
	if len(attr) > 1 {
		attr[1].Attach = fi.AttachAuto
	}
	a, b, err := join(t, attr...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(a.CloseAll(), b.CloseAll()); err != nil {
			t.Error(err)
		}
	})
	return a, b
}

// delivery is what a receive returned.
type delivery struct {
	xdpfab.Received
	err error
}

// later receives on a goroutine of its own.
func later(receive func() (xdpfab.Received, error)) <-chan delivery {
	c := make(chan delivery, 1)
	go func() {
		m, err := receive()
		c <- delivery{m, err}
	}()
	return c
}

// Messages of every length arrive over real interfaces, with either progress on either
// side, by receives that wait and by later ones, and can be answered.
func TestVethMailbox(t *testing.T) {
	for _, progress := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		t.Run(progress.String(), func(t *testing.T) { testVethMailbox(t, progress) })
	}
}

func testVethMailbox(t *testing.T, progress fi.ProgressMode) {
	da, db, _ := onVeth(t, min(2, testnet.Granted(t).Queues), fi.DomainAttr{}, fi.DomainAttr{Progress: progress})
	box, _ := mailbox(t, da, db, xdpfab.MailboxAttr{})
	home, err := da.NewMailbox(xdpfab.MailboxAttr{Number: 7})
	if err != nil {
		t.Fatal(err)
	}
	end := stir(db)
	there, err := home.Dial(ctx(t), box.Name())
	end()
	if err != nil {
		t.Fatal(err)
	}
	far := ctx(t)
	echo := later(func() (xdpfab.Received, error) { return echoes(far, box) })
	rng := rand.New(rand.NewPCG(9, uint64(progress)))
	for i, n := range []int{0, 1, 80, 1400, 5000, 100_003, 1 << 20} {
		data, buf := random(rng, n), make([]byte, n+1)
		if err := there.SendTagged(ctx(t), uint64(i)<<40, data); err != nil {
			t.Fatal(err)
		}
		m, err := home.ReceiveTagged(ctx(t), uint64(i)<<40|1, 1, buf)
		if err != nil || m.Length != n || m.Tag != uint64(i)<<40 || !m.Tagged || m.From.String() != box.Name() || !bytes.Equal(m.Bytes, data) {
			t.Fatalf("%d bytes came back as %d with tag %#x from %v, %v", n, len(m.Bytes), m.Tag, m.From, err)
		}
	}
	end = stir(db) // the receiver leaves as soon as it has the message
	if err := there.Send(ctx(t), []byte("enough")); err != nil {
		t.Fatal(err)
	}
	end()
	if last := <-echo; last.err != nil || string(last.Bytes) != "enough" || last.From.String() != home.Name() {
		t.Errorf("%s from %v, %v", last.Bytes, last.From, last.err)
	}
}

// echoes answers tagged messages until one without a tag comes.
func echoes(ctx context.Context, box *xdpfab.Mailbox) (xdpfab.Received, error) {
	ctx, cancel := context.WithCancel(ctx)
	var err error
	var answers sync.WaitGroup
	answers.Go(func() {
		buf := make([]byte, 1<<20)
		for {
			m, failed := box.ReceiveTagged(ctx, 0, ^uint64(0), buf)
			if errors.Is(failed, context.Canceled) {
				return
			}
			p, dialled := box.Dial(ctx, m.From.String())
			if err = errors.Join(failed, dialled); err == nil {
				err = errors.Join(p.SendTagged(ctx, m.Tag, m.Bytes), p.Close())
			}
			if err != nil {
				cancel()
				return
			}
		}
	})
	m, failed := box.Receive(ctx, make([]byte, 10))
	cancel()
	answers.Wait()
	return m, errors.Join(failed, err)
}

// What does not fit the buffer is an error with the beginning of the message, and data
// that came with a message is told.
func TestMailboxTruncatesAndTellsData(t *testing.T) {
	a, b := pipe(t)
	box, p := mailbox(t, a, b, xdpfab.MailboxAttr{})
	if err := p.Send(ctx(t), []byte("0123456789")); err != nil {
		t.Fatal(err)
	}
	m, err := box.Receive(ctx(t), make([]byte, 4))
	if !errors.Is(err, fi.ErrTruncated) || string(m.Bytes) != "0123" || m.Length != 10 || m.Tagged || m.HasData {
		t.Errorf("%+v, %v", m, err)
	}
	k := newTalker(t, a, fi.EndpointAttr{})
	dest, err := k.av.Insert(ctx(t), box.Name())
	if err != nil {
		t.Fatal(err)
	}
	if err := k.ep.Send(&fi.Message{Buf: []byte("x"), Dest: dest, Data: 42}, fi.FlagRemoteCQData); err != nil {
		t.Fatal(err)
	}
	if m, err := box.Receive(ctx(t), make([]byte, 4)); err != nil || string(m.Bytes) != "x" || !m.HasData || m.Data != 42 || m.From.String() != k.name {
		t.Errorf("%+v, %v", m, err)
	}
	success(t, k.sent)
	p0, err := b.Dial(ctx(t), k.name)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.ep.Receive(&fi.Receive{Buf: make([]byte, 10)}, 0); err != nil {
		t.Fatal(err)
	}
	if err := p0.Send(ctx(t), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if c := success(t, k.got); c.Bytes != 5 {
		t.Errorf("%+v", c)
	}
}

// An endpoint that receives nothing refuses messages.
func TestSendWithoutReceiver(t *testing.T) {
	a, b := pipe(t)
	ep, err := b.NewEndpoint(fi.EndpointAttr{})
	if err := errors.Join(err, ep.Enable()); err != nil {
		t.Fatal(err)
	}
	p, err := a.Dial(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Send(ctx(t), []byte("x")); !errors.Is(err, fi.ErrNoReceiver) || !errors.Is(err, fi.ErrNotExecuted) {
		t.Errorf("%v, want ErrNoReceiver", err)
	}
}

// Many goroutines send and receive at once, more than may wait at a time: each message is
// received once.
func TestMailboxManyGoroutines(t *testing.T) {
	const senders, receivers = 8, 12
	each := reduced(200, 60)
	progressModes(t, func(t *testing.T, attr fi.DomainAttr) {
		a, b := pipe(t, attr, attr)
		box, p := mailbox(t, a, b, xdpfab.MailboxAttr{Receives: 4})
		var mu sync.Mutex
		seen := make(map[uint64]int)
		var all, got sync.WaitGroup
		for s := range senders {
			all.Go(func() {
				for i := range each {
					if err := p.Send(ctx(t), binary.LittleEndian.AppendUint64(nil, uint64(s*each+i))); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		done, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range receivers {
			got.Go(func() {
				for m, err := range box.All(done, make([]byte, 8)) {
					if errors.Is(err, context.Canceled) {
						return
					}
					if err != nil || m.Length != 8 {
						t.Errorf("%d bytes, %v", m.Length, err)
						return
					}
					mu.Lock()
					seen[binary.LittleEndian.Uint64(m.Bytes)]++
					if len(seen) == senders*each {
						cancel()
					}
					mu.Unlock()
				}
			})
		}
		got.Wait()
		defer stir(b)()
		all.Wait()
		for i := range uint64(senders * each) {
			if seen[i] != 1 {
				t.Fatalf("message %d was received %d times", i, seen[i])
			}
		}
	})
}

// A context that ends takes the receive back, and no message is lost to receives that
// were given up, however the two meet.
func TestMailboxContext(t *testing.T) {
	progressModes(t, func(t *testing.T, attr fi.DomainAttr) {
		a, b := pipe(t, attr, attr)
		box, p := mailbox(t, a, b, xdpfab.MailboxAttr{})
		ended, cancel := context.WithCancel(ctx(t))
		cancel()
		if m, err := box.Receive(ended, make([]byte, 8)); !errors.Is(err, context.Canceled) || m.Bytes != nil {
			t.Errorf("%+v, %v", m, err)
		}
		messages := reduced(150, 90)
		var sending sync.WaitGroup
		sending.Go(func() {
			for i := range messages { // long ones, so that some are met while they come
				b := make([]byte, 8+i%3*5000)
				binary.LittleEndian.PutUint64(b, uint64(i))
				if err := p.Send(ctx(t), b); err != nil {
					t.Error(err)
					return
				}
			}
		})
		rng, buf, gaveUp := rand.New(rand.NewPCG(1, 2)), make([]byte, 8+2*5000), 0
		for next := 0; next < messages; {
			short, cancel := context.WithCancel(ctx(t))
			wait := rng.IntN(200)
			go func() {
				for range wait {
					b.Progress()
				}
				cancel()
			}()
			m, err := box.Receive(short, buf)
			cancel()
			switch {
			case errors.Is(err, context.Canceled):
				gaveUp++
			case err != nil:
				t.Fatal(err)
			case binary.LittleEndian.Uint64(m.Bytes) != uint64(next) || m.Length != 8+next%3*5000:
				t.Fatalf("message %d of %d bytes, want %d of %d", binary.LittleEndian.Uint64(m.Bytes), m.Length, next, 8+next%3*5000)
			default:
				next++
			}
		}
		end := stir(b)
		sending.Wait()
		end()
		t.Logf("%d receives were taken back", gaveUp)
	})
}

// A sender's context ends its wait for a receiver, with what is known of the message. Of
// that it turns out whether it has arrived, and what is sent afterwards does.
func TestSendContext(t *testing.T) {
	a, b := pipe(t)
	box, p := mailbox(t, a, b, xdpfab.MailboxAttr{Buffered: -1})
	refused := func() uint64 { return counter(t, b, "request_no_place") }
	short, cancel := context.WithCancel(ctx(t))
	before, sent := refused(), make(chan error, 1)
	go func() { sent <- p.Send(short, make([]byte, 5000)) }()
	testnet.Eventually(t, "the message comes, and finds no room", func() bool { return refused() > before })
	cancel()
	err := <-sent
	var oe *fi.OpError
	if !errors.Is(err, context.Canceled) || !errors.As(err, &oe) || !errors.Is(err, fi.ErrOutcomeUnknown) {
		t.Fatalf("%v, want it cancelled, with what is known of it", err)
	}
	go func() { sent <- p.Send(ctx(t), []byte("next")) }()
	arrived := false
	for buf := make([]byte, 5000); ; arrived = true {
		m, err := box.Receive(ctx(t), buf)
		if err != nil || arrived && m.Length == 5000 {
			t.Fatalf("%d bytes, %v", m.Length, err)
		}
		if string(m.Bytes) == "next" {
			break
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if ran, _, err := oe.Resolve(ctx(t)); err != nil || ran != arrived {
		t.Errorf("the first message arrived: %v; its sender is told %v, %v", arrived, ran, err)
	}
}

// Closing a mailbox, or its domain, ends the calls that wait; a closed one takes none.
func TestMailboxClose(t *testing.T) {
	progressModes(t, func(t *testing.T, attr fi.DomainAttr) {
		a, b := pipe(t, attr, attr)
		box, p := mailbox(t, a, b, xdpfab.MailboxAttr{Receives: 2})
		if err := b.Close(); !errors.Is(err, fi.ErrBusy) || !strings.Contains(err.Error(), "mailbox") {
			t.Errorf("%v, want that the mailbox is open", err)
		}
		var calls []<-chan delivery
		for range 5 {
			calls = append(calls, later(func() (xdpfab.Received, error) { return box.Receive(ctx(t), make([]byte, 8)) }))
		}
		if err := box.Close(); err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			if d := <-c; !errors.Is(d.err, fi.ErrClosed) {
				t.Errorf("a receive of a mailbox that is closed: %v", d.err)
			}
		}
		if _, err := box.Receive(ctx(t), nil); !errors.Is(err, fi.ErrClosed) {
			t.Errorf("a receive of a closed mailbox: %v", err)
		}
		end := stir(b)
		if err := p.Send(ctx(t), nil); err == nil {
			t.Error("a closed mailbox took a message")
		}
		end()
		other, err := b.NewMailbox(xdpfab.MailboxAttr{Number: fi.AnyNumber})
		if err != nil {
			t.Fatal(err)
		}
		d := later(func() (xdpfab.Received, error) { return other.Receive(ctx(t), make([]byte, 8)) })
		if err := b.CloseAll(); err != nil {
			t.Fatal(err)
		}
		if d := <-d; !errors.Is(d.err, fi.ErrClosed) {
			t.Errorf("a receive when the domain is closed: %v", d.err)
		}
		if err := errors.Join(box.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	})
}

// Receiving does not allocate.
func TestMailboxDoesNotAllocate(t *testing.T) {
	if raceDetector {
		t.Skip("under the race detector allocations mean nothing")
	}
	a, b := pipe(t)
	box, p := mailbox(t, a, b, xdpfab.MailboxAttr{})
	ctx, data, buf := context.Background(), make([]byte, 100), make([]byte, 100)
	const messages = 300
	for range messages {
		if err := p.Send(ctx, data); err != nil {
			t.Fatal(err)
		}
	}
	receive := func() {
		if _, err := box.Receive(ctx, buf); err != nil {
			t.Fatal(err)
		}
	}
	if got := testing.AllocsPerRun(messages-1, receive); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
