// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/xdpfab/xdpfab/atomic"
	fab "github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// asVisitor, an environment variable, turns the test binary into a visitor: a program
// that attaches to a daemon and does a bit of everything with a peer, which it finds done
// exactly once. Then it says so, serves a region, and waits to be killed.
const asVisitor = "XDPFAB_E2E_VISITOR"

// What the visitor and its peer agree on.
const (
	visitorSays    = "all is well\n"
	visitorServes  = 77       // the endpoint of the visitor's region, "own"
	visitorOwn     = 1 << 20  // bytes of that
	visitorMailbox = 78       // the visitor's
	peerRegion     = "far"    // of the peer
	peerSize       = 16 << 20 // bytes of that: words and a vector, then bytes
	peerBytesAt    = 1 << 20
	peerMailbox    = 5 // sends every message back
	peerListens    = 9 // a passive endpoint
	visitorAdds    = 300
	visitorIndexes = 5000 // of a vector operation: several frames
)

type visitor struct {
	dom  *fab.Domain
	peer *fab.Peer
	addr string
	far  fab.RemoteRegion
}

func visitorMain(args []string) int {
	fs := flag.NewFlagSet("visitor", flag.ExitOnError)
	ifname, addr := fs.String("i", "", "interface"), fs.String("peer", "", "address of the peer")
	back := fs.Bool("back", false, "take the region back that a visitor before has kept, and do nothing else")
	_ = fs.Parse(args)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	v := &visitor{addr: *addr}
	err := v.visit(ctx, *ifname, *back)
	if err != nil {
		fmt.Fprintln(os.Stderr, "visitor:", err)
		return 1
	}
	fmt.Print(visitorSays)
	<-ctx.Done()
	return 1
}

