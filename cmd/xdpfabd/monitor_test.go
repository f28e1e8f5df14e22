// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

var metricsLine = regexp.MustCompile(`msg=metrics address=(\S+)`)

// A daemon shows what a peer did, by node and queue, and whether it serves.
func TestMetricsAddress(t *testing.T) {
	conn, cfg := notifySocket(t), testConfig(t)
	cfg.MetricsAddress = "127.0.0.1:0"
	p := servePipe(t, cfg)
	receive(t, conn)
	checkServed(t, p)
	var address string
	testnet.Eventually(t, "the monitor is open", func() bool {
		m := metricsLine.FindStringSubmatch(p.log.String())
		if m != nil {
			address = m[1]
		}
		return m != nil
	})
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := testnet.Get(t, "http://"+address+path); code != http.StatusOK {
			t.Errorf("%s: %d, %s", path, code, body)
		}
	}
	_, text := testnet.Get(t, "http://"+address+"/metrics")
	for _, want := range []string{`xdpfab_node_sessions{node="02:00:00:00:00:0a"} 1`, `xdpfab_sessions{role="target",state="open"} 1`, `xdpfab_sessions{role="initiator",state="open"} 0`,
		`xdpfab_queue_sessions{queue="0"} 1`, `xdpfab_unlisted{kind="region"} 0`, "xdpfab_ready 1", "xdpfab_link_up 1"} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("lacks %s", want)
		}
	}
	why := "it has no carrier"
	p.server.Node().LinkDown.Store(&why)
	if code, body := testnet.Get(t, "http://"+address+"/readyz"); code != http.StatusServiceUnavailable || body != "interface pipe is down: it has no carrier\n" {
		t.Errorf("link down: %d, %q", code, body)
	}
	testnet.Eventually(t, "metrics show that", func() bool {
		_, text := testnet.Get(t, "http://"+address+"/metrics")
		return strings.Contains(text, "\nxdpfab_ready 0\n") && strings.Contains(text, "\nxdpfab_link_up 0\n")
	})
	if strings.Contains(text, "xdpfab_directory_announced") || strings.Contains(text, "xdpfab_resident_kept") {
		t.Error("it has no directory, and no resident regions")
	}
	if err := p.end(t); err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after the end: %v, %v", c, err)
	}
}

// An address that is taken ends the start before the interface is touched.
func TestMetricsAddressTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := testConfig(t)
	cfg.Interface, cfg.MetricsAddress = "xdpfab-none", l.Addr().String() // an interface would be looked for later
	var out lockedBuffer
	if err := start(cfg, &out); !errors.Is(err, syscall.EADDRINUSE) || exitCode(err) != exitFailure || !strings.Contains(err.Error(), "choose another port") {
		t.Errorf("%v, code %d", err, exitCode(err))
	}
}

// A daemon that takes over waits until the former one has given the address back, and
// serves without metrics if that one does not.
func TestMetricsAddressIsInherited(t *testing.T) {
	former, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	end, _ := node.NewPipe()
	idle, err := host.New(end, node.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	log := &lockedBuffer{}
	cfg := testConfig(t)
	cfg.MetricsAddress = former.Addr().String()
	s := &server{cfg: cfg, host: idle, log: newLogger(cfg, log)}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.monitor(ctx, nil) }()
	time.Sleep(10 * time.Millisecond) // so that it has to try again, as a rule
	_ = former.Close()
	testnet.Eventually(t, "the monitor is open", func() bool { return metricsLine.MatchString(log.String()) })
	if code, body := testnet.Get(t, "http://"+cfg.MetricsAddress+"/healthz"); code != http.StatusOK {
		t.Errorf("%d, %s", code, body)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	s.cfg.MetricsAddress = "192.0.2.1:9497" // which no machine has
	if err := s.monitor(t.Context(), nil); err != nil || !strings.Contains(log.String(), "no metrics until this daemon is reloaded or restarted") {
		t.Errorf("%v\n%s", err, log)
	}
}

// Gauges of what a daemon lacks are there if it was to have that.
func TestStates(t *testing.T) {
	end, _ := node.NewPipe()
	idle, err := host.New(end, node.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	s := &server{host: idle}
	s.cfg.Pin, s.cfg.Directory = pinAuto, "etcd://127.0.0.1:1/x"
	s.served.list = []*region{{RegionConfig: RegionConfig{Backing: backingResident}}}
	idle.Node().Resume()
	want := map[string]bool{"ready": true, "link_up": true, "directory_announced": false, "resident_kept": false}
	if got := s.states(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	s.cfg.Pin, s.cfg.Directory = pinNone, ""
	if got := s.states(); len(got) != 2 {
		t.Errorf("%v, want only ready and link_up", got)
	}
}

// A daemon that is to take over binds an address of its own before, and waits for that of
// the former daemon alone.
func TestMetricsAddressBesideFormer(t *testing.T) {
	conn, cfg := notifySocket(t), testConfig(t)
	cfg.MetricsAddress = "127.0.0.1:0"
	p := servePipe(t, cfg)
	receive(t, conn)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	next := cfg
	next.MetricsAddress = taken.Addr().String()
	if l, err := next.openBeside(t.Context()); l != nil || !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a third process has the address: %v", err)
	}
	if l, err := cfg.openBeside(t.Context()); l == nil || err != nil {
		t.Errorf("nobody has it: %v", err)
	} else {
		_ = l.Close()
	}
	if err := p.end(t); err != nil {
		t.Error(err)
	}
	cfg.MetricsAddress = taken.Addr().String() // as if it were the daemon's
	former := startStatus(t, cfg.Control, control.Status{Metrics: cfg.MetricsAddress})
	defer former()
	if l, err := cfg.openBeside(t.Context()); l != nil || err != nil {
		t.Errorf("the former daemon has it: %v, %v", l, err)
	}
}

// startStatus answers at a control socket with a status, until the function that it
// returns is called.
func startStatus(t *testing.T, path string, status control.Status) (end func()) {
	t.Helper()
	l, err := control.Listen(t.Context(), path, control.Access{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	service := control.Service{Source: func() (control.Status, error) { return status, nil }}
	go func() { done <- control.ServeListener(ctx, l, service) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestMetricsAddressWords(t *testing.T) {
	for _, good := range []string{"", ":9497", "127.0.0.1:0", "[::1]:9497", "host:80"} {
		if err := checkMetricsAddress(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"9497", "127.0.0.1", "::1:9497", "x:http", "x:65536"} {
		if err := checkMetricsAddress(bad); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q: want HOST:PORT", bad)) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
