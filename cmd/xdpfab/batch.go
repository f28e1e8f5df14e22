// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// batchLine is a line of input: the format of the test vectors, in which bytes are
// little-endian hex. Out and Res hold the values that a vector expects; the command
// ignores them.
type batchLine struct {
	Func     string  `json:"func"`
	Form     string  `json:"form"` // another name of Func
	Op       string  `json:"op"`
	Dt       string  `json:"dt"`
	Datatype string  `json:"datatype"` // another name of Dt
	Offset   *uint64 `json:"offset"`   // bytes; default --offset
	N        *int    `json:"n"`        // elements; default 1
	Dst      *string `json:"dst"`
	Buf      string  `json:"buf"`
	Cmp      string  `json:"cmp"`
	Out      string  `json:"out"`
	Res      string  `json:"res"`
}

// batchResult answers a line.
type batchResult struct {
	Line     int     `json:"line"` // from 1
	Func     string  `json:"func,omitempty"`
	Op       string  `json:"op,omitempty"`
	Datatype string  `json:"dt,omitempty"`
	Offset   uint64  `json:"offset"`
	N        int     `json:"n,omitempty"`
	Res      *string `json:"res,omitempty"` // values before; not for base
	Out      *string `json:"out,omitempty"` // read afterwards; only with dst

	Error     string `json:"error,omitempty"`
	Certainty string `json:"certainty,omitempty"`
	Code      int    `json:"code,omitempty"` // as the exit codes

	changed, executed bool // one of the line's operations has run; the one that it is about has
}

// run posts a request and returns the values from before, nil for base.
func (p *poster) run(ctx context.Context, r request, at xdpfab.RemoteRegion) ([]byte, error) {
	var before []byte
	if r.form != atomic.Base {
		before = make([]byte, r.count*r.dt.Size())
	}
	m := fi.Msg{Buf: r.operand, Compare: r.compare, Result: before, Count: r.count, Offset: at.Base + r.offset,
		Key: at.Key, Incarnation: at.Incarnation, Datatype: r.dt, Op: r.op}
	return before, p.do(ctx, r.form, &m)
}

// inLines are flags that a batch does not have, and what it has in place of them.
var inLines = map[string]string{
	"form": `a line has "func"`, "count": `a line has "n"`, "compare": `a line has "cmp"`,
	"hex": "bytes of lines are in hex always", "quiet": "each line gets its answer",
}

