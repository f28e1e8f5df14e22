// SPDX-License-Identifier: Apache-2.0

//go:build linux

package trust

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// What an authorization key in a file may be, bytes: fewer can be found by trial.
const (
	leastKey = 16
	mostKey  = 64
)

// Key reads an authorization key from a file that users without a right of their own
// cannot read. A newline at the end is not part of the key. No error tells what is in the
// file. If there is none, the caller adds the remedy to an error that wraps
// fs.ErrNotExist.
func Key(path string) ([]byte, error) {
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: run as a user who may read it, or name another file", err)
	case err != nil:
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file: want one with the key in it", path)
	case info.Mode().Perm()&0o007 != 0:
		return nil, fmt.Errorf("%s has mode %#o: want a file that others cannot use (chmod o= %s)", path,
			info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, mostKey+2))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	key := bytes.TrimSuffix(text, []byte("\n"))
	has := ""
	switch {
	case len(key) > mostKey: // how many more was not read
		has = fmt.Sprintf("more than %d bytes", mostKey)
	case len(key) < leastKey:
		has = fmt.Sprintf("fewer than %d bytes", leastKey)
	default:
		return key, nil
	}
	return nil, fmt.Errorf("%s has %s: want %d to %d, with or without a newline: name the file with the region's key",
		path, has, leastKey, mostKey)
}
