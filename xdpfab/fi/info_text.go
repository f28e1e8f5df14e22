// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"reflect"
	"strings"
)

// String returns every field on a line of its own, under the names of libfabric
// (fi_tostr of FI_TYPE_INFO).
func (i *Info) String() string {
	var b strings.Builder
	b.WriteString("fi_info:\n")
	writeFields(&b, "    ", reflect.ValueOf(*i))
	return b.String()
}

// writeFields writes the fields of a structure, those of structures in it further in.
func writeFields(b *strings.Builder, indent string, v reflect.Value) {
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		switch f := v.Field(i); {
		case name == "-":
		case f.Kind() == reflect.Struct:
			fmt.Fprintf(b, "%s%s:\n", indent, name)
			writeFields(b, indent+"    ", f)
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.String:
			fmt.Fprintf(b, "%s%s: [%s]\n", indent, name, strings.Join(f.Interface().([]string), "; "))
		default:
			fmt.Fprintf(b, "%s%s: %v\n", indent, name, f.Interface())
		}
	}
}