// batch answers every line; the exit code is that of the worst. When the outcome of an
// operation is unknown, or the peer or the region is gone, the rest is not run.
func (a *app) batch(c *cobra.Command, f *atomicFlags, args []string) (err error) {
	if len(args) > 0 {
		return usage(c, "--batch takes no OP, DATATYPE or values, which its lines have: leave out %q", args[0])
	}
	for _, name := range []string{"form", "count", "compare", "hex", "quiet"} {
		if c.Flags().Changed(name) {
			return usage(c, "--%s with --batch: %s; leave it out", name, inLines[name])
		}
	}
	in := io.Reader(nil)
	if f.batch == "-" {
		in = a.input(c.Context())
	} else {
		file, err := os.Open(f.batch)
		if err != nil {
			return usage(c, "--batch: %v: want a file that this user may read, or - for stdin", err)
		}
		defer file.Close()
		if _, err := length(file); err != nil {
			return usage(c, "--batch: %v: want a file that this user may read, or - for stdin", err)
		}
		in = file
	}
	cl, p, region, err := a.target(c, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cl.close()) }()
	a.goesOn = true
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	out := json.NewEncoder(a.out)
	out.SetEscapeHTML(false)
	// It is over when the next lines could meet other memory.
	ran, failed, code, number, over := 0, 0, exitOK, 0, false
	var first error
	for !over && lines.Scan() && c.Context().Err() == nil { // an interrupt cuts the last line
		number++
		if len(lines.Bytes()) == 0 {
			continue
		}
		res := batchResult{Line: number}
		if err := p.line(c.Context(), lines.Bytes(), f, region, &res); err != nil {
			if failed++; first == nil {
				first = err
			}
			res.Error, res.Certainty, res.Code = tell.Plain(err), certainty(err), exitCode(err)
			if res.executed {
				res.Certainty = executed
			}
			code = max(code, res.Code)
			over = code >= exitUnknown || errors.Is(err, xdpfab.ErrPeerRestarted)
		} else {
			ran++
		}
		a.ran = a.ran || res.changed
		if err := out.Encode(&res); err != nil {
			return err
		}
		if err := a.flush(); err != nil {
			return err
		}
	}
	summary := fmt.Sprintf("%s ran, %d failed", plural(ran, "operation"), failed)
	if over {
		summary += fmt.Sprintf(", those behind line %d were not run", number)
	} else if why := context.Cause(c.Context()); why != nil && number == 0 {
		return fmt.Errorf("%w; no operation ran", why)
	} else if why != nil {
		return &codeError{fmt.Errorf("%w; %s, those behind line %d were not run", why, summary, number),
			max(code, exitFailed)}
	} else if err := lines.Err(); err != nil {
		return fmt.Errorf("reading %s: %w; %s, those behind line %d were not run", f.batch, err, summary, number)
	}
	switch {
	case ran+failed == 0 && f.batch == "-":
		return usage(c, "--batch: nothing came on standard input: %s", batchFormat)
	case ran+failed == 0:
		return usage(c, "--batch: %s has no operation: %s", f.batch, batchFormat)
	case failed == 0:
		return nil
	}
	return &codeError{fmt.Errorf("%s; each has an \"error\" in the output, the first is: %w", summary, first), code}
}

// line runs one line and fills its result in as far as it gets.
func (p *poster) line(ctx context.Context, text []byte, f *atomicFlags, at xdpfab.RemoteRegion,
	res *batchResult) error {
	var b batchLine
	if err := decodeStrictly(text, &b); err != nil {
		return &codeError{fmt.Errorf("line %d: %w", res.Line, wanted(err)), exitUsage}
	}
	if b.Offset == nil {
		b.Offset = &f.offset
	}
	r, dst, err := b.request()
	if err != nil {
		return &codeError{fmt.Errorf("line %d: %w", res.Line, err), exitUsage}
	}
	res.Func, res.Op, res.Datatype, res.Offset, res.N = r.form.String(), r.op.String(), r.dt.String(), r.offset, r.count
	if b.Dst != nil {
		w := request{form: atomic.Base, op: atomic.Write, dt: r.dt, offset: r.offset, count: r.count, operand: dst}
		if _, err := p.run(ctx, w, at); err != nil {
			return fmt.Errorf("line %d: dst: %w", res.Line, w.explain(err, at, &f.link))
		}
		res.changed = true
	}
	before, err := p.run(ctx, r, at)
	if err != nil {
		return fmt.Errorf("line %d: %w", res.Line, r.explain(err, at, &f.link))
	}
	res.changed, res.executed = true, true
	if before != nil {
		res.Res = hexText(before)
	}
	if b.Dst != nil {
		look := request{form: atomic.Fetch, op: atomic.Read, dt: r.dt, offset: r.offset, count: r.count}
		after, err := p.run(ctx, look, at)
		if err != nil {
			// The operation itself ran: the error must say that it concerns the reading
			// only.
			return &codeError{fmt.Errorf("executed, but reading back failed: %s", tell.Plain(err)), exitFailed}
		}
		res.Out = hexText(after)
	}
	return nil
}

