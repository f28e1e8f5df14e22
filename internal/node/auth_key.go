// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/mr"
)

// Session returns the key in the form that sessions use, nil for none.
func (n *Node) Session(k []byte) (*session.Key, error) {
	return SessionKey(n.Table, k)
}

// SessionKey returns a key of the table in the form that sessions use, nil for none.
func SessionKey(t *mr.Table, k []byte) (*session.Key, error) {
	n, err := t.AuthKey(k)
	if err != nil || n == 0 {
		return nil, err
	}
	return session.NewKey(k, uint32(n)), nil
}

// CheckKey reports why there can be no such authorization key.
func CheckKey(k []byte, of string) error {
	if len(k) <= mr.MaxAuthKey {
		return nil
	}
	return fmt.Errorf("xdpfab: %s: %w: it has %d bytes, want at most %d", of, errno.AuthKey, len(k), mr.MaxAuthKey)
}
