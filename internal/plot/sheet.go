// SPDX-License-Identifier: Apache-2.0

// Package plot draws diagrams as SVG: lines, points and bars on linear and
// logarithmic axes. It knows nothing of their contents.
package plot

import (
	"bytes"
	"fmt"
	"html"
)

// The colours, which readers with colour blindness can tell apart too.
const (
	Blue   = "#0063a6"
	Orange = "#d95f02"
	Green  = "#007a5a"
	Red    = "#b3002d"
	Grey   = "#777777"
	Black  = "#000000"

	gridColour = "#e4e4e4"
)

// The position of a text relative to its place.
const (
	Start  = "start"
	Middle = "middle"
	End    = "end"
)

// Sheet is a page. Places on it are in pixels from the upper left corner.
type Sheet struct{ b bytes.Buffer }

// NewSheet begins a page.
func NewSheet(width, height int) *Sheet {
	s := &Sheet{}
	fmt.Fprintf(&s.b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="12">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&s.b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	return s
}

// End completes the page and returns it.
func (s *Sheet) End() []byte {
	s.b.WriteString("</svg>\n")
	return s.b.Bytes()
}

// Text writes a line.
func (s *Sheet) Text(x, y float64, size int, anchor, colour, text string) {
	fmt.Fprintf(&s.b, `<text x="%.1f" y="%.1f" font-size="%d" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, size,
		anchor, colour, html.EscapeString(text))
}

// upright writes a line from the bottom to the top.
func (s *Sheet) upright(x, y float64, size int, anchor, colour, text string) {
	fmt.Fprintf(&s.b,
		`<text transform="translate(%.1f %.1f) rotate(-90)" font-size="%d" text-anchor="%s" fill="%s">%s</text>`+"\n",
		x, y, size, anchor, colour, html.EscapeString(text))
}

// stroke draws a straight line; more holds further attributes.
func (s *Sheet) stroke(x1, y1, x2, y2 float64, colour, more string) {
	fmt.Fprintf(&s.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" %s/>`+"\n", x1, y1, x2, y2,
		colour, more)
}

// bar draws a filled rectangle.
func (s *Sheet) bar(x, y, width, height float64, colour string) {
	fmt.Fprintf(&s.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, y, max(width, 0),
		height, colour)
}

// frame draws an empty rectangle.
func (s *Sheet) frame(b Box) {
	fmt.Fprintf(&s.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="none" stroke="%s"/>`+"\n", b.X, b.Y,
		b.W, b.H, Black)
}

// Box is a place on a sheet.
type Box struct{ X, Y, W, H float64 }
