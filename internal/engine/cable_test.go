// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// cable joins two nodes and treats every packet as the test wants. The second node has
// two queues.
type cable struct {
	t     testing.TB
	now   int64
	quiet int // steps in a row without work
	steps int
	cfg   session.Config
	nodes [2]*cableNode
	// steer chooses the queue of the second node that packets arrive on.
	steer int
	// pass decides on every packet, and may change it; nil passes all.
	pass func(to int, packet []byte) bool
	seen [2][][]byte // all packets to each node, passed or not
	key  uint64

	extended int // operations posted by Extend
}

type cableNode struct {
	c      *cable
	side   int
	eng    []*Engine
	ports  []*cablePort
	mem    []*memory.Memory
	exec   []*executor.Executor
	bytes  []byte
	region *mr.Region
	table  *mr.Table
	ring   *Ring
	refuse wire.HelloStatus
	// request answers requests for connections; nil refuses them.
	request func(asked *wire.Connection) (wire.HelloStatus, wire.Connection)
	// full means that there is no room for messages, which wait.
	full bool
}

// cablePort is one queue at one end.
type cablePort struct {
	node *cableNode
	in   [][]byte
	out  [2048]byte
	look func() // is called by Receive first; may be nil
}

func (p *cablePort) Receive(b [][]byte) int {
	if p.look != nil {
		p.look()
	}
	n := copy(b, p.in)
	p.in = p.in[n:]
	return n
}
func (p *cablePort) Release()           {}
func (p *cablePort) Buffer() []byte     { return p.out[:] }
func (p *cablePort) Flush() error       { return nil }
func (p *cablePort) Wait(time.Duration) {}
func (p *cablePort) Wake()              {}
func (p *cablePort) Send(n int)         { p.node.c.carry(1-p.node.side, slices.Clone(p.out[:n])) }

// carry takes a packet to a node, if it passes.
func (c *cable) carry(to int, packet []byte) {
	c.seen[to] = append(c.seen[to], slices.Clone(packet))
	if c.pass == nil || c.pass(to, packet) {
		c.deliver(to, packet)
	}
}

func (c *cable) deliver(to int, packet []byte) {
	p := c.nodes[to].ports[0]
	if to == 1 {
		p = c.nodes[1].ports[c.steer]
	}
	p.in = append(p.in, slices.Clone(packet))
}

var cableIPs = [2]netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}

func newCable(t testing.TB, cfg session.Config) *cable {
	c := &cable{t: t, now: 1, cfg: cfg, key: 1}
	for side := range c.nodes {
		n := &cableNode{c: c, side: side}
		for range side + 1 {
			n.ports = append(n.ports, &cablePort{node: n})
		}
		c.nodes[side] = n
		n.boot()
	}
	return c
}

// boot begins a life of the node, with zeroed memory.
func (n *cableNode) boot() {
	table := mr.NewTable()
	n.table, n.eng, n.mem, n.exec = table, nil, nil, nil
	secret := [32]byte{1}
	binary.LittleEndian.PutUint64(secret[1:], uint64(n.c.now))
	for q, p := range n.ports {
		p.in = nil
		m := memory.New(table)
		x, err := executor.New(m, 1500, 0)
		if err != nil {
			n.c.t.Fatal(err)
		}
		e, err := New(Config{
			Port: p, Serve: serving(x), Local: worldMACs[n.side], MTU: 1500, Queue: q, Session: n.c.cfg,
			Secret: secret, Life: uint64(n.c.now)<<1 | 1,
			Accept: func(uint16, uint64) wire.HelloStatus { return n.refuse },
			Clock:  func() int64 { return n.c.now },
			Request: func(_ uint16, asked *wire.Connection, _ wire.Addr) (wire.HelloStatus, wire.Connection) {
				if n.request == nil {
					return wire.HelloNoEndpoint, wire.Connection{}
				}
				return n.request(asked)
			},
			Inflow: func(uint16, wire.Addr) session.Inflow {
				if !n.full {
					return nil
				}
				return noRoom{}
			},
		})
		if err != nil {
			n.c.t.Fatal(err)
		}
		n.eng, n.mem, n.exec = append(n.eng, e), append(n.mem, m), append(n.exec, x)
	}
	NewGroup(n.eng)
	n.bytes = make([]byte, 1<<16)
	m, err := mr.Adopt(n.bytes)
	if err != nil {
		n.c.t.Fatal(err)
	}
	if n.region, err = table.Register(m, mr.Options{Key: &n.c.key, Access: mr.RemoteRead | mr.RemoteWrite}); err != nil {
		n.c.t.Fatal(err)
	}
	n.ring, _ = NewRing(1024, Contexts{})
	n.eng[0].AddRing(n.ring, nil)
}

