// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/mr"
)

// A guest survives its host. What the host had of its operations has an unknown outcome,
// what is posted meanwhile is not executed, and regions are not served. The next host
// gets the same endpoints, regions and peers; to peers the regions have the incarnation
// that they had, since their memory is the guest's. The sessions of the former host
// cannot outlive it: those of the next one have the same origins, and later serial
// numbers.

// outlives reports whether the domain can go on with another host. With ThreadDomain only
// the caller's goroutine may use the engine, so such a domain ends with its host.
func (d *Domain) outlives() bool { return d.attr.Threading != ThreadDomain }

// survive has the domain told of another host, by which it can go on.
func (a *attached) survive(rejoin func(context.Context, joins) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.redial != nil {
		a.rejoin = rejoin
	}
}

// Times between two attempts to find another host.
const (
	firstSeek   = 5 * time.Millisecond
	longestSeek = time.Second
)

// seek looks for another host until there is one, or the domain is closed.
func (a *attached) seek(rejoin func(context.Context, joins) bool, changed func(port.Event)) {
	rejoin(a.closing, joins{}) // what the former one had is over
	a.mu.Lock()
	if a.joined {
		a.joined = false
		a.lives.Add(1)
	}
	a.mu.Unlock()
	a.moving.RLock()
	first := min(firstSeek<<min(a.turnedAway, 8), longestSeek)
	a.moving.RUnlock()
	for wait := first; ; wait = min(2*wait, longestSeek) {
		select {
		case <-a.closing.Done():
			return
		case <-time.After(wait):
		}
		talk, err := a.redial(a.closing)
		if err != nil {
			continue
		}
		in, err := a.meet(a.closing, talk)
		if err != nil {
			continue
		}
		if a.moveTo(in, rejoin) {
			changed(port.Event{Kind: port.HostFound})
		}
		return
	}
}

// moveTo talks to another host, and has it carry the domain's operations.
func (a *attached) moveTo(in joins, rejoin func(context.Context, joins) bool) bool {
	a.moving.Lock()
	defer a.moving.Unlock()
	a.mu.Lock()
	a.talk, a.ended = in.talk, nil
	a.mu.Unlock()
	a.reader.Go(func() { a.lose(a.listen(in.talk, nil)) })
	if !rejoin(a.closing, in) {
		a.turnedAway++
		return false
	}
	a.turnedAway = 0
	return true
}

// stay keeps the domain from moving to another host until the function that it returns is
// called. What makes, changes or closes something that a host has calls it first.
func (d *Domain) stay() (done func()) {
	if d.attached == nil {
		return func() {}
	}
	d.attached.moving.RLock()
	return d.attached.moving.RUnlock
}

// tookIn notes that a host carries operations.
func (a *attached) tookIn() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.joined = true
}

// rejoin is called without an area when the host has ended, and then with what the next
// one has agreed to. It reports whether that one carries the domain's operations now.
func (d *Domain) rejoin(ctx context.Context, in joins) (joined bool) {
	st, a := d.steppers[0], d.attached
	if in.area == nil {
		st.Call(func() {
			st.eng.Lose()
			_ = a.carrier.Lose()
		})
		return false
	}
	numbers, err := d.moveIn(ctx)
	if err != nil {
		_ = in.close()
		a.hangUp() // which begins all over
		return false
	}
	st.Call(func() {
		if !a.talksTo(in.talk) { // that host has ended too, and Lose has been called for it already
			return
		}
		joined = true
		a.tookIn()
		a.carrier.Renew(in.area, in.bell)
		for p, n := range numbers {
			p.Carry(n)
		}
	})
	if !joined { // the domain has ended, or the host
		_ = in.close()
	}
	return joined
}

// talksTo reports whether talk is the conversation with the present host.
func (a *attached) talksTo(talk *share.Talk) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended == nil && a.talk == talk
}

// moveIn gives another host the endpoints, peers and regions of the domain, and returns
// the numbers of the peers.
func (d *Domain) moveIn(ctx context.Context) (map[*engine.Peer]uint32, error) {
	d.mu.Lock()
	blocks := map[int]int{} // length of each, by first number
	for _, b := range d.numbers.reserved() {
		blocks[b.first] = b.length
	}
	var eps []*Endpoint
	for _, ep := range d.endpoints {
		eps = append(eps, ep)
	}
	d.mu.Unlock()
	d.attached.mu.Lock()
	regions := slices.Clone(d.attached.regions)
	d.attached.mu.Unlock()
	numbers := map[*engine.Peer]uint32{}
	_, err := d.attached.tuneHost(ctx)
	errs := []error{err, d.attached.offerTallies(ctx, d.attached.carrier.Tallies())}
	regions, err = d.attached.regain(ctx, regions)
	if err != nil {
		return nil, err
	}
	for _, r := range regions {
		errs = append(errs, d.attached.offer(ctx, r))
	}
	for number, length := range blocks {
		_, err := d.attached.blockAt(number, length)
		errs = append(errs, err)
	}
	for _, ep := range eps {
		errs = append(errs, ep.moveIn(ctx, numbers))
	}
	d.numbers.each(func(_ uint16, t tenant) {
		if p, is := t.(*PassiveEndpoint); is {
			errs = append(errs, p.moveIn())
		}
	})
	return numbers, errors.Join(errs...)
}

// moveIn gives another host the endpoint and its peers.
func (ep *Endpoint) moveIn(ctx context.Context, numbers map[*engine.Peer]uint32) error {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	phase, a := ep.phase.Load(), ep.dom.attached
	if phase == shutOff {
		return nil
	}
	attr := ep.attr
	if attr.InitiateOnly { // nobody addresses it, and another program may have its number by now
		attr.Number = AnyNumber
	}
	if _, err := a.endpoint(&attr, ep.identity); err != nil {
		return err
	}
	if phase != made && !ep.attr.InitiateOnly {
		if err := a.serve(ep); err != nil {
			return err
		}
	}
	for addr, n := range ep.names {
		var number uint32
		p := share.Peer{Origin: ep.identity, Addr: addr, Class: ep.attr.TrafficClass.mark()}
		if err := a.call(ctx, share.CallPeer, p, &number); err != nil {
			return err
		}
		numbers[n.peer] = number
	}
	return nil
}

// offered is a region as a host is told of it.
type offered struct {
	share.Region
	memory *mr.Memory
	tally  *share.Tally // or nil
	kept   bool
}

// offer has the host let peers operate on a region.
func (a *attached) offer(ctx context.Context, r offered) error {
	err := a.call(ctx, share.CallRegister, r.Region, nil, r.memory.FD())
	if err == nil && r.kept {
		err = a.call(ctx, share.CallKeep, r.Key, nil)
	}
	return err
}
