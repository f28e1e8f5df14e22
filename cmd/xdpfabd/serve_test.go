// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/fabrictest"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/udpnode"
	"github.com/xdpfab/xdpfab/internal/version"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// asDaemon makes the test binary a daemon, so that process tests need no other binary.
const asDaemon = "XDPFABD_TEST_DAEMON"

func TestMain(m *testing.M) {
	closeLimit, control.AskLimit = testnet.Patience, testnet.Patience
	if os.Getenv(asDaemon) != "" {
		main()
	}
	os.Exit(testnet.Run(m))
}

func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testnet.Patience)
	t.Cleanup(cancel)
	return ctx
}

// lively are attributes of a client that waits for its peer however long a busy machine
// keeps the peer from answering.
var lively = xdpfab.DomainAttr{GiveUp: testnet.Patience}

// piped is a daemon that serves one end of a Pipe.
type piped struct {
	client *xdpfab.Domain
	server *host.Host
	log    *lockedBuffer
	stop   func()     // asks it to end
	done   chan error // what serve returned
}

// lockedBuffer takes log lines from several goroutines.
type lockedBuffer struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	heard func(line string) // called with each line, if it is not nil
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	n, err := b.buf.Write(p)
	heard := b.heard
	b.mu.Unlock()
	if heard != nil {
		heard(string(p))
	}
	return n, err
}

// hear has f called with each line.
func (b *lockedBuffer) hear(f func(line string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = f
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func testConfig(t *testing.T) Config {
	t.Helper()
	c := defaultConfig()
	c.Interface, c.Control = "pipe", filepath.Join(t.TempDir(), "c.sock")
	for _, text := range []string{"counters=64KiB", "scores=4KiB:ro,key=0x7,memfd", "ledger=8KiB:backing=" + filepath.Join(t.TempDir(), "ledger")} {
		r, err := parseRegion(text)
		if err != nil {
			t.Fatal(err)
		}
		c.Regions = append(c.Regions, r)
	}
	return c
}

// servePipe starts serve, and returns at once.
func servePipe(t *testing.T, cfg Config) *piped {
	t.Helper()
	return servePipeUntil(t, context.Background(), cfg)
}

// servePipeUntil starts serve with a context that may have ended.
func servePipeUntil(t *testing.T, ctx context.Context, cfg Config) *piped {
	t.Helper()
	p := &piped{log: &lockedBuffer{}, done: make(chan error, 1)}
	client, end, err := fabrictest.Pipe(lively)
	if err != nil {
		t.Fatal(err)
	}
	p.client = client
	t.Cleanup(func() { _ = p.client.CloseAll() })
	if p.server, err = host.New(end, node.Config{GiveUp: lively.GiveUp, Log: newLogger(cfg, p.log)}); err != nil {
		t.Fatal(err)
	}
	who, err := cfg.access()
	if err != nil {
		t.Fatal(err)
	}
	l, err := control.Listen(t.Context(), cfg.controlPath(), who)
	if err != nil {
		t.Fatal(err)
	}
	mems, err := allocate(cfg.Regions)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(ctx)
	p.stop = stop
	t.Cleanup(stop)
	s, err := newServer(cfg, newLogger(cfg, p.log))
	if err != nil {
		t.Fatal(err)
	}
	s.host, s.served.list = p.server, mems
	go func() { p.done <- s.begin(ctx, l) }()
	return p
}

// end stops the daemon and returns what serve returned.
func (p *piped) end(t *testing.T) error {
	t.Helper()
	p.stop()
	select {
	case err := <-p.done:
		return err
	case <-limited(t).Done():
		t.Fatal("serve does not return")
		return nil
	}
}

// notifySocket receives the notifications for systemd.
func notifySocket(t *testing.T) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return conn
}

func receive(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(testnet.Patience))
	b := make([]byte, 4096)
	n, err := conn.Read(b)
	if err != nil {
		t.Fatalf("no notification: %v", err)
	}
	return string(b[:n])
}

func TestServe(t *testing.T) {
	conn, cfg := notifySocket(t), testConfig(t)
	p := servePipe(t, cfg)
	if got, want := receive(t, conn), "READY=1\nSTATUS=serving 3 regions on pipe"; got != want {
		t.Errorf("notification %q, want %q", got, want)
	}
	checkServed(t, p)
	checkStatus(t, cfg)
	if err := p.end(t); err != nil {
		t.Errorf("serve: %v", err)
	}
	if got := receive(t, conn); got != "STOPPING=1" {
		t.Errorf("notification %q, want STOPPING=1", got)
	}
	if _, err := os.Lstat(cfg.Control); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the control socket is still there: %v", err)
	}
	if b, err := os.ReadFile(cfg.Regions[2].Backing); err != nil || b[8] != 41 {
		t.Errorf("the ledger does not persist: %v", err)
	}
	for _, want := range []string{"serving", "address=02:00:00:00:00:0b", "name=counters", "key=0x0000000000000007", "size=65536", "closed"} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("log lacks %q:\n%s", want, p.log)
		}
	}
}

// Lists are arrays in JSON, for programs that read the log.
func TestServingLineInJSON(t *testing.T) {
	conn, cfg := notifySocket(t), testConfig(t)
	cfg.LogFormat = logJSON
	p := servePipe(t, cfg)
	receive(t, conn)
	if err := p.end(t); err != nil {
		t.Error(err)
	}
	if !strings.Contains(p.log.String(), `"cores":[],`) || !strings.Contains(p.log.String(), `"access":["read","write"]`) {
		t.Errorf("want arrays:\n%s", p.log)
	}
}

