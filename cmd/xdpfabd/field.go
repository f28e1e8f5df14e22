// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/internal/udpnode"
	"github.com/xdpfab/xdpfab/xsk"
)

// shape describes which TOML values a field takes.
type shape uint8

const (
	shapeText   shape = iota // a string
	shapeInt                 // an integer
	shapeBool                // a boolean
	shapeInts                // an array of integers
	shapeNumber              // an integer, or a string where notation matters
)

// field is one setting, read and written as text: flags, the TOML file and
// --print-config all go through it. set accepts every text that get returns. It is a
// pflag.Value.
type field struct {
	shape shape
	set   func(string) error
	get   func() string
	wants string // the values accepted, where they are few
}

// Set parses s.
func (f field) Set(s string) error { return f.set(s) }

// String is the setting in the form that Set takes.
func (f field) String() string {
	if f.get == nil { // pflag asks a zero value, to find out what a default looks like
		return ""
	}
	return f.get()
}

// Type is the name of the value in --help if the usage names none.
func (f field) Type() string {
	if f.shape == shapeBool {
		return "bool"
	}
	return "value"
}

// wants returns the usual error: the value given, and the values accepted.
func wants(got, want string) error { return unlike(got, "", want) }

// unlike is wants with a question behind the value: what may have been meant.
func unlike(got, question, want string) error {
	return fmt.Errorf("%q%s: want %s", got, question, want)
}

// textField is any valid UTF-8 that check accepts, if there is a check.
func textField(p *string, check func(string) error) field {
	return field{shape: shapeText, set: func(s string) error {
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			return wants(s, "UTF-8 text without zero bytes")
		}
		if check != nil {
			if err := check(s); err != nil {
				return err
			}
		}
		*p = s
		return nil
	}, get: func() string { return *p }}
}

// once makes a flag refuse a second value that differs from the first.
func once(f field, remedy string) field {
	set, first, given := f.set, "", false
	f.set = func(s string) error {
		if given && s != first {
			return fmt.Errorf("given twice, as %q and %q: %s", first, s, remedy)
		}
		first, given = s, true
		return set(s)
	}
	return f
}

// intField is a decimal number from lo to hi.
func intField(p *int, lo, hi int) field {
	return field{shape: shapeInt, set: func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < lo || n > hi {
			return wants(s, fmt.Sprintf("a number from %d to %d", lo, hi))
		}
		*p = n
		return nil
	}, get: func() string { return strconv.Itoa(*p) }}
}

// countField is a number from lo to hi that may be left out, which is 0.
func countField(p *int, lo, hi int) field {
	f := intField(p, lo, hi)
	f.shape = shapeNumber
	return f
}

// modeField is the permissions of a file.
func modeField(p *fs.FileMode) field {
	return field{shape: shapeText, set: func(s string) error {
		n, err := strconv.ParseUint(s, 8, 32)
		if err == nil && n == 0 {
			return wants(s, `permissions that let somebody write to it, e.g. "0600" for the daemon's user alone`)
		}
		if err != nil || n > 0o777 {
			return wants(s, `permissions in octal notation, e.g. "0660" or "0666"`)
		}
		*p = fs.FileMode(n)
		return nil
	}, get: func() string { return fmt.Sprintf("%#o", uint32(*p)) }}
}

func boolField(p *bool) field {
	return field{shape: shapeBool, set: func(s string) error {
		b, err := strconv.ParseBool(s)
		if err != nil {
			return wants(s, "true or false")
		}
		*p = b
		return nil
	}, get: func() string { return strconv.FormatBool(*p) }}
}

// durationField is a time from lo to hi in Go's notation.
func durationField(p *time.Duration, lo, hi time.Duration) field {
	return field{shape: shapeText, set: func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d < lo || d > hi {
			return wants(s, fmt.Sprintf("a time from %s to %s, e.g. \"50us\", \"10ms\" or \"5s\"", round(lo),
				round(hi)))
		}
		*p = d
		return nil
	}, get: func() string { return p.String() }}
}

// round is a time without the minutes and seconds that it does not have.
func round(d time.Duration) string {
	text := d.String()
	for _, none := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, none) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// choice is a value with a name.
type choice[T comparable] struct {
	name  string
	value T
}

func choiceField[T comparable](p *T, choices []choice[T]) field {
	var names, words []string
	for _, c := range choices {
		names, words = append(names, strconv.Quote(c.name)), append(words, c.name)
	}
	last := len(names) - 1
	want := strings.Join(names[:last], ", ") + " or " + names[last]
	return field{shape: shapeText, set: func(s string) error {
		i := slices.IndexFunc(choices, func(c choice[T]) bool { return c.name == s })
		if i < 0 {
			return unlike(s, tell.DidYouMean(s, words), want)
		}
		*p = choices[i].value
		return nil
	}, get: func() string {
		i := slices.IndexFunc(choices, func(c choice[T]) bool { return c.value == *p })
		return choices[i].name
	}, wants: want}
}

