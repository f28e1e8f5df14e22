// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/testnet"
	fab "github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
	"github.com/xdpfab/xdpfab/xdpfab/sync"
)

// asWaiter, an environment variable, turns the test binary into a waiter: a guest of a
// daemon that waits at a peer for a word or a lock, says so when it has got it, and keeps
// it until it is killed.
const asWaiter = "XDPFAB_E2E_WAITER"

// What the waiters and their tests agree on.
const (
	waiterRegion = "r"
	waiterGot    = "got it\n"
	waiterLock   = 1024                   // offset of the lock
	ticketsAt    = waiterLock + 2*8       // of the word with the ticket that was given last
	waiterLease  = 500 * time.Millisecond // the dead cost those behind them one each
)

func waiterMain(args []string) int {
	fs := flag.NewFlagSet("waiter", flag.ExitOnError)
	ifname, addr := fs.String("i", "", "interface"), fs.String("peer", "", "address of the home")
	number := fs.Uint64("number", 0, "to swap for 0 in the first word; 0: wait for the lock")
	_ = fs.Parse(args)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := waitAt(ctx, *ifname, *addr, *number); err != nil {
		fmt.Fprintln(os.Stderr, "waiter:", err)
		return 1
	}
	fmt.Print(waiterGot)
	<-ctx.Done()
	return 1
}

func waitAt(ctx context.Context, ifname, addr string, number uint64) error {
	dom, err := fab.Open(ctx, ifname, fab.DomainAttr{Attach: fi.AttachAlways, GiveUp: limit})
	if err != nil {
		return err
	}
	peer, err := dom.Dial(ctx, addr)
	if err != nil {
		return err
	}
	if number == 0 {
		lock, err := sync.NewMutex(ctx, sync.Place{Home: peer, Region: waiterRegion, Offset: waiterLock}, waiterLease)
		if err == nil {
			_, err = lock.Lock(ctx)
		}
		return err
	}
	word, err := fab.Word[uint64](ctx, peer, waiterRegion, 0)
	if err != nil {
		return err
	}
	return word.WaitCompareAndSwap(ctx, 0, number)
}

// line is a home, and guests of one daemon that wait there.
type line struct {
	t          *testing.T
	side       *testnet.Side
	host, home *node
	file       string
}

func newLine(t *testing.T) *line {
	t.Helper()
	testnet.Require(t)
	net, file := testnet.NewPair(t, testnet.Options{}), filepath.Join(t.TempDir(), "memory")
	home := serve(t, net.B, "--region", waiterRegion+"=4KiB:backing="+file)
	return &line{t: t, side: net.A, host: host(t, net.A), home: home, file: file}
}

// join starts a waiter.
func (l *line) join(number uint64) *process {
	l.t.Helper()
	self, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	args := []string{"-i", l.side.IfName, "-peer", l.home.addr(), "-number", strconv.FormatUint(number, 10)}
	return start(l.t, l.side, self, args, env(asWaiter+"=1"))
}

// kill kills a waiter, and returns when the daemon and the home know nothing of it.
func (l *line) kill(p *process) {
	l.t.Helper()
	before := l.sessions()
	p.signal(unix.SIGKILL)
	<-p.done
	l.host.eventually("the dead guest gone", func() bool {
		s, err := l.host.ask()
		return err == nil && !slices.ContainsFunc(s.Guests, func(g control.Guest) bool { return g.PID == p.cmd.Process.Pid })
	})
	l.home.eventually("the session of the dead guest gone", func() bool { return l.sessions() < before })
}

// empty waits until no session is left at the home, and so nothing that waits.
func (l *line) empty() {
	l.t.Helper()
	l.home.eventually("without sessions", func() bool { return l.sessions() == 0 })
}

var queueSessions = regexp.MustCompile(`(?m)^xdpfab_queue_sessions\{.*\} (\d+)$`)

// sessions is how many sessions the home serves. It opens none itself.
func (l *line) sessions() (n int) {
	l.t.Helper()
	c, err := control.Dial(l.home.socket)
	if err != nil {
		l.t.Fatal(err)
	}
	defer c.Close()
	var text string
	if err := c.Call(l.t.Context(), "metrics", nil, &text); err != nil {
		l.t.Fatal(err)
	}
	found := queueSessions.FindAllStringSubmatch(text, -1)
	if found == nil {
		l.t.Fatalf("no sessions in the metrics:\n%s", text)
	}
	for _, m := range found {
		one, _ := strconv.Atoi(m[1])
		n += one
	}
	return n
}

// at reads a word of the memory of the home.
func (l *line) at(offset int) uint64 {
	l.t.Helper()
	b, err := os.ReadFile(l.file)
	if err != nil {
		l.t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(b[offset:])
}

// swap exchanges the first word, as a program that takes no part.
func (l *line) swap(to uint64) (was string) {
	l.t.Helper()
	before := l.sessions()
	p := xdpfab(l.t, l.side, []string{"atomic", "write", "uint64", strconv.FormatUint(to, 10), "-q", "-i", l.side.IfName,
		"--peer", l.home.addr(), "--region", waiterRegion})
	p.wants(0)
	l.home.eventually("the client's session gone", func() bool { return l.sessions() <= before })
	return strings.TrimSpace(p.out.String())
}

func (p *process) gets(what string) {
	p.t.Helper()
	p.eventually(what, func() bool { return p.out.String() == waiterGot })
}

// A guest that is killed while it waits for a word leaves its place to the next one, and
// its swap never runs.
func TestWaitingGuestKilled(t *testing.T) {
	l := newLine(t)
	l.swap(9)
	var waiting []*process
	for i := range uint64(3) {
		before := l.home.counters()["ops_executed"]
		waiting = append(waiting, l.join(i+1))
		waiting[i].eventually("waiting", func() bool { return l.home.counters()["ops_executed"] > before })
	}
	l.kill(waiting[0])
	l.swap(0)
	waiting[1].gets("the word")
	if v := l.at(0); v != 2 {
		t.Errorf("the word is %d, want 2, of the first that lives", v)
	}
	l.kill(waiting[2])
	l.swap(0)
	if was := l.swap(7); was != "0" {
		t.Errorf("the word was %s, want 0: what a dead guest waited for has run", was)
	}
	l.kill(waiting[1])
	l.empty()
}

// Guests that are killed while they hold a lock, or wait for it, leave it to the next one
// in line.
func TestLockingGuestKilled(t *testing.T) {
	l := newLine(t)
	holder := l.join(0)
	holder.gets("the lock")
	first := l.at(ticketsAt)
	var behind []*process
	for i := range uint64(3) {
		p := l.join(0)
		p.eventually("in line", func() bool { return l.at(ticketsAt) == first+i+1 })
		behind = append(behind, p)
	}
	l.kill(behind[0]) // waits
	l.kill(holder)
	behind[1].gets("the lock")
	l.kill(behind[1]) // holds
	behind[2].gets("the lock")
	l.kill(behind[2])
	l.empty()
	if given := l.at(ticketsAt); given < first+3 {
		t.Errorf("%d tickets are given, want %d at least", given, first+3)
	}
}
