// SPDX-License-Identifier: Apache-2.0

package tell

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// likeKey is a text that may be a key. Another one is not repeated: the file may be
// another than was meant, and a secret.
var likeKey = regexp.MustCompile(`^[\w."'-]{1,40}$`)

// Syntax is the error of a text that is no TOML, with the file, the line, the key and the
// column. Where the decoder does not know the key, the key is the text with which the
// line begins.
func Syntax(file, text string, err error) error {
	d := new(toml.DecodeError)
	if !errors.As(err, &d) {
		return fmt.Errorf("%s: %w", file, err)
	}
	row, column := d.Position()
	line := strings.TrimRight(strings.Split(text, "\n")[row-1], "\r")
	key := strings.Join(d.Key(), ".")
	before, value, _ := strings.Cut(line, "=")
	if key == "" && likeKey.MatchString(strings.TrimSpace(before)) && before != line {
		key = strings.TrimSpace(before)
	}
	if key != "" {
		key += ": "
	}
	what := strings.TrimPrefix(d.Error(), "toml: ")
	return fmt.Errorf("%s:%d: %s%s (column %d)%s", file, row, key, what, column,
		lacks(line, what, strings.TrimSpace(value)))
}

// bare is a line of TOML whose value is neither in quotes nor in brackets.
var bare = regexp.MustCompile(`^\s*([\w-]+)\s*=\s*([^"'\[{#=\s][^"#]*?)\s*(#.*)?$`)

// Bare returns the key of a line of TOML, and the value if it is none: text that has no
// quotation marks at all.
func Bare(line string) (key, value string, is bool) {
	part := bare.FindStringSubmatch(line)
	if part == nil || strings.ContainsAny(part[2], "“”„‘’«»") ||
		toml.Unmarshal([]byte(part[0]), &map[string]any{}) == nil {
		return "", "", false
	}
	return part[1], part[2], true
}

// Quotes is the error of a value that Bare found where a text is wanted.
func Quotes(key, value string) error {
	return fmt.Errorf("%s: %s: want quotes: %s = %q", key, value, key, value)
}

// lacks is what a line lacks to be TOML, to put behind the decoder's error; empty if that
// says it.
func lacks(line, what, value string) string {
	switch {
	case strings.HasPrefix(line, "\ufeff"):
		return ": the file begins with a byte order mark: save it as UTF-8 without one"
	case strings.HasPrefix(line, "\xff\xfe"), strings.HasPrefix(line, "\xfe\xff"):
		return ": the file is UTF-16: save it as UTF-8"
	case strings.Contains(what, "cannot have new lines"), strings.Contains(what, "terminated"):
		return ": want a quotation mark at the end of the text, like the one at its beginning"
	case strings.HasPrefix(what, "invalid character at start of key"):
		return ": want TOML, of lines such as key = \"value\""
	case strings.HasPrefix(what, "expected '=' after key"):
		return ": want lines such as key = \"value\""
	case strings.HasSuffix(what, "at start of value") && value == "":
		return ": want a value behind the ="
	case strings.HasSuffix(what, "at start of value") && strings.ContainsAny(value, "“”„‘’«»"):
		return ": want straight quotation marks, \" or '"
	case strings.HasSuffix(what, "is already defined"):
		return ": want it once"
	case strings.HasSuffix(what, "already exists as an array of tables"):
		return ": want two brackets: [" + strings.TrimSpace(line) + "]"
	case strings.HasPrefix(what, "expected ']'"):
		return ": want the name of a table in brackets: [" + strings.Trim(strings.TrimSpace(line), "[]") + "]"
	case strings.HasPrefix(what, "expected newline"):
		return ": want one key and value in a line"
	}
	return ""
}

// Line returns the line of a key of a TOML text, or else that of something in it, or of
// the table that it is part of; 0 if none is in the text.
func Line(text, key string) int { return LineIn(Locate(text), key) }

// LineIn is Line with the lines that Locate has found.
func LineIn(lines map[string]int, key string) int {
	for ; key != ""; key = key[:max(0, strings.LastIndexByte(key, '.'))] {
		if n := lines[key]; n > 0 {
			return n
		}
		within := 0
		for k, n := range lines {
			if strings.HasPrefix(k, key+".") && (within == 0 || n < within) {
				within = n
			}
		}
		if within > 0 {
			return within
		}
	}
	return 0
}
