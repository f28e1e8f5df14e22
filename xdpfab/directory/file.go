// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// pace is the time between two looks at a file.
const pace = time.Second

const (
	mostFile  = 16 << 20 // bytes of the largest file that is read
	mostWrong = 3        // lines of a file whose mistakes are told; the others are counted
)

// File is a source: a file with a line for each node, which are its name, its addresses
// with commas between them, and the names of the regions that it publishes; # begins a
// comment:
//
//	# name  addresses                    regions
//	node7   10.0.0.7,02:00:00:00:00:0b   counters scores
//
// A change of the file is noticed within a second or two. A file that cannot be read, or
// has a line that is wrong, is a failure that names the line: Open fails with it at once,
// and a Directory that is open keeps the former entries. Whoever writes the file had
// better rename a complete one into place.
func File(path string) Source { return file(path) }

type file string

func (f file) String() string { return string(f) }

// Watch implements Source.
func (f file) Watch(ctx context.Context, report func([]Node, error)) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for last, first := (state{}), true; ; first = false {
		if now := f.state(); !now.same(last) {
			last = now
			list, err := f.read()
			if err != nil && first {
				return err
			}
			report(list, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// state tells one version of a file from the next. That of a file that is not there has
// the error.
type state struct {
	info os.FileInfo
	err  error
}

func (f file) state() state {
	info, err := os.Stat(string(f))
	return state{info, err}
}

// same reports whether nothing has changed. Versions that were renamed into place differ
// as files, even if time and size are the same: file systems count milliseconds.
func (s state) same(last state) bool {
	if s.err != nil || last.err != nil || last.info == nil {
		return s.err != nil && last.err != nil && s.err.Error() == last.err.Error()
	}
	return os.SameFile(s.info, last.info) && s.info.ModTime().Equal(last.info.ModTime()) &&
		s.info.Size() == last.info.Size()
}

func (f file) read() ([]Node, error) {
	r, err := os.Open(string(f))
	if err != nil {
		return nil, fmt.Errorf("%w: want a file with lines such as \"node7 10.0.0.7 counters\"", err)
	}
	defer r.Close()
	return ReadFile(io.LimitReader(r, mostFile))
}

// ReadFile reads the text of a directory's file.
func ReadFile(r io.Reader) ([]Node, error) {
	var list []Node
	var wrong []error // of the first lines that are
	more := 0         // lines that are wrong beyond those
	lines := map[string]int{}
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 1<<20)
	for at := 1; scan.Scan(); at++ {
		text, _, _ := strings.Cut(scan.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if isTOML(words) { // as are the other lines, then
			return nil, failed("line %d: %.80q looks like TOML: want lines such as \"node7 10.0.0.7 counters\"", at,
				text)
		}
		n, err := Parse(words[0], strings.Join(words[1:], " "))
		if first := lines[n.Name]; err == nil && first != 0 {
			err = fmt.Errorf("node %s has line %d already: want one line for each node", n.Name, first)
		}
		if err != nil && len(wrong) == mostWrong {
			more++
			continue
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("line %d: %w", at, err))
			continue
		}
		lines[n.Name] = at
		list = append(list, n)
	}
	if more > 0 {
		lines := "lines"
		if more == 1 {
			lines = "line"
		}
		wrong = append(wrong, fmt.Errorf("and %d more %s: is this a directory file?", more, lines))
	}
	if err := errno.Join(append(wrong, scan.Err())...); err != nil {
		return nil, failed("%w", err)
	}
	return list, nil
}

// isTOML reports whether a line is one of TOML: somebody took this file for a
// configuration. As an entry, name = "address" would have the address =.
func isTOML(words []string) bool {
	return strings.HasPrefix(words[0], "[") || strings.Contains(words[0], "=") ||
		len(words) > 1 && strings.HasPrefix(words[1], "=")
}
