// SPDX-License-Identifier: Apache-2.0

package tell

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Longest is the longest error in one line, and full the width of the lines of a longer
// one, in characters.
const (
	Longest = 160
	full    = 110
)

// short is the longest beginning that has no line of its own, in characters: the name of
// a program.
const short = 10

// indent stands before the lines of an error but for the first.
const indent = "  "

// Fold breaks an error that is too long for a line. What was wrong, what was expected and
// the remedy are apart by colons and semicolons: lines end there, or, within a longer
// part, between words. A command in backquotes and a text in quotes stay whole, to be
// copied.
func Fold(text string) string {
	var folded []string
	for line := range strings.SplitSeq(text, "\n") {
		folded = append(folded, fold(line))
	}
	return strings.Join(folded, "\n")
}

// item begins one of several causes, which has a line of its own.
var item = regexp.MustCompile(`^\(\d\) `)

func fold(line string) string {
	if utf8.RuneCountInString(line) <= Longest {
		return line
	}
	var b strings.Builder
	width := 0
	put := func(part string, apart bool) {
		n := utf8.RuneCountInString(part)
		switch {
		case width == 0:
		case apart || width+n > full:
			b.WriteString("\n" + indent)
			width = len(indent)
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(part)
		width += n
	}
	for _, part := range words(line, ":;") {
		n, apart := utf8.RuneCountInString(part), item.MatchString(part)
		alone := width > 0 && width <= short && width+1+n > full
		if n <= full-len(indent) && (!alone || apart) {
			put(part, apart)
			continue
		}
		for i, word := range words(part, "") {
			put(word, i == 0 && apart)
		}
	}
	return b.String()
}

// words splits a line at the spaces that are in no quotes: those behind one of the marks,
// or all if there are none.
func words(line, marks string) (all []string) {
	var quote byte
	begin := 0
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '`' || c == '"':
			if strings.IndexByte(line[i+1:], c) >= 0 {
				quote = c
			}
		case c == ' ' && i > begin && (marks == "" || strings.IndexByte(marks, line[i-1]) >= 0):
			all = append(all, line[begin:i])
			begin = i + 1
		}
	}
	return append(all, line[begin:])
}
