// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// copyFlags are the flags of get and put.
type copyFlags struct {
	link   linkFlags
	region regionFlags
	offset uint64
	length uint64
	show   bool
	resume bool   // get
	skip   uint64 // put
	signal signalFlag
}

func (f *copyFlags) register(c *cobra.Command) {
	f.link.register(c)
	f.region.register(c)
	c.Flags().Var((*show.Bytes)(&f.offset), "offset", "distance from the beginning of the region, such as 4096 or 4KiB")
	c.Flags().BoolVar(&f.show, "show-progress", false, "show how far the copy is, even if stderr is no terminal")
}

func (a *app) getCmd() *cobra.Command {
	var f copyFlags
	c := &cobra.Command{
		Use:   "get PEER FILE",
		Short: "Copy a peer's memory region to a file",
		Long: `get copies the bytes of a region to FILE, or to stdout if that is "-". Words of 8
bytes are never torn; the region as a whole may change meanwhile.

get writes the bytes in order, so the length of FILE shows how far an interrupted copy
got. --resume keeps these bytes and fetches the rest. It trusts that FILE is from the same
region and --offset, and refuses only a file that is longer than the copy. It does not
notice whether the region has changed meanwhile.`,
		Example: `  xdpfab get 10.0.0.2 counters.save --region counters
  xdpfab get 10.0.0.2 counters.save --region counters --resume
  xdpfab get 10.0.0.2 - --region log --offset 4096 --length 100 | xxd`,
		Args: peerAndFile,
		RunE: func(c *cobra.Command, args []string) error { return a.get(c, &f, args[0], args[1]) },
	}
	f.register(c)
	a.jsonFlag(c)
	c.Flags().Var((*show.Bytes)(&f.length), "length", "bytes to copy; 0: all up to the end of the region")
	c.Flags().BoolVar(&f.resume, "resume", false, "keep what FILE has, and fetch the rest")
	return c
}

func (a *app) putCmd() *cobra.Command {
	var f copyFlags
	c := &cobra.Command{
		Use:   "put PEER FILE",
		Short: "Copy a file to a peer's memory region",
		Long: `put copies FILE, or stdin if that is "-", to a region. Words of 8 bytes change at
once; the region as a whole does not. put refuses a file that does not fit before it
writes anything.

If the copy is interrupted, the error names the number of bytes that are certain
to be there: continue with --skip and that number. After a restart of the peer that
holds for a region in a file and for a resident one; other memory is new then. Some
bytes behind them may have been written as well; writing them again does no harm.

With --signal a word of 64 bits changes when the whole file is there, in this region
or another one. Whoever waits for it finds the file: a program on the peer by
xdpfab.Wait, a script by ` + "`xdpfab watch --until`" + `. The signal and the last bytes, less
than 1 MiB, are one operation. A copy that fails has given no signal, unless the error
says that this is unknown; one of an empty stdin fails.`,
		Example: `  xdpfab put 10.0.0.2 counters.save --region counters
  xdpfab put 10.0.0.2 counters.save --region counters --skip 3145728
  xdpfab put 10.0.0.2 model --region model --signal flags:8=1
  head -c 100 /dev/zero | xdpfab put 10.0.0.2 - --region log --offset 4096`,
		Args: peerAndFile,
		RunE: func(c *cobra.Command, args []string) error { return a.put(c, &f, args[0], args[1]) },
	}
	f.register(c)
	a.jsonFlag(c)
	c.Flags().Var((*show.Bytes)(&f.skip), "skip",
		"leave out so much of FILE, and the places in the region where it belongs")
	f.signal.register(c)
	return c
}

// peerAndFile refuses the two arguments of a copy in the wrong order.
func peerAndFile(c *cobra.Command, args []string) error {
	if err := exactArgs("PEER", "FILE")(c, args); err != nil {
		return err
	}
	if args[1] == "" {
		return usage(c, "FILE is empty: want a name, or -")
	}
	is, host := "is", args[1]
	if !isAddress(host) { // HOST:NAME, as in scp
		is, host = "begins with", host[:max(strings.IndexByte(host, ':'), 0)]
	}
	if !isAddress(args[0]) && isAddress(host) {
		return usage(c, "%q is no address, and %q %s one: the order is PEER FILE", args[0], args[1], is)
	}
	return nil
}

// copying is a get or put under way.
type copying struct {
	*client
	region xdpfab.RemoteRegion
	from   uint64 // in the region; of the first byte of the file
	name   string // of the region, for people
	begin  uint64 // bytes of the file that were copied before
	sure   uint64 // bytes of the file that have been copied in all
	total  uint64 // bytes of the file; 0 if that is not known
	bar    *show.Bar
}

