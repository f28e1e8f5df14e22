// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// loaded is a daemon whose memory is a file, so that the test can see what
// really happened even if the daemon has died.
type loaded struct {
	*node
	t     *testing.T
	net   *testnet.Pair
	file  string
	flags []string
}

func newLoaded(t *testing.T) *loaded {
	t.Helper()
	testnet.Require(t)
	l := &loaded{t: t, net: testnet.NewPair(t, testnet.Options{}), file: filepath.Join(t.TempDir(), "memory")}
	l.flags = []string{"--region", "r=4KiB:key=0x11,backing=" + l.file, "--region", "other=4KiB:key=0x22"}
	l.node = serve(t, l.net.B, l.flags...)
	viaDaemon(t, l.net.A)
	return l
}

// restart starts a daemon in place of the last one, with the same command line.
func (l *loaded) restart() {
	l.t.Helper()
	l.node = again(l.t, l.net.B, l.socket, l.flags...)
}

// busy waits until the client has kept the daemon busy for a while.
func (l *loaded) busy(client *process) {
	l.t.Helper()
	from := l.counters()["ops_executed"]
	client.eventually("keeping the daemon busy", func() bool { return l.counters()["ops_executed"] > from+20_000 })
}

// bench is the client under load, for longer than the test needs it.
func (l *loaded) bench(flags ...string) *process {
	l.t.Helper()
	args := []string{"bench", l.addr(), "-i", l.net.A.IfName, "--region", "other", "--mode", "throughput", "--duration", "1h"}
	return start(l.t, l.net.A, xdpfabPath, append(args, flags...))
}

