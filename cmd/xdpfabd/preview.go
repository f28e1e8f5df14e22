// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	proc "github.com/xdpfab/xdpfab/internal/process"
	"github.com/xdpfab/xdpfab/internal/tell"
)

// preview says what a start would do with what is there: the daemon that serves, what a
// former one has left, and the files of regions. It changes nothing. The start would be
// refused for what it finds, and for the error.
func (c Config) preview() (notes []string, found []problem, err error) {
	notes, found, err = c.previewLeft(c.pinFolder(slog.New(slog.DiscardHandler)))
	for i, r := range c.Regions {
		if !r.isFile() {
			continue
		}
		note, err := r.previewFile()
		if err != nil {
			found = append(found, problem{key: fmt.Sprintf("region[%d].backing", i), text: err.Error()})
		} else {
			notes = append(notes, fmt.Sprintf("region %q: %s", r.Name, note))
		}
	}
	running, others := c.previewRunning()
	found = append(found, others...)
	return slices.Concat(notes, c.sharedFiles(), running), found, errors.Join(c.fitsMachine(machineMemory()), err)
}

// fitsMachine reports an error if the regions whose memory is taken at the start need
// more bytes than the machine has.
func (c Config) fitsMachine(has int) error {
	need, names := 0, []string{}
	for _, r := range c.Regions {
		if r.Backing == backingAnonymous || r.Backing == backingResident {
			need, names = need+r.Size, append(names, r.Name)
		}
	}
	if has == 0 || need <= has {
		return nil
	}
	return fmt.Errorf("the regions in memory (%s) take %d bytes, and this machine has %d: want smaller ones, or files "+
		"(backing=/PATH)", tell.List(names, 5), need, has)
}

// previewFile says what the region would have of its file.
func (r RegionConfig) previewFile() (note string, err error) {
	var st unix.Stat_t
	err = unix.Stat(r.Backing, &st)
	page := int64(os.Getpagesize())
	switch size := int64(r.Size); {
	case errors.Is(err, fs.ErrNotExist) && size == 0:
		return "", fmt.Errorf("%s: %w; name a file that is there, or give the size of one to be made", r.Backing, err)
	case errors.Is(err, fs.ErrNotExist):
		note = fmt.Sprintf("makes the file %s, with zeros", r.Backing)
	case err != nil:
		return fmt.Sprintf("this user cannot look at its file: %s: %v", r.Backing, err), nil
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return "", fmt.Errorf("%s is not a regular file; name a regular file on a disk", r.Backing)
	case st.Size == 0 && size == 0:
		return "", fmt.Errorf("%s has 0 bytes; give the region a size, which makes the file as large", r.Backing)
	case st.Size == 0:
		note = fmt.Sprintf("makes the empty file %s longer, with zeros", r.Backing)
	case st.Size < size:
		note = fmt.Sprintf("makes the file %s longer, from %d to %d bytes, with zeros", r.Backing, st.Size, size)
	case size > 0 && st.Size > (size+page-1)/page*page:
		note = fmt.Sprintf("has the first %d of the %d bytes of the file %s", size, st.Size, r.Backing)
	default:
		note = fmt.Sprintf("goes on with the contents of the file %s", r.Backing)
	}
	at := r.Backing
	if err != nil {
		at = filepath.Dir(at)
	}
	if errors.Is(unix.Access(at, unix.W_OK), fs.ErrPermission) {
		note += fmt.Sprintf("; this user may not write to %s, and the daemon's user has to", at)
	}
	return note, r.fitsOn(filepath.Dir(r.Backing), int64(r.Size)-st.Blocks*512)
}

// sharedFiles tells of regions that have one file, by its path or by itself.
func (c Config) sharedFiles() (notes []string) {
	paths, files := map[string]string{}, map[fileID]string{}
	for _, r := range c.Regions {
		if !r.isFile() {
			continue
		}
		var st unix.Stat_t
		first, taken := paths[r.Backing]
		if unix.Stat(r.Backing, &st) == nil && !taken {
			first, taken = files[fileOf(&st)]
			files[fileOf(&st)] = r.Name
		}
		if paths[r.Backing] = r.Name; taken {
			notes = append(notes, fmt.Sprintf("region %q has the file of region %q: they are the same memory, and "+
				"operations on one change the other", r.Name, first))
		}
	}
	return notes
}

