// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// ReadStruct copies a value of a fixed size from a peer's region, from offset bytes
// behind its beginning on, by one Peer.Read: a struct or an array of numbers, bools, and
// further structs and arrays. In the region it lies by the rules of [encoding/binary]:
// little-endian, the fields one behind the other, without padding. Fields of the name _
// are left out of the copy, and hold the place of padding.
//
// A field is never torn if it lies within one word of 8 bytes, at a multiple of 8 from an
// aligned beginning; the struct as a whole can be. Where others write it meanwhile, a
// version number, read by a [Remote] before and after, tells.
func ReadStruct[T any](ctx context.Context, p *Peer, r RemoteRegion, offset uint64) (v T, err error) {
	size, err := sizeOf(v)
	if err != nil {
		return v, err
	}
	b := make([]byte, size)
	if err := p.Read(ctx, r, offset, b); err != nil {
		return v, later(err, decoded[T])
	}
	return decoded[T](b), nil
}

// decoded returns the value that bytes hold, of a type that sizeOf took and of its size.
func decoded[T any](b []byte) (v T) {
	_, _ = binary.Decode(b, binary.LittleEndian, &v)
	return v
}

// WriteStruct copies a value to a peer's region, as ReadStruct reads it, by one
// Peer.Write. It writes zeros for fields of the name _.
func WriteStruct[T any](ctx context.Context, p *Peer, r RemoteRegion, offset uint64, v T) error {
	size, err := sizeOf(v)
	if err != nil {
		return err
	}
	b, err := binary.Append(make([]byte, 0, size), binary.LittleEndian, v)
	if err != nil {
		return fmt.Errorf("xdpfab: %T: %w", v, err)
	}
	return p.Write(ctx, r, offset, b)
}

// sizeOf returns how many bytes a value takes, or refuses its type.
func sizeOf[T any](v T) (int, error) {
	t := reflect.TypeFor[T]()
	if why := misfit(t, "", true); why != "" {
		return 0, errno.Unsent(errno.Refuse(ErrNotImplemented, "xdpfab: %v as a struct in a region: %s", t, why))
	}
	return binary.Size(v), nil
}

// misfit says what keeps package binary from copying a field of a struct, or an element
// of an array, and what is wanted; it is empty if nothing does. at is the field's path
// from the type that the program gave, empty for that type itself. set is whether binary
// sets the field: it skips those of the name _.
func misfit(t reflect.Type, at string, set bool) string {
	field := "it"
	if at != "" {
		field = "field " + at
	}
	switch k := t.Kind(); k {
	case reflect.Bool, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16,
		reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return ""
	case reflect.Array:
		return misfit(t.Elem(), at, set)
	case reflect.Struct:
		for f := range t.Fields() {
			path, sets := strings.TrimPrefix(at+"."+f.Name, "."), set && f.Name != "_"
			if sets && !f.IsExported() {
				return "field " + path + " is not exported: begin its name with a capital"
			}
			if why := misfit(f.Type, path, sets); why != "" {
				return why
			}
		}
		return ""
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		return fmt.Sprintf("%s is of kind %v, whose size is that of the machine: want one of a fixed size, such as "+
			"%v64", field, k, strings.TrimSuffix(k.String(), "ptr"))
	default:
		return fmt.Sprintf("%s is of kind %v, which lies elsewhere in memory: want numbers, bools, arrays and structs",
			field, k)
	}
}
