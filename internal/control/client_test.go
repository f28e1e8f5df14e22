// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
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

// A daemon that takes connections and answers none, as one that is stopped, is given up.
func TestSilentDaemon(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	defer func(was time.Duration) { silence = was }(silence)
	silence = time.Millisecond
	if _, err := dial(t, path).Status(t.Context()); err == nil || !strings.Contains(err.Error(), "kill -CONT") || !strings.Contains(err.Error(), path) {
		t.Errorf("%v; want to hear that it does not answer", err)
	}
	if err := dial(t, path).Call(t.Context(), "create-region", nil, nil); err == nil || !strings.Contains(err.Error(), "within 4ms") {
		t.Errorf("%v; want longer patience with what takes a daemon long", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := dial(t, path).Status(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("%v; want the caller's end", err)
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