// ethernet and udp are links from node 0 to node 1.
func ethernet() wire.Link { return wire.Link{Local: worldMACs[0], Remote: worldMACs[1]} }

func udp() wire.Link {
	l := ethernet()
	l.Kind, l.LocalIP, l.RemoteIP = wire.UDP4, cableIPs[0], cableIPs[1]
	return l
}

func (c *cable) peer(l wire.Link) *Peer {
	p, err := c.nodes[0].eng[0].NewPeer(l, 0, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// post has a value written to a word of node 1.
func (c *cable) post(p *Peer, word int, value uint64) *outcomes {
	r := &outcomes{}
	c.postTo(p, word, value, r)
	return r
}

func (c *cable) postTo(p *Peer, word int, value uint64, r *outcomes) {
	op := c.nodes[0].ring.Claim()
	op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), r, 1, uint64(8*word), 1
	op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbAtomic, uint8(atomic.Write), uint8(atomic.Uint64), 0
	op.Result = nil
	op.SetOperands(binary.LittleEndian.AppendUint64(nil, value), nil)
	op.Publish()
}

// watch has a peer watched, and waits until it is.
func (c *cable) watch(p *Peer, r *outcomes) {
	op := c.nodes[0].ring.Claim()
	op.Peer, op.Context, op.Verb, op.Count, op.Flags = p.ID(), r, VerbWatch, 0, 0
	op.Publish()
	for len(p.r.watches) == 0 {
		c.step()
	}
}

func (c *cable) word(i int) uint64 { return binary.LittleEndian.Uint64(c.nodes[1].bytes[8*i:]) }

// step lets all engines make a round, and some time pass.
func (c *cable) step() {
	work := 0
	c.steps++
	for _, n := range c.nodes {
		for i, e := range n.eng {
			work += e.Step()
			if c.steps%64 != 0 {
				continue
			}
			if err := errors.Join(e.Check(), n.exec[i].Check()); err != nil {
				c.t.Fatalf("node %d, queue %d: %v", n.side, i, err)
			}
		}
	}
	if work > 0 {
		c.now, c.quiet = c.now+1000, 0
		return
	}
	c.now += int64(time.Millisecond)
	if c.quiet++; c.quiet > 2 {
		c.now = max(c.now, c.next())
	}
}

// next returns when an engine has something to do, a second from now at most.
func (c *cable) next() int64 {
	at := c.now + int64(time.Second)
	for _, n := range c.nodes {
		for _, e := range n.eng {
			if due := e.NextDue(); due != 0 {
				at = min(at, due)
			}
		}
	}
	return at
}

// idle lets time go by, in steps that do not look as if a process had been stopped.
func (c *cable) idle(d time.Duration) {
	for end := c.now + int64(d); c.now < end; {
		c.step()
	}
}

// done waits for an outcome.
func (c *cable) done(r *outcomes) Result {
	c.t.Helper()
	for range 3_000_000 {
		if len(r.all) > 0 {
			return r.all[0]
		}
		c.step()
	}
	c.t.Fatal("never completes")
	return Result{}
}

// known waits until an outcome that was unknown is known, or known never to be.
func (c *cable) known(l *Later) Result {
	c.t.Helper()
	for range 3_000_000 {
		select {
		case <-l.Done():
			r, _ := l.Outcome()
			return r
		default:
			c.step()
		}
	}
	c.t.Fatal("never known")
	return Result{}
}

// write has a value written and insists on success.
func (c *cable) write(p *Peer, word int, value uint64) {
	c.t.Helper()
	if r := c.done(c.post(p, word, value)); r.Outcome != Success {
		c.t.Fatalf("write of %d: %+v", value, r)
	}
}

// counted returns a counter of a node, over its queues.
func (n *cableNode) counted(k Counter) (sum uint64) {
	for _, e := range n.eng {
		sum += e.count[k]
	}
	return sum
}

// sessions returns how many sessions node 1 has.
func (c *cable) sessions() (n int) {
	for _, e := range c.nodes[1].eng {
		n += e.accepted
	}
	return n
}

// stranger gives the i-th session of one stranger at node 1, as after its cookie has
// come back.
func (c *cable) stranger(i int) {
	e := c.nodes[1].eng[0]
	src := wire.Source{Local: worldMACs[1], Remote: wire.MAC{2, 9, 9, 9, 9, 9}}
	m := wire.HelloMsg{Nonce: uint64(i), Origin: uint64(i) + 1<<32, Serial: 1, Session: uint32(i), MaxFrame: 1500, Window: 64}
	p, _ := e.pairs.own(e, &m)
	e.accept(&wire.Header{}, &m, &src, p, nil, &wire.HelloAckMsg{})
}
