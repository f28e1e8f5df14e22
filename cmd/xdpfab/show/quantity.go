// SPDX-License-Identifier: Apache-2.0

// Package show is how the client shows quantities, and what happens while it waits, to a
// person. It takes no part in the life of an operation.
package show

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/xdpfab/xdpfab/internal/tell"
)

// Count prints a number with three digits, such as 43.1 M; a unit or "/s" follows it.
func Count(v float64) string {
	for _, m := range []struct {
		unit string
		size float64
	}{{" G", 1e9}, {" M", 1e6}, {" k", 1e3}} {
		if v >= m.size {
			return fmt.Sprintf("%.*f%s", digitsAfter(v/m.size), v/m.size, m.unit)
		}
	}
	return fmt.Sprintf("%.0f", v)
}

func digitsAfter(v float64) int { return max(2-int(math.Log10(max(v, 1))), 0) }

// Duration prints nanoseconds with three digits or so, in µs unless they are many.
func Duration(ns int64) string {
	switch us := float64(ns) / 1e3; {
	case us < 10:
		return fmt.Sprintf("%.2f µs", us)
	case us < 100:
		return fmt.Sprintf("%.1f µs", us)
	case us < 10000:
		return fmt.Sprintf("%.0f µs", us)
	case us < 1e6:
		return fmt.Sprintf("%.1f ms", us/1e3)
	default:
		return fmt.Sprintf("%.2f s", us/1e6)
	}
}

// units are those of sizes.
var units = []struct {
	name string
	size uint64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// Size prints a number of bytes as ParseSize reads it, exactly if that is short.
func Size(n uint64) string {
	for _, u := range units {
		switch {
		case n < u.size:
		case n%u.size == 0:
			return fmt.Sprintf("%d %s", n/u.size, u.name)
		default:
			v := float64(n) / float64(u.size)
			return fmt.Sprintf("%.*f %s", digitsAfter(v), v, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// Bytes is a flag that takes a number of bytes as ParseSize reads it.
type Bytes uint64

// Set implements pflag.Value.
func (b *Bytes) Set(s string) error {
	n, err := ParseSize(s)
	*b = Bytes(n)
	return err
}

// Type implements pflag.Value.
func (b *Bytes) Type() string { return "bytes" }

// String implements pflag.Value.
func (b *Bytes) String() string { return strconv.FormatUint(uint64(*b), 10) }

// ParseSize turns text such as 8, 0x40, 4KiB or 1MiB into a number of bytes.
func ParseSize(s string) (uint64, error) {
	digits, factor := s, uint64(1)
	for _, u := range units {
		if d, is := strings.CutSuffix(s, u.name); is {
			digits, factor = strings.TrimSuffix(d, " "), u.size
		}
	}
	n, err := strconv.ParseUint(digits, 0, 64)
	if err != nil || n > math.MaxUint64/factor {
		return 0, fmt.Errorf("size %q%s: want a number of bytes, or of KiB, MiB, GiB or TiB, such as 4KiB", s,
			tell.LikeSize(s))
	}
	return n * factor, nil
}
