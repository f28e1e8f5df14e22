// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// atomicReport is what `xdpfab atomic --json` prints.
type atomicReport struct {
	Op, Datatype, Form, Region string
	Offset                     uint64
	Count                      int
	Before                     []string
	BeforeHex                  string `json:"before_hex"`
	After                      []string
}

// The commands that a user types, and their output.
func TestAtomic(t *testing.T) { allWays(t, testAtomic) }

func testAtomic(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	viaDaemon(t, net.A)
	d := serve(t, net.B, "--region", "r=64KiB:key=0x11")
	at := func(args string) []string {
		return append(append([]string{"atomic"}, strings.Fields(args)...), "-i", net.A.IfName, "--peer", d.addr())
	}
	for _, c := range []struct {
		args string
		want atomicReport
	}{
		{"sum uint64 5 --region r", atomicReport{"sum", "uint64", "fetch", "r", 0, 1, []string{"0"}, "0000000000000000", []string{"5"}}},
		{"sum int64 -7 --region r", atomicReport{"sum", "int64", "fetch", "r", 0, 1, []string{"5"}, "0500000000000000", []string{"-2"}}},
		{"read int64 --key 17", atomicReport{"read", "int64", "fetch", "key 17", 0, 1, []string{"-2"}, "feffffffffffffff", nil}},
		{"write double 0.1 -inf --offset 64 --region r",
			atomicReport{"write", "double", "fetch", "r", 64, 2, []string{"0", "0"}, strings.Repeat("0", 32), []string{"0.1", "-inf"}}},
		{"max double 2 --count 2 --offset 64 --region r",
			atomicReport{"max", "double", "fetch", "r", 64, 2, []string{"0.1", "-inf"}, "9a9999999999b93f000000000000f0ff", []string{"2", "2"}}},
		{"cswap int32 9 --compare 0 --offset 128 --region r",
			atomicReport{"cswap", "int32", "compare", "r", 128, 1, []string{"0"}, "00000000", []string{"9"}}},
		{"write float_complex 1+2i --offset 192 --form base --region r", atomicReport{"write", "float_complex", "base", "r", 192, 1, nil, "", nil}},
		{"prod float_complex 0+1i --offset 192 --region r",
			atomicReport{"prod", "float_complex", "fetch", "r", 192, 1, []string{"1+2i"}, "0000803f00000040", []string{"-2+1i"}}},
		{"bxor uint16 --hex ff00ff00 --offset 256 --region r",
			atomicReport{"bxor", "uint16", "fetch", "r", 256, 2, []string{"0", "0"}, "00000000", []string{"255", "255"}}},
	} {
		got := answer[atomicReport](t, net.A, at(c.args)...)
		if !slices.Equal(got.Before, c.want.Before) || !slices.Equal(got.After, c.want.After) {
			t.Errorf("%s: before %v, after %v, want %v, %v", c.args, got.Before, got.After, c.want.Before, c.want.After)
		}
		got.Before, got.After, c.want.Before, c.want.After = nil, nil, nil, nil
		if got.BeforeHex != c.want.BeforeHex || got.Offset != c.want.Offset || got.Count != c.want.Count || got.Form != c.want.Form ||
			got.Op != c.want.Op || got.Datatype != c.want.Datatype || got.Region != c.want.Region {
			t.Errorf("%s: %+v, want %+v", c.args, got, c.want)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"read int64 --region r", "r+0  -2\n"},
		{"sum int64 1 --region r -q", "-2\n"},
		{"sum int64 1 --region r --offset 4096 --count 2", "r+4096  0  -> 1\nr+4104  0  -> 1\n"},
		{"read int64 --region r --offset 4096 --hex", "0100000000000000\n"},
		{"sum int64 1 1 1 --region r --offset 512 --form=base", "3 elements: done\n"},
		{"write long_double 0x1p-16445 --region r --offset 1024 -q", "0\n"},
		{"read long_double --region r --offset 0x400 -q", "4e-4951\n"},
	} {
		if p := xdpfab(t, net.A, at(c.args)); p.code() != 0 || p.err.String() != "" || p.out.String() != c.want {
			t.Errorf("%s: code %d, prints %q and %q, want %q", c.args, p.code(), p.out.String(), p.err.String(), c.want)
		}
	}
}

