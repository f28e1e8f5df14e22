// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/route"
)

const (
	// programCheck is the time between two checks of the program: the kernel gives no
	// notice when a bpf_link is cut.
	programCheck = 250 * time.Millisecond
	// settle is how long the watcher waits for further changes of routes before it reads
	// them: they change by the thousand.
	settle = 20 * time.Millisecond
	// hints is how many calls of Silent may wait.
	hints = 64
)

// watcher follows an interface and the ways from it. One goroutine, begun by
// Interface.Watch, evaluates the kernel's notices and makes every callback:
//
//	kernel ─ route.Monitor ─► changes ─┐
//	engine ─ Silent ─────────► silent ─┼─► run ─► Event, served addresses, new links
//	clock ─ program, settling ─────────┘
//
// Notices since Open wait in the monitor's socket until then.
type watcher struct {
	i       *Interface
	monitor *route.Monitor
	changes chan route.Change
	silent  chan netip.Addr
	wanted  chan struct{} // paths has one whose way has to be looked up
	done    chan struct{}
	once    sync.Once // closes
	group   sync.WaitGroup

	// All of the rest but paths belongs to the goroutine.
	tell  func(Event)
	seen  route.LinkState
	addrs []netip.Addr             // as told; Open writes the first
	asked map[netip.Addr]time.Time // when the kernel was last made to look for a neighbour
	lost  bool                     // the end was told
	short bool                     // trouble was told, and has not passed
	fell  bool                     // the interface was set down, and its driver may have forgotten the program

	mu    sync.Mutex // guards paths, and the fields of each that are not the goroutine's
	paths map[netip.Addr]*path
}

func newWatcher(i *Interface) (*watcher, error) {
	m, err := i.resolver.Monitor()
	if err != nil {
		return nil, err
	}
	return &watcher{
		i: i, monitor: m, changes: make(chan route.Change), silent: make(chan netip.Addr, hints),
		wanted: make(chan struct{}, 1), done: make(chan struct{}), paths: map[netip.Addr]*path{},
		asked: map[netip.Addr]time.Time{},
		seen:  route.LinkState{Name: i.name, MAC: i.mac, MTU: i.mtu, Up: true},
	}, nil
}

// close ends the goroutine and waits for it. It is idempotent.
func (w *watcher) close() {
	w.once.Do(func() {
		close(w.done)
		w.monitor.Close()
	})
	w.group.Wait()
}

// Watch begins to follow the interface: addresses are served as they come and go, Follow
// makes its calls, and f hears of every change since Open, on one goroutine. If the
// interface is down already, f hears that before Watch returns. f must not call Close.
// Watch may be called once.
func (i *Interface) Watch(f func(Event)) {
	w := i.watcher
	w.tell = f
	if now, err := i.resolver.LinkState(); err == nil { // otherwise run says what is wrong
		w.compareCarrier(w.seen, now)
	}
	w.group.Go(w.read)
	w.group.Go(w.run)
}

// read passes the monitor's changes on. While run is busy, notices wait in the socket,
// which tells when it has overflowed.
func (w *watcher) read() {
	for {
		c, err := w.monitor.Next()
		if err != nil {
			return
		}
		select {
		case w.changes <- c:
		case <-w.done:
			return
		}
	}
}

// run is the watcher's goroutine.
func (w *watcher) run() {
	check := time.NewTicker(programCheck)
	defer check.Stop()
	settled := time.NewTimer(time.Hour)
	defer settled.Stop()
	w.judge() // the kernel gives no notice of what was so from the beginning
	for {
		select {
		case <-w.done:
			return
		case c := <-w.changes:
			w.apply(c)
			if c.Routes || c.Neighbours {
				settled.Reset(settle)
			}
		case <-w.wanted:
			w.lookUp(true)
		case <-settled.C:
			w.lookUp(false)
		case remote := <-w.silent:
			w.judgeProgram()
			w.suspect(remote)
		case <-check.C:
			w.judgeProgram()
		}
	}
}

// apply reads again what has changed.
func (w *watcher) apply(c route.Change) {
	w.fell = w.fell || c.Down && w.i.forgets
	if c.Link {
		w.judge()
	}
	if c.Addrs {
		w.readdress()
	}
	if c.Valid != nil {
		w.relocate(c.Valid)
	}
}

