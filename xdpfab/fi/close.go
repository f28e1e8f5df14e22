// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// Close frees the interface (fi_close). It fails with ErrBusy, and names them, as long as
// objects of the domain are open: endpoints, dialled peers, memory regions, address
// vectors, completion queues, counters, poll sets. Closing twice is no error.
func (d *Domain) Close() error {
	if err := d.there(); err != nil {
		return err
	}
	return d.closeWith(false)
}

// CloseAll closes the domain and everything that belongs to it: it ends every session
// (peers learn which of their operations never ran), completes the operations that wait,
// deregisters memory and frees the interface. Closing twice is no error. It unmaps what
// NewRegion has allocated, unless the domain is one of a Pipe: then the program must not
// use its words or bytes any more.
func (d *Domain) CloseAll() error {
	if err := d.there(); err != nil {
		return err
	}
	return d.closeWith(true)
}

// keep adds a child of the domain, with a name for messages, and remove takes it out.
func (d *Domain) keep(child any, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.children[child] = name
}

func (d *Domain) remove(child any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.children, child)
}

// busy names what is open, or returns nil. d.mu is held.
func (d *Domain) busy() error {
	var names []string
	for _, name := range d.children {
		names = append(names, name)
	}
	d.node.Mu.Lock() // a region that is being registered counts as open
	for _, r := range d.node.Table.All() {
		names = append(names, "region "+r.String())
	}
	d.node.Mu.Unlock()
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	names = counted(names)
	const shown = 8
	more := ""
	if n := len(names); n > shown {
		names, more = names[:shown], fmt.Sprintf(" and %d more", n-shown)
	}
	return errno.Refuse(ErrBusy,
		"xdpfab: domain on %s: still open: %s%s: close them first, or everything with CloseAll",
		d.label(), strings.Join(names, "; "), more)
}

// counted returns each of the sorted names once, with how often it came.
func counted(names []string) (once []string) {
	for len(names) > 0 {
		n := 1
		for n < len(names) && names[n] == names[0] {
			n++
		}
		name := names[0]
		if n > 1 {
			name = fmt.Sprintf("%s (%d times)", name, n)
		}
		once, names = append(once, name), names[n:]
	}
	return once
}

// object is what address vectors, completion queues and counters have in common:
// endpoints are bound to them, or they are in poll sets, and they stay open while any is.
type object struct {
	dom    *Domain
	what   string
	waits  *sleepers    // for the object; nil for an address vector
	leave  func() error // what else the end of the object ends; or nil
	users  int          // endpoints and regions bound, and poll sets; under dom.mu
	closed atomic.Bool  // written under dom.mu
}

// open makes the object a child of d, whose mu is held.
func (o *object) open(d *Domain, what string, waits *sleepers) {
	o.dom, o.what, o.waits = d, what, waits
	d.children[o] = what
}

// hold counts a user, and drop one that ended.
func (o *object) hold() error {
	o.dom.mu.Lock()
	defer o.dom.mu.Unlock()
	if err := o.ended(); err != nil {
		return err
	}
	o.users++
	return nil
}

func (o *object) drop() {
	o.dom.mu.Lock()
	defer o.dom.mu.Unlock()
	o.users--
}

// errClosed is the error of a call on an object of the domain that is closed. again is
// what the program can do if it has closed the object on its own.
func (d *Domain) errClosed(what, again string) error {
	return fmt.Errorf("xdpfab: %s: %w", what, d.node.End.Closed(again))
}

// anew is what a program can do after it has closed an object.
const anew = "make another one"

// errClosed is the error of a call on an endpoint that is closed. The program does not
// know the number of an endpoint that dialled peers share.
func (ep *endpoint) errClosed() error {
	switch {
	case ep.attr.mails:
		return ep.dom.errClosed(fmt.Sprintf("mailbox %d", ep.number), anew)
	case ep.attr.handler != nil:
		return ep.dom.errClosed(fmt.Sprintf("handler %d", ep.number), anew)
	case ep.attr.dials:
		return fmt.Errorf("xdpfab: %w", ep.dom.node.End.Closed("dial again"))
	}
	return ep.dom.errClosed(fmt.Sprintf("endpoint %d", ep.number), anew)
}

// ended reports an error when the object is closed.
func (o *object) ended() error {
	if o.closed.Load() {
		return o.dom.errClosed(o.what, anew)
	}
	return nil
}

// close closes the object, unless it has users. Closing twice is no error.
func (o *object) close() error {
	o.dom.mu.Lock()
	defer o.dom.mu.Unlock()
	if o.users > 0 {
		return errno.Refuse(ErrBusy,
			"xdpfab: %s: endpoints are bound, or it is in poll sets, %d in all: close or empty them first", o.what,
			o.users)
	}
	if o.closed.Swap(true) || o.leave == nil {
		delete(o.dom.children, o)
		return nil
	}
	delete(o.dom.children, o)
	return o.leave()
}

// endObjects closes the objects along with the domain. d.mu is held.
func (d *Domain) endObjects() {
	for child := range d.children {
		if o, ok := child.(*object); ok {
			if !o.closed.Swap(true) && o.leave != nil {
				_ = o.leave() // the objects of others are not the domain's concern
			}
			o.wake()
		}
	}
	clear(d.children)
}

// WakeObjects ends the waits for all objects, once nothing more will happen to them.
func (d asOwner) WakeObjects() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for child := range d.children {
		if o, ok := child.(*object); ok {
			o.wake()
		}
	}
}

