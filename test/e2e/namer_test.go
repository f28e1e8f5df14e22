// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	fab "github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/directory"
	"github.com/xdpfab/xdpfab/xdpfab/directory/etcd"
)

// asNamer, an environment variable, turns the test binary into a namer: a program that
// finds a region and a node by their names in etcd, and goes on with them while etcd and
// the node come and go. It answers each line of its input with a sight.
const asNamer = "XDPFAB_E2E_NAMER"

// sight is what a namer has seen since the last act began.
type sight struct {
	Adds, NotExecuted, Unknown uint64 // the fates of fetch-adds of 1
	Pause                      time.Duration
	Dials, Refused             uint64 // new handles by name: those that read the word, and the others
	Said                       string // the error of the last that was refused

	Entry  string // of the node, at present; empty if it has none
	Stale  string // why the directory is not up to date; empty if it is
	Hasty  string // what a program hears that begins now and has two seconds; empty: still under way
	Waited bool   // a program that began with a longer patience has read the directory

	Open uint64 // operations with an unknown outcome since the namer began
}

// What a namer is told.
const (
	tellSight = "sight" // say what has been seen
	tellAct   = "act"   // the same; then a new act begins
	tellBegin = "begin" // other programs begin, a hasty and a patient one
	tellEnd   = "end"   // end in order, write the values that were fetched
)

// names in the directory.
const nodeName, counters = "node7", "counters"

// namer is the program's state.
type namer struct {
	url    string
	giveUp time.Duration
	dom    *fab.Domain
	names  *directory.Directory
	tasks  sync.WaitGroup
	end    chan struct{}

	mu     sync.Mutex
	seen   sight
	open   uint64
	values []byte
}

func namerMain(args []string) int {
	n := &namer{end: make(chan struct{})}
	fs := flag.NewFlagSet("namer", flag.ExitOnError)
	ifname := fs.String("i", "", "interface")
	values := fs.String("values", "", "file to write the fetched values to, 8 bytes each")
	handles := fs.Int("handles", 2, "that add, at the same time")
	fs.StringVar(&n.url, "directory", "", "URL")
	fs.DurationVar(&n.giveUp, "timeout", limit, "silence after which to give up")
	_ = fs.Parse(args)
	if err := n.run(*ifname, *values, *handles); err != nil {
		fmt.Fprintln(os.Stderr, "namer:", err)
		return 1
	}
	return 0
}

func (n *namer) run(ifname, values string, handles int) error {
	ctx := context.Background()
	var err error
	if n.dom, err = fab.Open(ctx, ifname, fab.DomainAttr{GiveUp: n.giveUp}); err != nil {
		return err
	}
	defer n.dom.CloseAll()
	var source *etcd.Source
	if source, n.names, err = n.read(ctx); err != nil {
		return err
	}
	defer source.Close()
	defer n.names.Close()
	cluster := fab.NewCluster(n.dom, n.names)
	for range handles {
		h, err := fab.Word[uint64](ctx, cluster, counters, 0, fab.AutoRebind())
		if err != nil {
			return err
		}
		n.tasks.Go(func() { n.add(ctx, h) })
	}
	n.tasks.Go(func() { n.dial(ctx) })
	answers := json.NewEncoder(os.Stdout)
	for told := bufio.NewScanner(os.Stdin); told.Scan(); {
		switch text := told.Text(); text {
		case tellBegin:
			n.begin(ctx)
		case tellEnd:
			close(n.end)
			n.tasks.Wait()
			return errors.Join(answers.Encode(n.look(false)), os.WriteFile(values, n.values, 0o600))
		default:
			if err := answers.Encode(n.look(text == tellAct)); err != nil {
				return err
			}
		}
	}
	return errors.New("the test has gone")
}

// read reads the directory, as a program does when it begins.
func (n *namer) read(ctx context.Context) (*etcd.Source, *directory.Directory, error) {
	source, err := etcd.Open(n.url, nil)
	if err != nil {
		return nil, nil, err
	}
	d, err := directory.Open(ctx, source)
	if err != nil {
		return nil, nil, errors.Join(err, source.Close())
	}
	return source, d, nil
}

// look returns what was seen. If a new act begins, only what holds at present stays.
func (n *namer) look(act bool) sight {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.seen
	s.Open = n.open
	if e, err := n.names.Node(nodeName); err == nil {
		s.Entry = e.Text()
	}
	if err := n.names.Stale(); err != nil {
		s.Stale = err.Error()
	}
	if act {
		n.seen = sight{}
	}
	return s
}

// ended reports whether the namer has to end, after a pause.
func (n *namer) ended(pause time.Duration) bool {
	select {
	case <-n.end:
		return true
	case <-time.After(pause):
		return false
	}
}

// add adds until the end. The handle alone cares for the region's moves.
func (n *namer) add(ctx context.Context, h fab.Remote[uint64]) {
	const rest, retry = 2 * time.Millisecond, 20 * time.Millisecond
	last, pause := time.Now(), time.Duration(0)
	for !n.ended(pause) {
		v, err := h.Add(ctx, 1)
		v, err = fab.Settle(ctx, v, err)
		n.mu.Lock()
		switch now := time.Now(); {
		case err == nil:
			n.values = binary.LittleEndian.AppendUint64(n.values, v)
			n.seen.Adds++
			n.seen.Pause = max(n.seen.Pause, now.Sub(last))
			last, pause = now, rest
		case errors.Is(err, fab.ErrNotExecuted):
			n.seen.NotExecuted++
			pause = retry
		default:
			n.seen.Unknown++
			n.open++
			pause = retry
		}
		n.mu.Unlock()
	}
}

// dial finds the region, and its node, by name until the end, each time anew.
func (n *namer) dial(ctx context.Context) {
	for !n.ended(100 * time.Millisecond) {
		err := n.dialOnce(ctx)
		n.mu.Lock()
		if err == nil {
			n.seen.Dials++
		} else {
			n.seen.Refused++
			n.seen.Said = err.Error()
		}
		n.mu.Unlock()
	}
}

func (n *namer) dialOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.giveUp)
	defer cancel()
	cluster := fab.NewCluster(n.dom, n.names)
	defer cluster.Close()
	if _, err := cluster.Dial(ctx, nodeName); err != nil {
		return err
	}
	h, err := fab.Word[uint64](ctx, cluster, counters, 0)
	if err != nil {
		return err
	}
	_, err = h.Load(ctx)
	return err
}

// begin does what two programs do that begin now: one that has little time, and one that
// waits for the directory.
func (n *namer) begin(ctx context.Context) {
	try := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		source, d, err := n.read(ctx)
		if err == nil {
			d.Close()
			err = source.Close()
		}
		return err
	}
	n.tasks.Go(func() {
		err := try(2 * time.Second)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.seen.Hasty = fmt.Sprint(err)
	})
	n.tasks.Go(func() {
		err := try(limit)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.seen.Waited = err == nil
	})
}
