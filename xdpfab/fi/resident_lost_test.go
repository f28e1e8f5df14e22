// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// logged is the text of a log. Its lock is there as any goroutine may log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), s)
}

// At a bridge, as of containers, the other end of a veth has no XDP program, and the
// kernel drops what the domain's program sends. Each operation succeeds all the same:
// the poller answers in the program's place, and says so once.
func TestResidentAnswersLost(t *testing.T) {
	star := testnet.NewStar(t, 2, testnet.Options{})
	if testnet.KernelBefore(t, 5, 18) {
		t.Skip("needs Linux 5.18: see TestResidentRefused")
	}
	var log logged
	server := openOn(t, star.Sides[0], fi.DomainAttr{Log: slog.New(slog.NewTextHandler(&log, nil))})
	ep, err := server.NewEndpoint(fi.EndpointAttr{})
	if err == nil {
		err = ep.Enable()
	}
	if err == nil {
		_, err = server.NewResidentRegion("hot", 4096)
	}
	if err != nil {
		t.Fatal(err)
	}
	sum := uint64(0)
	for sessions := uint64(1); sessions <= 2; sessions++ {
		client := openOn(t, star.Sides[1], fi.DomainAttr{})
		p, err := client.Dial(ctx(t), server.Name(0))
		if err != nil {
			t.Fatal(err)
		}
		hot := wordOf(t, p, "hot")
		for range 50 {
			sum++
			if v, err := hot.Add(ctx(t), 1); v != sum || err != nil {
				t.Fatalf("%d, %v; want %d", v, err, sum)
			}
		}
		if n := stat(t, server, "resident_sessions_relayed"); n != sessions {
			t.Errorf("the poller answers for the program in %d sessions, want %d", n, sessions)
		}
		if n := stat(t, server, "resident_answers_lost"); n < 4*sessions || n > 10*sessions {
			t.Errorf("%d answers were lost, want a few in each of %d sessions", n, sessions)
		}
		if err := client.CloseAll(); err != nil {
			t.Fatal(err)
		}
	}
	const line = "answers of the XDP program are lost"
	testnet.Eventually(t, "the log to say so", func() bool { return log.count(line) > 0 })
	if n := log.count(line); n != 1 {
		t.Errorf("the log says so %d times, want once", n)
	}
}
