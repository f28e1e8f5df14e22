// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/bench/measure"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Both sides of each test, joined by a pipe.
func TestTransfers(t *testing.T) {
	for _, c := range []settings{
		{test: "trip", length: 8, flight: 1}, {test: "trip", length: 5000, flight: 1},
		{test: "stream", length: 4096, flight: 64}, {test: "stream", length: 8, flight: 32},
		{test: "write", length: 1 << 20, flight: 8}, {test: "read", length: 100_000, flight: 3}, {test: "read", length: 8, flight: 1},
	} {
		a, b, err := xdpfab.Pipe(xdpfab.DomainAttr{Progress: fi.ProgressManual, Threading: fi.ThreadDomain, GiveUp: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		serves, served := c, make(chan error, 1)
		serves.peer = a.Name(0)
		ready, said := io.Pipe()
		go func() {
			served <- serves.serve(ctx, b, said)
			said.Close()
		}()
		if line, err := bufio.NewReader(ready).ReadString('\n'); !strings.HasPrefix(line, measure.Ready) {
			t.Fatalf("%+v: the server says %q, %v: %v", c, line, err, <-served)
		}
		c.peer, c.region, c.warmup, c.duration = b.Name(0), "bench", time.Millisecond, 20*time.Millisecond
		var r measure.Result
		var out bytes.Buffer
		if err := c.drive(ctx, a, &out); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 3 || lines[0] != measure.Begin || lines[1] != measure.End {
			t.Fatalf("%+v: output %q", c, out.String())
		}
		if err := json.Unmarshal([]byte(lines[2]), &r); err != nil {
			t.Fatal(err)
		}
		if timed := c.test != "stream"; r.Ops == 0 || timed && r.Latency.Count != int64(r.Ops) {
			t.Errorf("%+v: %+v", c, r)
		}
		cancel()
		if err := <-served; err != nil {
			t.Errorf("%+v: the server: %v", c, err)
		}
		_, _ = a.CloseAll(), b.CloseAll()
	}
}
