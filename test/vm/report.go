// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// Event is a line of go test -json; see `go doc test2json`.
type Event struct {
	Time    *time.Time `json:",omitempty"`
	Action  string
	Package string   `json:",omitempty"`
	Test    string   `json:",omitempty"`
	Elapsed *float64 `json:",omitempty"` // seconds
	Output  string   `json:",omitempty"`

	CPU   time.Duration `json:"-"` // of the package, in QEMU; with its verdict
	Tests tally         `json:"-"` // of the package; with its verdict
}

// tally counts the tests of a package, subtests apart.
type tally struct{ all, skipped int }

// add takes an event of the package.
func (t *tally) add(e Event) {
	switch {
	case e.Test == "" || strings.Contains(e.Test, "/"):
	case e.Action == "run":
		t.all++
	case e.Action == "skip":
		t.skipped++
	}
}

// nothing reports whether there were tests, and no more was done than to skip them.
func (t tally) nothing() bool { return t.all > 0 && t.skipped == t.all }

// String is such as "tests: 7, skipped: 2".
func (t tally) String() string {
	if t.skipped == 0 {
		return fmt.Sprintf("tests: %d", t.all)
	}
	return fmt.Sprintf("tests: %d, skipped: %d", t.all, t.skipped)
}

// Format is how results are printed.
type Format int

// The formats: as go test prints them, with -v, and with -json.
const (
	Plain Format = iota
	Verbose
	JSON
)

// Report prints the results of tests as go test does; a [Table] judges them.
type Report struct {
	Out    io.Writer
	Format Format

	output map[string]*strings.Builder // of the tests of the present package, by name
}

// Event prints, or keeps for later, one event.
func (r *Report) Event(e Event) {
	switch r.Format {
	case JSON:
		if b, err := json.Marshal(e); err == nil {
			fmt.Fprintf(r.Out, "%s\n", b)
		}
	case Verbose:
		fmt.Fprint(r.Out, e.Output)
	default:
		r.plain(e)
	}
	if r.Format != JSON && e.Test == "" {
		r.verdict(e)
	}
}

// plain keeps the output of tests until one has failed.
func (r *Report) plain(e Event) {
	if r.output == nil {
		r.output = map[string]*strings.Builder{}
	}
	if r.output[e.Test] == nil {
		r.output[e.Test] = &strings.Builder{}
	}
	switch e.Action {
	case "output":
		if e.Test != "" || e.Output != "PASS\n" && e.Output != "FAIL\n" {
			r.output[e.Test].WriteString(e.Output)
		}
		return
	case "fail":
		r.unfinished(e.Test == "")
		fmt.Fprint(r.Out, withoutFrames(r.output[e.Test].String()))
	case "pass", "skip":
	default:
		return
	}
	delete(r.output, e.Test)
	if e.Test == "" {
		clear(r.output)
	}
}

// unfinished prints, at the end of a package, the output of tests without a
// verdict: they were cut off, and their output shows how far they came.
func (r *Report) unfinished(end bool) {
	for _, name := range slices.Sorted(maps.Keys(r.output)) {
		if end && name != "" {
			fmt.Fprint(r.Out, r.output[name])
		}
	}
}

// withoutFrames removes the lines that go test prints only with -v.
func withoutFrames(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "=== ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// verdict prints the last line of a package.
func (r *Report) verdict(e Event) {
	elapsed := 0.0
	if e.Elapsed != nil {
		elapsed = *e.Elapsed
	}
	word := map[string]string{"pass": "ok  ", "fail": "FAIL"}[e.Action]
	if word != "" {
		fmt.Fprintf(r.Out, "%s\t%s\t%.3fs\t(%.1fs of CPU time; %v)\n", word, e.Package, elapsed,
			e.CPU.Seconds(), e.Tests)
	}
}

// converter turns the output of a test binary into events, with the go command's
// own tool.
type converter struct {
	io.WriteCloser
	cmd  *exec.Cmd
	done sync.WaitGroup
	err  error
	last string // the package's verdict, which is held back; "" if there was none
}

// newConverter passes all events but the package's verdict to f, from another goroutine.
func newConverter(pkg string, f func(Event)) (*converter, error) {
	c := &converter{cmd: exec.Command("go", "tool", "test2json", "-t", "-p", pkg)}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.WriteCloser = in
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("go tool test2json: %w", err)
	}
	c.done.Go(func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var e Event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				c.err = fmt.Errorf("test2json: %w in %q", err, lines.Text())
			} else if e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
				c.last = e.Action
			} else {
				f(e)
			}
		}
		c.err = errors.Join(c.err, lines.Err())
		_, _ = io.Copy(io.Discard, out)
	})
	return c, nil
}

// finish waits for the end and returns the verdict: "pass", "fail", "skip", or "".
func (c *converter) finish() (string, error) {
	err := c.Close()
	c.done.Wait()
	return c.last, errors.Join(err, c.err, c.cmd.Wait())
}
