// SPDX-License-Identifier: Apache-2.0

package errno

import (
	"errors"
	"fmt"
	"strings"
)

// prefix begins the texts of errors of public packages.
const prefix = "xdpfab: "

// inner takes the prefix from errors within a text, and not from a path that ends in it.
var inner = strings.NewReplacer(" "+prefix, " ", "\n"+prefix, "\n", "("+prefix, "(")

// line is an error whose text is one line, with the prefix at its beginning alone.
type line struct{ error }

// Line is fmt.Errorf for words around errors that have the prefix themselves, or several
// lines: a log has one line for an error. The result has the prefix if the format begins
// with it.
func Line(format string, args ...any) error { return &line{fmt.Errorf(format, args...)} }

func (l *line) Error() string {
	text, prefixed := strings.CutPrefix(l.error.Error(), prefix)
	text = strings.ReplaceAll(inner.Replace(strings.TrimPrefix(text, prefix)), "\n", "; ")
	if prefixed {
		return prefix + text
	}
	return text
}

// Unwrap returns the errors that the text wraps.
func (l *line) Unwrap() error { return l.error }

// Join is errors.Join in one line.
func Join(errs ...error) error {
	switch err := errors.Join(errs...); many := err.(type) {
	case interface{ Unwrap() []error }:
		if all := many.Unwrap(); len(all) == 1 {
			return all[0]
		}
		return &line{err}
	default:
		return err
	}
}
