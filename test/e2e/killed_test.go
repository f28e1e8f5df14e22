// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// holdings are what a daemon has open, by the kernel and by itself.
type holdings struct{ fds, rings, goroutines int }

// within reports whether a daemon has no more than it had before, and no memory of
// guests.
func (h holdings) within(before holdings) bool {
	return h.fds <= before.fds && h.goroutines <= before.goroutines && h.rings == 0
}

var goroutines = regexp.MustCompile(`(?m)^go_goroutines (\d+)$`)

func (n *node) holdings() (h holdings) {
	n.t.Helper()
	dir := fmt.Sprintf("/proc/%d/", n.cmd.Process.Pid)
	fds, err := os.ReadDir(dir + "fd")
	if err != nil {
		n.t.Fatal(err)
	}
	maps, err := os.ReadFile(dir + "maps")
	if err != nil {
		n.t.Fatal(err)
	}
	c, err := control.Dial(n.socket)
	if err != nil {
		n.t.Fatal(err)
	}
	defer c.Close()
	var text string
	if err := c.Call(n.t.Context(), "metrics", nil, &text); err != nil {
		n.t.Fatal(err)
	}
	if m := goroutines.FindStringSubmatch(text); m != nil {
		h.goroutines, _ = strconv.Atoi(m[1])
	}
	h.fds, h.rings = len(fds), strings.Count(string(maps), "/memfd:")
	return h
}

// usual returns the median of several looks at a daemon, for each of its holdings. One
// look could meet it between two goroutines, and a test that compares with it would wait
// for a number that the daemon at rest never has: 1 look in 360 found 16 goroutines, and
// all others at least 17.
func (n *node) usual() holdings {
	n.t.Helper()
	var fds, rings, goroutines [15]int
	for i := range fds {
		h := n.holdings()
		fds[i], rings[i], goroutines[i] = h.fds, h.rings, h.goroutines
	}
	median := func(of []int) int {
		slices.Sort(of)
		return of[len(of)/2]
	}
	return holdings{fds: median(fds[:]), rings: median(rings[:]), goroutines: median(goroutines[:])}
}

// deathsEnv, an environment variable, is how many guests TestGuestsKilled kills.
const deathsEnv = "XDPFAB_GUEST_DEATHS"

// deaths is how many guests to kill.
func deaths(t *testing.T, usual int) int {
	text := os.Getenv(deathsEnv)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 10 || n > mostDeaths {
		t.Fatalf("%s=%s: want a number, 10 to %d", deathsEnv, text, mostDeaths)
	}
	return n
}

const (
	// atATime is how many guests live at a time.
	atATime = 6
	// firstServed is the number of the endpoint of the first guest. No other has it.
	firstServed = 100
	mostDeaths  = 60_000
	// timed is the share of deaths after which the test looks how long the guest was
	// still listed.
	timed = 16
)

// killing is a test that kills guests.
type killing struct {
	side         *testnet.Side
	host, target *node
	dir          string // of journals

	mu          sync.Mutex
	most, added uint64        // fetch-adds: posted at most, and known to have been executed
	stages      map[stage]int // how many guests were killed in each stage
	longest     time.Duration // that a guest was listed after its death, of those that were looked at
}

// Guests are killed at any point of their lives, several at a time. What they had is
// given back, the memory that they served is withdrawn, and each operation ran once or
// not at all.
func TestGuestsKilled(t *testing.T) {
	testnet.Require(t)
	usual := 201
	if testing.Short() { // in guests whose processors are translated
		usual = 36
	}
	n := deaths(t, usual)
	net := testnet.NewPair(t, testnet.Options{})
	file := filepath.Join(t.TempDir(), "memory")
	d := serve(t, net.B, "--region", "r=4KiB:backing="+file)
	k := &killing{side: net.A, host: host(t, net.A), target: d, dir: t.TempDir(), stages: map[stage]int{}}
	k.lives(t, 0, atATime)
	k.host.eventually("the first guests gone", k.empty)
	before := k.host.usual()
	k.lives(t, atATime, n)
	k.host.eventually("all guests gone", k.empty)
	var now holdings
	k.host.eventually(fmt.Sprintf("holding what it held before, %+v", before), func() bool {
		now = k.host.holdings()
		return now.within(before)
	})
	t.Logf("%d guests killed: %+v, after the first %+v; added %d to %d; one in %d was looked for, and gone after %v at most", n, now, before, k.added, k.most, timed, k.longest)
	for _, s := range slices.Sorted(maps.Keys(k.stages)) {
		t.Logf("%6d while %v", k.stages[s], s)
	}
	hosts.Store(net.B, d)
	t.Cleanup(func() { hosts.Delete(net.B) })
	xdpfab(t, net.B, []string{"list", fmt.Sprintf("%s/%d", k.host.addr(), firstServed), "-i", net.B.IfName}).wants(1, "it has no such endpoint")
	if sum := word(t, file); sum < k.added || sum > k.most || k.added == 0 {
		t.Errorf("the memory holds %d, want %d to %d", sum, k.added, k.most)
	}
}

