// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"testing"
)

func TestDecades(t *testing.T) {
	a := Decades(0.3, 40, 0)
	if a.Lo != 0.1 || a.Hi != 100 {
		t.Errorf("from %v to %v, want 0.1 to 100", a.Lo, a.Hi)
	}
	for v, want := range map[float64]float64{0.1: 0, 1: 1.0 / 3, 100: 1, 0: 0, 1000: 1} {
		if got := a.At(v); got < want-1e-6 || got > want+1e-6 {
			t.Errorf("At(%v) = %v, want %v", v, got, want)
		}
	}
	if n := len(a.Ticks()); n != 4 {
		t.Errorf("%d ticks, want 4", n)
	}
	if e := Decades(); e.Lo >= e.Hi {
		t.Errorf("axis of nothing: %+v", e)
	}
}

func TestLinearAxis(t *testing.T) {
	a := Axis{Lo: 0, Hi: 2}
	if got := a.Ticks(); len(got) != 6 || got[5] != 2 || a.At(0.5) != 0.25 || a.At(3) != 1 {
		t.Errorf("ticks %v, 0.5 at %v", got, a.At(0.5))
	}
}

func TestLabels(t *testing.T) {
	for v, want := range map[float64]string{0.1: "0.1", 0.30000000000000004: "0.3", 10: "10", 1000: "1,000", 1e7: "10,000,000"} {
		if got := label(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

// count parses a page and counts its elements.
func count(t *testing.T, page []byte) map[string]int {
	t.Helper()
	elements := map[string]int{}
	for d := xml.NewDecoder(bytes.NewReader(page)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return elements
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
		}
	}
}

// A page is XML with a mark for every point, and one in the legend.
func TestPanel(t *testing.T) {
	points := []Point{{1, 10}, {10, 20}, {100, 1000}}
	p := &Panel{Title: "a < b & c", X: Decades(1, 100), Y: Decades(10, 1000)}
	p.Line("line", Blue, points)
	p.Dots("dots", Red, points)
	p.Rings("rings", Green, points)
	p.Joined("joined", Orange, points)
	p.Limit(50, "a limit")
	s := NewSheet(400, 300)
	p.Draw(s, Box{50, 50, 300, 200})
	got := count(t, s.End())
	if got["circle"] != 3*(len(points)+1) || got["polyline"] != 2+2 || got["line"] != 3+3+1 {
		t.Errorf("%v", got)
	}
}

func TestBars(t *testing.T) {
	s := NewSheet(400, 300)
	s.Bars(Box{100, 50, 200, 200}, "bars", []Bar{{"one", Blue, 1, "1"}, {"hundred", Red, 100, "100"}})
	s.Bars(Box{100, 50, 200, 200}, "none", nil)
	if got := count(t, s.End()); got["rect"] != 1+2 || got["text"] != 1+2*2 {
		t.Errorf("%v", got)
	}
}
