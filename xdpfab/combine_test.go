// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// testBits checks And, Or and Xor on a word of zero.
func testBits[T xdpfab.Integer](t *testing.T, p *xdpfab.Peer, twelve, ten, three, one, want T) {
	t.Helper()
	w, err := xdpfab.Word[T](ctx(t), p, "r", 2)
	if err == nil {
		err = w.Store(ctx(t), twelve)
	}
	for _, f := range []func() (T, error){
		func() (T, error) { return xdpfab.And(ctx(t), w, ten) },
		func() (T, error) { return xdpfab.Or(ctx(t), w, three) },
		func() (T, error) { return xdpfab.Xor(ctx(t), w, one) },
	} {
		if err != nil {
			t.Fatal(err)
		}
		_, err = f()
	}
	if got, err := w.Load(ctx(t)); got != want || err != nil {
		t.Errorf("((12 and 10) or 3) xor 1 is %v, %v, want %v", got, err, want)
	}
}

// testOrder checks Max and Min.
func testOrder[T xdpfab.Ordered](t *testing.T, p *xdpfab.Peer, low, middle, high T) {
	t.Helper()
	w, err := xdpfab.Word[T](ctx(t), p, "r", 2)
	if err == nil {
		err = w.Store(ctx(t), middle)
	}
	if err != nil {
		t.Fatal(err)
	}
	if old, err := xdpfab.Max(ctx(t), w, high); old != middle || err != nil {
		t.Errorf("before Max: %v, %v, want %v", old, err, middle)
	}
	if old, err := xdpfab.Max(ctx(t), w, low); old != high || err != nil {
		t.Errorf("after Max: %v, %v, want %v", old, err, high)
	}
	if old, err := xdpfab.Min(ctx(t), w, low); old != high || err != nil {
		t.Errorf("before Min: %v, %v, want %v", old, err, high)
	}
	if got, err := w.Load(ctx(t)); got != low || err != nil {
		t.Errorf("after Min: %v, %v, want %v", got, err, low)
	}
}

// What the constraints let pass is defined.
func TestCombine(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, _ := dialWord[uint64](t, f)
	testBits[uint8](t, p, 12, 10, 3, 1, 10)
	testBits[int64](t, p, 12, 10, 3, 1, 10)
	of := func(n uint64) xdpfab.U128 { return xdpfab.U128{Hi: n, Lo: n} }
	testBits(t, p, of(12), of(10), of(3), of(1), of(10))
	signed := func(n int64) xdpfab.I128 { return xdpfab.I128{Hi: n, Lo: uint64(n)} }
	testBits(t, p, signed(12), signed(10), signed(3), signed(1), signed(10))
	testOrder[int8](t, p, -3, 0, 5)
	testOrder[uint32](t, p, 1, 2, 1<<31)
	testOrder[float32](t, p, -1.5, 0.25, 3)
	testOrder(t, p, -1.5, 0.25, 1e300)
	testOrder(t, p, of(1), of(2), of(1<<63))
	testOrder(t, p, signed(-5), signed(-1), signed(7))
}

// What no peer would do does not compile.
func TestCombineDoesNotCompile(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	build := func(element, call string) (string, error) {
		file := filepath.Join(t.TempDir(), "main.go")
		source := "package main\n\nimport (\n\t\"context\"\n\n\t\"github.com/xdpfab/xdpfab/xdpfab\"\n)\n\n" +
			"func main() {\n\tvar w xdpfab.Remote[" + element + "]\n\t_, _ = xdpfab." + call + "(context.Background(), w, 1)\n}\n"
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("go", "vet", file).CombinedOutput() // of a file outside, in this module
		return string(out), err
	}
	for _, c := range []struct {
		element, call string
		compiles      bool
	}{{"float64", "Max", true}, {"float64", "And", false}, {"float32", "Xor", false}, {"complex128", "Min", false}} {
		out, err := build(c.element, c.call)
		switch {
		case c.compiles && err != nil:
			t.Errorf("%s on %s: %v\n%s", c.call, c.element, err, out)
		case !c.compiles && (err == nil || !strings.Contains(out, "does not satisfy")):
			t.Errorf("%s on %s: %v\n%s", c.call, c.element, err, out)
		}
	}
}
