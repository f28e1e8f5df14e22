// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/histogram"
)

// A handover is measured between clients that exclude one another, and one that does not
// is found.
func TestHandover(t *testing.T) {
	var mu sync.Mutex
	held := func(context.Context) (func() error, error) {
		mu.Lock()
		return func() error { mu.Unlock(); return nil }, nil
	}
	both := make(chan struct{}, 2)
	none := func(context.Context) (func() error, error) { // both have it before one releases it
		both <- struct{}{}
		return func() error { <-both; return nil }, nil
	}
	h := histogram.New()
	o := handover{lockers: []locker{held, held}}
	for h.Count() == 0 {
		if err := o.loop(t.Context(), time.Now().Add(time.Millisecond), h); err != nil {
			t.Fatal(err)
		}
	}
	o = handover{lockers: []locker{none}}
	o.holders.Store(1)
	if err := o.loop(t.Context(), time.Now().Add(time.Second), h); err == nil {
		t.Error("two holders are not found")
	}
}

// served answers the lines of a client by what a function says, and returns its address.
func served(t *testing.T, first string, answer func(line string) string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = fmt.Fprint(c, first)
		for s := bufio.NewScanner(c); s.Scan(); {
			_, _ = fmt.Fprint(c, answer(s.Text()))
		}
	}()
	return l.Addr().String()
}

// What a server refuses ends the measurement, and a sum that is not what was added.
func TestRefusals(t *testing.T) {
	for _, c := range []struct{ name, system, test, first, line, answer, want string }{
		{"redis lock", "redis", "locks", "", "1000", "$-1\r\n", `redis answers "$-1"`},
		{"redis error", "redis", "locks", "", "1000", "-READONLY\r\n", "READONLY"},
		{"nats lock", "nats", "locks", "INFO {}\r\n", "Nats-Expected-Last-Subject-Sequence: 0",
			"MSG _INBOX.bench 1 34\r\n{\"error\":{\"description\":\"not that\"}}\r\n", "not that"},
		{"nats error", "nats", "locks", "INFO {}\r\n", "Nats-Expected-Last-Subject-Sequence: 0", "-ERR 'no'\r\n", "no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := served(t, c.first, func(line string) string {
				switch {
				case strings.HasPrefix(line, `{"name":"KV_bench"`):
					return "MSG _INBOX.bench 1 2\r\n{}\r\n"
				case line == c.line:
					return c.answer
				}
				return ""
			})
			do, end, err := systems[c.system](t.Context(), &settings{peer: at, clients: 1, depth: 1}, c.test)
			if err != nil {
				t.Fatal(err)
			}
			err = do(t.Context(), time.Now().Add(time.Minute), histogram.New())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if err := end(1); err != nil {
				t.Error(err)
			}
		})
	}
	at := served(t, "", func(line string) string {
		if line == "bench" {
			return ":7\r\n"
		}
		return ""
	})
	do, end, err := ofRedis(t.Context(), &settings{peer: at, depth: 1}, "adds")
	if err != nil {
		t.Fatal(err)
	}
	for h := histogram.New(); h.Count() == 0; {
		if err := do(t.Context(), time.Now().Add(time.Millisecond), h); err != nil {
			t.Fatal(err)
		}
	}
	if err := end(3); err == nil || !strings.Contains(err.Error(), "the key is 7 after 3") {
		t.Errorf("a sum that is wrong: %v", err)
	}
}
