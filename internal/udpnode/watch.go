// SPDX-License-Identifier: Apache-2.0

package udpnode

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/udpport"
)

// lookEvery is the time between two looks at the interface. Its sockets work on for
// addresses that come back, so nothing depends on a faster notice.
const lookEvery = time.Second

// watcher tells what happens to the interface of UDP sockets.
type watcher struct {
	begun, ended sync.Once
	done         chan struct{} // closed to end the goroutine
	group        sync.WaitGroup
}

// Watch implements Device. The kernel finds the way of each packet. What happens to the
// interface is told if the goroutine that looks runs in the network namespace of the
// device, as all do unless the program put threads into other ones.
func (d *Device) Watch(tell func(port.Event)) {
	d.watcher.begun.Do(func() {
		d.watcher.done = make(chan struct{})
		d.watcher.group.Go(func() { d.watch(tell) })
	})
}

func (d *Device) watch(tell func(port.Event)) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var seen udpport.State
	seen.Flags = net.FlagUp | net.FlagRunning
	for {
		select {
		case <-d.watcher.done:
			return
		case <-tick.C:
		}
		now, err := d.State()
		if err != nil {
			continue // it is tried again; a thread elsewhere sees nothing
		}
		if now.Gone {
			name := d.Interface().Name
			tell(port.Event{Kind: port.Gone, From: name, Err: fmt.Errorf("%w: interface %s is gone, "+
				"removed or moved to another network namespace; open it again when it is back", port.ErrLost, name)})
			return
		}
		d.compare(seen, now, tell)
		seen = now
	}
}

// compare tells the differences between two states.
func (d *Device) compare(was, now udpport.State, tell func(port.Event)) {
	for _, a := range now.Missing {
		if !slices.Contains(was.Missing, a) {
			tell(port.Event{Kind: port.AddressRemoved, From: a.String()})
		}
	}
	for _, a := range was.Missing {
		if !slices.Contains(now.Missing, a) {
			tell(port.Event{Kind: port.AddressAdded, To: a.String()})
		}
	}
	for _, a := range now.More { // of IPv6, temporary ones come and go by themselves
		if d.whole() && a.Is4() && !slices.Contains(was.More, a) {
			tell(port.Event{Kind: port.Trouble, To: fmt.Sprintf("%v is not served: UDP sockets serve the "+
				"addresses that %s had when it was opened; open it again", a, d.Name())})
		}
	}
	switch before, why := d.cut(was), d.cut(now); {
	case why == before:
	case why == "":
		tell(port.Event{Kind: port.Up})
	default:
		tell(port.Event{Kind: port.Down, To: why})
	}
}

// whole reports whether the device is an interface with all of its addresses, rather than
// one address.
func (d *Device) whole() bool {
	_, err := netip.ParseAddr(d.Name())
	return err != nil
}

// cut says why no packet passes; "" if packets pass.
func (d *Device) cut(s udpport.State) string {
	switch {
	case s.Flags&net.FlagUp == 0:
		return "it was set down"
	case s.Flags&net.FlagRunning == 0:
		return "it has no carrier"
	case len(s.Missing) == len(d.Addrs()):
		return "it has none of the addresses that are served"
	}
	return ""
}

// Close implements Device, after the last event.
func (d *Device) Close() error {
	d.watcher.begun.Do(func() { d.watcher.done = make(chan struct{}) }) // Watch may not have been called
	d.watcher.ended.Do(func() { close(d.watcher.done) })
	d.watcher.group.Wait()
	return d.Device.Close()
}
