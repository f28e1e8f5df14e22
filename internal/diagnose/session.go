// SPDX-License-Identifier: Apache-2.0

//go:build linux

package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// The steps that speak the protocol.

func (d *diagnosis) openInterface(ctx context.Context) Step {
	switch {
	case d.Own && !d.throughDaemon():
		d.shut = thisNode
		return leftOut(thisNode)
	case d.shut != "" && !d.sockets:
		return leftOut(d.shut)
	}
	attr := d.Attr
	attr.GiveUp = d.Timeout
	attr.EthernetOnly, attr.Transport = false, fi.TransportXDP // both encapsulations are tried
	if d.sockets {
		attr.Transport = fi.TransportUDP
	}
	if d.status != nil { // an interface that is opened here may take seconds until it is up
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 2*d.Timeout)
		defer cancel()
	}
	dom, err := d.Open(ctx, d.Interface, attr)
	if err != nil {
		d.shut = "the interface cannot be opened"
		return failed(tell.Plain(err), "")
	}
	d.dom = dom
	i := dom.Interface()
	d.NoUDP = !i.UDP && i.Transport != fi.TransportUDP.String()
	switch {
	case i.Daemon != "":
		return ok("through the daemon at " + i.Daemon)
	case i.Transport == fi.TransportUDP.String():
		return ok("UDP sockets at " + i.Address)
	}
	return ok(fmt.Sprintf("%s XDP, %s, %s", i.XDP, i.Copy, queues(i.Queues)))
}

// attempt dials an address, and reports how long the answer took.
func (d *diagnosis) attempt(ctx context.Context, addr string) (*xdpfab.Peer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*d.Timeout, xdpfab.ErrPeerSilent)
	defer cancel()
	return d.dom.Dial(ctx, addr)
}

func (d *diagnosis) dial(ctx context.Context) Step {
	if d.dom == nil {
		return leftOut(cmp.Or(d.shut, "the interface is not open"))
	}
	p, err := d.attempt(ctx, d.Peer.String())
	switch {
	case err == nil:
		d.peer, d.addr = p, d.Peer.String()
		return ok(fmt.Sprintf("%s answers over %s, protocol version %d", d.addr, wireKind(d.Peer), wire.Version))
	case errors.Is(err, fi.ErrAuthKey):
		d.refused = true
		return Step{Verdict: Failed, Place: Part, Detail: tell.Plain(err), Remedy: "give both sides the same key, or " +
			"none: --auth-key-file here, and there the option auth-key of a region, or --auth-key-file of a receiver"}
	case errors.Is(err, xdpfab.ErrRefused) && d.Peer.Endpoint != 0:
		d.refused = true
		to := d.Peer
		to.Endpoint, to.Lane = 0, 0
		return Step{Verdict: Failed, Place: Part, Detail: tell.Plain(err),
			Remedy: fmt.Sprintf("give %v for the endpoint of its daemon; %d behind the slash is that of a program, "+
				"which has to run there", to, d.Peer.Endpoint)}
	case errors.Is(err, xdpfab.ErrRefused):
		d.refused = true
		return Step{Verdict: Failed, Place: Part, Detail: tell.Plain(err), Remedy: "a daemon has endpoint 0; look at " +
			"the peer's log, and compare the versions of both"}
	case errors.Is(err, xdpfab.ErrPeerSilent):
		return failed(fmt.Sprintf("no answer over %s", wireKind(d.Peer)), "see the cause below")
	}
	return failed(tell.Plain(err), "")
}

// dialOther dials the other addresses of the peer's host: they take the other
// encapsulation.
func (d *diagnosis) dialOther(ctx context.Context) Step {
	switch {
	case d.dom == nil:
		return leftOut(cmp.Or(d.shut, "the interface is not open"))
	case len(d.Tried) == 0:
		return leftOut("the peer's address for the other encapsulation is not known")
	case d.Peer.IsIP() && d.dom.Interface().Transport == fi.TransportUDP.String():
		d.Tried = nil
		return leftOut("UDP sockets send no raw Ethernet")
	case !d.Peer.IsIP() && d.NoUDP:
		d.Tried = nil
		return leftOut("this node has UDP off")
	}
	said := "no answer from "
	for _, addr := range d.Tried {
		p, err := d.attempt(ctx, addr)
		if errors.Is(err, xdpfab.ErrRefused) {
			said = "refused, too, by "
		}
		if err == nil {
			d.Answers = addr
			if d.peer == nil {
				d.peer, d.addr = p, addr
				c, _ := d.elsewhere()
				return failed(c.Text, c.Remedy)
			}
			return ok(addr + " answers, too")
		}
	}
	text := said + strings.Join(d.Tried, " and ")
	if d.peer != nil {
		return ok(text + ": the peer serves one encapsulation")
	}
	return failed(text, "")
}

// noPeer says why nothing can be asked of the peer.
func (d *diagnosis) noPeer() string {
	if d.dom == nil {
		return cmp.Or(d.shut, "the interface is not open")
	}
	return "the peer does not answer"
}

// trips is how many round trips are measured.
const trips = 20

// nothing is a name to look up: whether a region has it does not matter.
const nothing = "ping"

func (d *diagnosis) timeRoundTrips(ctx context.Context) Step {
	if d.peer == nil {
		return leftOut(d.noPeer())
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 2*d.Timeout, xdpfab.ErrPeerSilent)
	defer cancel()
	var took []time.Duration
	for range trips {
		begin := time.Now()
		if _, err := d.peer.Lookup(ctx, nothing); err != nil && !errors.Is(err, xdpfab.ErrNoRegion) {
			return failed(fmt.Sprintf("%d of %d look-ups were answered, then: %v", len(took), trips, tell.Plain(err)),
				"frames get lost: look at `xdpfab stat` and the switch's counters")
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return ok(fmt.Sprintf("%d look-ups: least %v, median %v, most %v", trips, trip(took[0]),
		trip(took[trips/2]), trip(took[trips-1])))
}

// trip prints how long a round trip took.
func trip(took time.Duration) string {
	if took < time.Millisecond {
		return fmt.Sprintf("%.1f µs", float64(took)/float64(time.Microsecond))
	}
	return fmt.Sprintf("%.1f ms", float64(took)/float64(time.Millisecond))
}

func (d *diagnosis) listRegions(ctx context.Context) Step {
	if d.peer == nil {
		return leftOut(d.noPeer())
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 2*d.Timeout, xdpfab.ErrPeerSilent)
	defer cancel()
	list, err := d.peer.Regions(ctx)
	switch {
	case err != nil:
		return failed(tell.Plain(err), "")
	case len(list) == 0:
		return doubtful("the peer publishes none", "xdpfabd --region NAME=SIZE there, or `xdpfab region create`")
	}
	d.regions = list
	const most = 8
	var names []string
	for _, r := range list[:min(len(list), most)] {
		names = append(names, fmt.Sprintf("%q (%d bytes)", r.Name, r.Size))
	}
	if len(list) > most {
		names = append(names, fmt.Sprintf("and %d more", len(list)-most))
	}
	return ok(strings.Join(names, ", "))
}
