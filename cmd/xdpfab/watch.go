// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/value"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

type watchFlags struct {
	link     linkFlags
	region   regionFlags
	offset   uint64
	datatype string
	interval time.Duration
	until    string
	count    int
	wait     time.Duration
}

// change is a value that watch has seen, as JSON.
type change struct {
	Time   time.Time `json:"time"`
	Before string    `json:"before,omitempty"` // nothing at first
	Value  string    `json:"value"`
}

func (a *app) watchCmd() *cobra.Command {
	var f watchFlags
	c := &cobra.Command{
		Use:   "watch PEER",
		Short: "Watch a word of a peer's memory, or the peer",
		Long: `watch reads an element of a region once each --interval. It prints the first value, and
then each change, with the time. It misses changes between two reads. It ends when the
element has the value of --until, after --count changes, or when it is interrupted: with
exit code 1, if it was to wait for one of these.

Without a region, watch waits until the peer is gone, and says why: exit code 3 means
that the peer restarted, and 4 that it is silent or closed its session.`,
		Example: `  xdpfab watch 10.0.0.2 --region counters
  xdpfab watch 10.0.0.2 --region temperatures --offset 16 --datatype double --interval 1s
  xdpfab watch 10.0.0.2 --region barrier --until 8 --wait 1m
  xdpfab watch 10.0.0.2`,
		Args: exactArgs("PEER"),
		RunE: func(c *cobra.Command, args []string) error {
			if f.region == (regionFlags{}) {
				return a.watchPeer(c, &f, args[0])
			}
			return a.watchWord(c, &f, args[0])
		},
	}
	f.link.register(c)
	f.region.register(c)
	a.jsonFlag(c)
	fs := c.Flags()
	fs.Var((*show.Bytes)(&f.offset), "offset", "offset of the element in the region, such as 4096 or 4KiB")
	fs.StringVar(&f.datatype, "datatype", "uint64", "datatype of the element")
	fs.DurationVar(&f.interval, "interval", 100*time.Millisecond, "time between two reads; 0 for none")
	fs.StringVar(&f.until, "until", "", "end when the element has this value")
	fs.IntVar(&f.count, "count", 0, "end after this number of changes; 0: never")
	fs.DurationVar(&f.wait, "wait", 0, "give up, with exit code 1, after this time; 0: never")
	complete(c, "datatype", datatypeNames()...)
	return c
}

// Why a command ends that has not seen what it was to wait for.
var (
	errWait        = errors.New("gave up")
	errInterrupted = errors.New("interrupted")
)

func (f *watchFlags) check(c *cobra.Command) error { return negative(c, "interval", "count", "wait") }

// limited bounds the command's context by --wait.
func (f *watchFlags) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.wait == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, f.wait, errWait)
}

// watchPeer waits until the peer is gone.
func (a *app) watchPeer(c *cobra.Command, f *watchFlags, addr string) (err error) {
	for _, name := range []string{"offset", "datatype", "interval", "until", "count"} {
		if c.Flags().Changed(name) {
			return usage(c, "--%s is about an element: want --region or --key", name)
		}
	}
	if err := f.check(c); err != nil {
		return err
	}
	defer a.whileRead()()
	user := c.Context()
	ctx, cancel := f.limited(user)
	defer cancel()
	c.SetContext(ctx)
	cl, err := a.connect(c, &f.link, addr)
	if err != nil {
		return f.unconnected(ctx, addr, err)
	}
	defer func() { err = errors.Join(err, cl.close()) }()
	if !a.json {
		fmt.Fprintf(a.err, "watching %s until it is gone; Ctrl-C ends; to watch a word, name its region by --region\n",
			addr)
	}
	err = cl.peer.Watch(ctx)
	switch {
	case user.Err() != nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w after %v: %s is there still: wait longer with --wait", errWait, f.wait, addr)
	}
	return gone(addr, err)
}

// gone is the error of a watch whose peer has ended.
func gone(addr string, err error) error {
	return fmt.Errorf("%s: %s is gone: %w", time.Now().Format("15:04:05.000000"), addr, err)
}

