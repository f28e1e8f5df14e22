// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// captured is the JSON output of capture.
type captured struct {
	Packets, Bytes, Lent int
	Dropped, Executed    uint64
}

// capturing starts a capture at a daemon, and returns when it has begun.
func capturing(t *testing.T, d *node, args ...string) *process {
	t.Helper()
	const begins = `msg="capture begins"`
	n := strings.Count(d.err.String(), begins)
	p := start(t, nil, xdpfabPath, append([]string{"capture", "--control", d.socket}, args...))
	p.eventually("the capture begins", func() bool { return strings.Count(d.err.String(), begins) > n })
	return p
}

// framesOf reads a capture with a reader that is not ours: the types of the frames
// received, and of those sent.
func framesOf(t *testing.T, from io.Reader, peer wire.MAC) (received, sent []wire.Type) {
	t.Helper()
	r, err := pcapgo.NewNgReader(from, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		data, ci, opts, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return received, sent
		}
		if err != nil || opts.Flags == nil || ci.Length != len(data) {
			t.Fatalf("packet of %d bytes: %+v, %+v, %v", len(data), ci, opts, err)
		}
		frame, source, reason := wire.Decap(data)
		h, _, whole := wire.Parse(frame)
		if reason != wire.ReasonOK || whole != wire.ReasonOK {
			t.Fatalf("%x: %v, %v", data, reason, whole)
		}
		if opts.Flags.Direction == pcapgo.NgEpbFlagDirectionOutbound && source.Local == peer {
			sent = append(sent, h.Type)
		} else if opts.Flags.Direction == pcapgo.NgEpbFlagDirectionInbound && source.Remote == peer {
			received = append(received, h.Type)
		} else {
			t.Errorf("a packet from %v to %v: %+v", source.Remote, source.Local, opts.Flags)
		}
	}
}

