// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sharedav

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The file: a head, and records. Numbers are little-endian.
//
//	head     0 magic, 8 number of records u32, 12 zeros
//	record   0 state u8, 1 length of the text u8, 2 text, zeros
const (
	magic     = "xdpfabA1"
	headLen   = 64
	countAt   = 8
	recordLen = 64
	maxText   = recordLen - 2
	// maxRecords is the most addresses of one table.
	maxRecords = 1 << 20
)

// States of a record.
const (
	present = 1
	removed = 2
)

// Table is one user's access to a shared table. Any number of goroutines may call its
// methods.
type Table struct {
	f        *os.File
	path     string
	readOnly bool
}

// Append adds a text and returns its number. It waits for other writers as long as ctx
// lets it.
func (t *Table) Append(ctx context.Context, text string) (n int, err error) {
	if len(text) == 0 || len(text) > maxText {
		return 0, fmt.Errorf("a text of %d bytes: want 1 to %d", len(text), maxText)
	}
	err = t.change(ctx, func(count int) error {
		if n = count; n == maxRecords {
			return fmt.Errorf("the table is full: it has %d records", n)
		}
		b := make([]byte, recordLen)
		b[0], b[1] = present, byte(len(text))
		copy(b[2:], text)
		if _, err := t.f.WriteAt(b, recordAt(n)); err != nil {
			return err
		}
		var le [4]byte // the record is there before the count says so
		binary.LittleEndian.PutUint32(le[:], uint32(n+1))
		_, err := t.f.WriteAt(le[:], countAt)
		return err
	})
	return n, err
}

// Remove marks a record as removed. Its number is not given again.
func (t *Table) Remove(ctx context.Context, n int) error {
	return t.change(ctx, func(int) error {
		if _, gone, err := t.Get(n); err != nil || gone {
			return errors.Join(err, noRecord(n, gone))
		}
		_, err := t.f.WriteAt([]byte{removed}, recordAt(n))
		return err
	})
}

func noRecord(n int, gone bool) error {
	if gone {
		return fmt.Errorf("%w: %d was removed", ErrNoRecord, n)
	}
	return nil
}

// Get returns the text of a record, and whether it was removed.
func (t *Table) Get(n int) (text string, gone bool, err error) {
	count, err := t.Len()
	if err != nil {
		return "", false, err
	}
	if n < 0 || n >= count {
		return "", false, fmt.Errorf("%w: %d, the table holds %d", ErrNoRecord, n, count)
	}
	b := make([]byte, recordLen)
	if _, err := t.f.ReadAt(b, recordAt(n)); err != nil {
		return "", false, fmt.Errorf("%w: record %d: %w", ErrDamaged, n, err)
	}
	end := 2 + int(b[1])
	if b[0] != present && b[0] != removed || end == 2 || end > recordLen {
		return "", false, fmt.Errorf("%w: record %d has state %d and length %d", ErrDamaged, n, b[0], b[1])
	}
	return string(b[2:end]), b[0] == removed, nil
}

// Len returns how many records there are, with those that were removed.
func (t *Table) Len() (int, error) {
	b := make([]byte, headLen)
	if _, err := t.f.ReadAt(b, 0); err != nil {
		if errors.Is(err, os.ErrClosed) {
			return 0, err
		}
		return 0, fmt.Errorf("%w: %s: %w", ErrDamaged, t.path, err)
	}
	n := binary.LittleEndian.Uint32(b[countAt:])
	if string(b[:len(magic)]) != magic || n > maxRecords {
		return 0, fmt.Errorf("%w: %s begins with %q and %d records", ErrDamaged, t.path, b[:len(magic)], n)
	}
	return int(n), nil
}

// change runs f, with the number of records, while no other writer changes the table.
func (t *Table) change(ctx context.Context, f func(count int) error) error {
	if t.readOnly {
		return fmt.Errorf("%w: %s", ErrReadOnly, t.path)
	}
	w, err := t.writer()
	if err != nil {
		return err
	}
	defer w.f.Close() // gives the lock back
	if err := w.wait(ctx, unix.F_WRLCK, writersByte); err != nil {
		return fmt.Errorf("%s: waiting for another writer: %w", t.path, err)
	}
	count, err := t.Len()
	if err != nil {
		return err
	}
	return f(count)
}

// writer opens the file once more: goroutines of one process exclude each other only if
// each has an open file description of its own.
func (t *Table) writer() (*Table, error) {
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", t.f.Fd()), os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.path, err)
	}
	return &Table{f: f, path: t.path}, nil
}

func recordAt(n int) int64 { return headLen + int64(n)*recordLen }
