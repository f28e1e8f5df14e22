// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	nodes "github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

func TestList(t *testing.T) {
	n := newNode(t)
	got := mustRun[[]regionEntry](n, "list PEER")
	if len(got) != 2 || !reflect.DeepEqual(got[0], regionEntry{Name: "r", Key: "0x0000000000000051", Size: 64 << 10, Access: []string{"read", "write"}}) || !slices.Equal(got[1].Access, []string{"read"}) {
		t.Errorf("%+v", got)
	}
	r := n.run("", n.line("list PEER")...)
	if lines := strings.Split(r.out, "\n"); r.code != 0 || len(lines) != 4 || strings.Index(lines[0], "BYTES") != strings.Index(lines[1], "65536") {
		t.Errorf("%d %s", r.code, r.out)
	}
}

func TestFlagsReachTheDomain(t *testing.T) {
	n := newNode(t)
	n.run("", n.line("ping PEER -c 1 --progress manual --xdp any --copy zero-copy --timeout 9s --queues 1 --cores 0,1")...)
	want := xdpfab.DomainAttr{Progress: fi.ProgressManual, XDP: fi.XDPAny, Copy: fi.ZeroCopyForce, GiveUp: 9 * time.Second, Queues: 1, Cores: []int{0, 1}, EthernetOnly: true}
	if fmt.Sprint(n.attr) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", n.attr, want)
	}
	n.run("", n.line("ping 10.0.0.1 -c 1")...)
	if n.attr.EthernetOnly {
		t.Error("an IP address leaves UDP off")
	}
}

func TestInfo(t *testing.T) {
	n := newNode(t)
	r := n.run("", "info", "lo")
	for _, say := range []string{"interface", "kernel", "CAP_NET_RAW", "OPERATION", "not an Ethernet interface", "bfloat16", "inject"} {
		if r.code != 0 || !strings.Contains(r.out, say) {
			t.Errorf("info lo: %d, no %q in\n%s%s", r.code, say, r.out, r.err)
		}
	}
	if r := n.run("", "info"); r.code != 0 || !strings.Contains(r.out, "INTERFACE") || strings.Contains(r.out, "OPERATION") {
		t.Errorf("info: %+v", r)
	}
	rep, err := report(context.Background(), nil, "")
	if err != nil || len(rep.Interfaces) == 0 || rep.Limits.Window != 64 || len(rep.Operations) == 0 {
		t.Errorf("%+v, %v", rep, err)
	}
	ops := map[string]string{}
	for _, o := range rep.Operations {
		ops[o.Op+" "+o.Datatype] = strings.Join(o.Forms, " ")
	}
	for k, want := range map[string]string{"sum uint64": "base fetch", "read int128": "fetch", "mswap int8": "compare", "bor double": ""} {
		if ops[k] != want {
			t.Errorf("%s: %q, want %q", k, ops[k], want)
		}
	}
	r = n.run("", "info", "--operations")
	if r.code != 0 || !strings.HasPrefix(r.out, "OPERATION ") || strings.Contains(r.out, "kernel") || !strings.Contains(r.out, "float16") {
		t.Errorf("the table of operations alone: %+v", r)
	}
}

func TestCarrier(t *testing.T) {
	for want, i := range map[string]nodes.InterfaceInfo{
		"UDP sockets":                     {Transport: "udp", Queues: 1},
		"1 queue, generic XDP, copy":      {Transport: "xdp", Queues: 1, XDP: "generic", Copy: "copy"},
		"2 queues, native XDP, zero-copy": {Transport: "xdp", Queues: 2, XDP: "native", Copy: "zero-copy"},
	} {
		if got := carrier(&i); got != want {
			t.Errorf("%+v: %q, want %q", i, got, want)
		}
	}
}

// Root may make namespaces: for it, see the end-to-end tests.
func TestUnprivilegedDemo(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("needs to be another user than root")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	checkRefusal(t, "demo", newNode(t).run("", "demo", "--daemon", exe), exitInterface, "needs root")
}
