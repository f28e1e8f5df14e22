// SPDX-License-Identifier: Apache-2.0

//go:build linux

package diagnose

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// sessions is how many further sessions try the peer's queues.
const sessions = 8

// apart runs f with a session of its own, so that one that gets stuck holds up no other.
// If the peer is silent, and twice is set, it runs f once more with the next session of
// the same endpoint, whose packets come to the same queue of the peer.
func (d *diagnosis) apart(ctx context.Context, twice bool, f func(context.Context, *xdpfab.Peer) error) (err error) {
	box, err := d.dom.NewMailbox(xdpfab.MailboxAttr{Number: fi.AnyNumber, Receives: 1, Buffered: 4096})
	if err != nil {
		return err
	}
	defer func() { _ = box.Close() }()
	once := func() error {
		ctx, cancel := context.WithTimeoutCause(ctx, d.Timeout, xdpfab.ErrPeerSilent)
		defer cancel()
		p, err := box.Dial(ctx, d.addr)
		if err != nil {
			return err
		}
		return f(ctx, p)
	}
	if err = once(); twice && errors.Is(err, xdpfab.ErrPeerSilent) && ctx.Err() == nil {
		err = once()
	}
	return err
}

// tryQueues opens sessions from several endpoints, which come to several queues of the
// peer where its NIC spreads them.
func (d *diagnosis) tryQueues(ctx context.Context) Step {
	if d.peer == nil {
		return leftOut(d.noPeer())
	}
	answered, err := answers(sessions, func(twice bool) (bool, error) {
		err := d.apart(ctx, twice, func(ctx context.Context, p *xdpfab.Peer) error {
			_, err := p.Lookup(ctx, nothing)
			return err
		})
		if err == nil || errors.Is(err, xdpfab.ErrNoRegion) {
			return true, nil
		}
		if errors.Is(err, xdpfab.ErrPeerSilent) {
			return false, nil
		}
		return false, err
	})
	if err != nil {
		return doubtful("a further session: "+tell.Plain(err), "")
	}
	if answered < sessions {
		return failed(fmt.Sprintf("%d of %d further sessions were answered", answered, sessions),
			"the peer's interface has queues that nobody serves: give its daemon more --queues, or fewer to the NIC "+
				"(ethtool -L), or use --steer there")
	}
	return ok(fmt.Sprintf("%d of %d further sessions answer", answered, sessions))
}

// answers counts the sessions that are answered. A busy machine may answer too late. So a
// session that is not answered is asked twice, until one has been silent both times: then
// some queue is deaf, and the next ones need not wait twice.
func answers(n int, ask func(twice bool) (bool, error)) (answered int, err error) {
	deaf := false
	for range n {
		is, err := ask(!deaf)
		if err != nil {
			return answered, err
		}
		if deaf = deaf || !is; is {
			answered++
		}
	}
	return answered, nil
}

// mtus are the lengths that are tried, longest first, bytes: those of usual links and
// tunnels.
var mtus = []int{9000, 8950, 4096, 1500, 1492, 1450, 1400, 1280, 576}

// recordLen is the least length of a write's record without its bytes.
const recordLen = 20

// recordUnit is what lengths of records are multiples of.
const recordUnit = 8

// fills returns how many bytes a write has whose packet is as long as given, or less than
// recordUnit shorter.
func (d *diagnosis) fills(length int) int {
	a, _ := wire.ParseAddr(d.addr)
	return (length-a.Kind().Overhead()-wire.HeaderLen)/recordUnit*recordUnit - recordLen
}

// tryLengths looks which packets pass, to the peer and back.
func (d *diagnosis) tryLengths(ctx context.Context) Step {
	if d.peer == nil {
		return leftOut(d.noPeer())
	}
	mtu := d.dom.Interface().MTU
	full, narrow := mtu, d.stat("paths_narrow") > 0
	if narrow { // sessions have found out, and send no longer packets than these
		full = wire.SureMTU
	}
	to, err := d.longest(ctx, full, d.writeNowhere)
	if err != nil {
		return doubtful("a long request: "+tell.Plain(err), "")
	}
	if to < full {
		return d.hole("to the peer", to, mtu)
	}
	region, readable := d.readable(full)
	if narrow && !readable {
		return d.narrow(mtu)
	}
	if !readable {
		return ok(fmt.Sprintf("packets of %d bytes pass to the peer; none of its regions can be read to try the way "+
			"back", mtu))
	}
	back, err := d.longest(ctx, full, func(ctx context.Context, p *xdpfab.Peer, n int) error {
		return p.Read(ctx, region, 0, make([]byte, n))
	})
	if err != nil {
		return doubtful("a long answer: "+tell.Plain(err), "")
	}
	if back < full {
		return d.hole("from the peer", back, mtu)
	}
	if narrow {
		return d.narrow(mtu)
	}
	return ok(fmt.Sprintf("packets of %d bytes pass both ways", mtu))
}

