// SPDX-License-Identifier: Apache-2.0

package value

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/xdpfab/xdpfab/atomic"
)

// The errors that Parse wraps.
var (
	ErrSyntax = errors.New("not a value of this datatype")
	ErrRange  = errors.New("out of range")
)

// bitsPrefix introduces the bits of an element as a hexadecimal number.
const bitsPrefix = "bits:0x"

// maxText bounds the text that is converted exactly, in bytes. The longest decimal
// that can matter, half-way between two long doubles, has 11514 digits.
const maxText = 16 << 10

// Parse turns one element's text into its little-endian bytes. The error wraps
// ErrSyntax or ErrRange, and says what would have been right.
func Parse(dt atomic.Datatype, s string) ([]byte, error) {
	b := make([]byte, dt.Size())
	err := parseInto(b, dt, s)
	if digits, is := strings.CutPrefix(s, "bits:"); is && !strings.HasPrefix(s, bitsPrefix) {
		err = fmt.Errorf("%w: bits are hexadecimal: want %s%s", ErrSyntax, bitsPrefix, digits)
	}
	if err != nil {
		if len(s) > 60 {
			s = s[:60] + "…"
		}
		return nil, fmt.Errorf("bad value %q for %v: %w", s, dt, err)
	}
	return b, nil
}

// ParseAll is Parse for an array.
func ParseAll(dt atomic.Datatype, texts []string) ([]byte, error) {
	var all []byte
	for _, s := range texts {
		b, err := Parse(dt, s)
		if err != nil {
			return nil, err
		}
		all = append(all, b...)
	}
	return all, nil
}

// Format prints one element, dt.Size() bytes, as the shortest text that Parse
// turns into the same bits.
func Format(dt atomic.Datatype, b []byte) string {
	if i, ok := integers[dt]; ok {
		return i.text(b)
	}
	if f, ok := floats[dt]; ok {
		if s, ok := f.text(b); ok {
			return s
		}
		return bitsText(b)
	}
	f := parts[dt]
	re, ok1 := f.text(b[:len(b)/2])
	im, ok2 := f.text(b[len(b)/2:])
	switch {
	case !ok1 || !ok2:
		return bitsText(b)
	case im[0] != '-':
		im = "+" + im
	}
	return re + im + "i"
}

// FormatAll is Format for an array.
func FormatAll(dt atomic.Datatype, b []byte) []string {
	texts := make([]string, 0, len(b)/dt.Size())
	for e := range slices.Chunk(b, dt.Size()) {
		texts = append(texts, Format(dt, e))
	}
	return texts
}

func parseInto(b []byte, dt atomic.Datatype, s string) error {
	if len(b) == 0 {
		return fmt.Errorf("%w: unknown datatype", ErrSyntax)
	}
	if len(s) > maxText {
		return fmt.Errorf("%w: longer than %d bytes", ErrSyntax, maxText)
	}
	if digits, ok := strings.CutPrefix(s, bitsPrefix); ok {
		return parseBits(b, digits)
	}
	if i, ok := integers[dt]; ok {
		return i.parse(b, s)
	}
	if f, ok := floats[dt]; ok {
		return f.parse(b, s)
	}
	return parseComplex(parts[dt], b, s)
}

// parseBits takes an element as one number of its whole width.
func parseBits(b []byte, digits string) error {
	n, ok := new(big.Int).SetString(digits, 16)
	if !ok || strings.ContainsAny(digits, "+-_") {
		return fmt.Errorf("%w: want %s and hexadecimal digits", ErrSyntax, bitsPrefix)
	}
	if n.BitLen() > 8*len(b) {
		return fmt.Errorf("%w: it has %d bits", ErrRange, 8*len(b))
	}
	putLittle(b, n)
	return nil
}

func bitsText(b []byte) string { return fmt.Sprintf("%s%0*x", bitsPrefix, 2*len(b), little(b)) }

// little reads an unsigned little-endian number.
func little(b []byte) *big.Int {
	r := slices.Clone(b)
	slices.Reverse(r)
	return new(big.Int).SetBytes(r)
}

// putLittle stores a number that fits.
func putLittle(b []byte, n *big.Int) {
	n.FillBytes(b)
	slices.Reverse(b)
}

// parseComplex tries every sign as the one between the parts. At most one of the
// splits can be right, since both sides have to be whole numbers.
func parseComplex(f *format, b []byte, s string) error {
	half := len(b) / 2
	clear(b)
	s = strings.TrimSuffix(strings.TrimPrefix(s, "("), ")")
	body, imaginary := strings.CutSuffix(s, "i")
	if !imaginary {
		err := f.parse(b[:half], s)
		if errors.Is(err, ErrSyntax) {
			err = fmt.Errorf("%w: want a number such as 0.5, or parts such as 1+2i", ErrSyntax)
		}
		return err
	}
	for i := len(body) - 1; i > 0; i-- {
		if body[i] != '+' && body[i] != '-' {
			continue
		}
		if !isNumber(body[:i]) || !isNumber(body[i:]) {
			continue
		}
		return errors.Join(f.parse(b[:half], body[:i]), f.parse(b[half:], body[i:]))
	}
	if !isNumber(body) {
		return fmt.Errorf("%w: want parts such as 1+2i", ErrSyntax)
	}
	return f.parse(b[half:], body)
}
