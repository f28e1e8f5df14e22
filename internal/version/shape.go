// SPDX-License-Identifier: Apache-2.0

package version

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"strings"
)

// Shape returns a digest of all that is written for a type as JSON, and the lines that it
// is of: each type with its fields. Tests of what two builds exchange compare it, because
// a decoder passes over fields that it does not know.
func Shape(values ...any) (digest, lines string) {
	s := shape{seen: map[reflect.Type]bool{}}
	for _, v := range values {
		s.add(reflect.TypeOf(v))
	}
	text := s.text.String()
	return fmt.Sprintf("%.8x", sha256.Sum256([]byte(text))), text
}

type shape struct {
	seen map[reflect.Type]bool
	text strings.Builder
}

// add writes a type, and those that it is made of.
func (s *shape) add(t reflect.Type) {
	if s.seen[t] {
		return
	}
	s.seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		s.add(t.Elem())
	case reflect.Array:
		fmt.Fprintf(&s.text, "%v of %d\n", t, t.Len())
		s.add(t.Elem())
	case reflect.Map:
		s.add(t.Key())
		s.add(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() {
				fmt.Fprintf(&s.text, "%v.%s %v %s\n", t, f.Name, f.Type, f.Tag)
				s.add(f.Type)
			}
		}
	default:
		fmt.Fprintf(&s.text, "%v is a %v\n", t, t.Kind())
	}
}
