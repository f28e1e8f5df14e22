// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package trust tells whether other users can change what a path leads to.
//
// A process that has rights which others lack must not change the owner or the
// permissions of a file by its path, nor keep state there, if another user can put
// another file in its place.
package trust

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// mostLinks is how many symbolic links the kernel follows in one path.
const mostLinks = 40

// Folder returns nil if only root and this process's user can change what lies at the
// path of a folder: each folder on the way, links followed, belongs to one of them, and
// no other user can write to it, unless its sticky bit keeps others from replacing what
// is not theirs, as in /tmp. The error matches fs.ErrNotExist if the part of the path
// that exists is so.
func Folder(path string) error { return FolderOf(path, os.Geteuid()) }

// FolderOf is Folder for another user than this process's, on whose behalf it works.
func FolderOf(path string, uid int) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	at, rest := "/", path
	if err := safe(at, uid); err != nil {
		return err
	}
	for links := 0; rest != ""; {
		var name string
		if name, rest, _ = strings.Cut(rest, "/"); name == "" {
			continue
		}
		next := filepath.Join(at, name) // also for "..", since at has no link
		info, err := os.Lstat(next)
		if err != nil {
			return err
		}
		if info.Mode().Type() != fs.ModeSymlink || inProc(at) {
			if err := safe(next, uid); err != nil {
				return err
			}
			at = next
			continue
		}
		if err := owned(next, info, uid); err != nil {
			return err
		}
		target, err := os.Readlink(next)
		if err != nil {
			return err
		}
		if links++; links > mostLinks {
			return &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = target + "/" + rest
	}
	return nil
}

// inProc reports whether a folder is of proc(5). Its links lead to files, not to paths.
func inProc(path string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(path, &s) == nil && s.Type == 0x9fa0 // PROC_SUPER_MAGIC
}

// safe returns nil if only root and a user can change which files are in a folder.
func safe(path string, uid int) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	if err := owned(path, info, uid); err != nil {
		return err
	}
	if m := info.Mode(); m&0o022 != 0 && m&fs.ModeSticky == 0 {
		return fmt.Errorf("%s has mode %04o, so other users can replace what is in it: want a folder to which"+
			" only root and user %d can write (`chmod go-w %s`)",
			path, m.Perm(), uid, path)
	}
	return nil
}

// owned returns nil if a file belongs to root or to a user.
func owned(path string, info fs.FileInfo, uid int) error {
	s, ok := info.Sys().(*syscall.Stat_t)
	if ok && s.Uid != 0 && int(s.Uid) != uid {
		return fmt.Errorf("%s belongs to user %d, who can replace what is in it:"+
			" want one of root's or of user %d", path, s.Uid, uid)
	}
	return nil
}
