// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/show"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/value"
	"github.com/xdpfab/xdpfab/xdpfab"
)

type atomicFlags struct {
	link    linkFlags
	region  regionFlags
	peer    string
	form    string
	batch   string
	compare []string
	offset  uint64
	count   int
	hex     bool
	quiet   bool
}

// request is one operation, ready to be posted.
type request struct {
	form    atomic.Func
	op      atomic.Op
	dt      atomic.Datatype
	offset  uint64
	count   int
	operand []byte
	compare []byte
	batch   bool // the line of a batch has them, and not flags
}

// field is the name of what a user gave: a flag, or the field of a line.
func (r *request) field(name string) string {
	if r.batch {
		return strconv.Quote(name)
	}
	return "--" + name
}

// atomicReport is the JSON output of atomic. Elements are text, since JSON has neither
// integers of 128 bits nor nan, and its readers round numbers of more than 53 bits.
type atomicReport struct {
	Op        string   `json:"op"`
	Datatype  string   `json:"datatype"`
	Form      string   `json:"form"`
	Region    string   `json:"region"`
	Offset    uint64   `json:"offset"` // bytes
	Count     int      `json:"count"`  // elements
	Before    []string `json:"before,omitempty"`
	BeforeHex string   `json:"before_hex,omitempty"` // little-endian
	After     []string `json:"after,omitempty"`
}

const atomicHelp = `atomic runs one operation on an array of elements in a peer's memory, and prints
the values from before. The operation ran exactly once if the exit code is 0 or 6,
and never if it is 1. With 3, either nobody knows whether it ran, or it ran and its
result could not be printed. The error says which. 6 means that the condition of cswap…,
sum_at_most or diff_at_least did not hold for some elements, which did not change.

OP is min, max, sum, prod, diff, lor, land, lxor, bor, band, bxor, read, write,
cswap, cswap_ne, cswap_le, cswap_lt, cswap_ge, cswap_gt or mswap; DATATYPE is one of
those that ` + "`xdpfab info --operations`" + ` lists. The comparisons read "compare value,
relation, element", as in fi_atomic(3). Integers have five more: sum_at_most adds if
the sum is at most the compare value; diff_at_least subtracts if at least that much is
left; sum_sat and diff_sat stop at the datatype's limits; msum adds to fields of a word:
no carry leaves a bit that is set in the compare value.

Values:
  integers     42  -7  0xff                 refused when out of range
  floats       0.1  1e-7  0x1.8p3  inf  -inf  nan, rounded once, to nearest
  complex      1+2i  -0.5i  nan+infi
  any          bits:0x7fc00001              the element as a number of its width
One value stands for all elements if --count asks for more.

With --batch, atomic reads lines of JSON from a file or, for "-", from standard input,
and runs them in one session: {"func":"fetch","op":"sum","dt":"uint64","offset":8,"n":1,
"buf":"0500000000000000"}, bytes in little-endian hex; "cmp" are the compare values.
If "dst" is given, atomic writes it first, and "out" then has the values afterwards.
Each line gets an answer: {"line":1,…,"res":"…","out":"…"} or {"line":1,"error":
"…","certainty":"not executed","code":1}. The exit code is the greatest of them. No line
runs behind one with 3 or more, or behind one that says that the region is gone. A
condition that did not hold fails no line: the line's "res" shows it.`

func (a *app) atomicCmd() *cobra.Command {
	var f atomicFlags
	c := &cobra.Command{
		Use:   "atomic OP DATATYPE [VALUE...]",
		Short: "Run an atomic operation on a peer's memory",
		Long:  atomicHelp,
		Example: `  xdpfab atomic sum uint64 1 --peer 10.0.0.2 --region counters
  xdpfab atomic diff_at_least uint32 3 --compare 0 --peer 10.0.0.2 --region quota
  xdpfab atomic read double --count 4 --offset 64 --peer 10.0.0.2 --region sums
  xdpfab atomic cswap int32 7 --compare 0 -i eth0 --peer 02:00:00:00:00:0b --key 0x1f
  xdpfab atomic max long_double 1e4000 -2.5 --form base --peer 10.0.0.2 --region r
  xdpfab atomic prod float_complex 0+1i --json --peer 10.0.0.2 --region r
  xdpfab atomic bxor uint16 --hex ff00ff00 --peer 10.0.0.2 --region r
  xdpfab atomic --batch vectors.jsonl --peer 10.0.0.2 --region scratch`,
		Annotations:       map[string]string{takesNumbers: "values"},
		ValidArgsFunction: completeAtomic,
		RunE: func(c *cobra.Command, args []string) error {
			if f.batch != "" {
				return a.batch(c, &f, args)
			}
			return a.atomic(c, &f, args)
		},
	}
	f.link.register(c)
	f.region.register(c)
	a.jsonFlag(c)
	fs := c.Flags()
	fs.StringVar(&f.peer, "peer", "", "the peer (required): its address or a name of it, with /endpoint if not 0")
	fs.Var((*show.Bytes)(&f.offset), "offset", "offset of the first element in the region, such as 4096 or 4KiB")
	fs.IntVar(&f.count, "count", 0, "number of elements; default: as many as values, or 1")
	fs.StringSliceVar(&f.compare, "compare", nil,
		"compare values, separated by commas or repeated; for cswap…, mswap, msum, sum_at_most and diff_at_least")
	fs.StringVar(&f.form, "form", "", "base (no result), fetch or compare; default: one with a result")
	fs.StringVar(&f.batch, "batch", "", "run the operations of a file, one JSON object a line; - for standard input")
	fs.BoolVar(&f.hex, "hex", false, "values in and out are little-endian bytes in hex, the whole array at once")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "print only the values from before")
	return c
}

