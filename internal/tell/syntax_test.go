// SPDX-License-Identifier: Apache-2.0

package tell

import (
	"errors"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// An error of syntax says where, and what the line lacks.
func TestSyntax(t *testing.T) {
	const quote = ": want a quotation mark at the end of the text, like the one at its beginning"
	for text, want := range map[string]string{
		"a = 1\nb = \"eth0\nc = 4\n": "f:2: b: basic strings cannot have new lines (column 10)" + quote,
		"b = 'eth0\nc = 4\n":         "f:1: b: literal strings cannot have new lines (column 10)" + quote,
		"b = \"e":                    "f:1: b: unterminated basic string (column 6)" + quote,
		"\ufeffa = 1": "f:1: invalid character at start of key: U+00EF 'ï' (column 1): the file begins with a byte order mark: " +
			"save it as UTF-8 without one",
		"MpBTYWfU7KOJXRF4qGO3UWWPsdVY6RUARHmyCbFoIxy=\n": "f:1: unexpected character U+000A at start of value (column 45): want a value behind the =",
		"a b\n":         "f:1: expected '=' after key (column 3): want lines such as key = \"value\"",
		"a = \r\n":      "f:1: a: unexpected character U+000D at start of value (column 5): want a value behind the =",
		"a = “x”\n":     "f:1: a: unexpected character U+00E2 'â' at start of value (column 5): want straight quotation marks, \" or '",
		"a = 1 b = 2":   "f:1: a: expected newline but got U+0062 'b' (column 7): want one key and value in a line",
		"[peers\na = 1": "f:1: expected ']' to close table name (column 7): want the name of a table in brackets: [peers]",
		"a = 1\na = 2":  "f:2: a: key a is already defined (column 1): want it once",
	} {
		err := toml.Unmarshal([]byte(text), &map[string]any{})
		if got := Syntax("f", text, err); got == nil || got.Error() != want {
			t.Errorf("%q: %v, want %s", text, got, want)
		}
	}
	other := errors.New("x")
	if err := Syntax("f", "", other); !errors.Is(err, other) || err.Error() != "f: x" {
		t.Errorf("another error: %v", err)
	}
}

func TestLine(t *testing.T) {
	const text = "a = 1\n[t]\nb = 2\nc.d = 3\nu = { x = 1 }\n"
	for key, want := range map[string]int{"a": 1, "t": 2, "t.b": 3, "t.c": 4, "t.c.d": 4, "t.u.x": 5, "t.none": 2, "z": 0, "": 0} {
		if got := Line(text, key); got != want {
			t.Errorf("%q is on line %d, want %d", key, got, want)
		}
	}
}
