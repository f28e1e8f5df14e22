// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Attached is an interface that another process has, its host, as the device of a domain.
type Attached struct {
	redial func(context.Context) (*share.Talk, error) // nil: there will be no other host
	Ring   *share.GuestRing
	host   share.Attached // the first one
	terms  share.Offer    // likewise

	// lives counts the hosts that have carried operations, the next one included: a host
	// that was met and did not take in the guest does not count. Written by the goroutine
	// that looks for hosts.
	lives atomic.Uint32
	sizes share.Sizes // of the segment; the same goroutine's

	turnedAway int // hosts in a row that were met and did not take in the domain; under moving

	giveUp time.Duration // of its sessions; 0 for the host's

	tallying sync.Mutex // held while something gets a tally
	// moving is locked while another host gets what the domain has: what is made or
	// closed in that time would be given to it twice, or left there. It comes before all
	// other locks.
	moving sync.RWMutex

	leaving atomic.Bool     // the domain closes its regions, and those that are kept stay
	closing context.Context // ends with Close
	close   context.CancelFunc
	reader  sync.WaitGroup

	Conversation // its mu guards what follows, too
	info         node.InterfaceInfo
	joined       bool                                   // the host that was met last carries operations, or did
	rejoin       func(context.Context, attachment) bool // tells the domain of another host; nil until Watch
	changed      func(port.Event)                       // likewise
	refusal      string                                 // of the last host, as reported; empty when one took over
	regions      []offered
	attends      attends
	closedKept   []share.Region // kept, and closed while there was no host
}

// attachment is what another host takes the place of the former one with.
type attachment struct {
	talk     *share.Talk
	segment  *share.Segment
	doorbell *share.Doorbell
	features []string // that it has, too
}

// Attach makes a device of a conversation with a host, which it has from then on. redial
// finds the next host when that one has ended; it may be nil.
func Attach(ctx context.Context, talk *share.Talk, socket string, redial func(context.Context) (*share.Talk, error)) (
	*Attached, error) {
	a := &Attached{redial: redial, Conversation: Conversation{Calls: map[uint64]chan Answer{}}}
	in, err := a.meet(ctx, talk)
	if err != nil {
		return nil, err
	}
	if a.Ring, err = share.NewGuestRing(in.segment, in.doorbell, a.newPeer); err != nil {
		return nil, errors.Join(err, in.close(), talk.Close())
	}
	a.Ring.Agree(in.features)
	a.info.Daemon = socket
	a.closing, a.close = context.WithCancel(context.Background())
	a.Talk = talk
	a.reader.Go(func() { a.lose(a.listen(talk, nil)) })
	return a, nil
}

// meet makes a segment, and greets a host with it.
func (a *Attached) meet(ctx context.Context, talk *share.Talk) (in attachment, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerWithin,
		fmt.Errorf("%w: it has not answered for %v", errno.HostLost, answerWithin))
	defer cancel()
	talk.Hurry(answerWithin)
	if a.lives.Load() == 0 { // another host must allow what the first one did
		if a.terms, err = TermsOf(ctx, talk); err != nil {
			return in, errors.Join(err, talk.Close())
		}
		a.sizes = a.terms.Sizes.Default()
	}
	if in.segment, err = share.NewSegment(a.sizes); err != nil {
		return in, errors.Join(err, talk.Close())
	}
	if in.doorbell, in.features, err = a.greet(ctx, talk, in.segment); err != nil {
		return in, errors.Join(err, in.segment.Close(), talk.Close())
	}
	if a.lives.CompareAndSwap(0, 1) {
		a.tookIn()
	}
	in.talk = talk
	return in, nil
}

func (in attachment) close() error { return errors.Join(in.segment.Close(), in.doorbell.Close()) }

// greet brings a host the segment, and returns the doorbell and the host's features.
func (a *Attached) greet(ctx context.Context, talk *share.Talk, segment *share.Segment) (bell *share.Doorbell,
	features []string, err error) {
	result, fds, err := Ask(ctx, talk, share.CallAttach,
		share.Attach{Version: share.Version, Sizes: a.sizes, Features: share.Features}, segment.FD())
	if err == nil && len(fds) != 1 {
		err = fmt.Errorf("%d file descriptors: want the doorbell", len(fds))
	}
	if err == nil {
		features, err = a.learn(result)
	}
	if err != nil {
		share.CloseAll(fds)
		return nil, nil, err
	}
	return share.DoorbellOf(fds[0]), features, nil
}

// Ask makes a call before there is a goroutine that takes answers. The file descriptors
// that come with the answer are the caller's, also if there is an error.
func Ask(ctx context.Context, talk *share.Talk, verb string, arguments any, fds ...int) (json.RawMessage,
	[]int, error) {
	defer context.AfterFunc(ctx, talk.End)()
	args, err := json.Marshal(arguments)
	if err != nil {
		return nil, nil, err
	}
	sent := talk.Send(share.Call{Verb: verb, Arguments: args}, fds...)
	// a host that has hung up may have said why
	if sent != nil && !errors.Is(sent, syscall.EPIPE) && !errors.Is(sent, syscall.ECONNRESET) {
		return nil, nil, sent
	}
	var r share.Reply
	got, err := talk.Receive(&r)
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil && sent != nil:
		err = sent
	case err == nil && r.Error != "":
		err = Replied(r)
	}
	return r.Result, got, err
}

