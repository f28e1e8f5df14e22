// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/value"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

func TestPermute(t *testing.T) {
	c := (&app{}).atomicCmd()
	for in, want := range map[string]string{
		"sum int8 -5":                   "-- sum int8 -5",
		"sum int8 -5 --count 2 -i e":    "--count 2 -i e -- sum int8 -5",
		"--json sum int8 -5":            "--json -- sum int8 -5",
		"cswap int8 -1 --compare -5":    "--compare -5 -- cswap int8 -1",
		"cswap int8 -1 --compare=-5 -q": "--compare=-5 -q -- cswap int8 -1",
		"sum double -inf -.5 -nan":      "-- sum double -inf -.5 -nan",
		"sum float_complex -inf+1i":     "-- sum float_complex -inf+1i",
		"sum int8 -- -i":                "-- sum int8 -i",
		"--batch - -i e":                "--batch - -i e --",
		"sum int8 1 -ieth0 -infp0":      "-ieth0 -infp0 -- sum int8 1",
	} {
		if got := strings.Join(permute(c.Flags(), strings.Fields(in)), " "); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Operations run one after the other on the same memory, and print text.
func TestAtomicText(t *testing.T) {
	n := newNode(t)
	for _, c := range []struct{ args, want string }{
		{"write int32 5 -q", "0"},
		{"sum int32 -7", "r+0  5  -> -2"},
		{"sum int32 1 --form base", "1 element: done"},
		{"max int32 -5 --form base -q", ""},
		{"read int32", "r+0  -1"},
		{"read int32 --hex", "ffffffff"},
		{"cswap int32 9 --compare -1", "r+0  -1  -> 9"},
		{"write int16 1 2 3 --offset 8 -q", "0\n0\n0"},
		{"sum int16 10 --count 3 --offset 8", "r+8   1  -> 11\nr+10  2  -> 12\nr+12  3  -> 13"},
		{"bxor uint16 --hex ff00ff00 --offset 8", "0b000c00"},
		{"read uint16 --count 2 --offset 8 -q", "244\n243"},
		{"mswap uint8 0xff --compare 0x0f --offset 64 -q", "0"},
		{"read uint8 --offset 64 -q", "15"},
		{"write double 0.1 --offset 16 -q", "0"},
		{"max double inf --offset 16 -q", "0.1"},
		{"min double nan --offset 16", "r+16  inf  -> inf"},
		{"write float_complex 1+2i --offset 24 -q", "0+0i"},
		{"prod float_complex 0+1i --offset 24", "r+24  1+2i  -> -2+1i"},
		{"write long_double 1e4000 --offset 32 -q", "0"},
		{"sum long_double -1e4000 --offset 32 -q", "1e4000"},
		{"write int128 -170141183460469231731687303715884105728 --offset 48 -q", "0"},
		{"diff int128 1 --offset 48 -q", "-170141183460469231731687303715884105728"},
		{"read uint128 --offset 48 -q", "170141183460469231731687303715884105727"},
		{"write float8_e4m3 448 --offset 80 -q", "0"},
		{"sum float8_e4m3 448 --offset 80", "r+80  450  -> nan"},
		{"write bfloat16 bits:0x7fc1 --offset 82 -q", "0"},
		{"read bfloat16 --offset 82 -q", "bits:0x7fc1"},
	} {
		r := n.run("", n.line("atomic "+c.args+" --peer PEER --region r")...)
		if got := strings.TrimSpace(r.out); r.code != 0 || got != c.want || r.err != "" {
			t.Errorf("%s: exit code %d, %q, %s; want %q", c.args, r.code, got, r.err, c.want)
		}
	}
}

// A compare-and-swap that leaves an element as it was prints what it found, and has an
// exit code of its own, whatever the relation, the datatype and the operand.
func TestNotSwapped(t *testing.T) {
	n := newNode(t)
	for _, c := range []struct {
		args string
		code int
		want string // on stderr
	}{
		{"write int32 9 9 --offset 0 -q", 0, ""},
		{"cswap int32 10 --compare -1 -q", exitNotSwapped, "not swapped: r+0, which is 9: to swap it"},
		{"cswap int32 9 --compare 9 -q", 0, ""}, // swapped, by an equal one
		{"cswap int32 10 10 --compare 9,8 -q", exitNotSwapped, "1 of 2 elements stayed as they were; the first is r+4, which is 9"},
		{"cswap_gt int32 11 --compare 10 -q", exitNotSwapped, "which is 10"},
		{"cswap_ge int32 11 --compare 10 -q", 0, ""},
		{"write double nan --offset 8 -q", 0, ""},
		{"cswap double 1 --compare nan --offset 8 -q", exitNotSwapped, "which is nan"},
		{"cswap_ne double 1 --compare nan --offset 8 -q", 0, ""},
		{"cswap uint128 1 --compare 0 --offset 16 -q", 0, ""},
		{"cswap uint128 1 --compare 0 --offset 16 -q", exitNotSwapped, "which is 1"},
		{"mswap uint8 0xff --compare 0 --offset 64 -q", 0, ""}, // has no condition
		{"sum_at_most int8 3 --compare 5 --offset 72 -q", 0, ""},
		{"sum_at_most int8 3 --compare 5 --offset 72 -q", exitNotSwapped,
			"not within the bound: r+72, which is 3: with 3 more it would be above 5, or beyond int8"},
		{"diff_at_least int8 4 0 --compare 0 --offset 72 -q", exitNotSwapped,
			"1 of 2 elements stayed as they were; the first is r+72, which is 3: with 4 less it would be below 0"},
		{"diff_at_least int8 -125 --compare 0 --offset 72 -q", exitNotSwapped, "with -125 less it would be below 0"},
		{"sum_sat int8 125 --offset 72 -q", 0, ""}, // has none either
	} {
		r := n.run("", n.line("atomic "+c.args+" --peer PEER --region r")...)
		if r.code != c.code || r.out == "" || !strings.Contains(r.err, c.want) || (r.err == "") != (c.code == 0) {
			t.Errorf("%s: exit code %d, %q, %q; want %d and %q", c.args, r.code, r.out, r.err, c.code, c.want)
		}
	}
}

func TestAtomicJSON(t *testing.T) {
	n := newNode(t)
	mustRun[atomicReport](n, "atomic write uint64 18446744073709551615 --peer PEER --key 0x51")
	got := mustRun[atomicReport](n, "atomic sum uint64 2 --count 2 --peer PEER --key 0x51")
	want := atomicReport{Op: "sum", Datatype: "uint64", Form: "fetch", Region: "key 0x51", Count: 2,
		Before: []string{"18446744073709551615", "0"}, BeforeHex: "ffffffffffffffff0000000000000000", After: []string{"1", "2"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	got = mustRun[atomicReport](n, "atomic sum uint64 2 --form base --peer PEER --key 0x51")
	if got.Before != nil || got.After != nil || binary.LittleEndian.Uint64(n.mem.Bytes()) != 3 {
		t.Errorf("%+v, memory %x", got, n.mem.Bytes()[:8])
	}
}

// An array that takes several frames.
func TestAtomicLongArray(t *testing.T) {
	n := newNode(t)
	got := mustRun[atomicReport](n, "atomic sum uint64 7 --count 4096 --peer PEER --region r")
	if len(got.Before) != 4096 || slices.ContainsFunc(got.After, func(s string) bool { return s != "7" }) {
		t.Errorf("%d elements", len(got.Before))
	}
	for i := range 4096 {
		if v := binary.LittleEndian.Uint64(n.mem.Bytes()[8*i:]); v != 7 {
			t.Fatalf("element %d is %d", i, v)
		}
	}
}

func TestBatchLines(t *testing.T) {
	n := newNode(t)
	in := strings.Join([]string{
		`{"func":"fetch","op":"sum","dt":"uint32","n":2,"dst":"0100000002000000","buf":"0a0000000b000000","out":"","res":""}`,
		``,
		`{"form":"base","op":"write","datatype":"uint8","offset":100,"buf":"7f"}`,
		`{"func":"fetch","op":"read","dt":"uint8","offset":100}`,
		`{"op":"cswap","dt":"uint8","offset":100,"buf":"01","cmp":"7f"}`,
		`{"op":"sum","dt":"uint8","bogus":1}`,
		`{"op":"sum","dt":"uint8"`,
		`{"op":"sum","dt":"uint8"} {}`,
		`{"op":"sum","dt":"uint8","buf":"zz"}`,
		`{"op":"sum","dt":"uint8","buf":"0102"}`,
		`{"op":"sum","dt":"uint64","offset":3,"buf":"0100000000000000"}`,
		`{"op":"sum","dt":"uint8","offset":70000,"buf":"01"}`,
		`{"op":"sum","dt":"uint8","n":-1,"buf":"01"}`,
		`{"op":"sum","dt":"uint64"}`,
		`{"op":"cswap","dt":"uint8","buf":"01"}`,
		`{"op":"sum","dt":"uint8","value":1}`,
		`{"op":"sum","dt":"uint8","n":70000,"buf":"01"}`,
		`{"op":"band","dt":"double","buf":"0000000000000000"}`,
	}, "\n")
	r := n.run(in, n.line("atomic --batch - --peer PEER --region r")...)
	if r.code != exitUsage || !strings.Contains(r.err, "4 operations ran, 13 failed; each has an \"error\" in the output, the first is: line 6: unknown field \"bogus\": want func, form") {
		t.Errorf("exit code %d, %s", r.code, r.err)
	}
	want := []string{
		`{"line":1,"func":"fetch","op":"sum","dt":"uint32","offset":0,"n":2,"res":"0100000002000000","out":"0b0000000d000000"}`,
		`{"line":3,"func":"base","op":"write","dt":"uint8","offset":100,"n":1}`,
		`{"line":4,"func":"fetch","op":"read","dt":"uint8","offset":100,"n":1,"res":"7f"}`,
		`{"line":5,"func":"compare","op":"cswap","dt":"uint8","offset":100,"n":1,"res":"7f"}`,
		`line 6: unknown field`, `line 7: unexpected EOF: want one JSON object, such as`, `more than one`, `two hex digits each`,
		`buf has 2 bytes: want 1, for 1 element of uint8`, `line 11: `, `use \"offset\" 65535 or less`, `n -1`,
		`missing \"buf\": want 8 bytes, for 1 element of uint64`, `missing \"cmp\": want 1 bytes`,
		`unknown field \"value\": values are in \"buf\": want one JSON object, such as`, `buf has 1 byte: want 70000`,
		`band is not defined for double: want one of min, max, sum, prod, lor, land, lxor, read, write, cswap`,
	}
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d: %s", len(lines), len(want), r.out)
	}
	for i, w := range want {
		if i < 4 && lines[i] != w || !strings.Contains(lines[i], w) || i >= 4 && !strings.Contains(lines[i], `"certainty":"not executed"`) {
			t.Errorf("%s\nwant %s", lines[i], w)
		}
	}
}

// Every test vector goes through the command line and a pipe, in one session.
func TestBatchVectors(t *testing.T) {
	f, err := os.Open("../../atomic/testdata/vectors.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "vectors.jsonl")
	if err := os.WriteFile(path, vectors, 0o600); err != nil {
		t.Fatal(err)
	}
	n := newNode(t)
	r := n.run("", n.line("atomic --batch "+path+" --peer PEER --region r")...)
	if r.code != 0 {
		t.Fatalf("exit code %d, %s", r.code, r.err)
	}
	expected, results := json.NewDecoder(bytes.NewReader(vectors)), json.NewDecoder(strings.NewReader(r.out))
	count := 0
	for ; expected.More(); count++ {
		var v batchLine
		var got batchResult
		if err := expected.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if err := results.Decode(&got); err != nil {
			t.Fatal(err)
		}
		dt, _ := atomic.ParseDatatype(v.Dt)
		if !sameBytes(dt, v.Out, got.Out) || v.Func != "base" && !sameBytes(dt, v.Res, got.Res) || v.Func == "base" && got.Res != nil {
			t.Errorf("vector %d: %+v gives %s, %s", count+1, v, *got.Out, *got.Res)
		}
	}
	if count < 4950 || results.More() {
		t.Errorf("%d vectors", count)
	}
}

// A batch whose region goes away ends there: the line did not run, which is what code 1
// means.
func TestBatchLosesRegion(t *testing.T) {
	const sum = `{"op":"sum","dt":"uint64","buf":"0100000000000000"}` + "\n"
	n := newNode(t)
	in, typed := io.Pipe()
	var out, errs lockedBuffer
	a := &app{open: n.open, in: in, out: &out, err: &errs}
	code := make(chan int, 1)
	go func() { code <- a.run(t.Context(), n.line("atomic --batch - --peer PEER --region r")) }()
	if _, err := io.WriteString(typed, sum); err != nil {
		t.Fatal(err)
	}
	testnet.Eventually(t, "the first line has an answer", func() bool { return strings.HasSuffix(out.String(), "\n") })
	if err := n.region.Close(); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(typed, sum+sum); _ = typed.Close() }()
	is := <-code
	if lines := strings.Split(out.String(), "\n"); is != exitFailed || len(lines) != 3 ||
		!strings.HasSuffix(lines[1], `"certainty":"not executed","code":1}`) ||
		!strings.Contains(errs.String(), "1 operation ran, 1 failed, those behind line 2 were not run") {
		t.Errorf("code %d, %s, %s", is, out.String(), errs.String())
	}
}

// sameBytes compares elements. Any NaN equals any other, and the padding of long double
// does not count.
func sameBytes(dt atomic.Datatype, want string, got *string) bool {
	if got == nil || len(want) != len(*got) {
		return false
	}
	a, _ := hex.DecodeString(want)
	b, _ := hex.DecodeString(*got)
	part := map[atomic.Datatype]int{atomic.FloatComplex: 4, atomic.DoubleComplex: 8, atomic.LongDoubleComplex: 16}[dt]
	kind := map[atomic.Datatype]atomic.Datatype{
		atomic.FloatComplex: atomic.Float, atomic.DoubleComplex: atomic.Double, atomic.LongDoubleComplex: atomic.LongDouble,
	}
	if part == 0 {
		part = dt.Size()
	} else {
		dt = kind[dt]
	}
	for i := 0; i < len(a); i += part {
		x, y := a[i:i+part], b[i:i+part]
		if dt == atomic.LongDouble {
			clear(x[10:])
			clear(y[10:])
		}
		if !bytes.Equal(x, y) && !(isNaN(dt, x) && isNaN(dt, y)) {
			return false
		}
	}
	return true
}

// isNaN reports whether an element is no number. NaNs with a payload print as bits, and
// so do the invalid long doubles, which are no numbers either.
func isNaN(dt atomic.Datatype, b []byte) bool {
	s := value.Format(dt, b)
	return strings.Contains(s, "nan") || strings.Contains(s, "bits")
}
