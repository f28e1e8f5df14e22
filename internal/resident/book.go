// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cilium/ebpf"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// User space alone writes down what the next process has to know and the program does
// not: texts in maps of their own, in the folder of the state.
const (
	nodeMap    = "node"    // one entry: Node
	recordsMap = "records" // by session id: TargetParams.Memo
	namesMap   = "names"   // by key of a region: Name
)

var bookMaps = []string{nodeMap, recordsMap, namesMap}

// bookText is the room for a text, in bytes.
const bookText = 1024

// Node is what the next process takes over of the node itself.
type Node struct {
	Life      uint64 // see engine.Config
	MAC       wire.MAC
	Interface string
	UDP       bool
	Salt      []byte // of Executor.Digest; Pin fills it in
}

// Fits reports an error if what was left cannot go on at an interface as it is now.
func (n Node) Fits(name string, mac wire.MAC, udp bool) error {
	switch {
	case n.MAC != mac:
		return fmt.Errorf("it is of address %v, and %s has %v now; to go on, `ip link set dev %s address %v`", n.MAC,
			name, mac, name, n.MAC)
	case n.UDP && !udp:
		return errors.New(
			"it is of an interface with UDP; to go on, open it so (xdpfabd --udp, no DomainAttr.EthernetOnly)")
	}
	return nil
}

// Name names the memory that a region registers, and how.
type Name struct {
	Memory  string
	Name    string `json:",omitempty"` // in the catalogue
	Virtual bool   `json:",omitempty"`
}

// book is what is written down in a folder. A nil book takes everything and has nothing.
type book struct {
	at   string
	maps map[string]*ebpf.Map
}

// newBook makes an empty book for as many sessions and regions as the executor has.
func (x *Executor) newBook(at string) (*book, error) {
	b := &book{at: at, maps: map[string]*ebpf.Map{}}
	for _, s := range []ebpf.MapSpec{
		{Name: nodeMap, Type: ebpf.Array, KeySize: 4, MaxEntries: 1},
		// some of them for sessions that are gone
		{Name: recordsMap, Type: ebpf.Hash, KeySize: 4, MaxEntries: 2 * x.objects.Sessions.MaxEntries()},
		{Name: namesMap, Type: ebpf.Hash, KeySize: 8, MaxEntries: 2 * x.objects.Memories.MaxEntries()},
	} {
		s.ValueSize = bookText
		m, err := ebpf.NewMap(&s)
		if err == nil {
			b.maps[s.Name] = m
			err = m.Pin(filepath.Join(at, s.Name))
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("resident: map %s: %w", s.Name, err), b.close())
		}
	}
	return b, nil
}

// openBook opens the book of a folder.
func openBook(at string, open opener) (*book, error) {
	b := &book{at: at, maps: map[string]*ebpf.Map{}}
	for _, name := range bookMaps {
		m, err := open(name)
		if err == nil {
			b.maps[name] = m
			if m.ValueSize() != bookText {
				err = fmt.Errorf("values of %d bytes, want %d", m.ValueSize(), bookText)
			}
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("resident: the state in %s: %s: %w", at, name, err), b.close())
		}
	}
	return b, nil
}

func (b *book) close() error {
	if b == nil {
		return nil
	}
	var errs []error
	for _, m := range b.maps {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// write records a text.
func (b *book) write(name string, key any, text []byte) error {
	if b == nil {
		return nil
	}
	if len(text) > bookText {
		return fmt.Errorf("resident: writing down %d bytes in %s: want at most %d", len(text), name, bookText)
	}
	var v [bookText]byte
	copy(v[:], text)
	if err := b.maps[name].Put(key, v[:]); err != nil {
		return fmt.Errorf("resident: writing to %s: %w", name, err)
	}
	return nil
}

// read returns a text, or nil.
func (b *book) read(name string, key any) []byte {
	if b == nil {
		return nil
	}
	var v []byte
	if err := b.maps[name].Lookup(key, &v); err != nil {
		return nil
	}
	return bytes.TrimRight(v, "\x00")
}

// erase drops a text, if there is one.
func (b *book) erase(name string, key any) {
	if b != nil {
		_ = b.maps[name].Delete(key) // it fails if there is none
	}
}

// each calls f for every key of a map whose keys are numbers.
func each[K uint32 | uint64](b *book, name string, f func(K)) error {
	if b == nil {
		return nil
	}
	var keys []K
	var key K
	var v []byte
	all := b.maps[name].Iterate()
	for all.Next(&key, &v) {
		keys = append(keys, key)
	}
	if err := all.Err(); err != nil {
		return fmt.Errorf("resident: reading %s: %w", name, err)
	}
	for _, k := range keys {
		f(k)
	}
	return nil
}

// nameOf returns what is written down of a region.
func (b *book) nameOf(key uint64) (n Name) {
	_ = json.Unmarshal(b.read(namesMap, key), &n)
	return n
}

// saltLen is the length of the salt of digests, bytes.
const saltLen = 16

func newSalt() []byte {
	b := make([]byte, saltLen)
	_, _ = rand.Read(b) // never fails
	return b
}

// Digest is what the state has for an authorization key: the same for the same key, in
// every process that has the state. It is 0 for none.
func (x *Executor) Digest(k *session.Key) uint64 { return k.Digest(x.salt) }

// Node returns what the process before has left of the node.
func (x *Executor) Node() Node { return x.node }

// NoteUDP writes down whether sessions may be over UDP. If so, the next process has to
// serve UDP, too.
func (x *Executor) NoteUDP(is bool) error {
	x.node.UDP = is
	return x.book.writeNode(&x.node)
}

// writeNode writes down what the next process has to know of the node.
func (b *book) writeNode(n *Node) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return b.write(nodeMap, uint32(0), text)
}

// readNode reads what is written down of the node.
func (b *book) readNode() (n Node, err error) {
	if err = json.Unmarshal(b.read(nodeMap, uint32(0)), &n); err == nil && (n.Life == 0 || len(n.Salt) != saltLen) {
		err = errors.New("incomplete")
	}
	if err != nil {
		err = fmt.Errorf("resident: the state in %s: what it says of the node: %w", b.at, err)
	}
	return n, err
}