// Each refusal has its exit code and a message that says what to do, and none
// changes anything.
func TestAtomicRefused(t *testing.T) { ways(t, testAtomicRefused) }

func testAtomicRefused(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	viaDaemon(t, net.A)
	d := serve(t, net.B, "--region", "r=4KiB", "--region", "ro=4KiB:ro,key=0x7", "--region", "wo=4KiB:wo")
	with := "-i veth0 --peer " + d.addr()
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"sum uint64 1 --key 0x99 " + with, 1, []string{"not executed: no memory region with this key"}},
		{"sum uint64 1 --region nope " + with, 1, []string{`"nope"`, "not executed: no memory region of this name"}},
		{"sum uint64 1 --region ro " + with, 1, []string{"not executed: the memory region does not grant this right"}},
		{"sum uint64 1 --region ro --form base " + with, 1, []string{"not executed: the memory region does not grant this right"}},
		{"read uint64 --region wo " + with, 1, []string{"not executed: the memory region does not grant this right"}},
		{"sum uint64 1 --region r --offset 4096 " + with, 1, []string{"at 0x1000", "not executed: beyond the end of the memory region"}},
		{"sum uint64 1 --region r --offset 4088 --count 2 " + with, 1, []string{"not executed: beyond the end of the memory region"}},
		{"sum uint64 1 --region r --offset 18446744073709551608 " + with, 1, []string{"not executed: beyond the end of the memory region"}},
		{"sum uint64 1 --region r --offset 4 " + with, 1, []string{"at 0x4", "not executed: address is not a multiple of the element's alignment"}},
		{"sum uint64 1 --region r --count 513 " + with, 1, []string{"uint64[513]", "not executed: beyond the end of the memory region"}},
		{"bor double 1 --region r " + with, 2, []string{"bor is not defined for double", "--help"}},
		{"cswap uint64 1 --compare 0 --form fetch --region r " + with, 2, []string{`form "fetch" of cswap on uint64: want compare`}},
		{"sum uint64 1 --region r --count -1 " + with, 2, []string{"count -1: want 1 to 16777216"}},
		{"sum uint64 1 --region r --count 4294967296 " + with, 2, []string{"count 4294967296: want 1 to 16777216"}},
		{"sum uint64 1 2 --region r --count 3 " + with, 2, []string{"2 values for 3 elements"}},
		{"sum uint64 -1 --region r " + with, 2, []string{`bad value "-1" for uint64: out of range`}},
		{"add uint64 1 --region r " + with, 2, []string{`unknown operation "add": here it is sum`}},
		{"sum quad 1 --region r " + with, 2, []string{`unknown datatype "quad": want one of int8`}},
		{"sum uint64 1 " + with, 2, []string{"missing the region: want --region NAME or --key KEY"}},
		{"sum uint64 1 --region r -i veth0 --peer 10.0.0", 2, []string{`"10.0.0"`}},
		{"sum uint64 1 --region r -i veth0 --peer " + d.addr() + "/9", 1, []string{"not executed: peer refused the session: it has no such endpoint"}},
		{"sum uint64 1 --region r -i veth0 --peer 10.77.0.99", 4, []string{"10.77.0.99", "neighbour does not answer"}},
		{"sum uint64 1 --region r -i veth0 --peer 192.0.2.1", 4, []string{"192.0.2.1", "route"}},
		{"sum uint64 1 --region r -i nope0 --peer " + d.addr(), 5, []string{`"nope0": no such interface`}},
		{"sum uint64 1 --region r -i lo --peer " + d.addr(), 5, []string{"lo is not an Ethernet interface"}},
	} {
		p := xdpfab(t, net.A, append([]string{"atomic", "--json"}, strings.Fields(c.args)...))
		p.wants(c.code, append(c.want, "xdpfab: ")...)
		if p.out.String() != "" || strings.Count(p.err.String(), "\n") != 1 {
			t.Errorf("%s: prints %q and %q, want nothing and one line", c.args, p.out.String(), p.err.String())
		}
	}
	read := answer[atomicReport](t, net.A, append(strings.Fields("atomic read uint64 --count 512 --region r"), strings.Fields(with)...)...)
	if slices.ContainsFunc(read.Before, func(s string) bool { return s != "0" }) {
		t.Errorf("something that was refused has changed the memory: %v", read.Before)
	}
	d.end()
}

