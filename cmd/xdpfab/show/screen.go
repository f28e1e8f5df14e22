// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bytes"
	"fmt"
	"io"
)

// Screen shows one page after the other in the same place of a terminal: each line
// replaces the line that stood there, so that nothing flickers.
type Screen struct {
	Out io.Writer
	// Rows returns how many lines the terminal has; what is below them is left out. 0 if
	// that is not known.
	Rows func() int

	begun bool
}

const (
	home      = "\x1b[H"  // to the first line
	wipe      = "\x1b[2J" // erase all
	restOf    = "\x1b[K"  // erase the rest of the line
	restBelow = "\x1b[J"  // erase what is below
	// hide the cursor, and cut lines that are too long for the terminal
	hide   = "\x1b[?25l\x1b[?7l"
	unhide = "\x1b[?7h\x1b[?25h"
)

// Page shows a page.
func (s *Screen) Page(page []byte) error {
	var b bytes.Buffer
	if !s.begun {
		s.begun = true
		b.WriteString(hide + wipe)
	}
	b.WriteString(home)
	lines := bytes.Split(bytes.TrimRight(page, "\n"), []byte("\n"))
	if rows := s.Rows(); rows > 1 && len(lines) >= rows {
		hidden := len(lines) - rows + 2
		lines = append(lines[:rows-2], fmt.Appendf(nil, "… %d lines more: enlarge the window", hidden))
	}
	for _, line := range lines {
		b.Write(line)
		b.WriteString(restOf + "\n")
	}
	b.WriteString(restBelow)
	_, err := s.Out.Write(b.Bytes())
	return err
}

// End leaves the last page on the terminal.
func (s *Screen) End() error {
	if !s.begun {
		return nil
	}
	_, err := io.WriteString(s.Out, unhide)
	return err
}
