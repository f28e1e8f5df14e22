// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapHuge2MB asks mmap for pages of HugePageSize: its binary logarithm in the upper bits
// of the flags.
const mapHuge2MB = 21 << unix.MAP_HUGE_SHIFT

// Alloc returns zeroed anonymous memory of the given size in bytes (mmap(2)). The size is
// rounded up to whole pages. The error wraps ErrSize, or ErrMemory and the system's
// error.
//
// A daemon cannot map this memory: behind one, the program executes what peers do to it.
// They then cannot find it by its name, wait for its words or signal in it; [Memfd] has
// no such limits.
func Alloc(size int, o AllocOptions) (*Memory, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	flags := unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	if o.Populate {
		flags |= unix.MAP_POPULATE
	}
	if o.Huge == HugeRequire || o.Huge == HugeAuto && size >= HugePageSize {
		data, err := mmap(-1, roundUp(size, HugePageSize), flags|unix.MAP_HUGETLB|mapHuge2MB)
		if err == nil {
			return mapped(KindAnonymous, PagesHuge, -1, data), nil
		}
		if o.Huge == HugeRequire {
			return nil, failed("%w: %d bytes of reserved huge pages: %w; raise sysctl vm.nr_hugepages or use "+
				"HugeAuto", ErrMemory, size, err)
		}
	}
	// The advice has to be given before the pages exist, so populating comes
	// after it.
	data, err := mmap(-1, roundUp(size, os.Getpagesize()), flags&^unix.MAP_POPULATE)
	if err != nil {
		return nil, failed("%w: %d bytes: %w; check the memory that is free, and ulimit -v", ErrMemory, size, err)
	}
	pages := PagesSmall
	if o.Huge == HugeAuto && size >= HugePageSize && unix.Madvise(data, unix.MADV_HUGEPAGE) == nil {
		pages = PagesTransparent
	}
	m := mapped(KindAnonymous, pages, -1, data)
	if o.Populate {
		if err := populate(data); err != nil {
			_ = m.Close() // the first error is the one to return
			return nil, failed("%w: %d bytes cannot be populated: %w; check the memory that is free", ErrMemory,
				size, err)
		}
	}
	return m, nil
}

// populate makes all pages present and writable. Kernels before 5.14 do not know the
// advice; then it touches them.
func populate(data []byte) error {
	err := unix.Madvise(data, unix.MADV_POPULATE_WRITE)
	if err != unix.EINVAL {
		return err
	}
	for i := 0; i < len(data); i += os.Getpagesize() {
		data[i] = 0
	}
	return nil
}

// Memfd returns zeroed memory that other processes can map too, by its FD
// (memfd_create(2)). The name shows up in /proc only. The size in bytes is sealed: no
// process that gets the descriptor can truncate the memory while a poller uses it. The
// error wraps ErrSize, or ErrMemory and the system's error.
func Memfd(name string, size int) (*Memory, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	size = roundUp(size, os.Getpagesize())
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, failed("%w: memfd %q: %w; a name has at most 249 bytes, and the process a limit of open files "+
			"(ulimit -n)", ErrMemory, name, err)
	}
	var data []byte
	if err = unix.Ftruncate(fd, int64(size)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
	}
	if err == nil {
		data, err = mmap(fd, size, unix.MAP_SHARED)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, failed("%w: memfd %q of %d bytes: %w; check the memory that is free", ErrMemory,
			name, size, err)
	}
	return mapped(KindMemfd, PagesSmall, fd, data), nil
}

// Shared maps the memory of another process by the FD of its Memfd, all of it, if it has
// at most so many bytes; the descriptor stays the caller's. It refuses memory that the
// other process could take away, since an access would then kill this one (SIGBUS), or
// change so that a third process could not map it as this one has: all but a memfd of
// ordinary pages that is sealed against shrinking and growing. Shared seals its seals, so
// that none that forbids writing can follow. The error wraps ErrMemory or ErrSize.
func Shared(fd, most int) (*Memory, error) {
	if err := settle(fd); err != nil {
		return nil, failed("%w: %w: want a memfd of ordinary pages, sealed against shrinking and growing but not "+
			"against writing, as Memfd makes it", ErrMemory, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, failed("%w: stat: %w", ErrMemory, err)
	}
	if err := checkSize(int(st.Size)); err != nil {
		return nil, err
	}
	if st.Size > int64(most) {
		return nil, failed("%w: memory of %d bytes of another process: want at most %d", ErrSize, st.Size, most)
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, failed("%w: %w", ErrMemory, err)
	}
	data, err := mmap(own, int(st.Size), unix.MAP_SHARED)
	if err != nil {
		_ = unix.Close(own)
		return nil, failed("%w: map %d bytes of another process: %w; check the memory that is free", ErrMemory,
			st.Size, err)
	}
	return mapped(KindMemfd, PagesSmall, own, data), nil
}

// Seals of memory that two processes share: those that it must have, and those that would
// keep the next process from mapping it.
const (
	fixed   = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	guarded = unix.F_SEAL_WRITE | unix.F_SEAL_FUTURE_WRITE
)

// settle makes sure that all pages of a file stay as long as it is open, that its size
// stays, and that every holder of the descriptor can map it as this process can.
func settle(fd int) error {
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err == nil && seals&fixed == fixed && seals&unix.F_SEAL_SEAL == 0 {
		if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL); err != nil {
			return fmt.Errorf("seal the seals: %w", err)
		}
		seals, err = unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0) // the other process was free to add some until now
	}
	if err != nil {
		return fmt.Errorf("read the seals: %w", err)
	}
	if seals&fixed != fixed || seals&guarded != 0 {
		return fmt.Errorf("its seals are %#x", seals)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return fmt.Errorf("statfs: %w", err)
	}
	if fs.Type != unix.TMPFS_MAGIC {
		return fmt.Errorf("its file system is of type %#x", fs.Type)
	}
	return nil
}

