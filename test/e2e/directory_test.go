// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// town is a network with an etcd, a node that lives at one of two addresses, and clients
// that know it by name.
type town struct {
	t       *testing.T
	net     *testnet.Star // etcd, the node's two homes, and the clients
	program string        // etcd's
	data    string        // its folder
	etcd    *process
	file    string // of the region
	node    *node
	home    int // the side that the node lives at
	clients []*caller
	table   strings.Builder
}

// caller is a namer, as the test sees it.
type caller struct {
	*process
	to     io.WriteCloser
	told   int // lines
	values string
}

// newTown builds it. The clients' operations are given up after a silence.
func newTown(t *testing.T, program string, giveUp time.Duration) *town {
	t.Helper()
	const clients = 2
	dir := t.TempDir()
	w := &town{t: t, net: testnet.NewStar(t, 3+clients, testnet.Options{}), program: program,
		data: filepath.Join(dir, "etcd"), file: filepath.Join(dir, "counters")}
	w.startEtcd()
	w.startNode(1)
	w.node.eventually("in the directory", func() bool {
		return strings.Contains(w.node.err.String(), "this node is in the directory")
	})
	for i := range clients {
		w.clients = append(w.clients, w.newCaller(w.net.Sides[3+i], filepath.Join(dir, fmt.Sprint("values", i)), giveUp))
	}
	fmt.Fprintf(&w.table, "| what happened | adds | longest pause | not executed | outcome unknown | new dials | refused |\n"+
		"|---|---|---|---|---|---|---|\n")
	return w
}

func (w *town) url() string { return fmt.Sprintf("etcd://%v:2379/test", w.net.Sides[0].IP4) }

// startEtcd starts etcd with the data that it has.
func (w *town) startEtcd() {
	w.t.Helper()
	at := func(port int) string { return fmt.Sprintf("http://%v:%d", w.net.Sides[0].IP4, port) }
	w.etcd = start(w.t, w.net.Sides[0], w.program, []string{"--data-dir", w.data, "--name", "e", "--log-level", "error",
		"--listen-client-urls", at(2379), "--advertise-client-urls", at(2379), "--listen-peer-urls", at(2380),
		"--initial-advertise-peer-urls", at(2380), "--initial-cluster", "e=" + at(2380)})
}

func (w *town) killEtcd() {
	w.t.Helper()
	w.etcd.signal(unix.SIGKILL)
	w.etcd.code()
}

// startNode starts the node at one of its homes.
func (w *town) startNode(home int) {
	w.t.Helper()
	w.home = home
	w.node = serve(w.t, w.net.Sides[home], "--directory", w.url(), "--node", nodeName,
		"--region", counters+"=4KiB:backing="+w.file)
}

func (w *town) newCaller(side *testnet.Side, values string, giveUp time.Duration) *caller {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	in, to, err := os.Pipe()
	if err != nil {
		w.t.Fatal(err)
	}
	defer in.Close()
	w.t.Cleanup(func() { _ = to.Close() })
	p := start(w.t, side, self, []string{"-i", side.IfName, "-directory", w.url(), "-values", values,
		"-timeout", giveUp.String()}, env(asNamer+"=1"), func(c *exec.Cmd) { c.Stdin = in })
	return &caller{process: p, to: to, values: values}
}

// say tells the namer something.
func (c *caller) say(what string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.to, what); err != nil {
		c.t.Fatalf("%s: %v: %s", c.name, err, c.err.String())
	}
}

// ask tells the namer something, and returns what it answers.
func (c *caller) ask(what string) (s sight) {
	c.t.Helper()
	c.say(what)
	c.told++
	var lines []string
	c.eventually("an answer", func() bool {
		lines = strings.SplitAfter(c.out.String(), "\n")
		return len(lines) > c.told
	})
	if err := json.Unmarshal([]byte(lines[c.told-1]), &s); err != nil {
		c.t.Fatalf("%s: %v in %q", c.name, err, lines[c.told-1])
	}
	return s
}

// act has something happen, and waits until each client has seen enough of it. lives says
// that the node is there all the time, so every operation succeeds.
func (w *town) act(what string, lives bool, happens func(), enough func(sight) bool) {
	w.t.Helper()
	for _, c := range w.clients {
		c.ask(tellAct)
	}
	happens()
	var sum sight
	for _, c := range w.clients {
		var s sight
		c.eventually("having seen: "+what, func() bool { s = c.ask(tellSight); return enough(s) })
		if lives && s.NotExecuted+s.Unknown > 0 {
			w.t.Errorf("%s: %+v: want every operation to succeed", what, s)
		}
		sum.Adds, sum.NotExecuted, sum.Unknown = sum.Adds+s.Adds, sum.NotExecuted+s.NotExecuted, sum.Unknown+s.Unknown
		sum.Dials, sum.Refused = sum.Dials+s.Dials, sum.Refused+s.Refused
		sum.Pause = max(sum.Pause, s.Pause)
		if s.Said != "" {
			w.t.Logf("%s: a client that dials: %s", what, s.Said)
		}
		if s.Hasty != "" {
			w.t.Logf("%s: a program that begins: %s", what, s.Hasty)
		}
	}
	pause := "–"
	if sum.Adds > 0 {
		pause = sum.Pause.Round(time.Millisecond).String()
	}
	fmt.Fprintf(&w.table, "| %s | %d | %s | %d | %d | %d | %d |\n", what, sum.Adds, pause, sum.NotExecuted, sum.Unknown,
		sum.Dials, sum.Refused)
}

