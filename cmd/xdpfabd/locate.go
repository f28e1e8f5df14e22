// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// locate returns the line, from 1, of each key in a text that is known to be
// TOML: "queues", "region[0]" for a header, "region[0].size". The TOML library
// tells lines of syntax errors only. Keys within inline tables are not listed.
func locate(text string) map[string]int {
	l := &locator{text: text, line: 1, lines: map[string]int{}, count: map[string]int{}}
	table := ""
	for l.skipBlank(); l.pos < len(l.text); l.skipBlank() {
		if l.peek() == '[' {
			table = l.header()
			continue
		}
		l.note(join(table, l.key(table)))
		l.skipValue()
	}
	return l.lines
}

// locator walks over the text. It never goes back, so it ends on any input.
type locator struct {
	text  string
	pos   int
	line  int
	lines map[string]int
	count map[string]int // elements of each array of tables so far
}

func (l *locator) peek() byte {
	if l.pos < len(l.text) {
		return l.text[l.pos]
	}
	return 0
}

// next takes a byte.
func (l *locator) next() byte {
	c := l.peek()
	if c == '\n' {
		l.line++
	}
	l.pos++
	return c
}

func (l *locator) note(path string) {
	if path != "" && l.lines[path] == 0 {
		l.lines[path] = l.line
	}
}

func join(table, key string) string {
	if table == "" || key == "" {
		return table + key
	}
	return table + "." + key
}

// skipBlank goes over white space and comments.
func (l *locator) skipBlank() {
	for l.pos < len(l.text) {
		switch l.peek() {
		case '#':
			l.skipLine()
		case ' ', '\t', '\r', '\n':
			l.next()
		default:
			return
		}
	}
}

func (l *locator) skipLine() {
	for l.pos < len(l.text) && l.peek() != '\n' {
		l.next()
	}
}

// header reads [a.b] or [[a.b]] and returns the path of the table it begins.
func (l *locator) header() string {
	l.next()
	array := l.peek() == '['
	if array {
		l.next()
	}
	path := l.key("")
	if array {
		n := l.count[path]
		l.count[path] = n + 1
		path = fmt.Sprintf("%s[%d]", path, n)
	}
	l.note(path)
	l.skipLine()
	return path
}

// key reads a key, dotted perhaps, up to = or ]. Parts that are arrays of tables
// stand for their last element.
func (l *locator) key(table string) string {
	path := ""
	for l.pos < len(l.text) {
		switch c := l.peek(); c {
		case '=', ']', '\n':
			return path
		case ' ', '\t', '\r':
			l.next()
		case '.':
			l.next()
			if n := l.count[join(table, path)]; n > 0 {
				path = fmt.Sprintf("%s[%d]", path, n-1)
			}
		case '"', '\'':
			path = join(path, l.quoted())
		default:
			from := l.pos
			for l.pos < len(l.text) && !strings.ContainsRune("=]. \t\r\n\"'", rune(l.peek())) {
				l.next()
			}
			path = join(path, l.text[from:l.pos])
		}
	}
	return path
}

// quoted reads a quoted part of a key.
func (l *locator) quoted() string {
	from := l.pos
	l.skipString()
	raw := l.text[from:min(l.pos, len(l.text))]
	if s, err := strconv.Unquote(raw); err == nil && raw[0] == '"' {
		return s
	}
	return strings.Trim(raw, `"'`)
}

// skipString goes over a string of any of the four sorts.
func (l *locator) skipString() {
	end := l.text[l.pos : l.pos+1]
	if long := strings.Repeat(end, 3); strings.HasPrefix(l.text[l.pos:], long) {
		end = long
	}
	for range len(end) {
		l.next()
	}
	for l.pos < len(l.text) && !strings.HasPrefix(l.text[l.pos:], end) {
		if l.next() == '\\' && end[0] == '"' {
			l.next()
		}
	}
	for range len(end) {
		l.next()
	}
	for len(end) == 3 && l.peek() == end[0] { // up to two more quotes belong to it
		l.next()
	}
}

// skipValue goes over = and the value, to the end of the line that it ends on.
func (l *locator) skipValue() {
	for depth := 0; l.pos < len(l.text); {
		switch l.peek() {
		case '"', '\'':
			l.skipString()
			continue
		case '#':
			l.skipLine()
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '\n':
			if depth <= 0 {
				return
			}
		}
		l.next()
	}
}
