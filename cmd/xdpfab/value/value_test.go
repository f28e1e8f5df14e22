// SPDX-License-Identifier: Apache-2.0

package value

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/xdpfab/xdpfab/atomic"
)

func datatypes(f func(dt atomic.Datatype)) {
	for dt := range atomic.Datatype(atomic.NumDatatypes) {
		f(dt)
	}
}

// Any bits of any datatype survive printing and parsing. Special patterns are made
// likely.
func TestRoundTrip(t *testing.T) {
	datatypes(func(dt atomic.Datatype) {
		t.Run(dt.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				b := rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte{0, 1, 0x7f, 0x80, 0xff, 0x3f})),
					dt.Size(), dt.Size()).Draw(t, "bytes")
				if dt == atomic.LongDouble && rapid.Bool().Draw(t, "clean") {
					clear(b[10:])
					b[7] |= 0x80
				}
				roundTrip(t, dt, b)
			})
		})
	})
}

func roundTrip(t interface{ Fatalf(string, ...any) }, dt atomic.Datatype, b []byte) {
	s := Format(dt, b)
	got, err := Parse(dt, s)
	if err != nil || !bytes.Equal(got, b) {
		t.Fatalf("%v %x prints as %q, which reads as %x, %v", dt, b, s, got, err)
	}
}

func TestSmallFormatsExhaustively(t *testing.T) {
	for _, dt := range []atomic.Datatype{atomic.Int8, atomic.Uint8, atomic.Float8E4M3, atomic.Float8E5M2, atomic.Float16, atomic.BFloat16, atomic.Int16} {
		if testing.Short() && dt.Size() > 1 {
			continue
		}
		for i := range 1 << (8 * dt.Size()) {
			b := binary.LittleEndian.AppendUint64(nil, uint64(i))[:dt.Size()]
			roundTrip(t, dt, b)
		}
	}
}

