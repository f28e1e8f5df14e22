// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// End is how a domain ends: once, with a cause. Any goroutine may read it; Close or the
// device's watcher writes it, whichever is first.
type End struct {
	Done chan struct{} // closed when there is a cause

	mu    sync.Mutex
	cause error
}

// Set ends the domain, and reports whether this was the first cause.
func (e *End) Set(cause error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause != nil {
		return false
	}
	e.cause = cause
	close(e.Done)
	return true
}

// Err returns the cause, nil as long as there is none.
func (e *End) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause
}

// Returned returns the cause in the form for callers.
func (e *End) Returned() error {
	if err := e.Err(); err != nil {
		return fmt.Errorf("xdpfab: %w", err)
	}
	return nil
}

// Closed returns why an object is closed: the domain's cause, or that the program has
// closed the object on its own. again is what the program can do then.
func (e *End) Closed(again string) error {
	if err := e.Err(); err != nil {
		return err
	}
	return errno.Refuse(errno.Closed, "this program has closed it: %s", again)
}

// SetClosed ends the node as its owner closes it. Errors name the owner as who says.
func (n *Node) SetClosed(who string) {
	n.End.Set(errno.Refuse(errno.Closed, "%s has closed the domain on %s; open it again", who, n.Label()))
}

// unserved answers for a number that has no endpoint. A node that ends closes its
// endpoints before its engines: what a peer has to know is that the node ends.
func (n *Node) unserved() wire.HelloStatus {
	if n.End.Err() != nil {
		return wire.HelloShuttingDown
	}
	return wire.HelloNoEndpoint
}

// Finish releases a node that came to rest.
func (n *Node) Finish() error {
	err := n.Release() // from here on the device reports nothing
	n.Ending.Wait()
	if err != nil {
		return fmt.Errorf("xdpfab: domain on %s: %w", n.Label(), err)
	}
	return nil
}

// fail ends the domain: sessions are closed as far as their peers can be told, and
// everything that waits fails with the cause. It does not wait for that.
func (n *Node) fail(cause error) {
	if !n.End.Set(interfaceLost{cause}) {
		return
	}
	n.Owner.Lost(n.End.Returned())
	if n.Config.Alone { // the caller's goroutine alone may use the engines
		for _, t := range n.Turns {
			t.Interrupt(n.Quiesce)
		}
		n.Owner.WakeObjects()
		return
	}
	n.Ending.Go(n.Quiesce)
}

// interfaceLost is ErrInterfaceLost with the device's own text, which says why.
type interfaceLost struct{ error }

// Unwrap returns ErrInterfaceLost and the error that the device reported.
func (e interfaceLost) Unwrap() []error { return []error{errno.InterfaceLost, e.error} }

// Quiesce closes endpoints and engines, once: a second caller waits for the first.
func (n *Node) Quiesce() {
	n.shutOnce.Do(func() {
		if n.Paused.Load() { // no peer is told of an end before Resume
			for _, st := range n.Steppers {
				st.Call(st.Eng.DetachTargets)
			}
		}
		if h := n.Host(); h != nil {
			h.EndGuests()
		}
		n.Owner.CloseTenants()
		for _, t := range n.Turns {
			t.Close(drainLimit)
		}
		for _, st := range n.Steppers {
			st.Eng.Publish() // the last values: no thread steps the engine from now on
		}
		n.Owner.WakeObjects()
	})
}

// levels are the log level and the message of each change of an interface.
var levels = map[port.EventKind]struct {
	level slog.Level
	text  string
}{
	port.MTUChanged: {slog.LevelInfo, "interface's MTU changed, which makes no difference before the next start " +
		"or takeover"},
	port.Renamed: {slog.LevelWarn, "interface renamed: a daemon keeps the control socket of its former name, and a " +
		"takeover needs that name"},
	port.Down:           {slog.LevelWarn, "interface is down; peers wait, or give up after their give-up time"},
	port.Up:             {slog.LevelInfo, "interface is up again"},
	port.AddressAdded:   {slog.LevelInfo, "address added, and served"},
	port.AddressRemoved: {slog.LevelInfo, "address removed, and no longer served"},
	port.Unaddressed: {slog.LevelWarn, "no IP address is left that other networks reach: peers reach this node by " +
		"its MAC address, or by a link-local one"},
	port.HopChanged: {slog.LevelInfo, "peer is reached by another way"},
	port.HostLost: {slog.LevelWarn,
		"daemon that has the interface has ended; start it again: operations fail until there is one"},
	port.HostFound: {slog.LevelInfo, "attached to another daemon; operations go on"},
	port.HostRefused: {slog.LevelWarn, "another daemon does not take in what this program has; it is tried again, " +
		"and operations fail until then"},
	port.QueueKept: {slog.LevelWarn, "lent queue is not given back: the borrower has ended, but " +
		"another program has it open; it is tried again"},
	port.QueueBack: {slog.LevelInfo, "lent queue can be lent again"},
	port.Forwarded: {slog.LevelWarn, "frames arrive on a queue that is not in use, and are passed on with a copy, " +
		"counted as forwarded: have the NIC steer them to those in use (xdpfabd --steer; docs/tuning.md, steering)"},
	port.Unheard: {slog.LevelWarn, "frames that come on some queues are lost, and counted as xdp_drop_no_socket: " +
		"no socket could be bound there, as another program may have them; use fewer queues (ethtool -L)"},
	port.Trouble: {slog.LevelWarn, "changes of the interface could not be read"},
}

// Happened is called by the device for every change of the interface, on a goroutine
// of its own.
func (n *Node) Happened(e port.Event) {
	if e.Err != nil {
		n.Log(slog.LevelError, e.Kind.String(), slog.Any("cause", e.Err))
		n.fail(e.Err)
		return
	}
	switch e.Kind {
	case port.Down:
		n.LinkDown.Store(&e.To)
	case port.Up:
		n.LinkDown.Store(nil)
	}
	attrs := make([]slog.Attr, 0, 4)
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	add("interface", n.Dev.Info().Name)
	add("peer", e.Remote)
	add("from", e.From)
	if e.Kind == port.HostRefused || e.Kind == port.Down {
		add("cause", e.To)
	} else {
		add("to", e.To)
	}
	l := levels[e.Kind]
	n.Log(l.level, l.text, attrs...)
}

// Log logs what happened to the node, unless nothing is to be logged.
func (n *Node) Log(level slog.Level, text string, attrs ...slog.Attr) {
	if n.Config.Log != nil {
		n.Config.Log.LogAttrs(context.Background(), level, text, attrs...)
	}
}