func (v *visitor) visit(ctx context.Context, ifname string, back bool) (err error) {
	if v.dom, err = fab.Open(ctx, ifname, fab.DomainAttr{Attach: fi.AttachAlways, GiveUp: limit}); err != nil {
		return err
	}
	if i := v.dom.Interface(); i.Transport != "udp" || i.Daemon == "" {
		return fmt.Errorf("%+v: want a daemon on UDP sockets", i)
	}
	if err := v.serve(back); err != nil || back {
		return err
	}
	if v.peer, err = v.dom.Dial(ctx, v.addr); err != nil {
		return err
	}
	if v.far, err = v.peer.Lookup(ctx, peerRegion); err != nil {
		return err
	}
	for name, do := range map[string]func(context.Context) error{
		"words": v.words, "vector": v.vector, "bytes": v.bytes, "messages": v.messages, "connection": v.connection,
	} {
		if err := do(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// serve serves a region that outlives the program, or one that outlived the last.
func (v *visitor) serve(back bool) error {
	if back {
		if _, err := v.dom.TakeBack("own"); err != nil {
			return err
		}
	} else {
		r, err := v.dom.NewRegion("own", visitorOwn)
		if err == nil {
			err = v.dom.Keep(r)
		}
		if err != nil {
			return err
		}
	}
	ep, err := v.dom.NewEndpoint(fab.EndpointAttr{Number: visitorServes})
	if err != nil {
		return err
	}
	return ep.Enable()
}

func (v *visitor) words(ctx context.Context) error {
	w := fab.WordAt[uint64](v.peer, v.far, 0)
	for i := range uint64(visitorAdds) {
		if n, err := w.Add(ctx, 1); n != i+1 || err != nil {
			return fmt.Errorf("%d, %w, want %d", n, err, i+1)
		}
	}
	if was, swapped, err := w.CompareAndExchange(ctx, 1, 2); was != visitorAdds || swapped || err != nil {
		return fmt.Errorf("compare and exchange: %d, %t, %w", was, swapped, err)
	}
	return nil
}

func (v *visitor) vector(ctx context.Context) error {
	all := fab.VectorAt[uint64](v.peer, v.far)
	at, sums := make([]uint64, visitorIndexes), make([]uint64, visitorIndexes)
	for i := range at {
		at[i] = 100 + uint64(i)%1000
	}
	if err := all.Add(ctx, at, slices.Repeat([]uint64{3}, len(at)), sums); err != nil {
		return err
	}
	values := make([]uint64, 1000)
	if err := all.LoadRange(ctx, 100, values); err != nil {
		return err
	}
	if i := slices.IndexFunc(values, func(n uint64) bool { return n != 3*visitorIndexes/1000 }); i >= 0 {
		return fmt.Errorf("word %d is %d, want %d", i, values[i], 3*visitorIndexes/1000)
	}
	return nil
}

func (v *visitor) bytes(ctx context.Context) error {
	data := make([]byte, 6<<20)
	for i := range data {
		data[i] = byte(i>>8 ^ i)
	}
	if err := v.peer.Write(ctx, v.far, peerBytesAt, data); err != nil {
		return err
	}
	back := make([]byte, len(data))
	if err := v.peer.Read(ctx, v.far, peerBytesAt, back); err != nil {
		return err
	}
	if !bytes.Equal(data, back) {
		return errors.New("what was read is not what was written")
	}
	return v.signal(ctx, data[:100_000])
}

// signal writes bytes elsewhere with a signal, and finds both.
func (v *visitor) signal(ctx context.Context, data []byte) error {
	const at, index = 8 << 20, 2
	s := fab.Signal{Region: v.far, Index: index, Op: atomic.Sum, Value: 5}
	back := make([]byte, len(data))
	if err := errors.Join(v.peer.WriteSignal(ctx, v.far, at, data, s), v.peer.Read(ctx, v.far, at, back)); err != nil {
		return err
	}
	n, err := fab.WordAt[uint64](v.peer, v.far, index).Load(ctx)
	if err != nil || n != s.Value || !bytes.Equal(data, back) {
		return fmt.Errorf("write with a signal: the word is %d, %w, want %d; the bytes are there: %t", n, err, s.Value,
			bytes.Equal(data, back))
	}
	return nil
}

func (v *visitor) messages(ctx context.Context) error {
	box, err := v.dom.NewMailbox(fab.MailboxAttr{Number: visitorMailbox})
	if err != nil {
		return err
	}
	defer box.Close()
	p, err := box.Dial(ctx, fmt.Sprintf("%s/%d", v.addr, peerMailbox))
	if err != nil {
		return err
	}
	defer p.Close()
	for i := range 100 {
		text := fmt.Appendf(nil, "message %d", i)
		if err := p.Send(ctx, text); err != nil {
			return err
		}
		if m, err := box.Receive(ctx, make([]byte, 100)); err != nil || !bytes.Equal(m.Bytes, text) {
			return fmt.Errorf("%q came back as %q, %w", text, m.Bytes, err)
		}
	}
	return nil
}

// connection adds over a connection, to the word behind that of words.
func (v *visitor) connection(ctx context.Context) error {
	q, err1 := v.dom.Fabric().NewEventQueue(fi.EQAttr{})
	cq, err2 := v.dom.NewCompletionQueue(fi.CQAttr{})
	ep, err3 := v.dom.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, Type: fi.EndpointMsg})
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	if err := errors.Join(ep.Bind(q, 0), ep.Bind(cq, 0)); err != nil {
		return err
	}
	if err := ep.Connect(ctx, fmt.Sprintf("%s/%d", v.addr, peerListens), []byte("hello")); err != nil {
		return err
	}
	if err := q.Wait(ctx); err != nil {
		return err
	}
	if e, ok, err := q.Read(); !ok || err != nil || e.Kind != fi.EventConnected || string(e.Param) != "welcome" {
		return fmt.Errorf("event %+v, %w: want a connection", e, err)
	}
	for i := range byte(10) {
		m := fi.Msg{Buf: one[:], Result: make([]byte, 8), Key: v.far.Key, Offset: 8, Datatype: atomic.Uint64, Op: atomic.Sum}
		if err := ep.FetchAtomic(&m, 0); err != nil {
			return err
		}
		if err := cq.Wait(ctx, 1); err != nil {
			return err
		}
		var done [1]fi.Completion
		if n, err := cq.Read(done[:]); n != 1 || err != nil || m.Result[0] != i {
			return fmt.Errorf("operation %d: %d, %w", i, m.Result, err)
		}
	}
	return nil
}