// request checks a line. The lengths of the arrays are left to the library.
func (b *batchLine) request() (r request, dst []byte, err error) {
	var errs [7]error
	r.count, r.offset, r.batch = 1, *b.Offset, true
	if b.N != nil {
		if r.count = *b.N; r.count < 1 || r.count > maxArray {
			errs[0] = fmt.Errorf("n %d: want 1 to %d", r.count, maxArray)
		}
	}
	if r.op, errs[1] = parseOp(b.Op); b.Op == "" {
		errs[1] = errors.New(`missing "op", such as "sum"`)
	}
	if r.dt, errs[2] = parseDatatype(b.Dt + b.Datatype); b.Dt+b.Datatype == "" {
		errs[2] = errors.New(`missing "dt", such as "uint64"`)
	}
	if errs[1] == nil && errs[2] == nil {
		r.form, errs[3] = formFor(b.Func+b.Form, r.op, r.dt)
	}
	r.operand, errs[4] = fromHex("buf", b.Buf)
	r.compare, errs[5] = fromHex("cmp", b.Cmp)
	if b.Dst != nil {
		dst, errs[6] = fromHex("dst", *b.Dst)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return r, dst, err
	}
	return r, dst, b.lengths(&r, dst)
}

// lengths checks the arrays before anything is posted: a line is up to three
// operations, and none of them may run when another cannot.
func (b *batchLine) lengths(r *request, dst []byte) error {
	n := r.count * r.dt.Size()
	switch of := fmt.Sprintf("want %d bytes, for %s of %v", n, plural(r.count, "element"), r.dt); {
	case b.Buf == "" && r.op != atomic.Read:
		return fmt.Errorf("missing \"buf\": %s", of)
	case b.Cmp == "" && r.form == atomic.Compare:
		return fmt.Errorf("missing \"cmp\": %s", of)
	}
	if len(r.operand) != n && r.op != atomic.Read {
		return fmt.Errorf("buf has %s: want %d, for %s of %v", plural(len(r.operand), "byte"), n,
			plural(r.count, "element"), r.dt)
	}
	if len(r.compare) != n && r.form == atomic.Compare {
		return fmt.Errorf("cmp has %s: want %d, for %s of %v", plural(len(r.compare), "byte"), n,
			plural(r.count, "element"), r.dt)
	}
	if b.Dst != nil && len(dst) != n {
		return fmt.Errorf("dst has %s: want %d, for %s of %v", plural(len(dst), "byte"), n,
			plural(r.count, "element"), r.dt)
	}
	return nil
}

// fromHex reads the bytes of a field.
func fromHex(field, text string) ([]byte, error) {
	b, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%s %q: want the bytes of the elements, little-endian, two hex digits each, such as "+
			"\"0500000000000000\" for the uint64 5", field, text)
	}
	return b, nil
}

// batchFormat is what a line should be.
const batchFormat = `want one JSON object, such as {"op":"sum","dt":"uint64","offset":8,"buf":"0500000000000000"}`

// wanted adds to the error of a line that is not in the format what it should be.
func wanted(err error) error {
	typed := new(json.UnmarshalTypeError)
	if errors.As(err, &typed) && typed.Field != "" {
		return fmt.Errorf("%s: a %s: want a %s", typed.Field, typed.Value, map[string]string{"string": "text in quotes",
			"int": "whole number", "uint64": "whole number, 0 or more"}[typed.Type.String()])
	}
	if typed.Field == "" && typed.Value != "" {
		return fmt.Errorf("a JSON %s: %s", typed.Value, batchFormat)
	}
	name, unknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	if !unknown {
		return fmt.Errorf("%w: %s", err, batchFormat)
	}
	name = strings.Trim(name, `"`)
	if name == "value" || name == "values" || name == "compare" {
		other := map[bool]string{true: "cmp", false: "buf"}[name == "compare"]
		return fmt.Errorf("unknown field %q: values are in %q: %s", name, other, batchFormat)
	}
	known := []string{"func", "form", "op", "dt", "datatype", "offset", "n", "dst", "buf", "cmp", "out", "res"}
	return fmt.Errorf("unknown field %q%s: want %s", name, tell.DidYouMean(name, known), strings.Join(known, ", "))
}

// decodeStrictly refuses unknown fields and a second object.
func decodeStrictly(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one JSON object")
	}
	return nil
}

func hexText(b []byte) *string {
	s := hex.EncodeToString(b)
	return &s
}
