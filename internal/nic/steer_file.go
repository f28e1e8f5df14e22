// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// before is the file of a [Steering].
type before struct {
	Version   int      `json:"version"`
	Interface string   `json:"interface"` // its name then
	NIC       Identity `json:"nic"`
	Queues    int      `json:"queues"` // in use
	UDP       bool     `json:"udp"`    // has to be steered, too
	Table     []uint32 `json:"table"`  // as it was; empty if there was none
	Default   bool     `json:"default"`
	Set       []uint32 `json:"set"`    // as it was to be; as long as Table
	Ruled     bool     `json:"ruled"`  // the driver has rules
	Added     []Rule   `json:"added"`  // those that were to be added
	Places    []uint32 `json:"places"` // of the rules that there were
}

// fileVersion is the version of the file.
const fileVersion = 2

// mostState bounds the length of a file, bytes.
const mostState = 1 << 20

// SteerSuffix ends the names of such files.
const SteerSuffix = ".steer"

// load reads a file that this user wrote, and nobody else could write.
func load(path string) (*before, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.Mode&unix.S_IFMT != unix.S_IFREG || int(s.Uid) != os.Geteuid() || s.Mode&0o022 != 0 {
		return nil, fmt.Errorf("%s: %w: owner %d, mode %o: want a file of user %d that no other can write", path,
			errNotOurs, s.Uid, s.Mode, os.Geteuid())
	}
	text, err := io.ReadAll(io.LimitReader(f, mostState))
	if err != nil {
		return nil, err
	}
	b := &before{}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(b); err != nil {
		return nil, fmt.Errorf("%s: damaged: %w", path, err)
	}
	if b.Version != fileVersion {
		return nil, fmt.Errorf("%s: of version %d, by another release: want %d", path, b.Version, fileVersion)
	}
	if _, err := d.Token(); err != io.EOF || len(b.Set) != len(b.Table) || b.Queues < 1 || b.NIC.Boot == "" {
		return nil, fmt.Errorf("%s: damaged: it is not a whole record", path)
	}
	return b, nil
}

var errNotOurs = errors.New("somebody else's")

// save writes the file in one step: there is never half of it. It is not synced, for it
// is for the next process and not for the next boot, after which the NIC has its own
// settings.
func (b *before) save(path string) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // through nobody's link
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return os.Rename(next, path)
}

// others are the files beside path that are about the same NIC: it had another name then,
// or another control socket.
func others(path string, id *Identity) (paths []string) {
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"+SteerSuffix))
	for _, p := range found {
		if b, err := load(p); p != path && err == nil && b.NIC.is(id) {
			paths = append(paths, p)
		}
	}
	return paths
}