// A peer that does not exist, and one that listens on Ethernet only. The time limit
// is one that even a busy machine meets, so the two wait in parallel.
func TestAtomicSilentPeer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		peer func(net *testnet.Pair) string
		want string
	}{
		"absent":   {func(*testnet.Pair) string { return "02:00:00:00:00:77" }, "02:00:00:00:00:77"},
		"over UDP": {func(net *testnet.Pair) string { return net.B.IP4.String() }, "10.77.0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			net := testnet.NewPair(t, testnet.Options{})
			d := serve(t, net.B, "--udp=false", "--region", "r=4KiB")
			args := strings.Fields("atomic sum uint64 1 --json --region r -i veth0 --timeout " + silence.String() + " --peer " + c.peer(net))
			p := xdpfab(t, net.A, args)
			p.wants(4, "xdpfab: ", c.want, "not executed: peer does not answer")
			if p.out.String() != "" || strings.Count(p.err.String(), "\n") != 1 {
				t.Errorf("prints %q and %q, want nothing and one line", p.out.String(), p.err.String())
			}
			d.end()
		})
	}
}

// Obstacles on the client's own node.
func TestAtomicInterface(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	d := serve(t, net.B, "--region", "r=4KiB")
	args := strings.Fields("atomic sum uint64 1 --json --region r -i veth0 --peer " + d.addr())
	xdpfab(t, net.A, args, unprivileged).wants(5, "xdpfab: missing CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_BPF", "setcap")
	testnet.IP(t, net.A, "link set "+net.A.IfName+" down")
	xdpfab(t, net.A, args).wants(5, "xdpfab: veth0: interface is down", "ip link set dev veth0 up")
	testnet.IP(t, net.A, "link set "+net.A.IfName+" up")
	remove := foreign(t, net.A)
	xdpfab(t, net.A, args).wants(5, "xdpfab: ", "veth0", "XDP program")
	launch(t, net.A, t.TempDir()+"/"+socketName, "--region", "r=4KiB").wants(5, "xdpfabd: ", "veth0", "XDP program")
	if !attached(t, net.A) {
		t.Error("the foreign XDP program is gone")
	}
	remove()
	xdpfab(t, net.B, args).wants(5, "xdpfab: ", "veth0", "in use")
	if got := answer[atomicReport](t, net.A, args...); !slices.Equal(got.Before, []string{"0"}) {
		t.Errorf("found %v, want 0: nothing of the above ran", got.Before)
	}
	if attached(t, net.A) {
		t.Error("a client left its XDP program")
	}
	d.end()
}

// foreign attaches an XDP program that is not xdpfab's and passes everything.
func foreign(t *testing.T, side *testnet.Side) (remove func()) {
	t.Helper()
	var l link.Link
	err := side.Do(func() error {
		p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Name: "foreign", Type: ebpf.XDP, License: "GPL",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}, // XDP_PASS
		})
		if err != nil {
			return err
		}
		defer p.Close()
		l, err = link.AttachXDP(link.XDPOptions{Program: p, Interface: side.IfIndex})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	remove = func() { _ = l.Close() }
	t.Cleanup(remove)
	return remove
}
