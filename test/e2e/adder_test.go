// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	fab "github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// asAdder, an environment variable, turns the test binary into an adder: a
// program with the library, as users write them, that keeps an account of every
// operation. `xdpfab bench` cannot be used if several processes write a word,
// which makes it fail, or if the number of unknown outcomes matters, since it
// reports only the first error.
const asAdder = "XDPFAB_E2E_ADDER"

// account is what an adder prints: the fates of its fetch-adds of 1. Their sum is
// Posted.
type account struct {
	Posted, Added, NotExecuted, Unknown, Restarted uint64

	First string // error of the first that failed
	Later uint64 // fetch-adds that succeeded afterwards, on the same endpoint
}

// adderArgs are the adder's command line.
type adderArgs struct {
	ifname, peer, region, values string
	journal, attend              string
	serve                        int
	key                          uint64
	count                        uint64
	window                       int
	giveUp                       time.Duration
	later                        uint64
	rest                         time.Duration
	keep, borrow                 bool
	xdp                          fi.XDPMode
}

func adderMain(args []string) int {
	var a adderArgs
	fs := flag.NewFlagSet("adder", flag.ExitOnError)
	fs.StringVar(&a.ifname, "i", "", "interface")
	fs.StringVar(&a.peer, "peer", "", "address of the target")
	fs.StringVar(&a.region, "region", "", "whose first word to add to")
	fs.StringVar(&a.values, "values", "", "file to write the fetched values to, 8 bytes each")
	fs.StringVar(&a.journal, "journal", "", "file that says at any time what this adder does: see journal")
	fs.IntVar(&a.serve, "serve", 0, "number of an endpoint that serves a region, \"own\"; 0 for none")
	fs.StringVar(&a.attend, "attend", "", "file to serve there by the key attendKey, in place of that region")
	fs.Uint64Var(&a.key, "key", 0, "of the region to add to, in place of its name")
	fs.BoolVar(&a.keep, "keep", false, "have that region outlive the program")
	fs.Uint64Var(&a.count, "count", 1<<62, "fetch-adds, unless one fails")
	fs.IntVar(&a.window, "window", 1024, "fetch-adds in flight, a power of two")
	fs.DurationVar(&a.giveUp, "timeout", limit, "silence after which to give up")
	fs.Uint64Var(&a.later, "later", 0, "after a failure, go on until so many have succeeded")
	fs.DurationVar(&a.rest, "rest", 0, "pause after each time that completions were collected")
	fs.BoolVar(&a.borrow, "borrow", false, "drive a queue of the daemon's")
	fs.TextVar(&a.xdp, "xdp", fi.XDPAuto, "mode of XDP")
	_ = fs.Parse(args)
	if err := a.run(); err != nil {
		fmt.Fprintln(os.Stderr, "adder:", err)
		return 1
	}
	return 0
}

// run adds until it is done, and prints the account.
func (a *adderArgs) run() error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	w, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer w.dom.CloseAll()
	signal.Notify(w.enough, enough)
	if err := errors.Join(w.reach(stageServes, journal{}), a.offer(w.dom)); err != nil {
		return err
	}
	if err := w.add(ctx, a.count, a.rest); err != nil {
		return err
	}
	for deadline := time.Now().Add(limit); w.Later < a.later; {
		if time.Now().After(deadline) {
			return fmt.Errorf("after %q only %d more succeeded", w.First, w.Later)
		}
		if err := w.again(ctx); err != nil {
			return err
		}
	}
	if a.values != "" {
		if err := os.WriteFile(a.values, w.values, 0o600); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(&w.account)
}

// adder is an endpoint that adds. One goroutine uses it.
type adder struct {
	account
	dom    *fab.Domain
	ep     *fi.Endpoint
	cq     *fi.CompletionQueue
	dest   fi.Address
	key    uint64
	free   []*[8]byte // results of no operation in flight
	window int
	values []byte // fetched, one after the other

	journal *os.File // or nil

	enough chan os.Signal // has one when nothing more is to be posted
}

// enough is the signal after which an adder posts no more, and ends in order.
const enough = unix.SIGUSR1

// attendKey is the key of a file that an adder serves.
const attendKey = 4711

// offer serves a region, if that is asked for.
func (a *adderArgs) offer(dom *fab.Domain) error {
	if a.serve == 0 {
		return nil
	}
	o := mr.Options{Name: "own", Access: mr.RemoteRead | mr.RemoteWrite}
	m, err := mr.Memfd("own", 4096)
	if a.attend != "" {
		key := uint64(attendKey)
		o.Name, o.Key = "", &key
		m, err = mr.File(a.attend, 4096)
	}
	if err != nil {
		return err
	}
	r, err := dom.Register(m, o)
	if err == nil && a.keep {
		err = dom.Keep(r)
	}
	if err != nil {
		return err
	}
	ep, err := dom.NewEndpoint(fab.EndpointAttr{Number: a.serve})
	if err != nil {
		return err
	}
	return ep.Enable()
}

// note brings the journal up to date before so many more are posted.
func (w *adder) note(more int) error {
	return w.reach(stageAdding, journal{most: w.Posted + uint64(more), added: w.Added})
}

// reach says in the journal, if there is one, which stage has been reached.
func (w *adder) reach(s stage, j journal) error {
	if w.journal == nil {
		return nil
	}
	j.stage = s
	return j.write(w.journal)
}