// learn takes what a host says of its interface, which must be the one that the former
// host had, and returns the features that it says.
func (a *Attached) learn(result json.RawMessage) (features []string, err error) {
	var h share.Attached
	var info node.InterfaceInfo
	if err := json.Unmarshal(result, &h); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(h.Interface, &info); err != nil {
		return nil, err
	}
	first := a.lives.Load() == 0
	if !first && (h.MAC != a.host.MAC || h.MTU < a.host.MTU) {
		return nil, fmt.Errorf("the daemon now has an interface with address %v and an MTU of %d bytes: want %v "+
			"and at least %d, as before", h.MAC, h.MTU, a.host.MAC, a.host.MTU)
	}
	if first {
		a.host = h
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	info.Daemon = a.info.Daemon
	a.info = info
	return h.Features, nil
}

// Replied is the error in a reply.
func Replied(r share.Reply) error {
	e := &hostError{text: r.Error}
	if r.Errno != 0 && r.Errno != errno.Other {
		e.is = append(e.is, errno.Told(r.Errno))
	}
	for _, kind := range r.Kinds {
		if is := node.GuestErrors[kind]; is != nil {
			e.is = append(e.is, is)
		}
	}
	return e
}

// hostError is an error of the host's: its text, and the errors that programs look for.
type hostError struct {
	text string
	is   []error
}

func (e *hostError) Error() string   { return e.text }
func (e *hostError) Unwrap() []error { return e.is }

// lose ends the calls under way, and looks for another host, or ends the domain.
func (a *Attached) lose(err error) {
	a.Mu.Lock()
	a.cut(err)
	changed, rejoin, ended, joined := a.changed, a.rejoin, a.Ended, a.joined
	a.Mu.Unlock()
	switch {
	case a.closing.Err() != nil || changed == nil:
	case rejoin == nil:
		changed(port.Event{Kind: port.HostGone, Err: ended})
	default:
		if joined { // else nothing is lost that was not before
			changed(port.Event{Kind: port.HostLost})
		}
		a.reader.Go(func() { a.seek(rejoin, changed) })
	}
}

// Async runs f on a goroutine of its own, unless the domain ends.
func (a *Attached) Async(f func()) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if a.closing.Err() == nil {
		a.reader.Go(f)
	}
}

// newPeer implements share.Peers.
func (a *Attached) newPeer(origin uint64, link wire.Link, lane uint8, endpoint uint16) (number uint32, err error) {
	addr := share.Addr{MAC: link.Remote, Endpoint: endpoint, Lane: lane}
	if link.RemoteIP.IsValid() {
		addr = share.Addr{IP: link.RemoteIP, Endpoint: endpoint, Lane: lane}
	}
	return a.Peer(context.Background(),
		share.Peer{Origin: origin, Addr: addr, Class: link.Class, Next: link.Remote})
}

// Peer has the host know a peer, and returns its number there.
func (a *Attached) Peer(ctx context.Context, p share.Peer) (number uint32, err error) {
	return number, a.Call(ctx, share.CallPeer, p, &number)
}

// Ports implements device.
func (a *Attached) Ports() []engine.Port { return []engine.Port{a.Ring.Port()} }

// MAC implements device.
func (a *Attached) MAC() wire.MAC { return a.host.MAC }

// Sifted implements Device: no packet comes.
func (a *Attached) Sifted() bool { return false }

// MTU implements device.
func (a *Attached) MTU() int { return a.host.MTU }

// Medium implements device. The guest's engine has no packets.
func (a *Attached) Medium() wire.Medium { return wire.OnEthernet }

// Link implements device.
func (a *Attached) Link(ctx context.Context, to wire.Addr) (l wire.Link, err error) {
	return l, a.Call(ctx, share.CallLink, share.Addr(to), &l)
}

// Watch implements device: the host reports only one change, its own end.
func (a *Attached) Watch(changed func(port.Event)) {
	a.Mu.Lock()
	a.changed = changed
	ended := a.Ended
	a.Mu.Unlock()
	if ended != nil {
		changed(port.Event{Kind: port.HostGone, Err: ended})
	}
}

// Follow implements device. The host follows its peers itself.
func (a *Attached) Follow(wire.Addr, wire.Link, func(wire.Link)) (stop func()) { return func() {} }

// Silent implements device, likewise.
func (a *Attached) Silent(netip.Addr) {}

// OwnFault implements device.
func (a *Attached) OwnFault(to wire.Addr) string { return a.ownFault(to) }

// Info implements device.
func (a *Attached) Info() node.InterfaceInfo {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	return a.info
}

// Counters implements device.
func (a *Attached) Counters() (all map[string]uint64, err error) {
	return all, a.Call(context.Background(), share.CallCounters, struct{}{}, &all)
}

// Close implements device.
func (a *Attached) Close() error {
	a.Mu.Lock()
	a.close()
	talk := a.Talk
	a.Mu.Unlock()
	talk.End()
	a.reader.Wait()
	if all := a.Ring.Tallies(); all != nil {
		return errors.Join(all.Close(), a.Ring.Close())
	}
	return a.Ring.Close()
}
