// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// The owner of a word waits until what peers make of it meets a condition, for every sort
// of element.
func TestWait(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	testWait(t, f, p, xdpfab.Equal[uint8](200), 200)
	testWait(t, f, p, xdpfab.NotEqual[uint32](0), 7)
	testWait(t, f, p, xdpfab.AtLeast[uint64](1<<40), 1<<40)
	testWait(t, f, p, xdpfab.Greater[int16](5), 6)
	testWait(t, f, p, xdpfab.Less[int64](0), -3)
	testWait(t, f, p, xdpfab.AtMost(-0.5), -0.5)
	testWait(t, f, p, xdpfab.Equal(xdpfab.U128{Lo: 1, Hi: 2}), xdpfab.U128{Lo: 1, Hi: 2})
	testWait(t, f, p, xdpfab.NotEqual[complex64](0), 1i)
	type score int32
	testWait(t, f, p, xdpfab.Less[score](-9), -10)
}

// testWait has a peer store v in a word that does not meet a condition before.
func testWait[T xdpfab.Element](t *testing.T, f *fixture, p *xdpfab.Peer, until xdpfab.Condition[T], v T) {
	t.Helper()
	clear(f.mem[:1024])
	stored := make(chan error)
	go func() { stored <- xdpfab.WordAt[T](p, xdpfab.RemoteRegion{Key: 1}, 3).Store(ctx(t), v) }()
	if got, err := xdpfab.Wait(ctx(t), f.server, f.region, 3, until); got != v || err != nil {
		t.Errorf("%v, %v, want %v", got, err, v)
	}
	if err := <-stored; err != nil {
		t.Error(err)
	}
}

func TestWaitRefused(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	for name, index := range map[string]int{"negative": -1, "too high": len(f.mem) / 8, "highest": math.MaxInt} {
		if _, err := xdpfab.Wait(t.Context(), f.server, f.region, index, xdpfab.Equal[uint64](0)); !errors.Is(err, fi.ErrOutOfBounds) {
			t.Errorf("%s: %v, want ErrOutOfBounds", name, err)
		}
	}
	if _, err := xdpfab.Wait(t.Context(), f.server, f.region, 0, xdpfab.Condition[uint64]{}); !errors.Is(err, fi.ErrOpNotSupported) {
		t.Errorf("no condition: %v, want ErrOpNotSupported", err)
	}
	if _, err := xdpfab.Wait(t.Context(), f.server, nil, 0, xdpfab.Equal[uint64](0)); !errors.Is(err, fi.ErrForeign) {
		t.Errorf("no region: %v, want ErrForeign", err)
	}
}

// The texts of refused waits name the word as the program did, and domains in memory by
// their address.
func TestWaitRefusedTexts(t *testing.T) {
	w := newNetwork(t, 2)
	own, err := w.Node(0).Serve("own", 16)
	if err != nil {
		t.Fatal(err)
	}
	const here, there = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
	for want, wait := range map[string]func() error{
		"xdpfab: wait without a region: want one of domain " + here + ", such as Service.Region": func() error {
			_, err := xdpfab.Wait(ctx(t), w.Node(0), nil, 0, xdpfab.Equal[uint64](1))
			return err
		},
		"xdpfab: wait for word 2 of region \"own\", which has 2 words of 8 bytes: beyond the end of the memory region: want words 0 to 1, or a longer region": func() error {
			_, err := xdpfab.Wait(ctx(t), w.Node(0), own.Region, 2, xdpfab.Equal[uint64](1))
			return err
		},
		"xdpfab: wait for word -1 of region \"own\", which has 4 words of 4 bytes: beyond the end of the memory region: want words 0 to 3, or a longer region": func() error {
			_, err := xdpfab.Wait(ctx(t), w.Node(0), own.Region, -1, xdpfab.Equal[uint32](1))
			return err
		},
		fmt.Sprintf("xdpfab: wait for a word of region %v, of another domain: want an open region of domain %s", own.Region, there): func() error {
			_, err := xdpfab.Wait(ctx(t), w.Node(1), own.Region, 0, xdpfab.Equal[uint64](1))
			return err
		},
	} {
		if err := wait(); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