func (a *adderArgs) open(ctx context.Context) (w *adder, err error) {
	w = &adder{window: a.window, enough: make(chan os.Signal, 1)}
	for range a.window {
		w.free = append(w.free, new([8]byte))
	}
	if a.journal != "" {
		if w.journal, err = os.Create(a.journal); err != nil {
			return nil, err
		}
	}
	if err := w.reach(stageAttaches, journal{}); err != nil {
		return nil, err
	}
	if w.dom, err = fab.Open(ctx, a.ifname, fab.DomainAttr{GiveUp: a.giveUp, XDP: a.xdp, Borrow: a.borrow}); err != nil {
		return nil, err
	}
	dom := w.dom
	defer func() {
		if err != nil {
			err = errors.Join(err, dom.CloseAll())
		}
	}()
	if err := w.reach(stageDials, journal{}); err != nil {
		return nil, err
	}
	peer, err := w.dom.Dial(ctx, a.peer)
	if err != nil {
		return nil, err
	}
	if w.key = a.key; a.key == 0 {
		region, err := peer.Lookup(ctx, a.region)
		if err != nil {
			return nil, err
		}
		w.key = region.Key
	}
	if err := w.reach(stageMakes, journal{}); err != nil {
		return nil, err
	}
	av, err := w.dom.NewAddressVector()
	if err != nil {
		return nil, err
	}
	if w.cq, err = w.dom.NewCompletionQueue(fi.CQAttr{Size: a.window}); err != nil {
		return nil, err
	}
	if w.ep, err = w.dom.NewEndpoint(fab.EndpointAttr{Number: fi.AnyNumber, Size: a.window, InitiateOnly: true}); err != nil {
		return nil, err
	}
	if err := errors.Join(w.ep.Bind(av, 0), w.ep.Bind(w.cq, 0), w.ep.Enable()); err != nil {
		return nil, err
	}
	w.dest, err = av.Insert(ctx, a.peer)
	return w, err
}

// add posts until count, the signal or the first failure, and returns when none is in
// flight. It rests after each collection.
func (w *adder) add(ctx context.Context, count uint64, rest time.Duration) error {
	for {
		full := false
		if err := w.note(len(w.free)); err != nil {
			return err
		}
		if len(w.enough) > 0 {
			count = w.Posted
		}
		for !full && w.First == "" && w.Posted < count && len(w.free) > 0 {
			err := w.post()
			if full = errors.Is(err, fi.ErrAgain); err != nil && !full {
				return err
			}
		}
		if len(w.free) == w.window {
			if !full {
				return nil
			}
			runtime.Gosched()
			continue
		}
		if err := w.collect(ctx); err != nil {
			return err
		}
		if rest > 0 {
			time.Sleep(rest)
		}
	}
}

// post posts with a free result. An operation's place becomes free a moment after
// its completion shows, so there may not be room for a whole window.
func (w *adder) post() error {
	r := w.free[len(w.free)-1]
	err := w.ep.FetchAtomic(&fi.Msg{Buf: one[:], Result: r[:], Dest: w.dest, Key: w.key, Datatype: atomic.Uint64, Op: atomic.Sum, Context: r}, 0)
	if err != nil {
		return err
	}
	w.free = w.free[:len(w.free)-1]
	w.Posted++
	return nil
}

var one = [8]byte{1}

// collect waits for completions and adds them to the account.
func (w *adder) collect(ctx context.Context) error {
	if err := w.cq.Wait(ctx, 1); err != nil {
		return err
	}
	var done [256]fi.Completion
	n, err := w.cq.Read(done[:])
	if errors.Is(err, fi.ErrErrorPending) {
		e, ok := w.cq.ReadErr()
		if !ok {
			return errors.New("an error completion was announced and is missing")
		}
		w.failed(e.Err)
		w.free = append(w.free, e.Context.(*[8]byte))
		return nil
	}
	for _, c := range done[:n] {
		r := c.Context.(*[8]byte)
		w.values = append(w.values, r[:]...)
		w.free = append(w.free, r)
	}
	w.Added += uint64(n)
	return err
}

func (w *adder) failed(err error) {
	switch {
	case errors.Is(err, fab.ErrNotExecuted):
		w.NotExecuted++
	case errors.Is(err, fab.ErrPeerRestarted):
		w.Restarted++
	case errors.Is(err, fab.ErrOutcomeUnknown):
		w.Unknown++
	}
	if w.First == "" {
		w.First = err.Error()
	}
}

// again runs one fetch-add by itself, after a failure.
func (w *adder) again(ctx context.Context) error {
	before := w.Added
	if err := w.post(); err != nil && !errors.Is(err, fi.ErrAgain) {
		return err
	}
	for len(w.free) < w.window {
		if err := w.collect(ctx); err != nil {
			return err
		}
	}
	w.Later += w.Added - before
	return nil
}

// startAdder starts this test binary as an adder.
func startAdder(t *testing.T, side *testnet.Side, n *node, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return start(t, side, self, append([]string{"-i", side.IfName, "-peer", n.addr()}, args...), env(asAdder+"=1"))
}

// fates is the account of an adder that ended. Its parts must make the whole.
func fates(p *process) account {
	p.t.Helper()
	a := decoded[account](p)
	if a.Added+a.NotExecuted+a.Unknown+a.Restarted != a.Posted {
		p.t.Errorf("%s: operations are missing: %+v", p.name, a)
	}
	return a
}

// word reads the first word of a region's file.
func word(t *testing.T, path string) uint64 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(b)
}
