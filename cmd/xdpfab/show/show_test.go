// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestQuantities(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999: "999", 1500: "1.50 k", 43.12e6: "43.1 M", 2e9: "2.00 G"} {
		if got := Count(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	for ns, want := range map[int64]string{6100: "6.10 µs", 33_000: "33.0 µs", 4_313_000: "4313 µs", 20_300_000: "20.3 ms", 1.5e9: "1.50 s"} {
		if got := Duration(ns); got != want {
			t.Errorf("%d: %q, want %q", ns, got, want)
		}
	}
	for n, want := range map[uint64]string{8: "8 bytes", 4096: "4 KiB", 1536 << 20: "1.50 GiB", 3 << 20: "3 MiB", 100_000: "97.7 KiB"} {
		if got := Size(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for s, want := range map[string]uint64{"8": 8, "0x40": 64, "4KiB": 4096, "4 KiB": 4096, "3MiB": 3 << 20, "1GiB": 1 << 30, "4TiB": 4 << 40} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "KiB", "4KB", "-1", "1.5KiB", "99999999999999GiB"} {
		if n, err := ParseSize(s); err == nil || !strings.Contains(err.Error(), "want a number of bytes") {
			t.Errorf("%q: %d, %v", s, n, err)
		}
	}
}

// A bar tells the share, the rate and the time that is left, on a terminal in one line.
func TestBar(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, terminal := range []bool{true, false} {
		var out bytes.Buffer
		b := Bar{Out: &out, Terminal: terminal, What: "get", Total: 8 << 20, Begin: 2 << 20, Now: func() time.Time { return now }}
		b.At(2 << 20)
		b.At(2<<20 + 1) // too soon
		now = now.Add(2 * time.Second)
		b.At(4 << 20)
		b.End()
		text := out.String()
		if !strings.Contains(text, "get [############............]  50 %  4 MiB of 8 MiB  1 MiB/s  4s left") || strings.Count(text, "%") != 2 {
			t.Errorf("%q", text)
		}
		if lines := strings.Count(text, "\n"); terminal && (lines != 0 || !strings.HasSuffix(text, erase)) || !terminal && lines != 2 {
			t.Errorf("terminal %v: %q", terminal, text)
		}
	}
	var out bytes.Buffer
	b := Bar{Out: &out, What: "put", Now: func() time.Time { return now }}
	if b.At(4096); out.String() != "put  4 KiB  0 bytes/s\n" {
		t.Errorf("%q", out.String())
	}
}

// A page replaces the one before it line by line, and what has no room is left out.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := Screen{Out: &out, Rows: func() int { return 4 }}
	for _, page := range []string{"a\nb\n", "1\n2\n3\n4\n5\n"} {
		if err := s.Page([]byte(page)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	want := hide + wipe + home + "a" + restOf + "\nb" + restOf + "\n" + restBelow +
		home + "1" + restOf + "\n2" + restOf + "\n… 3 lines more: enlarge the window" + restOf + "\n" + restBelow + unhide
	if got := out.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
