// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// erase goes to the beginning of the line on a terminal and erases it.
const erase = "\r\x1b[K"

// barPeriod is the time between two looks of a Bar.
const barPeriod = 200 * time.Millisecond

// Bar shows how far a copy is, with the rate and the time that remains: on a terminal in
// one line, written again and again; otherwise in lines, and less often.
type Bar struct {
	Out      io.Writer
	Terminal bool
	What     string
	Total    uint64           // bytes; 0 if that is not known
	Begin    uint64           // bytes that were there before
	Now      func() time.Time // nil for the system's

	start, shown time.Time
}

// At shows that so many bytes are done, unless it has shown something a moment ago.
func (b *Bar) At(done uint64) {
	now, period := b.time(), barPeriod
	if !b.Terminal {
		period *= 5
	}
	if b.start.IsZero() {
		b.start = now
	}
	if !b.shown.IsZero() && now.Sub(b.shown) < period {
		return
	}
	b.shown = now
	if b.Terminal {
		fmt.Fprint(b.Out, erase+b.line(done, now))
		return
	}
	fmt.Fprintln(b.Out, b.line(done, now))
}

// End removes the line from a terminal.
func (b *Bar) End() {
	if b.Terminal && !b.shown.IsZero() {
		fmt.Fprint(b.Out, erase)
	}
}

func (b *Bar) time() time.Time {
	if b.Now != nil {
		return b.Now()
	}
	return time.Now()
}

func (b *Bar) line(done uint64, now time.Time) string {
	const width = 24
	rate := 0.0
	if s := now.Sub(b.start).Seconds(); s > 0 && done > b.Begin {
		rate = float64(done-b.Begin) / s
	}
	if b.Total == 0 {
		return fmt.Sprintf("%s  %s  %s/s", b.What, Size(done), Size(uint64(rate)))
	}
	share := min(float64(done)/float64(b.Total), 1)
	full := int(share * width)
	left := "-"
	if rate > 0 {
		left = time.Duration(float64(b.Total-min(done, b.Total)) / rate * 1e9).Round(time.Second).String()
	}
	return fmt.Sprintf("%s [%s%s] %3.0f %%  %s of %s  %s/s  %s left", b.What, strings.Repeat("#", full),
		strings.Repeat(".", width-full), 100*share, Size(done), Size(b.Total), Size(uint64(rate)), left)
}
