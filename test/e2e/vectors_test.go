// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// vector is a line of package atomic's vectors, computed in C with the
// expressions of fi_atomic(3), and also a line of input for `xdpfab atomic
// --batch`. Bytes are little-endian hex.
type vector struct {
	Func   string `json:"func"`
	Op     string `json:"op"`
	Dt     string `json:"dt"`
	Offset uint64 `json:"offset"`
	N      int    `json:"n"`
	Dst    string `json:"dst"`
	Buf    string `json:"buf,omitempty"`
	Cmp    string `json:"cmp,omitempty"`
	Out    string `json:"out,omitempty"`
	Res    string `json:"res,omitempty"`
}

// batchAnswer is a line of output.
type batchAnswer struct {
	Line      int
	Func      string
	Op        string
	Dt        string
	Res       string
	Out       string
	Error     string
	Certainty string
	Code      int
}

// vectors reads the files and adds what they lack: the one triple without a line,
// and the two datatypes that C does not have.
func vectors(t *testing.T) []vector {
	t.Helper()
	all := append(testnet.Golden[vector](t, "../../atomic/testdata/vectors.jsonl.gz"),
		testnet.Golden[vector](t, "../../atomic/testdata/bounded.jsonl.gz")...)
	if len(all) != 4950+70 {
		t.Fatalf("%d vectors, want 4950 and 70", len(all))
	}
	all = append(all, vector{Func: "fetch", Op: "read", Dt: "bfloat16", N: 2, Dst: "803fc07f", Out: "803fc07f", Res: "803fc07f"})
	all = append(all, smallFloats...)
	for i := range all {
		all[i].Offset = uint64(i%61) * 1040 // anywhere in the region, aligned to 16
	}
	return all
}

// smallFloats were written by hand, from the OCP's FP8 formats. E4M3: 1 = 38, 1.5
// = 3c, 2 = 40, 3 = 44, 448 = 7e is the greatest, 7f is NaN. E5M2: 1 = 3c, 1.5 =
// 3e, 2 = 40, 3 = 42, 7c is infinite, 7d to 7f are NaNs.
var smallFloats = []vector{
	{Func: "fetch", Op: "sum", Dt: "float8_e4m3", N: 3, Dst: "38407f", Buf: "383838", Out: "40447f", Res: "38407f"},
	{Func: "fetch", Op: "prod", Dt: "float8_e4m3", N: 2, Dst: "3c38", Buf: "403c", Out: "443c", Res: "3c38"},
	{Func: "fetch", Op: "diff", Dt: "float8_e4m3", N: 2, Dst: "4440", Buf: "3840", Out: "4000", Res: "4440"},
	{Func: "base", Op: "max", Dt: "float8_e4m3", N: 2, Dst: "38c4", Buf: "7ec0", Out: "7ec0"},
	{Func: "compare", Op: "cswap", Dt: "float8_e4m3", N: 2, Dst: "8038", Buf: "4444", Cmp: "0040", Out: "4438", Res: "8038"},
	{Func: "fetch", Op: "read", Dt: "float8_e4m3", N: 1, Dst: "3c", Out: "3c", Res: "3c"},
	{Func: "fetch", Op: "sum", Dt: "float8_e5m2", N: 3, Dst: "3c407c", Buf: "3c3cfc", Out: "40427e", Res: "3c407c"},
	{Func: "fetch", Op: "prod", Dt: "float8_e5m2", N: 2, Dst: "3e7b", Buf: "407b", Out: "427c", Res: "3e7b"},
	{Func: "base", Op: "min", Dt: "float8_e5m2", N: 2, Dst: "3cfc", Buf: "bc00", Out: "bcfc"},
	{Func: "compare", Op: "cswap_lt", Dt: "float8_e5m2", N: 2, Dst: "4040", Buf: "3c3c", Cmp: "3c42", Out: "3c40", Res: "4040"},
	{Func: "fetch", Op: "write", Dt: "float8_e5m2", N: 1, Dst: "3c", Buf: "42", Out: "42", Res: "3c"},
}

// Every valid operation between two nodes has the same result as in C.
func TestVectors(t *testing.T) { allWays(t, testVectors) }

func testVectors(t *testing.T) {
	all := vectors(t)
	checkCoverage(t, all)
	net := testnet.NewPair(t, testnet.Options{})
	viaDaemon(t, net.A)
	serve(t, net.B, "--region", "r=72KiB")
	ethernet := 1
	if strings.HasSuffix(t.Name(), "/"+attachedWay) {
		ethernet = 7 // the daemon executes as in the direct way
	}
	for _, c := range []struct {
		name, addr string
		every      int // takes one of every so many lines of the file
	}{
		{"ethernet", net.B.MAC.String(), ethernet},
		{"udp4", net.B.IP4.String(), 7},
		{"udp6", net.B.IP6.String(), 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			var some []vector
			for i := 0; i < len(all); i += c.every {
				some = append(some, all[i])
			}
			checkVectors(t, net.A, c.addr, some)
		})
	}
}