func (k *killing) empty() bool {
	s, err := k.host.ask()
	return err == nil && len(s.Guests) == 0
}

// lives has guests live and die, some at a time: those with numbers from first to end.
func (k *killing) lives(t *testing.T, first, end int) {
	t.Run(fmt.Sprintf("%d guests", end-first), func(t *testing.T) {
		for i := range atATime {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				for n := first + i; n < end; n += atATime {
					k.life(t, n)
				}
			})
		}
	})
}

// life starts a guest, and kills it in a stage of its life that the number of the guest
// chooses, or in one that it reaches meanwhile.
func (k *killing) life(t *testing.T, n int) {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	point, adds := stage(rng.IntN(int(stageAdding)+1)), uint64(0)
	if rng.IntN(2) == 0 { // half of them at work
		point, adds = stageAdding, rng.Uint64N(1<<uint(rng.IntN(14)))
	}
	path := filepath.Join(k.dir, strconv.Itoa(n))
	p := startAdder(t, k.side, k.target, "-region", "r", "-journal", path, "-window", "256", "-serve", strconv.Itoa(firstServed+n))
	p.eventually(point.String(), func() bool {
		j := journalOf(path)
		return j.stage > point || j.stage == point && j.added >= adds
	})
	time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond) // anywhere between two stages
	p.signal(unix.SIGKILL)
	<-p.done
	k.bury(t, p, n, journalOf(path))
	_ = os.Remove(path)
}

// bury adds a life to the account.
func (k *killing) bury(t *testing.T, p *process, n int, j journal) {
	died := time.Now()
	if n%timed == 0 {
		testnet.Eventually(t, "the guest gone", func() bool {
			s, err := k.host.ask()
			return err == nil && !slices.ContainsFunc(s.Guests, func(g control.Guest) bool { return g.PID == p.cmd.Process.Pid })
		})
	}
	took := time.Since(died)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.most, k.added = k.most+j.most, k.added+j.added
	k.stages[j.stage]++
	if n%timed == 0 {
		k.longest = max(k.longest, took)
	}
}

// stage is what an adder is about to do, or does.
type stage uint64

// The stages of an adder's life, in their order.
const (
	stageBegins stage = iota
	stageAttaches
	stageDials
	stageMakes
	stageServes
	stageAdding
)

func (s stage) String() string {
	return [...]string{"beginning", "attaching", "finding its peer", "making an endpoint", "registering and serving a region", "adding"}[s]
}

// journal is what an adder says of itself at any time, in a file.
type journal struct {
	most, added uint64 // fetch-adds: posted at most, and known to have been executed
	stage       stage
}

const journalLen = 24

// journalOf reads the journal of an adder.
func journalOf(path string) (j journal) {
	b, err := os.ReadFile(path)
	if err != nil || len(b) < journalLen {
		return j
	}
	return journal{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), stage(binary.LittleEndian.Uint64(b[16:]))}
}

// write writes it, at once as far as the end of this process is concerned.
func (j journal) write(f *os.File) error {
	b := binary.LittleEndian.AppendUint64(nil, j.most)
	b = binary.LittleEndian.AppendUint64(b, j.added)
	b = binary.LittleEndian.AppendUint64(b, uint64(j.stage))
	_, err := f.WriteAt(b, 0)
	return err
}