func (o *object) wake() {
	if o.waits != nil {
		o.waits.wakeAll()
	}
}

// arm arms the file descriptor, or returns why nothing would make it readable.
func (o *object) arm(of waitable, want, errs uint64) error {
	if err := o.waits.arm(of, o.what, want, errs); err != nil {
		return err
	}
	return o.dom.node.End.Returned()
}

// Done is closed when the domain has ended: Close was called, or the interface can no
// longer be used. Err then says which. Calls and operations that wait fail with the
// cause.
func (d *Domain) Done() <-chan struct{} { return d.node.End.Done }

// Err is nil until Done is closed. Then it is the cause: it wraps ErrClosed after
// Close, or ErrInterfaceLost. A domain that ended by itself has still to be closed.
func (d *Domain) Err() error {
	if err := d.there(); err != nil {
		return err
	}
	return d.node.End.Returned()
}

// asOwner is the domain as its node asks it.
type asOwner struct{ *Domain }

// Lost reports the end of the domain to its event queue.
func (d asOwner) Lost(cause error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events.tell(d.Domain, d.attr.Context, cause)
}

// ShutTenants closes endpoints and what waits for a counter.
func (d asOwner) CloseTenants() {
	d.mu.Lock()
	eps := make([]*endpoint, 0, len(d.endpoints))
	for _, ep := range d.endpoints {
		eps = append(eps, ep)
	}
	d.mu.Unlock()
	for _, ep := range eps {
		ep.closeNow()
	}
	for _, p := range d.passives() {
		p.closeNow()
	}
	d.endWork()
}

// Close ends the endpoint's sessions to its peers; operations that wait complete
// with what is known of them. It reports ErrBusy as long as the endpoint has aliases. Of
// an alias it ends the use alone, and operations that were posted by it continue. Closing
// twice is no error.
func (ep *Endpoint) Close() error {
	if err := ep.there(); err != nil {
		return err
	}
	if ep.isAlias() {
		return ep.endAlias()
	}
	return ep.close()
}

func (ep *endpoint) close() error {
	if err := ep.drain(); err != nil {
		return err
	}
	ep.closeNow()
	d := ep.dom
	d.mu.Lock()
	own := d.endpoints[ep.number] == ep
	if own {
		delete(d.endpoints, ep.number)
	}
	delete(d.children, ep)
	own = d.node.Numbers.Drop(ep.number, (*asTenant)(ep)) && own && d.node.Numbers.BlockOf(ep.number) == nil
	d.mu.Unlock()
	if own {
		d.node.Dev.GiveBack(ep.number, 1)
	}
	return nil
}

func (ep *endpoint) closeNow() {
	ep.closeCalls()
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if ep.phase.Swap(shutOff) == shutOff {
		return
	}
	waiting := ep.endDeferral()
	if ep.attr.handler != nil {
		ep.attr.handler.Close()
	}
	if ep.origin != nil {
		ep.dom.serve(ep, false)
		ep.stepper.Call(func() {
			ep.dropAll()
			if ep.conn != nil {
				ep.conn.endQuietly(ep.dom.node.End.Closed(anew))
			}
			ep.cancelOperations(waiting)
			for _, r := range ep.rings() {
				ep.stepper.Eng.Exhaust(r) // the operations posted before the endpoint was closed
				ep.stepper.Eng.RemoveRing(r)
			}
		})
		ep.endTargets()
	}
	ep.dom.node.Dev.Drop(ep.identity, ep.tally)
	if ep.conn != nil {
		ep.conn.free()
	}
	ep.dom.triggers.startReceives() // those that became due before; no other one will
	ep.closeReceives()
	if ep.cq != nil {
		ep.cq.drop()
	}
	if ep.recv != nil {
		ep.recv.drop()
	}
	if ep.av != nil {
		ep.av.unuse(ep)
	}
	if ep.shared != nil {
		ep.shared.drop()
	}
	if ep.sharedReceive != nil {
		ep.sharedReceive.drop()
	}
	for _, c := range ep.counters() {
		c.drop()
	}
	ep.events.tell(&ep.handle, ep.attr.Context, ep.dom.node.End.Returned())
	ep.events.cut()
}

// endTargets ends the sessions of peers to the endpoint.
func (ep *endpoint) endTargets() {
	for _, st := range ep.dom.node.Steppers {
		st.Call(func() { st.Eng.EndTargets(ep.number) })
	}
}

// Shutdown refuses new operations with ErrClosed at once, and closes the endpoint after
// the outstanding ones have completed, with success or failure; those that still wait for
// a counter are cancelled. If ctx ends first, it closes the endpoint as Close does and
// returns the context's error. Of an alias it is Close.
func (ep *Endpoint) Shutdown(ctx context.Context) error {
	if err := ep.there(); err != nil {
		return err
	}
	if err := errno.NoContext(ctx); err != nil {
		return err
	}
	if ep.isAlias() {
		return ep.endAlias()
	}
	if err := ep.drain(); err != nil {
		return err
	}
	err := ep.drained(ctx)
	return errno.Join(err, ep.Close())
}

// drain refuses new operations and new aliases, unless the endpoint has aliases: then it
// changes nothing and returns ErrBusy.
func (ep *endpoint) drain() error {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if ep.phase.Load() == shutOff {
		return nil
	}
	if ep.aliases > 0 {
		return errno.Refuse(ErrBusy, "xdpfab: endpoint %d has %d aliases: close them first", ep.number, ep.aliases)
	}
	ep.phase.Store(draining)
	return nil
}