// A capture has every frame that crosses between a daemon and its peers, in both
// directions, and says what it has not: those that the XDP program answers.
func TestCapture(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewPair(t, testnet.Options{})
	d := serve(t, net.B, "--region", "r=4KiB", "--region", "hot=4KiB:resident", "--pin", "none", "--socket-mode", "0666")
	add := func(region string, words ...string) {
		t.Helper()
		args := slices.Concat([]string{"atomic", "sum", "uint64"}, words,
			[]string{"-i", net.A.IfName, "--peer", d.addr(), "--region", region})
		xdpfab(t, net.A, args).wants(0)
	}
	file := filepath.Join(t.TempDir(), "x.pcapng")
	p := capturing(t, d, "-w", file, "--json")
	xdpfab(t, nil, []string{"capture", "--control", d.socket, "-w", "/dev/null"}).wants(1, "one at a time")
	add("r", "1", "2", "3")
	p.signal(os.Interrupt)
	total := decoded[captured](p)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	received, sent := framesOf(t, bytes.NewReader(text), wire.MAC(net.A.MAC))
	for _, want := range []wire.Type{wire.Hello, wire.Request} {
		if !slices.Contains(received, want) {
			t.Errorf("received %v, want a %v, too", received, want)
		}
	}
	for _, want := range []wire.Type{wire.HelloAck, wire.Response} {
		if !slices.Contains(sent, want) {
			t.Errorf("sent %v, want a %v, too", sent, want)
		}
	}
	if total.Packets != len(received)+len(sent) || total.Dropped != 0 || total.Executed != 0 || total.Lent != 0 || total.Bytes == 0 {
		t.Errorf("%+v of %d received and %d sent", total, len(received), len(sent))
	}
	dissected(t, file)

	p = capturing(t, d, "-w", file, "--json", "--peer", "10.99.0.1")
	for range 3 {
		add("r", "1")
	}
	xdpfab(t, net.A, []string{"bench", d.addr(), "-i", net.A.IfName, "--region", "hot", "--count", "1000"}).wants(0)
	p.signal(os.Interrupt)
	if total := decoded[captured](p); total.Packets != 0 || total.Executed == 0 {
		t.Errorf("another peer's packets, and requests that the XDP program answers: %+v", total)
	}
	for _, folder := range []string{filepath.Dir(d.socket), filepath.Dir(filepath.Dir(d.socket))} {
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	xdpfab(t, nil, []string{"capture", "--control", d.socket, "-w", "/dev/null"}, unprivileged).wants(5, "only root and")
	xdpfab(t, nil, []string{"capture", "--control", d.socket}).wants(2, "--write")

	// An end by itself, into a pipe; and a client that is killed, after which there can
	// be another one.
	capturing(t, d, "-w", os.DevNull).signal(os.Kill)
	d.eventually("the capture of a client that was killed ends", func() bool {
		return strings.Count(d.err.String(), `msg="capture ends"`) == 3
	})
	p = capturing(t, d, "-w", "-", "--count", "3")
	add("r", "1")
	p.wants(0, "3 packets captured")
	if received, sent := framesOf(t, strings.NewReader(p.out.String()), wire.MAC(net.A.MAC)); len(received)+len(sent) != 3 {
		t.Errorf("%d packets in the pipe, want 3", len(received)+len(sent))
	}
	p = capturing(t, d, "-w", "/dev/full")
	add("r", "1")
	p.wants(1, "no space left on device: make room")
	if n := strings.Count(p.err.String(), "no space left"); n != 1 {
		t.Errorf("the error is there %d times: %s", n, p.err.String())
	}
	p = capturing(t, d, "-w", os.DevNull)
	d.end()
	p.wants(4, "the daemon has ended, or another one took its place: capture again when one serves\n")
}

// With --resident a capture has what the XDP program would answer, of sessions that are
// there already and of those to come. Without it the program answers again.
func TestCaptureOfResidentRegions(t *testing.T) {
	testnet.Require(t)
	if testnet.KernelBefore(t, 5, 18) {
		t.Skip("needs Linux 5.18")
	}
	net := testnet.NewPair(t, testnet.Options{})
	d := serve(t, net.B, "--region", "hot=4KiB:resident", "--pin", "none")
	args := func(command string, more ...string) []string {
		return append([]string{command, d.addr(), "-i", net.A.IfName, "--region", "hot"}, more...)
	}
	file := filepath.Join(t.TempDir(), "x.pcapng")
	p := capturing(t, d, "-w", file, "--json", "--resident")
	xdpfab(t, net.A, args("bench", "--mode", "latency", "--count", "1000", "--timeout", silence.String())).wants(0)
	p.signal(os.Interrupt)
	if total := decoded[captured](p); total.Executed != 0 || total.Packets < 2000 {
		t.Errorf("a session that began meanwhile: %+v, want 1000 requests and their answers", total)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	received, sent := framesOf(t, bytes.NewReader(text), wire.MAC(net.A.MAC))
	if !slices.Contains(received, wire.Request) || !slices.Contains(sent, wire.Response) {
		t.Errorf("%d packets received and %d sent, want requests and responses", len(received), len(sent))
	}

	executes := func() {
		t.Helper()
		before := d.counters()["xdp_executed"]
		d.eventually("the XDP program answers", func() bool { return d.counters()["xdp_executed"] > before })
	}
	ping := start(t, net.A, xdpfabPath, args("ping", "-c", "0", "--interval", "1ms"))
	executes()
	capturing(t, d, "-w", os.DevNull, "--resident", "--count", "100").wants(0, "100 packets captured")
	executes()
	ping.signal(os.Interrupt)
	ping.code()
}

// dissected has tshark read a capture with the dissector, if it is installed: every frame
// is understood, and none tells of an error but a reset, which ends a session, or says to
// a frame that was late that its session has ended.
func dissected(t *testing.T, file string) {
	t.Helper()
	tool, err := exec.LookPath("tshark")
	if err != nil {
		t.Log("without tshark")
		return
	}
	c := exec.Command(tool, "-n", "-r", file, "-X", "lua_script:../../tools/wireshark/xdpfab.lua", "-T", "fields", "-e",
		"xdpfab.type", "-e", "xdpfab.checksum.bad", "-e", "xdpfab.error")
	c.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	reset := fmt.Sprint(uint8(wire.Reset))
	for _, line := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		fields := strings.Split(line, "\t")
		if len(fields) != 3 || fields[0] == "" || fields[1] == "1" || fields[2] != "" && fields[0] != reset {
			t.Errorf("tshark says of a frame: %q", line)
		}
	}
}