// File maps the first size bytes of a file, which is created (mode 0600) or extended as
// needed, its blocks allocated; size 0 means all of an existing file. Changes reach the
// file when the kernel writes them, or by Sync. No process may truncate the file while it
// is mapped: an access beyond its end kills the process (SIGBUS, mmap(2)). The error
// wraps ErrSize, or ErrMemory and the system's error.
//
// A daemon does not map the file: behind one, the memory has the limits of that of
// [Alloc].
func File(path string, size int) (*Memory, error) {
	if size < 0 {
		return nil, checkSize(size)
	}
	fd, made, err := openFile(path, size > 0)
	if err != nil {
		return nil, failed("%w: open %s: %w; %s", ErrMemory, path, err, toOpen(err, size > 0))
	}
	data, err := mapFile(fd, path, size)
	if err != nil {
		_ = unix.Close(fd)
		if made {
			_ = unix.Unlink(path) // an empty file would be found in the place of memory
		}
		return nil, err
	}
	m := mapped(KindFile, PagesSmall, fd, data)
	m.sync = func() error { return unix.Msync(data, unix.MS_SYNC) }
	return m, nil
}

// openFile opens a file, and says whether it has made it, as it may if create is set.
func openFile(path string, create bool) (fd int, made bool, err error) {
	const flags = unix.O_RDWR | unix.O_CLOEXEC
	if !create {
		fd, err = unix.Open(path, flags, 0)
		return fd, false, err
	}
	if fd, err = unix.Open(path, flags|unix.O_CREAT|unix.O_EXCL, 0o600); err != unix.EEXIST {
		return fd, err == nil, err
	}
	fd, err = unix.Open(path, flags|unix.O_CREAT, 0o600) // also by a link to a file that is not there
	return fd, false, err
}

// toOpen is what a program can do about a file that cannot be opened, or made if create
// is set.
func toOpen(err error, create bool) string {
	switch {
	case err == unix.ENOENT && create:
		return "make its folder, or name another file"
	case err == unix.ENOENT:
		return "name a file that is there, or give the size of one to be made"
	case err == unix.EISDIR:
		return "name a file in it"
	case err == unix.ENOTDIR:
		return "name a file in a folder"
	case err == unix.EROFS:
		return "name a file on another file system, or mount this one to be written"
	case err == unix.ENOSPC || err == unix.EDQUOT:
		return "check the space on the device, or name a file on another one"
	case err == unix.EACCES || err == unix.EPERM:
		return fmt.Sprintf("user %d must be able to read and write it", unix.Getuid())
	}
	return "name a regular file on a disk"
}

// mapFile brings the open file to at least size bytes and maps it.
func mapFile(fd int, path string, size int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, failed("%w: stat %s: %w", ErrMemory, path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, failed("%w: %s is not a regular file; name a regular file on a disk", ErrMemory, path)
	}
	if size == 0 {
		size = int(st.Size)
		if err := checkSize(size); err != nil {
			return nil, fmt.Errorf("%w; this is the size of %s; give it a size, which makes the file as large", err,
				path)
		}
	}
	// An operation that writes to a missing block could get a SIGBUS, so blocks are
	// allocated now: beyond the end of the file, and in its holes.
	err := unix.Fallocate(fd, 0, 0, int64(size))
	if err == unix.EOPNOTSUPP {
		err = unix.Ftruncate(fd, max(int64(size), st.Size))
	}
	if err != nil {
		return nil,
			failed("%w: extend %s from %d to %d bytes, holes filled: %w; check the space on the device, and ulimit -f",
				ErrMemory, path, st.Size, size, err)
	}
	data, err := mmap(fd, size, unix.MAP_SHARED)
	if err != nil {
		return nil, failed("%w: map %d bytes of %s: %w; check ulimit -v, and name a file on a disk", ErrMemory, size,
			path, err)
	}
	return data, nil
}

func mmap(fd, size, flags int) ([]byte, error) {
	return unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, flags)
}

// mapped wraps the memory that mmap returned.
func mapped(kind Kind, pages Pages, fd int, data []byte) *Memory {
	return &Memory{kind: kind, pages: pages, fd: fd, data: data, free: func() error {
		err := unix.Munmap(data)
		if fd >= 0 {
			if e := unix.Close(fd); err == nil {
				err = e
			}
		}
		return err
	}}
}
