// SPDX-License-Identifier: Apache-2.0

//go:build linux

package diagnose

import (
	"context"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Opener puts an interface to use, as xdpfab.Open does.
type Opener func(ctx context.Context, ifname string, attr xdpfab.DomainAttr) (*xdpfab.Domain, error)

// Question names the peer to diagnose.
type Question struct {
	Addr      wire.Addr // of the peer
	Interface string
	Attr      xdpfab.DomainAttr // as the interface is to be opened
	Timeout   time.Duration     // of each attempt to hear from the peer
	Control   string            // the socket at which the interface's daemon is looked for
	Open      Opener
}

// diagnosis is a question under way.
type diagnosis struct {
	Question
	Finding
	nic        nic.Interface
	known      bool // nic is
	status     *control.Status
	privileged bool // the caller may open the interface and ask for neighbours
	sockets    bool // UDP sockets, since AF_XDP is not to be had
	away       bool // the daemon's interface is in another network namespace
	way        *way
	dom        *xdpfab.Domain
	shut       string // why dom is nil
	peer       *xdpfab.Peer
	refused    bool   // the session, by an answer of the peer
	addr       string // at which peer answers
	regions    []xdpfab.RemoteRegion
}

// steps are the looks that a diagnosis takes, in this order.
var steps = []struct {
	name  string
	place Place
	take  func(*diagnosis, context.Context) Step
}{
	{"interface", Here, (*diagnosis).lookAtInterface},
	{"daemon", Here, (*diagnosis).lookAtDaemon},
	{"kernel", Here, (*diagnosis).lookAtKernel},
	{"addresses", Here, (*diagnosis).lookAtAddresses},
	{"route", There, (*diagnosis).lookAtRoute},
	{"neighbour", There, (*diagnosis).askNeighbour},
	{"open", Here, (*diagnosis).openInterface},
	{"session", There, (*diagnosis).dial},
	{"encapsulation", There, (*diagnosis).dialOther},
	{"port", There, (*diagnosis).knockAtPort},
	{"round trip", Part, (*diagnosis).timeRoundTrips},
	{"regions", Part, (*diagnosis).listRegions},
	{"queues", Part, (*diagnosis).tryQueues},
	{"MTU", Part, (*diagnosis).tryLengths},
}

// Run looks for the reason why a peer does not answer, and calls show after each step.
// It changes no memory of the peer.
func Run(ctx context.Context, q Question, show func(*Step)) (Report, error) {
	d := &diagnosis{Question: q, Finding: Finding{Peer: q.Addr}}
	r := Report{Peer: q.Addr.String(), Interface: q.Interface, Steps: []Step{}}
	defer func() {
		if d.way != nil {
			d.way.close()
		}
	}()
	for _, s := range steps {
		if ctx.Err() != nil {
			break
		}
		begin := time.Now()
		step := s.take(d, ctx)
		step.Name, step.Milliseconds = s.name, float64(time.Since(begin).Microseconds())/1e3
		if step.Place == "" {
			step.Place = s.place
		}
		r.Steps = append(r.Steps, step)
		show(&step)
	}
	r.conclude(&d.Finding, d.addr == d.Peer.String())
	var err error
	if d.dom != nil {
		err = d.dom.CloseAll()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return r, err
}

func ok(detail string) Step      { return Step{Verdict: OK, Detail: detail} }
func leftOut(detail string) Step { return Step{Verdict: LeftOut, Detail: detail} }

func failed(detail, remedy string) Step {
	return Step{Verdict: Failed, Detail: detail, Remedy: remedy}
}

func doubtful(detail, remedy string) Step {
	return Step{Verdict: Doubtful, Detail: detail, Remedy: remedy}
}