// strconv is the oracle for the two formats that it knows.
func TestAgainstStrconv(t *testing.T) {
	check := func(t *rapid.T, s string) {
		d, err := strconv.ParseFloat(s, 64)
		b, myErr := Parse(atomic.Double, s)
		if (err == nil) != (myErr == nil) || err == nil && math.Float64bits(d) != binary.LittleEndian.Uint64(b) {
			t.Fatalf("double %q: %x, %v; strconv: %x, %v", s, b, myErr, math.Float64bits(d), err)
		}
		f, err := strconv.ParseFloat(s, 32)
		b, myErr = Parse(atomic.Float, s)
		if (err == nil) != (myErr == nil) || err == nil && math.Float32bits(float32(f)) != binary.LittleEndian.Uint32(b) {
			t.Fatalf("float %q: %x, %v; strconv: %x, %v", s, b, myErr, math.Float32bits(float32(f)), err)
		}
	}
	t.Run("decimal", func(t *testing.T) {
		text := rapid.StringMatching(`-?[0-9]{1,25}(\.[0-9]{0,25})?(e[+-]?[0-9]{1,3})?`)
		rapid.Check(t, func(t *rapid.T) { check(t, text.Draw(t, "text")) })
	})
	t.Run("hex", func(t *testing.T) {
		text := rapid.StringMatching(`-?0x[0-9a-f]{1,20}(\.[0-9a-f]{0,20})?p[+-]?[0-9]{1,4}`)
		rapid.Check(t, func(t *rapid.T) { check(t, text.Draw(t, "text")) })
	})
	digits := func(s string) int {
		s, _, _ = strings.Cut(s, "e")
		return len(strings.Trim(strings.Replace(s, ".", "", 1), "-0"))
	}
	t.Run("shortest", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			d := rapid.Float64().Draw(t, "value")
			s := Format(atomic.Double, binary.LittleEndian.AppendUint64(nil, math.Float64bits(d)))
			want := strconv.FormatFloat(d, 'e', -1, 64)
			if !math.IsInf(d, 0) && digits(s) != digits(want) {
				t.Fatalf("%q, strconv prints %q", s, want)
			}
		})
	})
	t.Run("powers of two", func(t *testing.T) { // their neighbours are not equally far away
		for e := -1074; e < 1024; e += 5 {
			d := math.Ldexp(1, e)
			s, want := Format(atomic.Double, binary.LittleEndian.AppendUint64(nil, math.Float64bits(d))), strconv.FormatFloat(d, 'e', -1, 64)
			if back, err := strconv.ParseFloat(s, 64); err != nil || back != d || digits(s) != digits(want) {
				t.Errorf("2^%d: %q, strconv prints %q", e, s, want)
			}
		}
	})
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		dt         atomic.Datatype
		text, want string // hex
	}{
		{atomic.Uint8, "255", "ff"},
		{atomic.Uint8, "0xFf", "ff"},
		{atomic.Int8, "-128", "80"},
		{atomic.Int16, "+010", "0a00"},
		{atomic.Int64, "-0x1", "ffffffffffffffff"},
		{atomic.Uint128, "340282366920938463463374607431768211455", "ffffffffffffffffffffffffffffffff"},
		{atomic.Int128, "-170141183460469231731687303715884105728", "00000000000000000000000000000080"},
		{atomic.Uint32, "bits:0x1234", "34120000"},
		{atomic.Double, "0.1", "9a9999999999b93f"},
		{atomic.Double, "-inf", "000000000000f0ff"},
		{atomic.Double, "nan", "000000000000f87f"},
		{atomic.Double, "1e-400", "0000000000000000"},
		{atomic.Double, "-1e-99999999999999999999", "0000000000000080"},
		{atomic.Float, "0x1.8p1", "00004040"},
		{atomic.Float, "-NaN", "0000c0ff"},
		{atomic.Float16, "65504", "ff7b"},
		{atomic.Float16, "65519.99", "ff7b"},
		{atomic.Float16, "1.00048828125", "003c"},              // half-way, to even
		{atomic.Float16, "1.000488281250000000000001", "013c"}, // just above: one rounding only
		{atomic.BFloat16, "1", "803f"},
		{atomic.Float8E4M3, "448", "7e"},
		{atomic.Float8E4M3, "nan", "7f"},
		{atomic.Float8E5M2, "inf", "7c"},
		{atomic.LongDouble, "1", "0000000000000080ff3f000000000000"},
		{atomic.LongDouble, "0.1", "cdccccccccccccccfb3f000000000000"},
		{atomic.LongDouble, "1.18973149535723176502e+4932", "fffffffffffffffffe7f000000000000"},
		{atomic.LongDouble, "3.7e-4951", "01000000000000000000000000000000"},
		{atomic.LongDouble, "inf", "0000000000000080ff7f000000000000"},
		{atomic.FloatComplex, "1-2i", "0000803f000000c0"},
		{atomic.FloatComplex, "(1e+1+2e-1i)", "00002041cdcc4c3e"},
		{atomic.FloatComplex, "3", "0000404000000000"},
		{atomic.FloatComplex, "-3i", "00000000000040c0"},
		{atomic.FloatComplex, "-infi", "00000000000080ff"},
		{atomic.FloatComplex, "nan+infi", "0000c07f0000807f"},
		{atomic.FloatComplex, "0x1p+2+1i", "000080400000803f"},
		{atomic.DoubleComplex, "1e+2i", "00000000000000000000000000005940"},
	} {
		b, err := Parse(c.dt, c.text)
		if got := hex.EncodeToString(b); err != nil || got != c.want {
			t.Errorf("%v %q: %s, %v; want %s", c.dt, c.text, got, err, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		dt   atomic.Datatype
		text string
		want error
		say  string
	}{
		{atomic.Uint8, "256", ErrRange, "want 0 to 255"},
		{atomic.Uint8, "-1", ErrRange, "want 0 to 255"},
		{atomic.Int8, "0xff", ErrRange, "want -128 to 127"},
		{atomic.Int8, "", ErrSyntax, "want an integer"},
		{atomic.Int64, "1.0", ErrSyntax, "want an integer"},
		{atomic.Int64, "1_000", ErrSyntax, "want an integer"},
		{atomic.Int64, "0b1", ErrSyntax, "want an integer"},
		{atomic.Uint128, "340282366920938463463374607431768211456", ErrRange, "want 0 to 3402"},
		{atomic.Uint8, "bits:0x100", ErrRange, "8 bits"},
		{atomic.Uint64, "bits:5", ErrSyntax, "bits are hexadecimal: want bits:0x5"},
		{atomic.Double, "bits:ff", ErrSyntax, "want bits:0xff"},
		{atomic.Uint8, "bits:0x-1", ErrSyntax, "hexadecimal"},
		{atomic.Double, "", ErrSyntax, "want a number"},
		{atomic.Double, ".", ErrSyntax, "want a number"},
		{atomic.Double, "1e", ErrSyntax, "want a number"},
		{atomic.Double, "1i", ErrSyntax, "want a number"},
		{atomic.Double, "1e309", ErrRange, "1.79769313486231570815e+308"},
		{atomic.Double, "1e999999999", ErrRange, "1.79769313486231570815e+308"},
		{atomic.Double, "0x1p99999999999999999999", ErrRange, "1.79769313486231570815e+308"},
		{atomic.Float16, "65520", ErrRange, "at most 65504 in magnitude"},
		{atomic.Float8E4M3, "inf", ErrRange, "no infinity"},
		{atomic.Float8E4M3, "-500", ErrRange, "at most 448 in magnitude"},
		{atomic.FloatComplex, "1+2", ErrSyntax, "want a number"},
		{atomic.FloatComplex, "1+2i+3i", ErrSyntax, "parts such as 1+2i"},
		{atomic.FloatComplex, "i", ErrSyntax, "parts such as 1+2i"},
		{atomic.FloatComplex, "1+1e99i", ErrRange, "at most"},
		{atomic.Datatype(99), "1", ErrSyntax, "unknown datatype"},
		{atomic.Double, strings.Repeat("1", maxText+1), ErrSyntax, "longer than"},
	} {
		b, err := Parse(c.dt, c.text)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%v %.40q: %x, %v; want %v, saying %q", c.dt, c.text, b, err, c.want, c.say)
		}
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		dt        atomic.Datatype
		hex, want string
	}{
		{atomic.Int8, "ff", "-1"},
		{atomic.Double, "000000000000f03f", "1"},
		{atomic.Double, "000000000000f0bf", "-1"},
		{atomic.Double, "0000000000000080", "-0"},
		{atomic.Double, "0100000000000000", "5e-324"},
		{atomic.Double, "00000000d0125341", "5000000"},
		{atomic.Double, "2d431cebe2361a3f", "0.0001"},
		{atomic.Double, "000000000000f8ff", "-nan"},
		{atomic.Double, "010000000000f07f", "bits:0x7ff0000000000001"},
		{atomic.Float16, "ff7b", "65500"},
		{atomic.LongDouble, "0000000000000000ff3f000000000000", "bits:0x00000000000" + "03fff0000000000000000"},
		{atomic.LongDouble, "0000000000000080ff3f000000000001", "bits:0x01000000000" + "03fff8000000000000000"},
		{atomic.FloatComplex, "0000803f000000c0", "1-2i"},
		{atomic.FloatComplex, "0000008000000000", "-0+0i"},
	} {
		b, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		if got := Format(c.dt, b); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.dt, c.hex, got, c.want)
		}
	}
}

func TestArrays(t *testing.T) {
	b, err := ParseAll(atomic.Int16, []string{"1", "-2", "3"})
	if got := strings.Join(FormatAll(atomic.Int16, b), " "); err != nil || got != "1 -2 3" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := ParseAll(atomic.Int16, []string{"1", "x"}); !errors.Is(err, ErrSyntax) {
		t.Error(err)
	}
}

// Any text gives an error, or bytes that print as a text of the same bits.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"1", "-0x7f", "1.5e3", "nan", "1+2i", "bits:0x1", "0x1p-3", "-infi", "1e-5000"} {
		f.Add(uint8(atomic.LongDoubleComplex), s)
		f.Add(uint8(atomic.Int128), s)
		f.Add(uint8(atomic.Float8E4M3), s)
	}
	f.Fuzz(func(t *testing.T, kind uint8, s string) {
		dt := atomic.Datatype(kind % atomic.NumDatatypes)
		b, err := Parse(dt, s)
		if err == nil {
			roundTrip(t, dt, b)
		} else if !errors.Is(err, ErrSyntax) && !errors.Is(err, ErrRange) {
			t.Errorf("%v %q: unexpected error %v", dt, s, err)
		}
	})
}
