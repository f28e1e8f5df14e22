// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"bytes"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/mr"
)

// AuthKey is an authorization key (auth_key). Endpoints have a session only if both have
// the same key, or both have none; and in a session a region can be used only if it has
// the key of the session's endpoints. docs/guarantees.md says what that protects against.
// As text it is its length alone.
//
// It has at most mr.MaxAuthKey bytes. One that is not random, or has fewer than 16 bytes,
// can be found by trial from a captured handshake.
type AuthKey []byte

// ErrAuthKey means that an authorization key is not the wanted one
// (FI_EKEYREJECTED), or cannot be one.
var ErrAuthKey = errno.AuthKey

// Why this side and a peer could not agree on a key. The attribute is in brackets, since
// the commands leave it out.
var (
	errKeyWanted = fmt.Errorf("%w: %w: its endpoint has one, this endpoint none: want the same (DomainAttr.AuthKey)",
		ErrRefused, ErrAuthKey)
	errKeyUnwanted = fmt.Errorf(
		"%w: %w: its endpoint has none, this endpoint one: want none here, or the same there (DomainAttr.AuthKey)",
		ErrRefused, ErrAuthKey)
	errKeyWrong = fmt.Errorf(
		"%w: %w: its endpoint has another one than this endpoint: want the same (DomainAttr.AuthKey)",
		ErrRefused, ErrAuthKey)
	errUnproven = fmt.Errorf(
		"%w: the peer accepts, but does not prove that its endpoint has the same one: want it to (DomainAttr.AuthKey)",
		ErrAuthKey)
)

// String returns how many bytes the key has.
func (k AuthKey) String() string {
	if len(k) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d bytes", len(k))
}

// GoString is String: no formatting shows the key.
func (k AuthKey) GoString() string { return "AuthKey(" + k.String() + ")" }

// MarshalText implements encoding.TextMarshaler.
func (k AuthKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// valid reports whether there can be such a key.
func (k AuthKey) valid() bool { return len(k) <= mr.MaxAuthKey }

func (k AuthKey) check(of string) error { return node.CheckKey(k, of) }

// or returns a copy of the key, or of the other one if it is none.
func (k AuthKey) or(other AuthKey) AuthKey {
	if len(k) == 0 {
		k = other
	}
	return bytes.Clone(k)
}
