// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/port"
)

// end is how a domain ends: once, with a cause. Any goroutine may read it; Close or the
// device's watcher writes it, whichever is first.
type end struct {
	done chan struct{} // closed when there is a cause

	mu    sync.Mutex
	cause error
}

// set ends the domain, and reports whether this was the first cause.
func (e *end) set(cause error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause != nil {
		return false
	}
	e.cause = cause
	close(e.done)
	return true
}

// err returns the cause, nil as long as there is none.
func (e *end) err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause
}

// returned returns the cause in the form for callers.
func (e *end) returned() error {
	if err := e.err(); err != nil {
		return fmt.Errorf("xdpfab: %w", err)
	}
	return nil
}

// closed returns the cause in place of ErrClosed, or ErrClosed for an object that was
// closed on its own.
func (e *end) closed() error {
	if err := e.err(); err != nil {
		return err
	}
	return errno.Closed
}

// fail ends the domain: sessions are closed as far as their peers can be told, and
// everything that waits fails with the cause. It does not wait for that.
func (n *Node) fail(cause error) {
	if !n.end.set(interfaceLost{cause}) {
		return
	}
	n.owner.lost(n.end.returned())
	if n.config.Alone { // the caller's goroutine alone may use the engines
		for _, t := range n.turns {
			t.Interrupt(n.quiesce)
		}
		n.owner.wakeObjects()
		return
	}
	n.ending.Go(n.quiesce)
}

// interfaceLost is ErrInterfaceLost with the device's own text, which says why.
type interfaceLost struct{ error }

// Unwrap returns ErrInterfaceLost and the error that the device reported.
func (e interfaceLost) Unwrap() []error { return []error{errno.InterfaceLost, e.error} }

// quiesce closes endpoints and engines, once: a second caller waits for the first.
func (n *Node) quiesce() {
	n.shutOnce.Do(func() {
		if n.paused.Load() { // nobody is told of an end before Resume
			for _, st := range n.steppers {
				st.Call(st.eng.Dismiss)
			}
		}
		if h := n.host(); h != nil {
			h.endGuests()
		}
		n.owner.shutTenants()
		for _, t := range n.turns {
			t.Close(drainLimit)
		}
		for _, st := range n.steppers {
			st.eng.Publish() // the last values: no thread steps the engine any more
		}
		n.owner.wakeObjects()
	})
}

// levels are the log level and the message of each change of an interface.
var levels = map[port.EventKind]struct {
	level slog.Level
	text  string
}{
	port.MTUChanged:     {slog.LevelInfo, "the interface's MTU changed, which makes no difference here"},
	port.Renamed:        {slog.LevelInfo, "the interface was renamed"},
	port.Down:           {slog.LevelWarn, "the interface is down; peers wait, or give up after their give-up time"},
	port.Up:             {slog.LevelInfo, "the interface is up again"},
	port.AddressAdded:   {slog.LevelInfo, "an address was added, and is served"},
	port.AddressRemoved: {slog.LevelInfo, "an address was removed, and is not served any more"},
	port.HopChanged:     {slog.LevelInfo, "a peer is reached by another way"},
	port.HostLost:       {slog.LevelWarn, "the daemon that has the interface has ended; operations fail until there is another one"},
	port.HostFound:      {slog.LevelInfo, "attached to another daemon"},
	port.QueueKept:      {slog.LevelWarn, "a queue that was lent is not given back: the borrower has ended, but another program has it open; it is tried again"},
	port.QueueBack:      {slog.LevelInfo, "a queue that was lent can be lent again"},
	port.Trouble:        {slog.LevelWarn, "changes of the interface could not be read"},
}

// happened is called by the device for every change of the interface, on a goroutine
// of its own.
func (n *Node) happened(e port.Event) {
	if e.Err != nil {
		n.log(slog.LevelError, e.Kind.String(), slog.Any("cause", e.Err))
		n.fail(e.Err)
		return
	}
	attrs := make([]slog.Attr, 0, 4)
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	add("interface", n.dev.Info().Name)
	add("peer", e.Remote)
	add("from", e.From)
	add("to", e.To)
	l := levels[e.Kind]
	n.log(l.level, l.text, attrs...)
}

func (n *Node) log(level slog.Level, text string, attrs ...slog.Attr) {
	if n.config.Log != nil {
		n.config.Log.LogAttrs(context.Background(), level, text, attrs...)
	}
}
