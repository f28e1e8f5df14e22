// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
	"github.com/xdpfab/xdpfab/internal/capture"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/version"
)

type captureFlags struct {
	daemonFlags
	write    string
	snaplen  uint64 // bytes
	count    int
	duration time.Duration
	peers    []string
	resident bool
}

// captured is what a capture has come to, as JSON.
type captured struct {
	Packets int `json:"packets"` // written
	Bytes   int `json:"bytes"`   // of these packets on the wire
	capture.Totals
}

func (a *app) captureCmd() *cobra.Command {
	var f captureFlags
	c := &cobra.Command{
		Use:   "capture",
		Short: "Write the packets of a daemon to a file for Wireshark",
		Long: `capture writes the packets that a daemon's pollers receive and send to a file in
pcapng format. tcpdump on the same machine does not see these packets: the XDP
program takes them from the NIC, and AF_XDP sends them. tools/wireshark/xdpfab.lua
dissects them.

The capture ends when it is interrupted, after --count packets or after --duration. It
never slows a poller down. If packets arrive faster than they can be written, capture
leaves some out and counts them.

The capture contains the packets of the daemon's own queues. It does not contain
requests for resident regions that the XDP program answers, packets of queues that the
daemon lends to programs, or packets of this node to itself. The last line counts the
requests that the XDP program answered. If queues are lent, another line counts them.
With --resident, the daemon's pollers answer the requests for resident regions during
the capture, so that the capture contains these, too. The requests then take some
microseconds longer, and they wake the pollers.

Packets contain the keys of regions and their contents. Root and the daemon's own user
may capture; only the caller may read the file. capture finds the daemon as stat does.`,
		Example: `  xdpfab capture -w x.pcapng --count 1000
  xdpfab capture -w x.pcapng --peer 10.0.0.2 --snaplen 128 --duration 10s
  xdpfab capture -w x.pcapng --resident --count 1000
  xdpfab capture -w - | tshark -X lua_script:tools/wireshark/xdpfab.lua -r -`,
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return a.capture(c, &f) },
	}
	f.register(c)
	a.jsonFlag(c)
	fs := c.Flags()
	fs.StringVarP(&f.write, "write", "w", "", "file to write, or - for stdout")
	fs.VarP((*show.Bytes)(&f.snaplen), "snaplen", "s", "bytes to keep of each packet; 0: all")
	fs.IntVarP(&f.count, "count", "c", 0, "end after this number of packets; 0: never")
	fs.DurationVar(&f.duration, "duration", 0, "end after this time; 0: never")
	fs.StringArrayVar(&f.peers, "peer", nil,
		"keep only packets from or to this address, name or short name; repeatable. An IP address selects packets "+
			"over UDP, a MAC address all packets of that node")
	fs.BoolVar(&f.resident, "resident", false, "also capture requests for resident regions")
	return c
}

func (f *captureFlags) check(a *app, c *cobra.Command) error {
	switch {
	case f.write == "":
		return usage(c, "missing --write: want a file, or - for stdout")
	case f.write == "-" && (a.json || a.rows != nil):
		return usage(c, "--write -: want stdout to be a pipe or a file, and no --json")
	case f.snaplen > math.MaxInt32:
		return usage(c, "--snaplen %d: want at most 2GiB, or 0 for all of each packet", f.snaplen)
	}
	return negative(c, "count", "duration")
}

func (a *app) capture(c *cobra.Command, f *captureFlags) (err error) {
	if err := f.check(a, c); err != nil {
		return err
	}
	o := capture.Options{Snaplen: int(f.snaplen), Resident: f.resident}
	if o.Peers, err = a.captureFrom(c, f.peers); err != nil {
		return err
	}
	d, err := f.dial(a, c)
	if err != nil {
		return err
	}
	defer d.Close()
	conn, start, err := d.Capture(c.Context(), o)
	if err != nil {
		return err
	}
	defer conn.Close()
	out := a.out
	if f.write == "-" {
		defer a.whileRead()()
	} else {
		file, err := os.OpenFile(f.write, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return usage(c, "--write: %v: want a file in a folder that is there, and that this user may write", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		out = file
	}
	if a.tty {
		fmt.Fprintf(a.err, "capturing on %s; Ctrl-C ends\n", start.Interface)
	}
	defer endCapture(c.Context(), conn, f.duration)()
	buffer := bufio.NewWriterSize(out, 1<<16)
	flush := func() error { return errors.Join(buffer.Flush(), a.flush()) }
	r, err := copyPackets(buffer, flush, conn, start, f)
	if errors.Is(err, syscall.ENOSPC) && f.write != "-" {
		err = fmt.Errorf("%w: make room, or name a file elsewhere by -w", err)
	}
	return errors.Join(err, a.tellCaptured(r))
}

// captureFrom returns the addresses of peers as the daemon takes them.
func (a *app) captureFrom(c *cobra.Command, peers []string) (list []string, err error) {
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	find := linkFlags{giveUp: defaultTimeout, directory: directoryOf(c, "", s)}
	for _, p := range peers {
		all, err := find.peerAddresses(c, s, p)
		if err != nil {
			return nil, err
		}
		for _, x := range all {
			list = append(list, x.String())
		}
	}
	return list, nil
}

// endCapture has a capture end with the command's context, or after some time.
func endCapture(ctx context.Context, conn *net.UnixConn, after time.Duration) (stop func()) {
	cancel := func() {}
	if after > 0 {
		ctx, cancel = context.WithTimeout(ctx, after)
	}
	kept := context.AfterFunc(ctx, func() { _ = conn.CloseWrite() })
	return func() { kept(); cancel() }
}

// tellCaptured says what a capture has come to.
func (a *app) tellCaptured(r captured) error {
	if a.json {
		return a.print(&r, nil)
	}
	fmt.Fprintf(a.err, "%d packets captured, %d left out for lack of room\n", r.Packets, r.Dropped)
	if r.Executed > 0 {
		fmt.Fprintf(a.err, "%d requests were answered by the XDP program, and are not among them; with --resident "+
			"they are\n", r.Executed)
	}
	if r.Lent > 0 {
		fmt.Fprintf(a.err, "%d queues are lent to programs: their packets are not among them\n", r.Lent)
	}
	return nil
}

// copyPackets writes the packets of a daemon's stream, at most --count of them, and the
// totals behind them.
func copyPackets(to io.Writer, flush func() error, conn *net.UnixConn, start capture.Start,
	f *captureFlags) (r captured, err error) {
	defer func() {
		if failed := flush(); err == nil { // a writer that has failed says the same again
			err = failed
		}
	}()
	file, err := capture.NewFile(to, "xdpfab "+version.Version, start.Interface, int(f.snaplen))
	if err != nil {
		return r, err
	}
	from := bufio.NewReaderSize(conn, 1<<18)
	in := capture.NewReader(from)
	for {
		p, totals, err := in.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
			return r, control.ErrCaptureEnded
		case err != nil:
			return r, fmt.Errorf("the daemon's stream: %w", err)
		case totals != nil:
			r.Totals = *totals
			return r, file.Totals(uint64(r.Packets)+r.Dropped, r.Dropped)
		case f.count > 0 && r.Packets == f.count:
			continue // what was under way
		}
		if err := file.Packet(&p); err != nil {
			return r, err
		}
		r.Packets++
		r.Bytes += p.Length
		if r.Packets == f.count {
			_ = conn.CloseWrite()
		}
		if from.Buffered() == 0 {
			if err := flush(); err != nil {
				return r, err
			}
		}
	}
}