// judge looks at the interface, whose use may have ended.
func (w *watcher) judge() {
	now, err := w.i.resolver.LinkState()
	switch {
	case errors.Is(err, route.ErrGone):
		w.end(Event{Kind: Gone, From: w.seen.Name},
			"interface %s is gone, removed or moved to another network namespace; "+
				"open it again when it is back", w.seen.Name)
	case err != nil:
		w.trouble(err)
	default:
		if w.fell && now.Up && !w.lost {
			w.remind()
		}
		w.compare(now)
		w.judgeProgram() // an interface of the same index may be another one
	}
}

// compare tells the differences from the state seen before.
func (w *watcher) compare(now route.LinkState) {
	was, opened := w.seen, w.i.mtu
	w.seen = now
	if now.Name != was.Name {
		w.i.label.Store(&now.Name)
		w.say(Event{Kind: Renamed, From: was.Name, To: now.Name})
	}
	if now.MAC != was.MAC {
		e := Event{Kind: MACChanged, From: macText(was.MAC), To: macText(now.MAC)}
		w.end(e, "interface %s changed its hardware address from %s to %s, by which peers know it; "+
			"open it again to use the new one", now.Name, e.From, e.To)
	}
	if now.MTU != was.MTU {
		e := Event{Kind: MTUChanged, From: strconv.Itoa(was.MTU), To: strconv.Itoa(now.MTU)}
		if now.MTU >= opened {
			w.say(e)
		} else {
			e.Kind = MTULowered
			w.end(e, "interface %s was opened with an MTU of %d bytes and has %d now: frames as agreed with peers "+
				"would be lost; "+
				"open it again to use the new one", now.Name, opened, now.MTU)
		}
	}
	w.compareCarrier(was, now)
}

// compareCarrier tells that the interface is down, and why, or up again.
func (w *watcher) compareCarrier(was, now route.LinkState) {
	w.seen.Up, w.seen.AdminUp = now.Up, now.AdminUp
	switch {
	case now.Up && !was.Up:
		w.say(Event{Kind: Up})
	case now.Up || !was.Up && now.AdminUp == was.AdminUp:
	case now.AdminUp:
		w.say(Event{Kind: Down, To: "it has no carrier"})
	default:
		w.say(Event{Kind: Down, To: "it was set down"})
	}
}

// judgeProgram checks that packets still reach the program.
func (w *watcher) judgeProgram() {
	if w.lost || w.i.program.Mode() != bpf.Detached {
		return
	}
	name := w.seen.Name
	if _, err := w.i.resolver.LinkState(); errors.Is(err, route.ErrGone) {
		w.judge() // its notice is on the way
		return
	}
	w.end(Event{Kind: Detached, From: name}, "the XDP program on interface %s was detached by another process, "+
		"or the interface was replaced: frames no longer arrive; open it again", name)
}

// readdress serves the present addresses, and tells which came and gone.
func (w *watcher) readdress() {
	now, err := w.i.serve()
	if err != nil {
		w.trouble(err)
		return
	}
	if err := w.i.unserved(); err != nil {
		w.trouble(err)
	} else {
		w.short = false
	}
	for _, a := range w.addrs {
		if !slices.Contains(now, a) {
			w.say(Event{Kind: AddressRemoved, From: a.String()})
		}
	}
	for n, a := range now {
		switch {
		case slices.Contains(w.addrs, a):
		case n >= bpf.MaxAddrs:
			w.say(
				Event{Kind: Trouble, To: fmt.Sprintf("%v is not served: at most %d addresses are; remove some from %s",
					a, bpf.MaxAddrs, w.seen.Name)})
		default:
			w.say(Event{Kind: AddressAdded, To: a.String()})
		}
	}
	if slices.ContainsFunc(w.addrs, routable) && !slices.ContainsFunc(now, routable) {
		w.say(Event{Kind: Unaddressed})
	}
	w.addrs = now
}

// routable reports whether peers on other networks can use an address.
func routable(a netip.Addr) bool { return !a.IsLinkLocalUnicast() && !a.IsLoopback() }

// say tells a change, unless the end has been told.
func (w *watcher) say(e Event) {
	if !w.lost {
		w.tell(e)
	}
}

// end tells the last change, which ends the use of the interface.
func (w *watcher) end(e Event, format string, args ...any) {
	e.Err = fmt.Errorf("%w: %s", ErrLost, fmt.Sprintf(format, args...))
	w.say(e)
	w.lost = true
}

// trouble reports that something could not be read, once until it can be read again. The
// next change, or the next hint, causes another attempt.
func (w *watcher) trouble(err error) {
	if !w.short && !errors.Is(err, route.ErrClosed) && !errors.Is(err, bpf.ErrClosed) {
		w.say(Event{Kind: Trouble, To: err.Error()})
	}
	w.short = true
}
