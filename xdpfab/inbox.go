// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// inbox is the endpoint as the queue of its receives knows it. It implements
// matching.Sink, on the threads of the engines and of the callers that post receives.
type inbox Endpoint

func (r *inbox) Take() bool { return r.recv.arrivals.Load().take() }

func (r *inbox) Return() { r.recv.arrivals.Load().taken.Add(-1) }

func (r *inbox) Deliver(d *matching.Done) {
	var err *OpError
	if why := d.Reason; why != matching.Received {
		err = &OpError{Op: "receive", Peer: peerOf(d), Cause: receiveErrors[why]}
	}
	r.tell(d, d.Received, err)
}

// found writes the completion of a look at a message, or of one for which no message was
// there.
func (r *inbox) found(d *matching.Done, ok bool) {
	if ok {
		r.tell(d, d.Length, nil)
		return
	}
	r.tell(d, 0, &OpError{Op: "peek", Cause: ErrNoMessage})
}

// tell writes a completion of so many bytes, for which a place has been taken, and counts
// it.
func (r *inbox) tell(d *matching.Done, bytes uint64, err *OpError) {
	c := Completion{
		Endpoint: (*Endpoint)(r), Context: d.Context, Flags: CompletionMsg | CompletionRecv, Bytes: int(min(bytes, math.MaxInt)),
		Overflow: int(min(d.Length-bytes, math.MaxInt)), Tag: d.Tag, Offset: int(d.Offset),
	}
	if d.Tagged {
		c.Flags ^= CompletionMsg | CompletionTagged
	}
	if d.HasData {
		c.Flags |= CompletionRemoteCQData
		c.Data = d.Data
	}
	if d.Released {
		c.Flags |= CompletionMultiRecv
	}
	counter := r.cntr[receives]
	switch {
	case err != nil:
		c.Err = err
		if counter != nil {
			counter.count(0, 1)
		}
	case counter != nil:
		counter.count(1, 0)
	}
	r.recv.arrived(&d.From, &c)
}

// peerOf returns the text form of the address that a message came from; empty if there is
// no message.
func peerOf(d *matching.Done) string {
	if d.From == (wire.Addr{}) {
		return ""
	}
	return d.From.String()
}

// receiveErrors are the causes of receives that fail.
var receiveErrors = map[matching.Reason]error{
	matching.Truncated: ErrTruncated, matching.Cancelled: ErrCancelled, matching.Lost: ErrSessionLost, matching.Spent: ErrSessionLost,
}

// openReceives makes the queue of receives of an endpoint that is enabled.
func (ep *Endpoint) openReceives() {
	to := matching.Sink((*inbox)(ep))
	switch {
	case ep.attr.mails:
		to = (*letters)(ep)
	case ep.recv == nil || ep.attr.InitiateOnly:
		return
	}
	ep.minMultiRecv.Store(int64(ep.attr.MinMultiRecv))
	ep.receives = matching.New(matching.Config{
		Receives: ep.attr.ReceiveSize, Unexpected: ep.attr.ReceiveSize, Memory: max(ep.attr.BufferedReceive, 0),
		Sink: to, Room: ep.dom.room,
	})
	if ep.recv != nil {
		ep.recv.feeds.add(ep.receives)
	}
}

// closeReceives cancels the receives that are posted.
func (ep *Endpoint) closeReceives() {
	if ep.receives == nil {
		return
	}
	ep.receives.Close()
	if ep.recv != nil {
		ep.recv.feeds.remove(ep.receives)
	}
}

// SetMinMultiRecv changes EndpointAttr.MinMultiRecv, for receives that are posted from
// now on (fi_setopt with FI_OPT_MIN_MULTI_RECV).
func (ep *Endpoint) SetMinMultiRecv(bytes int) error {
	if bytes < 1 {
		return fmt.Errorf("xdpfab: endpoint %d: %d free bytes of a multi-receive buffer: want at least 1: %w", ep.number, bytes, ErrCount)
	}
	ep.minMultiRecv.Store(int64(bytes))
	return nil
}

// MinMultiRecv returns what SetMinMultiRecv or the attributes have set (fi_getopt).
func (ep *Endpoint) MinMultiRecv() int { return int(ep.minMultiRecv.Load()) }

// feeds are the queues of receives whose completions come to one completion queue.
type feeds struct {
	list atomic.Pointer[[]*matching.Queue]
}

// freed tells them that n completions have been read.
func (f *feeds) freed(n int) {
	if list := f.list.Load(); n > 0 && list != nil {
		for _, q := range *list {
			q.Freed()
		}
	}
}

func (f *feeds) add(q *matching.Queue) {
	f.change(func(l []*matching.Queue) []*matching.Queue { return append(l, q) })
}

func (f *feeds) remove(q *matching.Queue) {
	f.change(func(l []*matching.Queue) []*matching.Queue {
		return slices.DeleteFunc(l, func(x *matching.Queue) bool { return x == q })
	})
}

// change replaces the list; endpoints may do so at the same time.
func (f *feeds) change(by func([]*matching.Queue) []*matching.Queue) {
	for {
		old := f.list.Load()
		var list []*matching.Queue
		if old != nil {
			list = slices.Clone(*old)
		}
		if list = by(list); f.list.CompareAndSwap(old, &list) {
			return
		}
	}
}

// room tells the engines that messages which had to wait may find room.
func (d *Domain) room() {
	for _, st := range d.steppers {
		st.eng.Room()
	}
}

// inflowOf returns what takes the messages of a session with an endpoint, or nil. It runs
// on the engines' threads.
func (d *Domain) inflowOf(endpoint uint16, from wire.Addr) session.Inflow {
	if ep := d.serving(endpoint); ep != nil && ep.receives != nil {
		return ep.receives.NewInflow(from)
	}
	return nil
}
