// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/node"
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

// Survive has the domain move to another host.
func (a *Attached) Survive(on *node.Stepper, move node.MoveIn) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if a.redial != nil {
		a.rejoin = func(ctx context.Context, in attachment) bool { return a.rejoins(ctx, on, move, in) }
	}
}

// Times between two attempts to find another host.
const (
	firstSeek   = 5 * time.Millisecond
	longestSeek = time.Second
)

// seek looks for another host until there is one, or the domain is closed.
func (a *Attached) seek(rejoin func(context.Context, attachment) bool, changed func(port.Event)) {
	rejoin(a.closing, attachment{}) // what the former one had is over
	a.Mu.Lock()
	if a.joined {
		a.joined = false
		a.lives.Add(1)
	}
	a.Mu.Unlock()
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
		var in attachment
		if err == nil {
			in, err = a.meet(a.closing, talk)
		} else if noHost(err) {
			continue
		}
		if err != nil {
			a.refused(err)
			continue
		}
		if a.moveTo(in, rejoin) {
			changed(port.Event{Kind: port.HostFound})
		}
		return
	}
}

// noHost reports whether an error of redial says that there is no host yet, or that one
// ended as it was asked. Others are refusals.
func noHost(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// moveTo talks to another host, and has it carry the domain's operations.
func (a *Attached) moveTo(in attachment, rejoin func(context.Context, attachment) bool) bool {
	a.moving.Lock()
	defer a.moving.Unlock()
	a.Mu.Lock()
	a.Talk, a.Ended = in.talk, nil
	a.Mu.Unlock()
	a.reader.Go(func() { a.lose(a.listen(in.talk, nil)) })
	if !rejoin(a.closing, in) {
		a.turnedAway++
		return false
	}
	a.turnedAway = 0
	return true
}

// tookIn records that a host carries operations.
func (a *Attached) tookIn() {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.joined, a.refusal = true, ""
}

// refused reports that a host does not take the domain, once for each reason.
func (a *Attached) refused(why error) {
	a.Mu.Lock()
	changed, again := a.changed, a.refusal == why.Error()
	a.refusal = why.Error()
	a.Mu.Unlock()
	if a.closing.Err() == nil && changed != nil && !again {
		changed(port.Event{Kind: port.HostRefused, To: why.Error()})
	}
}

// rejoins is called without a segment when the host has ended, and then with what the
// next one has agreed to. It reports whether that one carries the domain's operations
// now.
func (a *Attached) rejoins(ctx context.Context, st *node.Stepper, move node.MoveIn, in attachment) (joined bool) {
	if in.segment == nil {
		st.Call(func() {
			st.Eng.Lose()
			_ = a.Ring.Lose()
		})
		return false
	}
	err := a.moveRegions(ctx)
	var numbers map[*engine.Peer]uint32
	if err == nil {
		numbers, err = move(ctx)
	}
	if err != nil {
		a.refused(err)
		_ = in.close()
		a.EndTalk() // which begins all over
		return false
	}
	st.Call(func() {
		if !a.talksTo(in.talk) { // that host has ended too, and Lose has been called for it already
			return
		}
		joined = true
		a.tookIn()
		a.Ring.Renew(in.segment, in.doorbell)
		a.Ring.Agree(in.features)
		for p, n := range numbers {
			p.Renumber(n)
		}
	})
	if !joined { // the domain has ended, or the host
		_ = in.close()
	}
	return joined
}

// talksTo reports whether talk is the conversation with the present host.
func (a *Attached) talksTo(talk *share.Talk) bool {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	return a.Ended == nil && a.Talk == talk
}

// moveRegions gives another host what the guest itself has: its attributes, tallies and
// regions.
func (a *Attached) moveRegions(ctx context.Context) error {
	a.Mu.Lock()
	regions := slices.Clone(a.regions)
	a.Mu.Unlock()
	_, err := a.tuneHost(ctx)
	errs := []error{err, a.offerTallies(ctx, a.Ring.Tallies())}
	regions, err = a.regain(ctx, regions)
	if err != nil {
		return err
	}
	for _, r := range regions {
		errs = append(errs, a.offer(ctx, r))
	}
	return errors.Join(errs...)
}

// offered is a region as this process describes it to a host.
type offered struct {
	share.Region
	memory *mr.Memory
	tally  *share.Tally // or nil
	kept   bool
}

// offer has the host let peers operate on a region.
func (a *Attached) offer(ctx context.Context, r offered) error {
	err := a.Call(ctx, share.CallRegister, r.Region, nil, r.memory.FD())
	if err == nil && r.kept {
		err = a.Call(ctx, share.CallKeep, r.Key, nil)
	}
	return err
}