// copying opens the interface and finds the region.
func (a *app) copying(c *cobra.Command, f *copyFlags, peer string) (*copying, error) {
	if err := f.region.check(c); err != nil {
		return nil, err
	}
	cl, err := a.connect(c, &f.link, peer)
	if err != nil {
		return nil, err
	}
	r, err := f.region.find(c.Context(), cl.peer)
	if err == nil && f.region.name != "" && f.offset > r.Size {
		err = fmt.Errorf("%w: --offset %d: region %v has %d bytes: want %d or less",
			xdpfab.ErrOutOfBounds, f.offset, &f.region, r.Size, r.Size)
	}
	if err != nil {
		return nil, errors.Join(err, cl.close())
	}
	x := &copying{client: cl, region: r, name: f.region.String(), from: f.offset}
	x.bar = &show.Bar{Out: io.Discard, What: c.Name()}
	if f.show || a.showProgress() {
		x.bar.Out, x.bar.Terminal = a.err, a.tty
	}
	return x, nil
}

// result prints what has been copied: where the bytes go to stdout, on a terminal beside.
func (a *app) result(x *copying, r *copyReport, took time.Duration) error {
	x.bar.End()
	r.Region, r.Offset, r.Bytes, r.Seconds = x.name, x.from+x.begin, x.sure-x.begin, took.Seconds()
	r.Kept = x.begin
	text := func(w io.Writer) {
		fmt.Fprintf(w, "%s: %d bytes from %s to %s in %s", r.Command, r.Bytes, r.From, r.To, show.Duration(int64(took)))
		if r.Bytes > 0 {
			fmt.Fprintf(w, ", %s/s", show.Size(uint64(float64(r.Bytes)/took.Seconds())))
		}
		if x.begin > 0 {
			fmt.Fprintf(w, "; %d before them were there", x.begin)
		}
		if r.Signal != "" {
			fmt.Fprintf(w, "; then the signal %s", r.Signal)
		}
		fmt.Fprintln(w)
	}
	if r.To == "stdout" {
		if a.tty {
			text(a.err)
		}
		return nil
	}
	a.ran, a.copied = true, true
	return a.print(r, text)
}

// copyReport is the JSON output of get and put.
type copyReport struct {
	Command string  `json:"command"`
	From    string  `json:"from"`
	To      string  `json:"to"`
	Region  string  `json:"region"`
	Offset  uint64  `json:"offset"` // of the first byte copied, in the region
	Bytes   uint64  `json:"bytes"`  // copied now
	Kept    uint64  `json:"kept"`   // bytes before them, which were copied earlier
	Seconds float64 `json:"seconds"`
	Signal  string  `json:"signal,omitempty"` // that was given, as REGION:OFFSET=VALUE or REGION:OFFSET+VALUE
}