func (d *diagnosis) narrow(mtu int) Step {
	return failed(fmt.Sprintf("packets of this interface's MTU, %d, are lost on the way; those of %d pass, and xdpfab "+
		"sends no longer ones", mtu, wire.SureMTU), "give the switches and tunnels between the MTU of both ends, or "+
		"the ends theirs: ip link set dev "+d.Interface+" mtu N")
}

func (d *diagnosis) hole(way string, most, mtu int) Step {
	text := fmt.Sprintf("packets of this interface's MTU, %d, are lost on the way %s", mtu, way)
	if most > 0 {
		text += fmt.Sprintf("; those of %d pass", most)
	}
	least := max(most, wire.MinMTU)
	const leastIPv6 = 1280 // RFC 8200, section 5
	ends := ","
	if least < leastIPv6 {
		ends = ", which ends IPv6 there,"
	}
	return failed(text, fmt.Sprintf("ip link set dev %s mtu %d at both ends%s or give the switches and tunnels "+
		"between the MTU of both ends", d.Interface, least, ends))
}

// longest returns the longest packet that passes, 0 if none does.
func (d *diagnosis) longest(ctx context.Context, mtu int,
	try func(context.Context, *xdpfab.Peer, int) error) (int, error) {
	shorter := slices.DeleteFunc(slices.Clone(mtus), func(length int) bool { return length >= mtu })
	all := append([]int{mtu}, shorter...)
	passes := func(length int) (bool, error) {
		n := d.fills(length)
		if length == mtu {
			n = 2 * mtu // the first frame of them is a full one
		}
		err := d.apart(ctx, false, func(ctx context.Context, p *xdpfab.Peer) error { return try(ctx, p, n) })
		if errors.Is(err, xdpfab.ErrPeerSilent) || errors.Is(err, context.DeadlineExceeded) {
			return false, nil
		}
		return err == nil, err
	}
	most, err := longestThat(passes, all)
	if n := slices.Index(all, most); err == nil && n > 0 {
		// A packet may have been shorter than the length that it stands for.
		longer, err := between(passes, most, all[n-1])
		return max(most, longer-recordUnit), err
	}
	return most, err
}

// looks is how many lengths are tried between two usual ones. Each that is lost takes the
// whole time for an answer.
const looks = 5

// between returns the longest length that passes of some between one that does, low, and
// one that does not, high.
func between(passes func(length int) (bool, error), low, high int) (int, error) {
	for range looks {
		middle := (low + high) / 2 / recordUnit * recordUnit
		if middle <= low {
			break
		}
		is, err := passes(middle)
		switch {
		case err != nil:
			return low, err
		case is:
			low = middle
		default:
			high = middle
		}
	}
	return low, nil
}

// longestThat returns the first length that passes, 0 if none does. A busy machine may
// answer too late, and the next, shorter packet in time. So a shorter one counts only if
// the first one fails once more.
func longestThat(passes func(length int) (bool, error), lengths []int) (int, error) {
	for i, length := range lengths {
		is, err := passes(length)
		if err != nil {
			return 0, err
		}
		if !is {
			continue
		}
		if i == 0 {
			return length, nil
		}
		if is, err = passes(lengths[0]); is {
			length = lengths[0]
		}
		return length, err
	}
	return 0, nil
}

// writeNowhere sends a request with so many bytes that changes nothing: no region has the
// key and reaches so far.
func (d *diagnosis) writeNowhere(ctx context.Context, p *xdpfab.Peer, n int) error {
	nowhere := xdpfab.RemoteRegion{Key: uint64(time.Now().UnixNano()) | 1<<63}
	err := p.Write(ctx, nowhere, math.MaxUint64>>1, make([]byte, n))
	if errors.Is(err, xdpfab.ErrNoKey) || errors.Is(err, xdpfab.ErrOutOfBounds) || errors.Is(err, xdpfab.ErrAccess) {
		return nil
	}
	return err
}

// readable finds a region whose bytes fill a packet.
func (d *diagnosis) readable(mtu int) (xdpfab.RemoteRegion, bool) {
	for _, r := range d.regions {
		if r.Access&mr.RemoteRead != 0 && r.Size >= 2*uint64(mtu) {
			return r, true
		}
	}
	return xdpfab.RemoteRegion{}, false
}

func (d *diagnosis) stat(name string) uint64 {
	all, err := d.dom.Stats()
	if err != nil {
		return 0
	}
	return all[name]
}
