// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// signalFlag is --signal of put: a word that changes when the whole file is there.
type signalFlag struct {
	region string // empty without the flag
	offset uint64
	op     atomic.Op
	value  uint64
}

// errSignal is what --signal takes.
var errSignal = errors.New("want REGION:OFFSET, which adds 1 to that word of 64 bits, REGION:OFFSET+VALUE or " +
	"REGION:OFFSET=VALUE, where OFFSET is a multiple of 8")

// Set implements pflag.Value.
func (f *signalFlag) Set(s string) error {
	colon := strings.LastIndexByte(s, ':')
	if colon < 1 {
		return fmt.Errorf("%q: %w", s, errSignal)
	}
	place, op, number := s[colon+1:], atomic.Sum, "1"
	if i := strings.IndexAny(place, "=+"); i >= 0 {
		if place[i] == '=' {
			op = atomic.Write
		}
		place, number = place[:i], place[i+1:]
	}
	offset, err := show.ParseSize(place)
	if err != nil || offset%8 != 0 {
		return fmt.Errorf("%q: %w", s, errSignal)
	}
	v, err := strconv.ParseUint(number, 0, 64)
	if err != nil {
		return fmt.Errorf("value %q: want a whole number from 0 to 2^64-1: %w", number, errSignal)
	}
	*f = signalFlag{region: s[:colon], offset: offset, op: op, value: v}
	return nil
}

// Type implements pflag.Value.
func (f *signalFlag) Type() string { return "signal" }

// String implements pflag.Value.
func (f *signalFlag) String() string {
	if f.region == "" {
		return ""
	}
	sign := '+'
	if f.op == atomic.Write {
		sign = '='
	}
	return fmt.Sprintf("%s:%d%c%d", f.region, f.offset, sign, f.value)
}

func (f *signalFlag) register(c *cobra.Command) {
	c.Flags().Var(f, "signal",
		"once all of FILE is there, set a word of the peer, at `REGION:OFFSET[=VALUE]`; +VALUE adds to it, and "+
			"without a value 1 is added")
}

// putSignal is a signal whose word has been found.
type putSignal struct {
	xdpfab.Signal
	flag  *signalFlag
	piped bool   // the input is stdin
	last  []byte // of the input, less than a chunk: written by the operation that gives the signal
}

// find looks for the word before anything is written. Without the flag it returns nil.
func (f *signalFlag) find(ctx context.Context, p *xdpfab.Peer) (*putSignal, error) {
	if f.region == "" {
		return nil, nil
	}
	of := regionFlags{name: f.region}
	r, err := of.find(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("--signal: %w", err)
	}
	if r.Access&mr.RemoteWrite == 0 {
		return nil, fmt.Errorf("%w: --signal %s: region %q grants %s, and a signal takes write; nothing was written: "+
			"have its owner grant that (xdpfabd --region NAME=SIZE:rw)", xdpfab.ErrAccess, f, f.region,
			inWords(r.Access))
	}
	if r.Size < 8 || f.offset > r.Size-8 {
		return nil, fmt.Errorf("%w: --signal: a word at %d of region %s, which has %d bytes; nothing was "+
			"written: want a lower offset", xdpfab.ErrOutOfBounds, f.offset, f.region, r.Size)
	}
	word := xdpfab.Signal{Region: r, Index: f.offset / 8, Op: f.op, Value: f.value}
	return &putSignal{flag: f, Signal: word}, nil
}

// errNothing is why a signal is not given: what was to write to stdin has failed,
// perhaps.
var errNothing = errors.New("nothing came on standard input, so the signal was not given: `xdpfab put PEER " +
	"/dev/null` gives one without bytes")

// give writes the last bytes of the input and gives the signal: one operation.
func (x *copying) give(ctx context.Context, s *putSignal) error {
	if s.piped && x.sure+uint64(len(s.last)) == 0 {
		return errNothing
	}
	if err := unadvised(x.peer.WriteSignal(ctx, x.region, x.from+x.sure, s.last, s.Signal)); err != nil {
		if certainty(err) != xdpfab.ErrNotExecuted.Error() {
			return fmt.Errorf("%w; the last %d bytes and the signal are one operation: whether it ran, the word at %d "+
				"of region %s tells", err, len(s.last), s.flag.offset, s.flag.region)
		}
		return fmt.Errorf("%w; the signal was not given", err)
	}
	x.sure += uint64(len(s.last))
	x.bar.At(x.sure)
	return nil
}
