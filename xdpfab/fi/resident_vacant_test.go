// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A domain that is to keep what is resident begins without any, and so does its
// successor: no folder is made. Nothing of a process that has failed to take over stays
// there. When there is resident memory it is kept, and no peer takes the node for
// another one at any of these steps.
func TestResidentVacant(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	e := vacantEstate(t, net.B, fi.DomainAttr{ResidentLeave: true}, true)
	d, err := e.tryOpen(e.attr)
	if err == nil {
		err = e.modest(d)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.has(d)
	d.Resume()
	p := e.dial(net.A)
	ordinary := wordOf(t, p, "ordinary")
	more := func(n uint64) {
		t.Helper()
		if sum, err := ordinary.Add(ctx(t), 1); sum != n || err != nil {
			t.Fatalf("%d, %v; want %d", sum, err, n)
		}
		_, err := os.Lstat(e.attr.ResidentPin)
		if is := !errors.Is(err, fs.ErrNotExist); is != (e.memories != nil) {
			t.Fatalf("the folder is there: %t", is)
		}
	}
	more(1)
	h, enough := e.handOver(), errors.New("no longer wanted")
	var state []string
	_, err = e.take(h, e.attr, func(d *xdpfab.Domain) error {
		err := e.furnish(d)
		state, _ = filepath.Glob(filepath.Join(e.attr.ResidentPin, "v*"))
		return errors.Join(err, enough)
	})
	if e.forget(); !errors.Is(err, enough) || len(state) != 1 {
		t.Fatal(err, state)
	}
	if _, err := os.Lstat(e.attr.ResidentPin); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the folder is left: %v", err)
	}
	if err := os.MkdirAll(state[0], 0o700); err != nil { // as if that process had died
		t.Fatal(err)
	}
	if d, err = e.take(h, e.attr, e.modest); err != nil {
		t.Fatal(err)
	}
	e.has(d)
	d.Resume()
	if _, err := os.Lstat(state[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what that process has left is still there: %v", err)
	}
	if err := errors.Join(h.Close(), e.resident(d)); err != nil {
		t.Fatal(err)
	}
	more(2)
	hot := wordOf(t, p, "hot")
	if sum, err := hot.Add(ctx(t), 1); sum != 1 || err != nil {
		t.Errorf("%d, %v", sum, err)
	}
	if err := e.dom.CloseAll(); err != nil { // as a death
		t.Fatal(err)
	}
	e.forget()
	if d, err = e.tryOpen(e.attr); err == nil {
		err = e.furnish(d)
	}
	if err != nil {
		t.Fatal(err)
	}
	e.has(d)
	d.Resume()
	if sum, err := hot.Add(ctx(t), 1); sum != 2 || err != nil { // the handle is bound to what outlives processes
		t.Errorf("after a death: %d, %v; want 2", sum, err)
	}
}
