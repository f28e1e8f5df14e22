// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sample is a status with something in every field.
var sample = Status{
	Version: "1.2.3", PID: 4711, UptimeSeconds: 1.5,
	Interface: xdpfab.InterfaceInfo{Name: "eth7", Index: 3, MAC: "02:00:00:00:00:0a", MTU: 1500, Driver: "veth",
		Queues: 2, XDP: "native", Copy: "copy", HugeUMEM: true, UDP: true},
	Address: "02:00:00:00:00:0a", Progress: "auto",
	Regions: []Region{
		{Name: "counters", Key: "0x00000000000000ff", Size: 65536, Access: []string{"read", "write"}, Backing: "anonymous", Pages: "huge"},
		{Name: "sco\xffres", Key: "0x0000000000000001", Size: 4096, Access: []string{"read"}, Backing: "file:/x", Pages: "small"},
	},
	Counters: map[string]uint64{"packets_received": 12, "refused_bad_crc": 3, "request_out_of_window": 4,
		"xdp_redirect": 5, "Some thing new": 6, "xsk_rx_dropped": 1 << 40},
}

func ask(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testnet.Patience)
	t.Cleanup(cancel)
	return ctx
}

// start serves source on a socket of its own until the test ends.
func start(t *testing.T, source Source, more ...Verb) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run", "x.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ServeListener(ctx, l, source, more...) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ServeListener: %v", err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the socket is still there: %v", err)
		}
	})
	return path
}

func dial(t *testing.T, path string) *Client {
	t.Helper()
	c, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestStatusRoundTrip(t *testing.T) {
	c := dial(t, start(t, func() (Status, error) { return sample, nil }))
	want := sample
	want.Regions = append([]Region(nil), sample.Regions...)
	want.Regions[1].Name = "sco\uFFFDres" // JSON has no other bytes
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			got, err := c.Status(ask(t))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("Status: %v\n got %+v\nwant %+v", err, got, want)
			}
		})
	}
	wg.Wait()
	var regions []Region
	if err := c.Call(ask(t), "regions", nil, &regions); err != nil || !reflect.DeepEqual(regions, want.Regions) {
		t.Errorf("Regions: %v, %+v", err, regions)
	}
}

func TestSourceFails(t *testing.T) {
	c := dial(t, start(t, func() (Status, error) { return Status{}, errors.New("the NIC is on fire") }))
	for _, verb := range []string{"status", "regions", "metrics"} {
		var v any
		if err := c.Call(ask(t), verb, nil, &v); err == nil || !strings.Contains(err.Error(), "the NIC is on fire") || !strings.Contains(err.Error(), verb) {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

func TestPermissions(t *testing.T) {
	path := start(t, func() (Status, error) { return sample, nil })
	for p, want := range map[string]fs.FileMode{path: fs.ModeSocket | 0o660, filepath.Dir(path): fs.ModeDir | 0o755} {
		info, err := os.Stat(p)
		if err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, %v; want %v", p, info.Mode(), err, want)
		}
	}
}

func TestLiveSocketIsLeftAlone(t *testing.T) {
	defer func(was time.Duration) { AskLimit = was }(AskLimit)
	AskLimit = testnet.Patience
	path := start(t, func() (Status, error) { return sample, nil })
	_, err := Listen(path)
	var live *LiveError
	if !errors.Is(err, ErrLive) || !errors.As(err, &live) || live.PID != sample.PID {
		t.Errorf("second server: %v; want ErrLive with process %d", err, sample.PID)
	}
	if s, err := dial(t, path).Status(ask(t)); err != nil || s.PID != sample.PID {
		t.Errorf("first server after the attempt: %v, %d", err, s.PID)
	}
}

// dead leaves the socket of a process that was killed.
func dead(t *testing.T, path string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 1)); err != nil {
		t.Fatal(err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sock")
	dead(t, path)
	if _, err := Dial(path); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("Dial to a dead socket: %v; want ErrNoDaemon", err)
	}
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

// Of many that find the same dead socket, one gets it, and keeps it.
func TestStaleSocketRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sock")
	dead(t, path)
	var wg sync.WaitGroup
	got := make(chan net.Listener, 8)
	for range cap(got) {
		wg.Go(func() {
			l, err := Listen(path)
			switch {
			case err == nil:
				got <- l
			case !errors.Is(err, ErrLive):
				t.Errorf("Listen: %v; want ErrLive", err)
			}
		})
	}
	wg.Wait()
	close(got)
	if len(got) != 1 {
		t.Errorf("%d listeners, want 1", len(got))
	}
	for l := range got {
		_ = l.Close()
	}
}

// One directory is made for the socket, and goes with it; a whole path is not.
func TestListenMakesOneDirectory(t *testing.T) {
	dir := t.TempDir()
	l, err := Listen(filepath.Join(dir, "run", "x.sock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if l, err := Listen(filepath.Join(dir, "a", "b", "x.sock")); err == nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, %v; want an error about the missing directory", l, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestElsewhere(t *testing.T) {
	if Namespace() == 0 {
		t.Fatal("the kernel does not tell")
	}
	for ns, want := range map[uint64]bool{Namespace(): false, Namespace() + 1: true, 0: false} { // 0: not told
		if s := (Status{NetNS: ns}); s.Elsewhere() != want {
			t.Errorf("%d: elsewhere %v", ns, !want)
		}
	}
}

func TestListenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want string }{
		"a file":      {file, "is no socket"},
		"a long path": {filepath.Join(dir, strings.Repeat("x", 108)), "at most 107"},
		"no folder":   {filepath.Join(file, "x.sock"), "choose another path"},
	} {
		if l, err := Listen(c.path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want an error with %q", name, l, err, c.want)
		}
	}
	if b, _ := os.ReadFile(file); string(b) != "precious" {
		t.Error("the file was touched")
	}
}

func TestNoDaemon(t *testing.T) {
	if _, err := Dial(filepath.Join(t.TempDir(), "none")); !errors.Is(err, ErrNoDaemon) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Dial: %v; want ErrNoDaemon and fs.ErrNotExist", err)
	}
}

// A client that connects and says nothing must not hold up the end.
func TestSilentClientDoesNotHoldUp(t *testing.T) {
	path := start(t, func() (Status, error) { return sample, nil })
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // before the one of start
	if _, err := conn.Write([]byte("GET /v1/sta")); err != nil {
		t.Fatal(err)
	}
}