// checkServed runs operations of a peer.
func checkServed(t *testing.T, p *piped) {
	t.Helper()
	ctx := limited(t)
	peer, err := p.client.Dial(ctx, p.server.Node().Name(0))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"counters", "ledger"} {
		w, err := xdpfab.Word[uint64](ctx, peer, name, 1)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := w.Add(ctx, 41); err != nil || v != 41 {
			t.Errorf("%s: Add: %d, %v", name, v, err)
		}
	}
	if _, err := xdpfab.WordAt[uint64](peer, xdpfab.RemoteRegion{Key: 7}, 0).Add(ctx, 1); !errors.Is(err, xdpfab.ErrAccess) {
		t.Errorf("Add to a read-only region: %v", err)
	}
	if v, err := xdpfab.WordAt[uint64](peer, xdpfab.RemoteRegion{Key: 7}, 0).Load(ctx); err != nil || v != 0 {
		t.Errorf("Load from a read-only region: %d, %v", v, err)
	}
}

// checkStatus asks the control socket.
func checkStatus(t *testing.T, cfg Config) {
	t.Helper()
	c, err := control.Dial(cfg.Control)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.Status(limited(t))
	if err != nil || s.PID != os.Getpid() || s.Version != version.Version || s.Address != "02:00:00:00:00:0b" ||
		s.Progress != "auto" || s.Interface.Driver != "memory" || s.UptimeSeconds <= 0 || len(s.Counters) == 0 {
		t.Fatalf("status: %v, %+v", err, s)
	}
	want := []control.Region{
		{Name: "counters", Key: s.Regions[0].Key, Size: 65536, Access: []string{"read", "write"}, Backing: "anonymous", Pages: "small"},
		{Name: "scores", Key: "0x0000000000000007", Size: 4096, Access: []string{"read"}, Backing: "memfd", Pages: "small"},
		{Name: "ledger", Key: s.Regions[2].Key, Size: 8192, Access: []string{"read", "write"}, Backing: "file:" + cfg.Regions[2].Backing, Pages: "small"},
	}
	for i, r := range s.Regions {
		if r.Name != want[i].Name || r.Key != want[i].Key || len(r.Key) != 18 || r.Size != want[i].Size ||
			strings.Join(r.Access, "+") != strings.Join(want[i].Access, "+") || r.Backing != want[i].Backing || r.Pages != want[i].Pages {
			t.Errorf("region %d: %+v, want %+v", i, r, want[i])
		}
	}
	var text string
	err = c.Call(limited(t), "metrics", nil, &text)
	if err != nil || !strings.Contains(text, `xdpfab_region_size_bytes{access="read",backing="memfd",pages="small",region="scores"} 4096`) {
		t.Errorf("metrics: %v\n%s", err, text)
	}
}

// A second daemon at the same control socket leaves the first alone. Of a takeover it
// speaks only where there can be one.
func TestServeRefusesLiveSocket(t *testing.T) {
	conn, cfg := notifySocket(t), testConfig(t)
	first := servePipe(t, cfg)
	receive(t, conn)
	for _, by := range []udpnode.Transport{udpnode.XDP, udpnode.UDP} {
		var out lockedBuffer
		cfg.Transport = by
		if err := start(cfg, &out); !errors.Is(err, control.ErrLive) || exitCode(err) != exitInterface ||
			!strings.Contains(err.Error(), "serves pipe already") || strings.Contains(err.Error(), "--takeover") != (by == udpnode.XDP) {
			t.Errorf("second, by %v: %v, code %d; want ErrLive", by, err, exitCode(err))
		}
	}
	checkStatus(t, cfg)
	if err := first.end(t); err != nil {
		t.Error(err)
	}
}

// A daemon whose interface another one serves names that one, what to do, and the program
// that is in the way, whose own remedy is not repeated.
func TestServedInterface(t *testing.T) {
	busy := &bpf.BusyError{Interface: "eth0", Mode: bpf.Native, ProgramID: 7, Name: nic.ProgramName, LinkID: 3}
	err := error(&servedError{"process 1 serves eth0 already", fmt.Errorf("open: %w", nic.Taken("eth0", busy))})
	const want = "process 1 serves eth0 already: interface has another XDP program: program 7, link 3"
	if b := new(bpf.BusyError); err.Error() != want || !errors.As(err, &b) || b != busy || !errors.Is(err, unix.EBUSY) {
		t.Errorf("got %v, want %s, and the program to errors.As", err, want)
	}
	if err := error(&servedError{"taken", unix.EBUSY}); err.Error() != "taken" || !errors.Is(err, unix.EBUSY) {
		t.Errorf("without a program: %v", err)
	}
}

// A failure while serving ends the daemon with the reason. A daemon that was asked to end
// while it started serves nothing, and tells nobody that it is ready.
func TestEndBeforeServing(t *testing.T) {
	conn := notifySocket(t)
	cfg := testConfig(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := servePipeUntil(t, ctx, cfg)
	if err := p.end(t); err != nil {
		t.Error(err)
	}
	if log := p.log.String(); strings.Contains(log, "msg=serving") {
		t.Error(log)
	}
	if _, err := os.Stat(cfg.Control); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the control socket is left: %v", err)
	}
	if err := conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 100)); err == nil {
		t.Errorf("systemd was told %d bytes", n)
	}
}

func TestServeReportsFailure(t *testing.T) {
	cfg := testConfig(t)
	p := servePipe(t, cfg)
	end, _ := node.NewPipe()
	idle, err := host.New(end, node.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	s := &server{cfg: cfg, host: idle, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "broken"))
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // so that serving it fails
	ctx, cancel := context.WithCancelCause(limited(t))
	if err := s.run(ctx, cancel, []door{{l, ""}}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("run: %v; want the listener's error", err)
	}
	if err := p.end(t); err != nil {
		t.Error(err)
	}
}
