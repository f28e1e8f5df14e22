// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

func TestMain(m *testing.M) { os.Exit(testnet.Run(m)) }

// sample is a status with something in every field.
var sample = Status{
	Version: "1.2.3", PID: 4711, UptimeSeconds: 1.5,
	Interface: node.InterfaceInfo{Name: "eth7", Index: 3, MAC: "02:00:00:00:00:0a", MTU: 1500, Driver: "veth",
		Queues: 2, XDP: "native", Copy: "copy", HugeUMEM: true, UDP: true},
	Address: "02:00:00:00:00:0a", Progress: "auto",
	Regions: []Region{
		{Name: "counters", Key: "0x00000000000000ff", Size: 65536, Access: []string{"read", "write"}, Backing: "anonymous", Pages: "huge"},
		{Name: "sco\xffres", Key: "0x0000000000000001", Size: 4096, Access: []string{"read"}, Backing: "file:/x", Pages: "small"},
	},
	Guests: []Guest{{host.AttachedGuest{GuestInfo: host.GuestInfo{PID: 815, UID: 1000, GID: 100, Endpoints: 1, Peers: 2, Regions: 3, Memory: 4096, Taken: 5, Completed: 5},
		GuestWork: host.GuestWork{Timed: 2, Took: 3e9, Applied: Applied{Fetching: 6, NonFetching: 7, FetchingBytes: 48, NonFetchingBytes: 56}}}, "alice"}},
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
	return startService(t, Service{Source: source, Verbs: more})
}

func startService(t *testing.T, s Service) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run", "x.sock")
	l, err := Listen(t.Context(), path, Access{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ServeListener(ctx, l, s) }()
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
