// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"io"
	"net"
	"testing"
	"time"
)

func TestRequests(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	go func() {
		b := make([]byte, 8)
		for {
			if _, err := io.ReadFull(server, b); err != nil {
				return
			}
			answer(b)
			if _, err := server.Write(b); err != nil {
				return
			}
		}
	}()
	before := counter.Load()
	h, lost, err := requests([]net.Conn{client}, time.Now().Add(20*time.Millisecond))
	// A busy machine may get nothing done in a short time.
	for d := time.Second; err == nil && h.Count() == 0 && d < time.Minute; d *= 2 {
		h, lost, err = requests([]net.Conn{client}, time.Now().Add(d))
	}
	if err != nil || lost != 0 || h.Count() == 0 || counter.Load()-before != uint64(h.Count()) {
		t.Errorf("%d answers, %d lost, %d added, %v", h.Count(), lost, counter.Load()-before, err)
	}
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"server"}, {"server", "sctp", "127.0.0.1"}, {"client", "tcp", "127.0.0.1:1", "x", "1s", "1s"},
		{"client", "tcp", "127.0.0.1:1", "0", "1s", "1s"}, {"client", "tcp", "127.0.0.1:1", "1", "0s", "1s"}} {
		if err := run(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
