// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Both nodes have an MTU of 9000, and the ports of the switch between them 1500: it drops
// longer frames. Bytes arrive all the same, in short ones, and the initiator says so
// once. When the switch takes long frames, the same session has them soon, and says so.
func TestNarrowSwitch(t *testing.T) {
	star := testnet.NewStar(t, 2, testnet.Options{MTU: 9000})
	if _, v := testnet.Kernel(t); !v.AtLeast(kernel.MultiBuffer) {
		t.Skipf("this kernel has no packets of several buffers; it takes %v", kernel.MultiBuffer)
	}
	ports := func(mtu string) {
		for i := range star.Sides {
			hub, port := star.Port(i)
			testnet.IP(t, hub, "link set "+port+" mtu "+mtu)
		}
	}
	ports("1500")
	var log logged
	server := openOn(t, star.Sides[0], fi.DomainAttr{})
	client := openOn(t, star.Sides[1], fi.DomainAttr{Log: slog.New(slog.NewTextHandler(&log, nil))})
	ep, err := server.NewEndpoint(fi.EndpointAttr{})
	_, err2 := server.NewRegion("r", 1<<20)
	if err := errors.Join(err, err2, ep.Enable()); err != nil {
		t.Fatal(err)
	}
	p, err := client.Dial(ctx(t), server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Lookup(ctx(t), "r")
	if err != nil {
		t.Fatal(err)
	}
	want, got := make([]byte, 100_000), make([]byte, 100_000)
	for i := range want {
		want[i] = byte(i / 7)
	}
	if err := errors.Join(p.Write(ctx(t), r, 0, want), p.Read(ctx(t), r, 0, got)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, %t", err, bytes.Equal(got, want))
	}
	testnet.Eventually(t, "the narrow path is told", func() bool {
		return stat(t, client, "paths_narrow") == 1 && log.count("do not pass") == 1
	})
	ports("9000")
	testnet.Eventually(t, "long frames are tried again", func() bool {
		if err := p.Write(ctx(t), r, 0, want[:100]); err != nil {
			t.Fatal(err)
		}
		return log.count("pass now") == 1
	})
	before := stat(t, client, "packets_sent")
	if err := p.Write(ctx(t), r, 0, want); err != nil {
		t.Fatal(err)
	}
	if n := stat(t, client, "packets_sent") - before; n > 40 {
		t.Errorf("%d packets for %d bytes", n, len(want))
	}
	if n := stat(t, client, "paths_narrow"); n != 1 {
		t.Errorf("%d paths were narrow, want one", n)
	}
}
