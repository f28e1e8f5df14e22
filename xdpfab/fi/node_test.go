// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// pausingDevice holds up a registration before the region is in the table.
type pausingDevice struct {
	node.Device
	entered, proceed chan struct{}
}

func (p pausingDevice) Offers(k mr.Kind) error {
	close(p.entered)
	<-p.proceed
	return p.Device.Offers(k)
}

// Close refuses with ErrBusy also while a region is being registered: it waits for the
// registration, and counts the region.
func TestCloseDuringRegister(t *testing.T) {
	a, b, err := xdpfab.Pipe(fi.DomainAttr{Progress: fi.ProgressManual})
	if err != nil {
		t.Fatal(err)
	}
	defer b.CloseAll()
	defer a.CloseAll()
	m, err := mr.Alloc(4096, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	slow := pausingDevice{a.Node().Dev, make(chan struct{}), make(chan struct{})}
	a.Node().Dev = slow
	registered, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := a.Register(m, mr.Options{})
		registered <- err
	}()
	<-slow.entered
	go func() { closed <- a.Close() }()
	for len(closed) == 0 && a.Lock().TryLock() { // until Close has begun to look
		a.Lock().Unlock()
		runtime.Gosched()
	}
	close(slow.proceed)
	if err := <-registered; err != nil {
		t.Error(err)
	}
	if err := <-closed; !errors.Is(err, fi.ErrBusy) {
		t.Errorf("Close during Register: %v, want ErrBusy", err)
	}
}
