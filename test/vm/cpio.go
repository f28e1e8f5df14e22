// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"io"
	"math"
	"path"
	"strings"
)

// The file types of an archive entry's mode, as in inode(7).
const (
	modeDir     = 0o040000
	modeFile    = 0o100000
	modeSymlink = 0o120000
)

// archive writes an initramfs in the "newc" format of cpio(5); the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst describes it.
type archive struct {
	w    io.Writer
	at   int64 // bytes written
	made map[string]bool
	err  error // the first one; nothing is written after it
}

func newArchive(w io.Writer) *archive { return &archive{w: w, made: map[string]bool{}} }

func (a *archive) write(b []byte) {
	if a.err == nil {
		var n int
		n, a.err = a.w.Write(b)
		a.at += int64(n)
	}
}

// pad fills up to a multiple of four bytes.
func (a *archive) pad() { a.write(make([]byte, -a.at&3)) }

// entry writes one file, named without a leading slash.
func (a *archive) entry(name string, mode uint32, data []byte) {
	if uint64(len(data)) > math.MaxUint32 {
		a.err = fmt.Errorf("%s: %d bytes are too much for an initramfs", name, len(data))
		return
	}
	inode := len(a.made) + 1
	a.made[name] = true
	header := []byte("070701")
	for _, v := range []int{inode, int(mode), 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0} {
		header = fmt.Appendf(header, "%08x", v)
	}
	a.write(append(append(header, name...), 0))
	a.pad()
	a.write(data)
	a.pad()
}

// parents makes the missing directories above a file.
func (a *archive) parents(name string) {
	for i := range name {
		if name[i] == '/' && !a.made[name[:i]] {
			a.entry(name[:i], modeDir|0o755, nil)
		}
	}
}

// file adds a file with its permissions; a second of the same name is an error.
func (a *archive) file(name string, perm uint32, data []byte) {
	a.add(name, modeFile|perm, data)
}

// symlink adds a symbolic link.
func (a *archive) symlink(name, target string) { a.add(name, modeSymlink|0o777, []byte(target)) }

// dir adds an empty directory.
func (a *archive) dir(name string) {
	if !a.made[path.Clean(strings.TrimPrefix(name, "/"))] {
		a.add(name, modeDir|0o755, nil)
	}
}

func (a *archive) add(name string, mode uint32, data []byte) {
	name = path.Clean(strings.TrimPrefix(name, "/"))
	if a.made[name] {
		if a.err == nil {
			a.err = fmt.Errorf("initramfs: %s is there twice", name)
		}
		return
	}
	a.parents(name)
	a.entry(name, mode, data)
}

// close ends the archive.
func (a *archive) close() error {
	a.entry("TRAILER!!!", 0, nil)
	return a.err
}
