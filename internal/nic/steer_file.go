// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
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

// SteerSuffix ends the names of such files.
const SteerSuffix = ".steer"

// load reads such a file.
func load(path string) (*before, error) {
	text, err := readOwn(path)
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

// others are the files next to path that are about the same NIC: it had another name
// then, or another control socket.
func others(path string, id *Identity) (paths []string) {
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"+SteerSuffix))
	for _, p := range found {
		if b, err := load(p); p != path && err == nil && b.NIC.is(id) {
			paths = append(paths, p)
		}
	}
	return paths
}
