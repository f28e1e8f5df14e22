// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// attached is an interface that another process has, its host, as the device of a domain.
type attached struct {
	talk    *share.Talk
	carrier *share.Carrier
	host    share.Attached
	info    InterfaceInfo
	entries int // of the rings

	mu      sync.Mutex
	calls   map[uint64]chan share.Reply
	last    uint64
	ended   error            // why there is no host any more
	changed func(port.Event) // or nil
	reader  sync.WaitGroup
}

// attach makes a device of a conversation with a host, which it has from then on.
func attach(ctx context.Context, talk *share.Talk, socket string) (*attached, error) {
	a := &attached{talk: talk, calls: map[uint64]chan share.Reply{}}
	s := share.Sizes{Entries: attachEntries, Arena: attachArena}
	area, err := share.NewArea(s)
	if err != nil {
		return nil, errors.Join(err, talk.Close())
	}
	bell, err := a.greet(ctx, area, s)
	if err == nil {
		if a.carrier, err = share.NewCarrier(area, bell, a.newPeer); err != nil {
			_ = bell.Close()
		}
	}
	if err != nil {
		return nil, errors.Join(err, area.Close(), talk.Close())
	}
	a.entries = s.Entries
	a.info.Daemon = socket
	a.reader.Go(a.listen)
	return a, nil
}

// The dimensions of the shared memory.
const (
	attachEntries = 4096
	attachArena   = 16 << 20 // bytes
)

// greet is the first call, before there is a goroutine that takes answers.
func (a *attached) greet(ctx context.Context, area *share.Area, s share.Sizes) (*share.Bell, error) {
	defer context.AfterFunc(ctx, a.talk.Hang)()
	args, err := json.Marshal(share.Attach{Version: share.Version, Sizes: s})
	if err != nil {
		return nil, err
	}
	if err := a.talk.Send(share.Call{Verb: share.CallAttach, Arguments: args}, area.FD()); err != nil {
		return nil, err
	}
	var r share.Reply
	fds, err := a.talk.Receive(&r)
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err == nil && r.Error != "":
		err = replied(r)
	case err == nil && len(fds) != 1:
		err = fmt.Errorf("%d file descriptors: want the bell", len(fds))
	}
	if err == nil {
		if err = json.Unmarshal(r.Result, &a.host); err == nil {
			err = json.Unmarshal(a.host.Interface, &a.info)
		}
	}
	if err != nil {
		share.CloseAll(fds)
		return nil, err
	}
	return share.BellOf(fds[0]), nil
}

// replied is the error in a reply.
func replied(r share.Reply) error {
	if e := guestErrors[r.Kind]; e != nil {
		return &hostError{r.Error, e}
	}
	return errors.New(r.Error)
}

// hostError is an error of the host's: its text, and the error that programs look for.
type hostError struct {
	text string
	is   error
}

func (e *hostError) Error() string { return e.text }
func (e *hostError) Unwrap() error { return e.is }

// listen takes the answers of the host, until it has gone.
func (a *attached) listen() {
	for {
		var r share.Reply
		fds, err := a.talk.Receive(&r)
		share.CloseAll(fds)
		if err != nil {
			a.lose(err)
			return
		}
		a.mu.Lock()
		if c := a.calls[r.ID]; c != nil {
			c <- r // there is room for it
			delete(a.calls, r.ID)
		}
		a.mu.Unlock()
	}
}

// errHostGone is the cause of the end of a domain whose host has ended.
var errHostGone = errors.New("the daemon that has the interface has ended, or has turned this program out: its log says why")

// lose ends the calls under way, and tells the domain.
func (a *attached) lose(err error) {
	a.mu.Lock()
	a.ended = fmt.Errorf("%w (%w)", errHostGone, err)
	for id, c := range a.calls {
		close(c)
		delete(a.calls, id)
	}
	changed := a.changed
	a.mu.Unlock()
	if changed != nil {
		changed(port.Event{Kind: port.HostGone, Err: a.ended})
	}
}

// call has the host do something.
func (a *attached) call(ctx context.Context, verb string, arguments, result any, fds ...int) error {
	args, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	answer := make(chan share.Reply, 1)
	a.mu.Lock()
	if a.ended != nil {
		defer a.mu.Unlock()
		return a.ended
	}
	a.last++
	id := a.last
	a.calls[id] = answer
	a.mu.Unlock()
	if err := a.talk.Send(share.Call{ID: id, Verb: verb, Arguments: args}, fds...); err != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.calls, id)
		return fmt.Errorf("%w (%w)", errHostGone, err)
	}
	select {
	case r, ok := <-answer:
		switch {
		case !ok:
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.ended
		case r.Error != "":
			return replied(r)
		case result == nil:
			return nil
		}
		return json.Unmarshal(r.Result, result)
	case <-ctx.Done():
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.calls, id)
		return context.Cause(ctx)
	}
}

// newPeer implements share.Peers.
func (a *attached) newPeer(source uint16, link wire.Link, lane uint8, endpoint uint16) (number uint32, err error) {
	addr := wire.Addr{MAC: link.Remote, Endpoint: endpoint, Lane: lane}
	if link.RemoteIP.IsValid() {
		addr = wire.Addr{IP: link.RemoteIP, Endpoint: endpoint, Lane: lane}
	}
	return number, a.call(context.Background(), share.CallPeer, share.Peer{Source: source, Addr: addr, Class: link.Class}, &number)
}

// Ports implements device.
func (a *attached) Ports() []engine.Port { return []engine.Port{a.carrier.Port()} }

// MAC implements device.
func (a *attached) MAC() wire.MAC { return a.host.MAC }

// MTU implements device.
func (a *attached) MTU() int { return a.host.MTU }

// Link implements device.
func (a *attached) Link(ctx context.Context, to wire.Addr) (l wire.Link, err error) {
	return l, a.call(ctx, share.CallLink, to, &l)
}

// Watch implements device: the host's end is the one change that is told.
func (a *attached) Watch(changed func(port.Event)) {
	a.mu.Lock()
	a.changed = changed
	ended := a.ended
	a.mu.Unlock()
	if ended != nil {
		changed(port.Event{Kind: port.HostGone, Err: ended})
	}
}

// Follow implements device. The host follows its peers itself.
func (a *attached) Follow(wire.Addr, wire.Link, func(wire.Link)) (stop func()) { return func() {} }

// Silent implements device, likewise.
func (a *attached) Silent(netip.Addr) {}

// Info implements device.
func (a *attached) Info() InterfaceInfo { return a.info }

// Counters implements device.
func (a *attached) Counters() (all map[string]uint64, err error) {
	return all, a.call(context.Background(), share.CallCounters, struct{}{}, &all)
}

// closedBefore is nil for the error of a connection that has been closed already.
func closedBefore(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Close implements device.
func (a *attached) Close() error {
	a.talk.Hang()
	a.reader.Wait()
	return errors.Join(a.carrier.Close(), closedBefore(a.talk.Close()))
}