// goesOn reports whether a client adds, and dials by name, with a directory that is up to
// date and has the node where it lives.
func (w *town) goesOn(s sight) bool { return adds(s) && s.Stale == "" && w.atHome(s) }

// adds reports whether a client adds and dials by name.
func adds(s sight) bool { return s.Adds >= 100 && s.Dials >= 3 }

// atHome reports whether a client's directory has the node where it lives.
func (w *town) atHome(s sight) bool {
	return strings.HasPrefix(s.Entry, w.net.Sides[w.home].IP4.String()+",")
}

// etcdDies kills etcd: whoever has handles goes on, and whoever begins is told, or waits.
func (w *town) etcdDies() {
	w.t.Helper()
	w.act("etcd is killed", true, func() {
		w.killEtcd()
		for _, c := range w.clients {
			c.say(tellBegin)
		}
	}, func(s sight) bool {
		if s.Waited {
			w.t.Error("a directory was read without etcd")
		}
		if s.Hasty != "" && (!strings.Contains(s.Hasty, w.url()) || !strings.Contains(s.Hasty, "reachable?")) {
			w.t.Errorf("a program that begins hears: %s", s.Hasty)
		}
		return adds(s) && s.Stale != "" && s.Hasty != ""
	})
}

func (w *town) etcdReturns() {
	w.t.Helper()
	w.act("etcd is back, with its data", true, w.startEtcd, func(s sight) bool { return w.goesOn(s) && s.Waited })
}

// nodeMoves ends the node, and starts it at its other home.
func (w *town) nodeMoves() {
	w.t.Helper()
	w.node.end()
	w.startNode(3 - w.home)
}

// close ends all, and compares what the clients were told with what the memory holds:
// each value was fetched once, and the others are those of operations whose outcome
// nobody knows.
func (w *town) close() {
	w.t.Helper()
	var unknown uint64
	for _, c := range w.clients {
		unknown += c.ask(tellEnd).Open
		c.wants(0)
	}
	w.node.end()
	sum, fetched := word(w.t, w.file), map[uint64]bool{}
	for _, c := range w.clients {
		values, err := os.ReadFile(c.values)
		if err != nil {
			w.t.Fatal(err)
		}
		for ; len(values) > 0; values = values[8:] {
			v := binary.LittleEndian.Uint64(values)
			if v == 0 || v > sum || fetched[v] {
				w.t.Errorf("%d was fetched, of a word that is %d now; before: %t", v, sum, fetched[v])
			}
			fetched[v] = true
		}
	}
	told := uint64(len(fetched))
	if told == 0 || sum-told > unknown {
		w.t.Errorf("the word is %d after %d operations that ran and %d with an unknown outcome", sum, told, unknown)
	}
	w.t.Logf("the word is %d: %d adds succeeded, and %d of %d with an unknown outcome had run\n%s", sum, told, sum-told,
		unknown, w.table.String())
}

// Clients that know a node by its name go on while etcd is away.
func TestDirectory(t *testing.T) {
	testnet.Require(t)
	program := os.Getenv(etcdEnv)
	if program == "" {
		var err error
		if program, err = exec.LookPath("etcd"); err != nil {
			t.Skip("takes etcd: apt-get install etcd-server, or make test-directory")
		}
	}
	w := newTown(t, program, silence)
	w.act("all is there", true, func() {}, w.goesOn)
	w.etcdDies()
	w.etcdReturns()
	w.close()
}

// etcdEnv, an environment variable, names the program of etcd.
const etcdEnv = "XDPFAB_ETCD"

// Clients follow a node to another address, also if it moves while etcd is away. They go
// on when etcd comes back without its data, and forget the node when it is killed.
func TestDirectoryDeaths(t *testing.T) {
	testnet.Require(t)
	program := os.Getenv(etcdEnv)
	if program == "" {
		t.Skip("takes minutes, and etcd: make test-directory")
	}
	w := newTown(t, program, 10*time.Second*testnet.Slow)
	w.act("all is there", true, func() {}, w.goesOn)
	w.etcdDies()
	w.etcdReturns()
	w.act("the node moves: it ends in order, and begins elsewhere", false, w.nodeMoves, w.goesOn)
	w.etcdDies()
	w.act("etcd is away, and the node moves", false, w.nodeMoves, func(s sight) bool {
		return s.NotExecuted+s.Unknown > 0 && s.Refused > 0 && !w.atHome(s)
	})
	w.act("etcd is back, with the entry of before", false, w.startEtcd, w.goesOn)
	w.etcdDies()
	w.act("etcd is back, without its data", true, func() {
		if err := os.RemoveAll(w.data); err != nil {
			t.Fatal(err)
		}
		w.startEtcd()
	}, w.goesOn)
	w.act("the node is killed (SIGKILL)", false, w.node.kill, func(s sight) bool {
		return s.Entry == "" && strings.Contains(s.Said, "no such node")
	})
	w.act("the node begins elsewhere", false, func() { w.startNode(3 - w.home) }, w.goesOn)
	w.close()
}