// watchWord prints the changes of an element.
func (a *app) watchWord(c *cobra.Command, f *watchFlags, addr string) (err error) {
	if err := errors.Join(f.region.check(c), f.check(c)); err != nil {
		return err
	}
	r := request{form: atomic.Fetch, op: atomic.Read, offset: f.offset, count: 1}
	if r.dt, err = parseDatatype(f.datatype); err != nil {
		return usage(c, "%v", err)
	}
	var until []byte
	if c.Flags().Changed("until") {
		if until, err = value.Parse(r.dt, f.until); err != nil {
			return usage(c, "--until: %v", err)
		}
	}
	defer a.whileRead()()
	user := c.Context()
	ctx, cancel := f.limited(user)
	defer cancel()
	c.SetContext(ctx)
	cl, err := a.connect(c, &f.link, addr)
	if err != nil {
		return f.unconnected(ctx, addr, err)
	}
	defer func() { err = errors.Join(err, cl.close()) }()
	region, err := f.region.find(ctx, cl.peer)
	if err != nil {
		return f.unconnected(ctx, addr, err)
	}
	p, err := cl.newPoster(ctx, 16)
	if err != nil {
		return f.unconnected(ctx, addr, err)
	}
	ctx, closed := context.WithCancelCause(ctx)
	defer closed(nil)
	go func() { // a peer that ends tells those that watch it; a read finds only silence
		if err := cl.peer.Watch(ctx); errors.Is(err, xdpfab.ErrPeerClosed) {
			closed(err)
		}
	}()
	seen, last, err := a.changes(ctx, f, until, r.dt, func() ([]byte, error) { return p.run(ctx, r, region) })
	switch {
	case user.Err() != nil && err != nil:
		return f.interrupted(seen, last)
	case errors.Is(context.Cause(ctx), errWait):
		return f.gaveUp(last)
	case errors.Is(context.Cause(ctx), xdpfab.ErrPeerClosed):
		return gone(addr, context.Cause(ctx))
	case errors.Is(err, xdpfab.ErrPeerClosed):
		return gone(addr, err)
	case errors.Is(err, xdpfab.ErrNoKey) && f.region.name != "":
		return fmt.Errorf("region %s has been withdrawn: %w: %w", f.region.name, xdpfab.ErrPeerRestarted, err)
	}
	if errors.Is(err, xdpfab.ErrPeerRestarted) {
		return fmt.Errorf("%w: watch again to see the present one", err)
	}
	if errors.Is(err, xdpfab.ErrAccess) {
		return f.link.denied(unadvised(err), region, "watch", mr.RemoteRead)
	}
	return r.explain(err, region, &f.link)
}

// unconnected is the error of a watch whose peer has not answered yet: that of --wait, if
// that is over.
func (f *watchFlags) unconnected(ctx context.Context, addr string, err error) error {
	if errors.Is(context.Cause(ctx), errWait) {
		return fmt.Errorf("%w after %v: %s has not answered by then: wait longer with --wait, or see `xdpfab diagnose "+
			"%s`", errWait, f.wait, addr, addr)
	}
	return err
}

// gaveUp is the error of a watch that has not seen enough within --wait. last is the last
// value read, empty if none was.
func (f *watchFlags) gaveUp(last string) error {
	return fmt.Errorf("%w after %v: %s: wait longer with --wait", errWait, f.wait, f.found(last))
}

// interrupted is the error of a watch that has not seen what it was to wait for. One
// without end has none.
func (f *watchFlags) interrupted(seen int, last string) error {
	switch {
	case f.until != "":
		return fmt.Errorf("%w: %s", errInterrupted, f.found(last))
	case f.count > 0:
		return fmt.Errorf("%w after %d of %s", errInterrupted, seen, plural(f.count, "change"))
	}
	return nil
}

// found says what the element is, and is not.
func (f *watchFlags) found(last string) string {
	is := "no value was read"
	if last != "" {
		is = "is " + last
	}
	if f.until != "" {
		is += ", not " + f.until
	}
	return fmt.Sprintf("%v+%d %s", &f.region, f.offset, is)
}

// changes reads again and again, until it has seen enough, and prints what is new. It
// returns the number of changes, and the last value, empty if it has read none.
func (a *app) changes(ctx context.Context, f *watchFlags, until []byte, dt atomic.Datatype,
	read func() ([]byte, error)) (seen int, is string, err error) {
	var last []byte
	for {
		now, err := read()
		if err != nil {
			return seen, is, err
		}
		if last == nil || !bytes.Equal(now, last) {
			r := change{Time: time.Now(), Before: is, Value: value.Format(dt, now)}
			is = r.Value
			if err := errors.Join(a.print(&r, r.text), a.flush()); err != nil {
				return seen, is, err
			}
			if last != nil { // the first value is no change
				seen++
			}
			last = now
		}
		if until != nil && bytes.Equal(now, until) || f.count > 0 && seen == f.count {
			return seen, is, nil
		}
		select {
		case <-ctx.Done():
			return seen, is, context.Cause(ctx)
		case <-time.After(f.interval):
		}
	}
}

func (r *change) text(w io.Writer) {
	fmt.Fprint(w, r.Time.Format("15:04:05.000000"), "  ")
	if r.Before != "" {
		fmt.Fprintf(w, "%s -> ", r.Before)
	}
	fmt.Fprintln(w, r.Value)
}