// add adds 1 to the first word by the client, and returns what was there.
func (l *loaded) add() uint64 {
	l.t.Helper()
	r := answer[atomicReport](l.t, l.net.A, "atomic", "sum", "uint64", "1", "-i", l.net.A.IfName, "--peer", l.addr(), "--region", "r")
	n, err := strconv.ParseUint(strings.Join(r.Before, ","), 10, 64)
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

// check compares the memory with an adder's account: it grew at least by the
// operations that succeeded, and at most by those that may have run.
func (l *loaded) check(a account) {
	l.t.Helper()
	sum := word(l.t, l.file)
	if sum < a.Added || sum > a.Added+a.Unknown+a.Restarted {
		l.t.Errorf("the memory holds %d; account %+v", sum, a)
	}
	l.t.Logf("memory %d, account %+v", sum, a)
}

// silence is the give-up time of clients whose daemon goes away for good. A live
// daemon answers within this time on any machine. The tests that wait for it run in
// parallel.
var silence = 30 * time.Second * testnet.Slow

// A daemon that is asked to end while it is busy ends in order: the client knows
// of each operation whether it ran.
func TestTermUnderLoad(t *testing.T) {
	t.Parallel()
	ways(t, testTermUnderLoad)
}

func testTermUnderLoad(t *testing.T) {
	t.Parallel()
	l := newLoaded(t)
	adder := startAdder(t, l.net.A, l.node, "-region", "r", "-timeout", silence.String())
	l.busy(adder)
	asked := time.Now()
	l.end()
	t.Logf("ended in %v", time.Since(asked))
	a := fates(adder)
	l.check(a)
	if l.cutShort() {
		t.Log("this machine is too busy for the daemon to close in order")
		return
	}
	if a.Unknown+a.Restarted != 0 || a.NotExecuted == 0 || a.Added == 0 || !strings.Contains(a.First, "not executed: ") {
		t.Errorf("account %+v: want every operation added or not executed", a)
	}
}

// The same from the command line.
func TestTermDuringBench(t *testing.T) {
	t.Parallel()
	ways(t, testTermDuringBench)
}

func testTermDuringBench(t *testing.T) {
	t.Parallel()
	l := newLoaded(t)
	bench := l.bench("--timeout", silence.String())
	l.busy(bench)
	l.end()
	// The first operation that did not run gets one of two errors, depending on
	// where it was: in the session that was closed, or waiting to be sent.
	refused := []string{"not executed: peer closed the session", "not executed: peer refused the session: it is shutting down", "not executed: peer does not answer"}
	code, text := bench.code(), bench.err.String()
	if l.cutShort() {
		t.Log("this machine is too busy for the daemon to close in order")
		return
	}
	for _, why := range refused {
		if strings.HasPrefix(text, "xdpfab: ") && strings.Contains(text, why) && code == 4 {
			return
		}
	}
	t.Errorf("bench ended with code %d and %q, want to be told that an operation was not executed", code, text)
}

// A daemon that is killed while it is busy, and started again at once: the client
// learns that the peer restarted, and goes on with the new one.
func TestKillAndRestartUnderLoad(t *testing.T) { ways(t, testKillAndRestartUnderLoad) }

func testKillAndRestartUnderLoad(t *testing.T) {
	l := newLoaded(t)
	adder := startAdder(t, l.net.A, l.node, "-region", "r", "-timeout", silence.String())
	l.busy(adder)
	l.kill()
	l.restart()
	a := fates(adder)
	l.check(a)
	if a.Restarted == 0 || a.Added == 0 || !strings.Contains(a.First, "peer restarted") {
		t.Errorf("account %+v: want operations of which it is told that the peer restarted", a)
	}
	bench := l.bench("--timeout", silence.String())
	l.busy(bench)
	l.kill()
	l.restart()
	bench.wants(3, "xdpfab: ", "peer restarted")
	if b := l.add(); b != word(t, l.file)-1 {
		t.Errorf("a new operation found %d, the memory holds %d", b, word(t, l.file))
	}
	l.end()
}

// A daemon that is killed and stays away: after the give-up time the outcome is
// unknown, and the client says why.
func TestKillUnderLoad(t *testing.T) {
	t.Parallel()
	l := newLoaded(t)
	adder := startAdder(t, l.net.A, l.node, "-region", "r", "-timeout", silence.String())
	l.busy(adder)
	l.kill()
	a := fates(adder)
	l.check(a)
	if a.Unknown == 0 || a.Restarted != 0 || !strings.Contains(a.First, "peer does not answer") {
		t.Errorf("account %+v: want operations whose outcome is unknown", a)
	}
}

// The same from the command line.
func TestKillDuringBench(t *testing.T) {
	t.Parallel()
	l := newLoaded(t)
	bench := l.bench("--timeout", silence.String())
	l.busy(bench)
	l.kill()
	bench.wants(3, "xdpfab: ", "outcome unknown", "peer does not answer")
}

// The same process goes on after the restart, on the same endpoint: operations that
// are missing in the account of the first life are in that of the second.
func TestClientSurvivesRestarts(t *testing.T) { ways(t, testClientSurvivesRestarts) }

func testClientSurvivesRestarts(t *testing.T) {
	l := newLoaded(t)
	adder := startAdder(t, l.net.A, l.node, "-region", "other", "-timeout", silence.String(), "-later", "100")
	l.busy(adder)
	l.kill()
	l.restart()
	if a := fates(adder); a.Restarted == 0 || a.Later < 100 {
		t.Errorf("account %+v: want the peer's restart noticed, and 100 successes afterwards", a)
	}
	l.end()
}

// Five daemons on one interface, one after the other, killed and ended in turn:
// each finds a clean interface and the memory as the last one left it.
func TestRestarts(t *testing.T) {
	l := newLoaded(t)
	for i := range uint64(6) {
		if before := l.add(); before != i {
			t.Errorf("life %d found %d", i, before)
		}
		if !attached(t, l.net.B) {
			t.Error("no XDP program while the daemon serves")
		}
		if i == 5 {
			break
		}
		if i%2 == 0 {
			l.kill()
		} else {
			l.end()
		}
		l.restart()
	}
	l.signal(unix.SIGINT) // as good as SIGTERM
	l.wants(0, "msg=closed")
	if attached(t, l.net.B) {
		t.Error("an XDP program is left")
	}
}
