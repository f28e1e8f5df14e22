// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"encoding/binary"
	"fmt"
	"reflect"

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
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Interface: // which binary.Size looks into
	default:
		if n := binary.Size(v); n >= 0 && exported(t) {
			return n, nil
		}
	}
	return 0, errno.Unsent(errno.Refuse(ErrNotImplemented,
		"xdpfab: %v as a struct in a region: want a struct or an array whose fields are exported "+
			"and have a fixed size, such as int64 in place of int, without pointers, strings, slices, maps and "+
			"interfaces", t))
}

// exported reports whether package binary may set all fields of a type, but for those of
// the name _.
func exported(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return exported(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if f.Name != "_" && (!f.IsExported() || !exported(f.Type)) {
				return false
			}
		}
	}
	return true
}