// checkCoverage checks that no valid triple is missing, apart from those of the
// small floats, which package atomic tests exhaustively.
func checkCoverage(t *testing.T, all []vector) {
	t.Helper()
	seen := make(map[[3]string]bool)
	for _, v := range all {
		seen[[3]string{v.Func, v.Op, v.Dt}] = true
	}
	valid := 0
	for f := range atomic.Func(atomic.NumFuncs) {
		for op := range atomic.Op(atomic.NumOps) {
			for dt := range atomic.Datatype(atomic.NumDatatypes) {
				if !atomic.Valid(f, op, dt) || dt == atomic.Float8E4M3 || dt == atomic.Float8E5M2 {
					continue
				}
				if valid++; !seen[[3]string{f.String(), op.String(), dt.String()}] {
					t.Errorf("no vector for %v %v %v", f, op, dt)
				}
			}
		}
	}
	t.Logf("%d vectors for %d combinations of form, operation and datatype", len(all), valid)
}

func checkVectors(t *testing.T, side *testnet.Side, addr string, some []vector) {
	t.Helper()
	var in strings.Builder
	for e, i := json.NewEncoder(&in), 0; i < len(some); i++ {
		v := some[i]
		v.Out, v.Res = "", "" // so that nothing can be copied from the expectations
		if err := e.Encode(&v); err != nil {
			t.Fatal(err)
		}
	}
	p := xdpfab(t, side, []string{"atomic", "-i", side.IfName, "--peer", addr, "--region", "r", "--batch", "-"}, input(in.String()))
	p.wants(0)
	got := make([]batchAnswer, 0, len(some))
	for dec := json.NewDecoder(strings.NewReader(p.out.String())); dec.More(); {
		var a batchAnswer
		if err := dec.Decode(&a); err != nil {
			t.Fatal(err)
		}
		got = append(got, a)
	}
	if len(got) != len(some) {
		t.Fatalf("%d answers to %d lines", len(got), len(some))
	}
	for i, a := range got {
		v := some[i]
		if a.Line != i+1 || a.Func != v.Func || a.Op != v.Op || a.Dt != v.Dt || a.Error != "" {
			t.Errorf("line %d: answer to %s %s %s: %+v", i+1, v.Func, v.Op, v.Dt, a)
			continue
		}
		if !sameValues(t, v.Dt, a.Res, v.Res) || !sameValues(t, v.Dt, a.Out, v.Out) {
			t.Errorf("line %d: %s %s %s: dst %s buf %s cmp %s: result %s, memory %s; want %s, %s",
				i+1, v.Func, v.Op, v.Dt, v.Dst, v.Buf, v.Cmp, a.Res, a.Out, v.Res, v.Out)
		}
	}
}

// numbers describes how the floats of a datatype are laid out: bytes of a number, bytes
// of those that count, bits of the exponent, and of the fraction below it. Datatypes that
// are not listed are compared byte by byte.
var numbers = map[string]struct{ size, used, exponent, fraction int }{
	"float":               {4, 4, 8, 23},
	"double":              {8, 8, 11, 52},
	"float_complex":       {4, 4, 8, 23},
	"double_complex":      {8, 8, 11, 52},
	"long_double":         {16, 10, 15, 64},
	"long_double_complex": {16, 10, 15, 64},
	"float16":             {2, 2, 5, 10},
	"bfloat16":            {2, 2, 8, 7},
	"float8_e5m2":         {1, 1, 5, 2},
}

// sameValues compares arrays: any NaN equals any NaN, and padding does not
// count.
func sameValues(t *testing.T, dt, a, b string) bool {
	t.Helper()
	x, err1 := hex.DecodeString(a)
	y, err2 := hex.DecodeString(b)
	n, float := numbers[dt]
	if !float || err1 != nil || err2 != nil || len(x) != len(y) || len(x)%n.size != 0 {
		return err1 == nil && err2 == nil && bytes.Equal(x, y)
	}
	for i := 0; i < len(x); i += n.size {
		p, q := x[i:i+n.used], y[i:i+n.used]
		if !bytes.Equal(p, q) && !(isNaN(p, n.exponent, n.fraction) && isNaN(q, n.exponent, n.fraction)) {
			return false
		}
	}
	return true
}

// isNaN: all bits of the exponent set, and one of the fraction. A long double's
// fraction has an explicit first bit: in an infinity it is the only one set, and a
// number in which it is clear where it should be set is invalid, which counts as a
// NaN.
func isNaN(b []byte, exponent, fraction int) bool {
	var low, high uint64
	for i, c := range b {
		if i < 8 {
			low |= uint64(c) << (8 * i)
		} else {
			high |= uint64(c) << (8 * (i - 8))
		}
	}
	if fraction == 64 {
		exp := high & 0x7fff
		return exp == 0x7fff && low != 1<<63 || exp != 0 && low>>63 == 0
	}
	return low>>fraction&(1<<exponent-1) == 1<<exponent-1 && low&(1<<fraction-1) != 0
}