// copyModes are the modes of --copy.
var copyModes = []choice[xsk.Mode]{{"auto", xsk.Auto}, {"copy", xsk.Copy}, {"zero-copy", xsk.ZeroCopy}}

// xdpModes are the modes of --xdp.
var xdpModes = []choice[bpf.Mode]{{"auto", bpf.Auto}, {"native", bpf.Native}, {"generic", bpf.Generic},
	{"any", bpf.Any}}

// vlanField is whose frames are taken.
func vlanField(p *bpf.VLANPolicy) field {
	return field{shape: shapeNumber, set: func(s string) error {
		v, err := bpf.ParseVLAN(s)
		if err != nil {
			return wants(s, fmt.Sprintf(`"untagged", "any" or the id of a VLAN, from 1 to %d`, bpf.MaxVLAN))
		}
		*p = v
		return nil
	}, get: func() string { return p.String() }}
}

// transports are the choices of --transport.
var transports = []choice[udpnode.Transport]{{"xdp", udpnode.XDP}, {"udp", udpnode.UDP}, {"auto", udpnode.Auto}}

// coresField is a list of CPU numbers, separated by commas.
func coresField(p *[]int) field {
	const most = 1<<10 - 1 // what sched_setaffinity(2) takes in one cpu_set_t
	return field{shape: shapeInts, set: func(s string) error {
		var cores []int
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.TrimSpace(part); part == "" && s == "" {
				break
			}
			n, err := strconv.Atoi(part)
			if from, to, is := strings.Cut(part, "-"); is && from != "" {
				return wants(part, fmt.Sprintf("the number of each CPU, with commas, e.g. %s,%s", from, to))
			}
			if err != nil || n < 0 || n > most {
				return wants(part, fmt.Sprintf("CPU numbers from 0 to %d, e.g. 2,3", most))
			}
			cores = append(cores, n)
		}
		*p = cores
		return nil
	}, get: func() string {
		var parts []string
		for _, n := range *p {
			parts = append(parts, strconv.Itoa(n))
		}
		return strings.Join(parts, ",")
	}}
}

// units of sizes, the greatest first.
var units = []choice[int]{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// beyond are units that no size can have.
var beyond = []choice[int]{{"PiB", 1 << 50}, {"EiB", 1 << 60}}

// pagesField is a sizeField for the memory of regions, which are whole pages.
func pagesField(p *int) field {
	f, page := sizeField(p), os.Getpagesize()
	return field{shape: f.shape, get: f.get, set: func(s string) error {
		n := 0
		if err := sizeField(&n).Set(s); err != nil {
			return err
		}
		if n < page {
			return wants(s, fmt.Sprintf("at least a page, which is %d bytes: regions take whole pages", page))
		}
		*p = n
		return nil
	}}
}

// sizeField is a number of bytes above 0, or of KiB, MiB, GiB or TiB.
func sizeField(p *int) field {
	const most = 1 << 46 // bytes; beyond any machine, and far from overflow
	return field{shape: shapeNumber, set: func(s string) error {
		number, unit := s, 1
		for _, u := range slices.Concat(units, beyond) {
			if n, ok := strings.CutSuffix(s, u.name); ok {
				number, unit = strings.TrimSpace(n), u.value
			}
		}
		n, err := strconv.Atoi(number)
		switch {
		case err == nil && n > most/unit, errors.Is(err, strconv.ErrRange) && !strings.HasPrefix(s, "-"):
			return wants(s, "at most 64TiB")
		case err == nil && n == 0:
			return wants(s, "more than 0 bytes")
		case err != nil || n < 0:
			return unlike(s, tell.LikeSize(s),
				`bytes, e.g. 65536, or a number of KiB, MiB, GiB or TiB (powers of 1024), e.g. "64KiB"`)
		}
		*p = n * unit
		return nil
	}, get: func() string {
		for _, u := range units {
			if *p > 0 && *p%u.value == 0 {
				return strconv.Itoa(*p/u.value) + u.name
			}
		}
		return strconv.Itoa(*p)
	}}
}

// keyField is a 64-bit number, hexadecimal with 0x or decimal.
func keyField(p **uint64) field {
	return field{shape: shapeNumber, set: func(s string) error {
		n, err := strconv.ParseUint(s, 10, 64)
		if digits, hex := strings.CutPrefix(s, "0x"); hex {
			n, err = strconv.ParseUint(digits, 16, 64)
		}
		if errors.Is(err, strconv.ErrRange) {
			return wants(s, fmt.Sprintf("at most 64 bits: %#x", uint64(math.MaxUint64)))
		}
		if err != nil {
			return wants(s, `a key, e.g. "0xc0ffee" or 12648430`)
		}
		*p = &n
		return nil
	}, get: func() string {
		if *p == nil {
			return ""
		}
		return fmt.Sprintf("%#x", **p)
	}}
}
