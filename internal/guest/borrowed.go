// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// borrowed is a queue that another process lends, its host, as the device of a domain.
// The host has the interface: it finds the ways to peers, and gives out the numbers of
// endpoints.
type borrowed struct {
	node.Alone
	Conversation // its mu guards what is behind tasks, too

	queue     *port.Queue
	crossRing *share.CrossRing
	host      share.Borrowed
	info      node.InterfaceInfo

	wake    chan struct{}   // there are queued calls
	closing context.Context // ends with Close
	close   context.CancelFunc
	tasks   sync.WaitGroup

	changed   func(port.Event) // nil until Watch
	followers map[wire.Addr]map[*follower]struct{}
	pending   []hostCall
}

// OpenBorrowed borrows a queue from the daemon of an interface: see openAttached.
func OpenBorrowed(ctx context.Context, ifname, path string, chosen bool) (*borrowed, error) {
	talk, err := DialHost(ctx, path, Within(chosen))
	if err != nil {
		return nil, err
	}
	b, err := Borrow(ctx, talk, path)
	if err != nil {
		return nil, fmt.Errorf("daemon at %s: %w", path, err)
	}
	if err := Serves(path, ifname, chosen, &b.info, &b.host.Attached); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Borrow makes a device of a conversation with a host, which it has from then on.
func Borrow(ctx context.Context, talk *share.Talk, socket string) (*borrowed, error) {
	b := &borrowed{Conversation: Conversation{Calls: map[uint64]chan Answer{}, Talk: talk},
		wake:      make(chan struct{}, 1),
		followers: map[wire.Addr]map[*follower]struct{}{}}
	result, fds, err := Ask(ctx, talk, share.CallBorrow, share.Borrow{Version: share.Version, Segments: true})
	if err != nil {
		share.CloseAll(fds)
		return nil, errors.Join(err, talk.Close())
	}
	if err := b.take(result, fds); err != nil {
		return nil, errors.Join(err, talk.Close())
	}
	m, _ := b.queue.Modes()
	b.info.Daemon, b.info.Lent, b.info.Queues, b.info.Copy = socket, true, 1, m.String()
	b.closing, b.close = context.WithCancel(context.Background())
	b.tasks.Go(func() { b.lose(b.listen(talk, b.learn)) })
	b.tasks.Go(b.run)
	return b, nil
}

// take puts what the host gives to use.
func (b *borrowed) take(result json.RawMessage, fds []int) (err error) {
	var parts port.Parts
	if err = json.Unmarshal(result, &b.host); err == nil {
		err = errors.Join(json.Unmarshal(b.host.Interface, &b.info), json.Unmarshal(b.host.Parts, &parts))
	}
	if err == nil && len(fds) != 4 {
		err = fmt.Errorf("%d file descriptors: want socket and memory of a queue, and of a cross ring", len(fds))
	}
	if err != nil {
		share.CloseAll(fds)
		return err
	}
	if b.queue, err = port.Adopt(parts, fds[0], fds[1]); err != nil {
		share.CloseAll(fds[2:])
		return err
	}
	if b.crossRing, err = share.CrossRingOf(fds[2], fds[3]); err != nil {
		return errors.Join(err, b.queue.Close())
	}
	return nil
}

// lose ends the domain after the host has ended: the host's XDP program ended with it, so
// no frame will arrive.
func (b *borrowed) lose(err error) {
	b.Mu.Lock()
	b.cut(err)
	changed, ended := b.changed, b.Ended
	b.Mu.Unlock()
	if changed != nil && b.closing.Err() == nil {
		changed(port.Event{Kind: port.HostGone, Err: ended})
	}
}

// OtherQueues tells the engine of the queue that all others are the host's or other
// guests'.
func (b *borrowed) OtherQueues(n *node.Node, c *engine.Config) {
	c.Elsewhere, c.Outside, c.Queue = n.Abroad, b.outside, b.queue.Number()
}

// Cross connects the device with the engine of the queue.
func (b *borrowed) Cross(_ *node.Node, e *engine.Engine) {
	b.tasks.Go(func() { b.crossRing.Run(func(packet []byte) { e.Deliver(packet, true) }) })
}

// outside sends the host a packet that is not for this queue.
func (b *borrowed) outside(packet []byte, _ int) bool {
	b.crossRing.Send(packet)
	return true
}

// Number has the host give out the number of an endpoint, and block several, one after
// the other. Those of a block are given out already.
func (b *borrowed) Number(x share.Endpoint) (first uint16, given bool, err error) {
	if x.Block != nil && !x.Posts {
		return 0, false, nil
	}
	return first, true, b.Call(context.Background(), share.CallNumber,
		share.Number{Number: x.Number, Count: 1, Highest: x.Highest}, &first)
}

func (b *borrowed) Passive(x share.Passive) (first uint16, given bool, err error) {
	return first, true, b.Call(context.Background(), share.CallNumber, share.Number{Number: x.Number, Count: 1}, &first)
}

func (b *borrowed) Block(number, length int) (int, bool, error) {
	var first uint16
	err := b.Call(context.Background(), share.CallNumber, share.Number{Number: number, Count: length}, &first)
	return int(first), true, err
}

// GiveBack gives numbers of endpoints back. A host that ended wants none.
func (b *borrowed) GiveBack(first uint16, count int) {
	for n := range count {
		_ = b.Call(context.Background(), share.CallDrop, first+uint16(n), nil)
	}
}

func (b *borrowed) MayHost() error { return node.IsGuest(b.info.Name) }

// Ports implements device.
func (b *borrowed) Ports() []engine.Port { return []engine.Port{b.queue} }

// MAC implements device.
func (b *borrowed) MAC() wire.MAC { return b.host.MAC }

// Sifted implements device: the host's XDP program looks at addresses.
func (b *borrowed) Sifted() bool { return true }

// MTU implements device.
func (b *borrowed) MTU() int { return b.host.MTU }

// Link implements device.
func (b *borrowed) Link(ctx context.Context, to wire.Addr) (l wire.Link, err error) {
	return l, b.Call(ctx, share.CallLink, to, &l)
}

// Watch implements device: the host reports only one change, its own end.
func (b *borrowed) Watch(changed func(port.Event)) {
	b.Mu.Lock()
	b.changed = changed
	ended := b.Ended
	b.Mu.Unlock()
	if ended != nil {
		changed(port.Event{Kind: port.HostGone, Err: ended})
	}
}

// OwnFault implements device.
func (b *borrowed) OwnFault(to wire.Addr) string { return b.ownFault(to) }

// Info implements device.
func (b *borrowed) Info() node.InterfaceInfo { return b.info }

// Counters implements device: the host's XDP program and the own queue.
func (b *borrowed) Counters() (map[string]uint64, error) {
	all, err := b.queue.Counters()
	if err != nil {
		return nil, err
	}
	var program map[string]uint64
	err = b.Call(context.Background(), share.CallCounters, struct{}{}, &program)
	maps.Copy(all, program)
	return all, err
}

// Close implements device. The queue goes first: when the host learns of the end, it can
// have the queue again.
func (b *borrowed) Close() error {
	b.close()
	err := errors.Join(b.queue.Close(), b.crossRing.Close())
	b.Talk.End()
	b.tasks.Wait()
	return err
}