// fitsOn reports an error unless a folder is there, on a file system with so many bytes
// left.
func (r RegionConfig) fitsOn(folder string, need int64) error {
	var at unix.Statfs_t
	if err := unix.Statfs(folder, &at); errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("no folder %s for its file: make the folder, or name another file", folder)
	} else if err != nil {
		return nil // the daemon's user may see more
	}
	if at.Flags&unix.ST_RDONLY != 0 {
		return fmt.Errorf("%s is on a read-only file system: name a file on another one, or mount this one to be "+
			"written", r.Backing)
	}
	if free := int64(at.Bavail) * at.Bsize; need > free {
		return fmt.Errorf("%s needs %d more bytes, and its file system has %d left: make room, or name a file on "+
			"another one", r.Backing, need, free)
	}
	return nil
}

// previewRunning says what a daemon at the control socket means for a start, which would
// be refused for what it finds.
func (c Config) previewRunning() (notes []string, found []problem) {
	at := c.controlPath()
	if pid := listener(at); pid != 0 && missing(at) {
		return []string{fmt.Sprintf("process %d (%s) listens at the control socket %s, which was removed: a start "+
			"is refused until that process is stopped", pid, proc.Name(pid), at)}, nil
	}
	s, err := daemonAt(at)
	if errors.As(err, new(*control.SilentError)) {
		return []string{fmt.Sprintf("a start is refused, and so is a takeover: %v", err)}, nil
	}
	if err != nil {
		return nil, nil
	}
	if other := c.foreign(s); other != "" {
		return nil, []problem{{key: "control", text: other}}
	}
	const agrees = "and --takeover (`systemctl reload`) takes its place"
	takeover := agrees
	for _, is := range s.Regions {
		want := c.region(is.Name)
		switch {
		case want == nil:
			notes = append(notes, fmt.Sprintf("region %q of process %d is not in this configuration: it ends with "+
				"that process; a takeover keeps it only if `xdpfab region create` made it, or a former daemon left it",
				is.Name, s.PID))
		case want.unlike(is) != "":
			takeover = "and so is a takeover (`systemctl reload`)"
			notes = append(notes, fmt.Sprintf("region %q has %s in process %d: a takeover is refused; want the same, "+
				"or stop that process and start this one", is.Name, want.unlike(is), s.PID))
		}
	}
	if err := c.mayTakeOver(); err != nil && takeover == agrees {
		takeover = fmt.Sprintf("and so is a takeover (`systemctl reload`): %v", err)
	}
	return append([]string{fmt.Sprintf("process %d serves %s at %s: a start is refused while it runs, %s", s.PID,
		c.Interface, at, takeover)}, notes...), nil
}

// foreign says what the daemon at the control socket serves, if not this interface; empty
// otherwise.
func (c Config) foreign(s control.Status) string {
	switch {
	case s.Interface.Name != c.Interface:
		return fmt.Sprintf("process %d serves another interface, %s, at %s: give this daemon a path of its own with "+
			"--control", s.PID, s.Interface.Name, c.controlPath())
	case s.Elsewhere():
		return fmt.Sprintf("process %d serves the %s of another network namespace at %s: leave it alone, and give "+
			"this daemon a path of its own with --control", s.PID, s.Interface.Name, c.controlPath())
	}
	return ""
}

// unlike says what a region of the running daemon has for which a takeover is refused;
// empty for nothing.
func (r RegionConfig) unlike(is control.Region) string {
	backing := r.Backing
	if r.isFile() {
		backing = "file:" + backing
	}
	switch {
	case r.Size != 0 && uint64(r.Size) != is.Size, !slices.Equal(accessNames(r.Access), is.Access):
		return fmt.Sprintf("%d bytes and access %v", is.Size, is.Access)
	case backing != is.Backing:
		return "backing " + is.Backing
	case r.Key != nil && fmt.Sprintf("0x%016x", *r.Key) != is.Key:
		return "key " + is.Key
	}
	return ""
}