func (a *app) atomic(c *cobra.Command, f *atomicFlags, args []string) (err error) {
	r, err := f.request(c, args)
	if err != nil {
		return err
	}
	cl, p, region, err := a.target(c, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cl.close()) }()
	before, err := p.run(c.Context(), r, region)
	if err != nil {
		return r.explain(err, region, &f.link)
	}
	a.ran = r.op != atomic.Read
	if err := a.printAtomic(f, r, before); err != nil {
		return err
	}
	return r.stayed(before, &f.region)
}

// target connects, finds the region and makes the endpoint.
func (a *app) target(c *cobra.Command, f *atomicFlags) (*client, *poster, xdpfab.RemoteRegion, error) {
	if err := f.region.check(c); err != nil {
		return nil, nil, xdpfab.RemoteRegion{}, err
	}
	cl, err := a.connect(c, &f.link, f.peer)
	if err != nil {
		return nil, nil, xdpfab.RemoteRegion{}, err
	}
	region, err := f.region.find(c.Context(), cl.peer)
	if err == nil {
		var p *poster
		if p, err = cl.newPoster(c.Context(), 16); err == nil {
			return cl, p, region, nil
		}
	}
	return nil, nil, region, errors.Join(err, cl.close())
}

// request checks the command line, as far as that is possible without the peer.
func (f *atomicFlags) request(c *cobra.Command, args []string) (r request, err error) {
	if len(args) == 0 {
		return r, usage(c, "missing OP and DATATYPE, such as sum uint64: %s", f.whole(atomic.Sum, atomic.Uint64, nil))
	}
	if r.op, err = parseOp(args[0]); err != nil {
		return r, usage(c, "%v", err)
	}
	if len(args) < 2 {
		return r, usage(c, "missing DATATYPE after %v, such as uint64: %s", r.op, f.whole(r.op, atomic.Uint64, nil))
	}
	if r.dt, err = parseDatatype(args[1]); err != nil && isNumber(args[1]) {
		return r, usage(c, "%q is a value, and no datatype: the order is OP DATATYPE VALUE: %s", args[1],
			f.whole(r.op, atomic.Uint64, args[1:]))
	} else if err != nil {
		return r, usage(c, "%v; the order is OP DATATYPE VALUE", err)
	}
	if r.form, err = formFor(f.form, r.op, r.dt); err != nil {
		return r, usage(c, "%v", err)
	}
	r.offset = f.offset
	values := args[2:]
	if f.count < 0 || f.count > maxArray || f.count == 0 && c.Flags().Changed("count") {
		return r, usage(c, "--count %d: want 1 to %d", f.count, maxArray)
	}
	if r.count = f.count; r.count == 0 {
		r.count = f.countOf(r.dt, values)
	}
	if r.op == atomic.Read && len(values) > 0 {
		return r, usage(c, "read takes no values, and %q is one: leave it out; --offset says where to read, and "+
			"--count how many elements: %s", values[0], f.whole(r.op, r.dt, nil))
	}
	if r.op != atomic.Read {
		r.operand, err = f.array(r.dt, "VALUE", values, r.count)
		switch {
		case err != nil && len(values) == 0:
			return r, usage(c, "%v: %s", err, f.whole(r.op, r.dt, nil))
		case err != nil:
			return r, usage(c, "%v", err)
		}
	}
	switch {
	case r.form == atomic.Compare:
		r.compare, err = f.array(r.dt, "--compare", f.compare, r.count)
	case len(f.compare) > 0:
		err = fmt.Errorf("%v takes no compare values: leave out --compare", r.op)
	}
	switch {
	case err != nil && r.form == atomic.Compare && len(f.compare) == 0:
		return r, usage(c, "%v: %s", err, f.whole(r.op, r.dt, values))
	case err != nil:
		return r, usage(c, "%v", err)
	}
	return r, nil
}

// maxArray is how many elements one command handles, since the array has to fit into
// memory several times over. The library has no such limit.
const maxArray = 1 << 24

// countOf is the count that the values imply.
func (f *atomicFlags) countOf(dt atomic.Datatype, values []string) int {
	if f.hex {
		return max(len(strings.Join(values, ""))/2/dt.Size(), 1)
	}
	return max(len(values), 1)
}

