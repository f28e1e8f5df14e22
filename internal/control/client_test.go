// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/capture"
	"github.com/xdpfab/xdpfab/internal/process"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

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

func TestNoDaemon(t *testing.T) {
	if _, err := Dial(filepath.Join(t.TempDir(), "none")); !errors.Is(err, ErrNoDaemon) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Dial: %v; want ErrNoDaemon and fs.ErrNotExist", err)
	}
}

// A daemon whose socket was removed is named: to start another one would not help.
func TestRemovedSocket(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "eth0.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("control socket %s has been removed, or is in another container's file system; process %d (%s) still listens there: restart",
		path, os.Getpid(), process.Name(os.Getpid()))
	_, err = Dial(path)
	for _, err := range []error{err, NoneIn(folder)} {
		if !errors.Is(err, ErrNoDaemon) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
	if err := NoneIn(t.TempDir()); !errors.Is(err, ErrNoDaemon) || !strings.Contains(err.Error(), "start xdpfabd") {
		t.Errorf("%v of a folder without sockets", err)
	}
}

// A daemon that takes connections and answers none is given up, in the time that the
// client has.
func TestSilentDaemon(t *testing.T) {
	path, _ := testnet.StoppedDaemon(t)
	defer func(was time.Duration) { silence = was }(silence)
	silence = time.Millisecond
	own := strconv.Itoa(os.Getpid())
	says := func(err error, parts ...string) {
		t.Helper()
		for _, p := range append(parts, path, "process "+own+", control.test", "wait longer (--timeout)") {
			if err == nil || !errors.Is(err, ErrSilent) || !strings.Contains(err.Error(), p) {
				t.Errorf("%v; want ErrSilent, with %q", err, p)
			}
		}
	}
	c := dial(t, path)
	_, err := c.Status(t.Context())
	says(err, "within 1ms: a busy machine may take longer (process ", "wait longer (--timeout), at least 1s")
	says(c.Call(t.Context(), "create-region", nil, nil), "within 4ms") // which takes a daemon long
	_, _, err = c.Capture(t.Context(), capture.Options{})
	says(err, "within 1ms")
	says(c.Alive(t.Context()), "within 1ms")
	c.Patience = 2 * time.Millisecond
	says(c.Call(t.Context(), "create-region", nil, nil), "within 2ms")
	_, _, err = c.Capture(t.Context(), capture.Options{})
	says(err, "within 2ms")
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := c.Status(ended); !errors.Is(err, context.Canceled) || errors.Is(err, ErrSilent) {
		t.Errorf("%v; want the caller's end", err)
	}
}

// A daemon that is stopped is given up before its time is over, and the remedy is the one
// that helps.
func TestStoppedDaemon(t *testing.T) {
	path, _ := testnet.StoppedDaemon(t)
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	testnet.Eventually(t, "the process is stopped", func() bool { return process.Stopped(cmd.Process.Pid) })
	defer func(was time.Duration) { halt = was }(halt)
	halt = time.Millisecond
	c := dial(t, path)
	c.pid = cmd.Process.Pid
	want := fmt.Sprintf("is stopped (process %d, sleep): have it go on with `kill -CONT %[1]d`", c.pid)
	if _, err := c.Status(t.Context()); !errors.Is(err, ErrSilent) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if e := silent(path, 0, 0); e.foreign || !strings.Contains(e.Error(), "lets nobody connect") ||
		!strings.Contains(e.Error(), "kill -CONT") {
		t.Errorf("%v of a daemon that is not known", e)
	}
}

// daemon gives the same answer to every request.
func daemon(t *testing.T, code int, body string) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	})}}
	srv.Start()
	t.Cleanup(srv.Close)
	return dial(t, path)
}

func TestClientRefusesOtherVersions(t *testing.T) {
	for _, c := range []struct {
		code       int
		body, want string
	}{
		{200, `{"version":2,"result":{}}`, "the daemon speaks control protocol 2, this client 1; use the client of its release"},
		{200, `{"result":{}}`, "the daemon speaks control protocol 0"},
		{404, "404 page not found\n", "of an older release than this client"},
		{405, "Method Not Allowed\n", "of an older release than this client"},
		{200, "<html>", "is it of another version?"},
	} {
		if _, err := daemon(t, c.code, c.body).Status(ask(t)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.body, err, c.want)
		}
	}
}
