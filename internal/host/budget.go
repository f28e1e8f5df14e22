// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"sync"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/share"
)

// Cost is what guests take of their host's process.
type Cost struct {
	Memory   int // bytes: of the host's own, and of memfds that it has mapped
	Files    int // file descriptors
	Mappings int // of memory; Linux allows a process vm.max_map_count
}

// Budget bounds what several guests take together, such as all of one rule, or all of a
// process. Each user may have as much as is left for all others: half of the budget, if
// no other user has any of it. So there is always something left for a user who comes
// later. Root and the user of this process may have all that is left.
type Budget struct {
	name string
	most Cost

	mu  sync.Mutex
	all Cost
	Of  map[uint32]*Cost // by user
}

// NewBudget returns a budget. The name is for errors, and says what to raise; a number
// that is 0 is no limit.
func NewBudget(name string, most Cost) *Budget {
	return &Budget{name: name, most: most, Of: map[uint32]*Cost{}}
}

// Used returns what is taken at present.
func (b *Budget) Used() Cost {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all
}

// Take takes a cost for a guest of a user, or returns why it may not be had.
func (b *Budget) Take(uid uint32, c Cost) error {
	if c == (Cost{}) {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.Of[uid]
	if own == nil {
		own = &Cost{}
		b.Of[uid] = own
	}
	for _, x := range []struct {
		what           string
		more, all, own int
		most           int
	}{
		{"bytes of memory", c.Memory, b.all.Memory, own.Memory, b.most.Memory},
		{"file descriptors", c.Files, b.all.Files, own.Files, b.most.Files},
		{"mappings of memory", c.Mappings, b.all.Mappings, own.Mappings, b.most.Mappings},
	} {
		left := x.most - x.all
		if x.most == 0 || x.more == 0 || x.more <= left && (privileged(uid) || x.more <= left-x.more-x.own) {
			continue
		}
		b.clean(uid)
		return errno.Refuse(errno.Denied,
			"%d %s more: programs of user %d have %d, all programs %d, and %s allows %d, of which it leaves"+
				" as many for other users as one has: close what is not needed, or have it raised",
			x.more, x.what, uid, x.own, x.all, b.name, x.most)
	}
	b.add(uid, c, 1)
	return nil
}

// count takes a cost that is there, be it more than may be had.
func (b *Budget) count(uid uint32, c Cost) {
	if c == (Cost{}) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Of[uid] == nil {
		b.Of[uid] = &Cost{}
	}
	b.add(uid, c, 1)
}

// Give gives a cost back.
func (b *Budget) Give(uid uint32, c Cost) {
	if c == (Cost{}) {
		return // the user may have nothing
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(uid, c, -1)
	b.clean(uid)
}

// add counts a cost in or out. mu is held.
func (b *Budget) add(uid uint32, c Cost, sign int) {
	for _, x := range []*Cost{&b.all, b.Of[uid]} {
		x.Memory, x.Files, x.Mappings = x.Memory+sign*c.Memory, x.Files+sign*c.Files, x.Mappings+sign*c.Mappings
	}
}

// clean forgets a user who has nothing. mu is held.
func (b *Budget) clean(uid uint32) {
	if own := b.Of[uid]; own != nil && *own == (Cost{}) {
		delete(b.Of, uid)
	}
}

func privileged(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }

// payer takes what a guest costs from the budgets that it has a part in, and from what it
// may have of the host's own memory. Any goroutine may call it, the engine's thread
// included.
type payer struct {
	limits *GuestLimits
	uid    func() uint32
	has    bool // what it takes is there already, and cannot be refused

	mu  sync.Mutex
	own int // bytes of the host's own memory
}

// take takes a cost, or returns why it may not be had.
func (p *payer) take(c Cost) error {
	for i, b := range p.limits.Budgets {
		if p.has {
			b.count(p.uid(), c)
			continue
		}
		if err := b.Take(p.uid(), c); err != nil {
			for _, before := range p.limits.Budgets[:i] {
				before.Give(p.uid(), c)
			}
			return fmt.Errorf("%s: %w", p.limits.Rule, err)
		}
	}
	return nil
}

// give gives a cost back.
func (p *payer) give(c Cost) {
	for _, b := range p.limits.Budgets {
		b.Give(p.uid(), c)
	}
}

// use takes bytes of the host's own memory.
func (p *payer) use(bytes int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own+bytes > p.limits.Host {
		return fmt.Errorf(
			"%d bytes of the host's own memory beside %d: %s allows one program %d; have it close endpoints or"+
				" peers, or have its limit host raised: %w",
			bytes, p.own, p.limits.Rule, p.limits.Host, errno.Denied)
	}
	if err := p.take(Cost{Memory: bytes}); err != nil {
		return err
	}
	p.own += bytes
	return nil
}

// free gives bytes of the host's own memory back.
func (p *payer) free(bytes int) {
	p.mu.Lock()
	p.own -= bytes
	p.mu.Unlock()
	p.give(Cost{Memory: bytes})
}

// afford is use for flights, which are the guest's until it ends.
func (p *payer) afford(bytes int) bool { return p.use(bytes) == nil }

// PayCall takes what a call costs that came with file descriptors; paid gives it back.
func (g *Guest) PayCall(c *share.Call, files int) (paid func(), err error) {
	sent, own := Cost{Files: files}, 0
	if err := g.pays.take(sent); err != nil {
		return nil, err
	}
	if g.Calling.Load() > FreeCalls {
		own = CallCost + len(c.Arguments)
		if err := g.pays.use(own); err != nil {
			g.pays.give(sent)
			return nil, fmt.Errorf("more than %d calls at a time: %w", FreeCalls, err)
		}
	}
	return func() {
		g.pays.give(sent)
		g.pays.free(own)
	}, nil
}

// FreeCalls is how many calls a guest may have under way that cost no more than it does
// itself: so one that may have nothing more can still close what it has.
const FreeCalls = 4

// What a guest costs its host, bytes of its own memory, measured and rounded up.
const (
	guestCost    = 64 << 10 // goroutines, and tables that are empty
	entryCost    = 384      // an operation in flight, in the host ring
	EndpointCost = 4 << 10
	peerCost     = 1536
	CallCost     = 16 << 10 // under way, in addition to its arguments
)
