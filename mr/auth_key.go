// SPDX-License-Identifier: Apache-2.0

package mr

// MaxAuthKey is the longest authorization key, bytes.
const MaxAuthKey = 64

// AuthKey is the number that a table has for an authorization key: equal keys have equal
// numbers. 0 is none.
type AuthKey uint32

// AuthKey returns the number of an authorization key. The error wraps ErrAuthKey.
func (t *Table) AuthKey(key []byte) (AuthKey, error) {
	if len(key) > MaxAuthKey {
		return 0, failed("%w: it has %d bytes, want at most %d", ErrAuthKey, len(key), MaxAuthKey)
	}
	if len(key) == 0 {
		return 0, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n, known := t.authKeys[string(key)]
	if !known {
		n = AuthKey(len(t.authKeys) + 1)
		t.authKeys[string(key)] = n
	}
	return n, nil
}

// AuthKey returns the number of the authorization key that peers need for the region.
func (r *Region) AuthKey() AuthKey { return r.auth }