func (a *app) get(c *cobra.Command, f *copyFlags, peer, path string) (err error) {
	if err := f.region.check(c); err != nil {
		return err
	}
	switch {
	case f.region.name == "" && f.length == 0:
		return usage(c, "the size of a region that is given by its key is not known: want --length")
	case a.json && path == "-":
		return usage(c, "--json prints to stdout, as do the bytes: want a file")
	case f.resume && path == "-":
		return usage(c, "--resume looks at the length of FILE, which stdout has not: want a file, or another --offset")
	}
	x, err := a.copying(c, f, peer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	if x.total = f.length; x.total == 0 {
		x.total = x.region.Size - f.offset
	}
	if f.region.name != "" && x.total > x.region.Size-f.offset {
		return fmt.Errorf("%w: --length %d from offset %d on: region %v has %d bytes: want %d or less",
			xdpfab.ErrOutOfBounds, x.total, f.offset, &f.region, x.region.Size, x.region.Size-f.offset)
	}
	out := io.Writer(flushed{a})
	if path != "-" {
		file, err := openTarget(c, f.resume, path)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		if x.begin, err = file.kept(); err != nil {
			return err
		}
		if x.begin > x.total {
			return usage(c,
				"%s has %d bytes already, and %d are to be copied: want a file of an earlier part of this copy", path,
				x.begin, x.total)
		}
		out = file
	}
	start := time.Now()
	if err = x.fetch(c.Context(), out); err == nil {
		to := path
		if path == "-" {
			to = "stdout"
		}
		return a.result(x, &copyReport{Command: "get", From: place(x, peer), To: to}, time.Since(start))
	}
	x.bar.End()
	return &partial{f.getFailed(x, err, path), x.sure}
}

// fetch reads the rest of the region, in order.
func (x *copying) fetch(ctx context.Context, out io.Writer) error {
	at := x.started()
	err := chunks{
		next: func(k *chunk) (bool, error) {
			k.at, k.buf = x.from+at, k.room[:min(chunkSize, x.total-at)]
			at += uint64(len(k.buf))
			return len(k.buf) > 0, nil
		},
		carry: func(ctx context.Context, k *chunk) error {
			return withoutEffect(x.peer.Read(ctx, x.region, k.at, k.buf))
		},
		finish: func(k *chunk) error {
			if _, err := out.Write(k.buf); err != nil {
				return err
			}
			x.advance(k)
			return nil
		},
	}.run(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // whether the last reads ran makes no difference
	}
	return err
}

// started begins the bar, and returns how many bytes are there already.
func (x *copying) started() uint64 {
	x.sure, x.bar.Total, x.bar.Begin = x.begin, x.total, x.begin
	x.bar.At(x.sure)
	return x.begin
}

func (x *copying) advance(k *chunk) {
	x.sure += uint64(len(k.buf))
	x.bar.At(x.sure)
}

func (a *app) put(c *cobra.Command, f *copyFlags, peer, path string) (err error) {
	in, size := a.in, uint64(0)
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return usage(c, "%v: want a file that this user may read, or - for stdin", err)
		}
		defer file.Close()
		if size, err = length(file); err != nil {
			return usage(c, "%v: want a file that this user may read, or - for stdin", err)
		}
		in = file
		if size > 0 && f.skip > size {
			return usage(c, "--skip %d: %s has %d bytes: want %d or less", f.skip, path, size, size)
		}
	}
	x, err := a.copying(c, f, peer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	if f.region.name != "" && size > x.region.Size-f.offset {
		shut := ""
		if x.region.Access&mr.RemoteWrite == 0 {
			shut = ", to which peers may write: this one grants " + inWords(x.region.Access)
		}
		return fmt.Errorf("%w: %s has %d bytes, and region %v has %d from offset %d on: nothing was written: cut the "+
			"file, or have a larger region%s", xdpfab.ErrOutOfBounds, path, size, &f.region, x.region.Size-f.offset,
			f.offset, shut)
	}
	s, err := f.signal.find(c.Context(), x.peer)
	if err != nil {
		return err
	}
	from := path
	if path == "-" {
		from = "stdin"
		a.tellTyping()
	}
	if s != nil {
		s.piped = path == "-"
	}
	x.begin, x.total = f.skip, size
	if n, err := io.CopyN(io.Discard, in, int64(min(f.skip, math.MaxInt64))); errors.Is(err, io.EOF) {
		return usage(c, "--skip %d: %s has %d bytes: want %d or less", f.skip, from, n, n)
	} else if err != nil {
		return usage(c, "--skip %d: %s has %d bytes: %v", f.skip, from, n, err)
	}
	start := time.Now()
	if err := x.store(c.Context(), in, s); err != nil {
		x.bar.End()
		a.ran = x.sure > x.begin
		return &partial{f.putFailed(x, err), x.sure}
	}
	return a.result(x, &copyReport{Command: "put", From: from, To: place(x, peer), Signal: f.signal.String()},
		time.Since(start))
}

// place names the memory that is copied.
func place(x *copying, peer string) string { return x.name + " of " + peer }

// store writes the rest of the input, and gives the signal, if there is one.
func (x *copying) store(ctx context.Context, in io.Reader, s *putSignal) error {
	at := x.started()
	err := chunks{
		next: func(k *chunk) (bool, error) {
			n, err := io.ReadFull(in, k.room[:])
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = nil
			}
			if k.at, k.buf = x.from+at, k.room[:n]; s != nil && err == nil && n < len(k.room) {
				s.last = k.buf // nobody else gets this chunk any more
				return false, nil
			}
			at += uint64(n)
			return n > 0, err
		},
		carry: func(ctx context.Context, k *chunk) error {
			return unadvised(x.peer.Write(ctx, x.region, k.at, k.buf))
		},
		finish: func(k *chunk) error { x.advance(k); return nil },
	}.run(ctx)
	switch {
	case s == nil:
		return err
	case err != nil:
		return fmt.Errorf("%w; the signal was not given", err)
	}
	return x.give(ctx, s)
}