// array turns values into count elements; a single one is repeated.
func (f *atomicFlags) array(dt atomic.Datatype, what string, values []string, count int) (b []byte, err error) {
	one := fmt.Sprintf("one %v", dt)
	if count > 1 {
		one += fmt.Sprintf(" for all elements, or one for each of %d", count)
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("missing %s: want %s", what, one)
	}
	if f.hex {
		if b, err = hex.DecodeString(strings.Join(values, "")); err != nil {
			err = fmt.Errorf("%s %q: want little-endian bytes in hex, such as 0500000000000000", what,
				strings.Join(values, " "))
		}
	} else {
		b, err = value.ParseAll(dt, values)
	}
	if at := slices.IndexFunc(values, isLongFlag); err != nil && at >= 0 {
		return nil, fmt.Errorf("%w, and %s looks like a flag: flags go before --", err, values[at])
	}
	isWord := func(v string) bool { return !f.hex && v != "" && unicode.IsLetter(rune(v[0])) }
	isList := func(v string) bool { return strings.Contains(v, ",") }
	switch {
	case err != nil && slices.ContainsFunc(values, isAddress):
		at := slices.IndexFunc(values, isAddress)
		return nil, fmt.Errorf("%w; a peer's address is for --peer: --peer %s", err, values[at])
	case err != nil && slices.ContainsFunc(values, isList):
		return nil, fmt.Errorf("%w; several values have spaces between them", err)
	case err != nil && strings.HasPrefix(what, "--") && !f.hex:
		return nil, fmt.Errorf("%s: %w", what, err)
	case err != nil && f.region == (regionFlags{}) && isWord(values[len(values)-1]):
		return nil, fmt.Errorf("%w; a region is named by --region %s", err, values[len(values)-1])
	case err != nil:
		return nil, err
	}
	if len(b) == dt.Size() {
		b = bytes.Repeat(b, count)
	}
	want := count * dt.Size()
	switch {
	case len(b) != want && !f.hex:
		return nil, fmt.Errorf("%s: %s for %s (--count is %d): want %s", what, plural(len(values), "value"),
			plural(count, "element"), count, one)
	case len(b) != want:
		return nil, fmt.Errorf("%s: %s in place of %d (%s of %v): want %s", what, plural(len(b), "byte"), want,
			plural(count, "element"), dt, one)
	}
	return b, nil
}

func (a *app) printAtomic(f *atomicFlags, r request, before []byte) error {
	rep := atomicReport{Op: r.op.String(), Datatype: r.dt.String(), Form: r.form.String(), Region: f.region.String(),
		Offset: r.offset, Count: r.count}
	if r.form != atomic.Base {
		rep.Before, rep.BeforeHex = value.FormatAll(r.dt, before), hex.EncodeToString(before)
		if after := r.after(before); after != nil {
			rep.After = value.FormatAll(r.dt, after)
		}
	}
	return a.print(&rep, func(w io.Writer) {
		switch {
		case r.form == atomic.Base && (f.hex || f.quiet):
		case f.hex:
			fmt.Fprintln(w, rep.BeforeHex)
		case f.quiet:
			fmt.Fprintln(w, strings.Join(rep.Before, "\n"))
		case r.form == atomic.Base:
			fmt.Fprintf(w, "%s: done\n", plural(r.count, "element"))
		default:
			rep.text(w, r)
		}
	})
}

// text prints a line for each element.
func (rep *atomicReport) text(w io.Writer, r request) {
	for i, v := range rep.Before {
		fmt.Fprintf(w, "%s+%d\t%s", rep.Region, r.offset+uint64(i*r.dt.Size()), v)
		if rep.After != nil {
			fmt.Fprintf(w, "\t-> %s", rep.After[i])
		}
		fmt.Fprintln(w)
	}
}

// after computes the elements that the operation left from those that it found. This is
// exact, since no other operation ran in between. For a read it returns nil.
func (r *request) after(before []byte) []byte {
	if r.op == atomic.Read {
		return nil
	}
	all := make([]byte, len(before)+15) // room to align
	target := align16(all)[:len(before)]
	copy(target, before)
	if err := atomic.Apply(r.form, r.op, r.dt, target, r.operand, r.compare, make([]byte, len(before)),
		r.count); err != nil {
		return nil
	}
	return target
}

func opNames() []string {
	var names []string
	for op := range atomic.Ops() {
		names = append(names, op.String())
	}
	return names
}

func datatypeNames() []string {
	var names []string
	for dt := range atomic.Datatype(atomic.NumDatatypes) {
		names = append(names, dt.String())
	}
	return names
}

// completeAtomic offers operations, then the datatypes that they are defined for.
func completeAtomic(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	switch len(args) {
	case 0:
		names = opNames()
	case 1:
		op, err := atomic.ParseOp(args[0])
		for dt := range atomic.Datatype(atomic.NumDatatypes) {
			if err == nil && len(formsOf(op, dt)) > 0 {
				names = append(names, dt.String())
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
