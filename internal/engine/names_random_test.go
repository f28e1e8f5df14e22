// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// names is a client that knows node 1 by several addresses, on a cable where frames
// get lost and come again, and where an address may lead to another node.
type names struct {
	*cable
	rnd    *rand.Rand
	links  []wire.Link
	other  *cableNode
	loss   float64
	away   int // index in links of the address that is the other node's, or -1
	taken  [][]byte
	peers  []*Peer
	link   []int // of each peer: index in links
	posted []*outcomes
	last   uint64 // value written last
}

func newNames(t *testing.T, seed uint64) *names {
	n := &names{cable: newCable(t, session.Config{GiveUp: time.Second}), rnd: rand.New(rand.NewPCG(seed, 7)), away: -1}
	for _, ip := range []string{"", "10.0.0.2", "10.0.0.3", "10.0.0.4"} {
		l := ethernet()
		if ip != "" {
			l = udp()
			l.RemoteIP = netip.MustParseAddr(ip)
		}
		n.links = append(n.links, l)
	}
	n.other = newCable(t, session.Config{}).nodes[1]
	for i, port := range n.other.ports {
		port.node = &cableNode{c: n.cable, side: 1}
		n.other.eng[i].cfg.Life = 12345 << 1
	}
	n.pass = n.decide
	for range 2 + n.rnd.IntN(3) {
		n.peers, n.link = append(n.peers, nil), append(n.link, 0)
		n.dial(len(n.peers) - 1)
	}
	return n
}

func (n *names) dial(i int) {
	n.link[i] = n.rnd.IntN(len(n.links))
	n.peers[i] = n.peer(n.links[n.link[i]])
}

// decide loses packets, leads some to the other node, and has old ones come again.
func (n *names) decide(to int, packet []byte) bool {
	if len(n.taken) < 200 && n.rnd.IntN(4) == 0 {
		n.taken = append(n.taken, append([]byte{byte(to)}, packet...))
	}
	if len(n.taken) > 0 && n.rnd.IntN(6) == 0 {
		x := n.taken[n.rnd.IntN(len(n.taken))]
		n.deliver(int(x[0]), x[1:])
	}
	if to == 1 && n.away >= 0 {
		l := n.links[n.away]
		if isUDP(packet) == (l.Kind == wire.UDP4) && (!isUDP(packet) || netip.AddrFrom4([4]byte(packet[30:])) == l.RemoteIP) {
			n.other.ports[0].in = append(n.other.ports[0].in, packet)
			return false
		}
	}
	return n.rnd.Float64() >= n.loss
}

func (n *names) write(i int) *outcomes {
	n.last++
	r := n.post(n.peers[i], 1+n.link[i], n.last)
	n.posted = append(n.posted, r)
	return r
}

// act does one thing that can happen; with lives, also one that ends the node's life or
// gives its address to another.
func (n *names) act(lives bool) {
	i := n.rnd.IntN(len(n.peers))
	switch n.rnd.IntN(14) {
	default:
		n.write(i)
	case 0:
		r := &outcomes{}
		op := n.nodes[0].ring.Claim()
		op.Peer, op.Context, op.Verb, op.Count, op.Flags = n.peers[i].ID(), r, VerbWatch, 0, 0
		op.Publish()
		n.posted = append(n.posted, r)
	case 1:
		n.steer = 1 - n.steer
	case 2:
		n.idle(time.Duration(n.rnd.IntN(70)) * time.Second)
	case 3:
		_ = n.peers[i].SetLink(n.links[n.link[i]]) // of the same encapsulation
	case 4:
		n.peers[i].Close()
		n.dial(i)
	case 5:
		n.loss = []float64{0, 0.2, 1}[n.rnd.IntN(3)]
	case 6:
		if lives {
			n.nodes[1].boot()
		}
	case 7:
		if lives {
			n.away = n.rnd.IntN(len(n.links)+1) - 1
		}
	}
	for range n.rnd.IntN(20) {
		n.step()
		for _, e := range n.other.eng {
			e.Step()
		}
	}
}

// Each operation completes once, whatever happens to the addresses of an endpoint. A node
// that lives is reached in the end and is never reported as restarted, and no session,
// remote or peer stays behind.
func TestNamesAtRandom(t *testing.T) {
	t.Parallel()
	def := uint64(60) // make test-long takes thousands
	if testing.Short() {
		def = 15
	}
	from, to := seedRange(def)
	for seed := from; seed < to; seed++ {
		n := newNames(t, seed)
		lives := seed%2 == 0
		for range 60 {
			n.act(lives)
		}
		n.loss, n.away = 0, -1
		if !lives {
			n.idle(70 * time.Second)
			for i := range n.peers {
				if r := n.done(n.write(i)); r.Outcome != Success || n.word(1+n.link[i]) != n.last {
					t.Errorf("seed %d: %+v, the word is %d, want %d", seed, r, n.word(1+n.link[i]), n.last)
				}
			}
			if k := n.nodes[0].counted(PeersRestarted); k != 0 {
				t.Errorf("seed %d: %d restarts of a node that lives", seed, k)
			}
		}
		for _, p := range n.peers {
			p.Close()
		}
		n.idle(time.Second)
		for i, r := range n.posted {
			if len(r.all) != 1 {
				t.Errorf("seed %d: operation %d completed %d times", seed, i, len(r.all))
			}
		}
		e := n.nodes[0].eng[0]
		if len(e.table.all)+len(e.origin.remotes)+len(e.begun)+len(e.ready)+e.reqs.Lent() > 0 || !n.nodes[0].ring.Empty() {
			t.Errorf("seed %d: left are %d sessions, %d remotes, %d begun, %d ready, %d buffers; the ring is empty: %v", seed,
				len(e.table.all), len(e.origin.remotes), len(e.begun), len(e.ready), e.reqs.Lent(), n.nodes[0].ring.Empty())
		}
	}
}
