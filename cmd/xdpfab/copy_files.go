// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// The files of get and put.

// target is the file of a get. Unless the get is resumed, its former contents go when the
// first bytes come: a get that fails before leaves them.
type target struct {
	*os.File
	begun bool
}

// openTarget opens the file of a get.
func openTarget(c *cobra.Command, resume bool, path string) (*target, error) {
	mode := os.O_WRONLY | os.O_CREATE
	if resume {
		mode |= os.O_APPEND
	}
	file, err := os.OpenFile(path, mode, 0o644)
	if err != nil {
		return nil, usage(c, "%v: want a file in a folder that is there, and that this user may write", err)
	}
	return &target{File: file, begun: resume}, nil
}

// kept returns the number of bytes in the file that stay.
func (t *target) kept() (uint64, error) {
	if !t.begun {
		return 0, nil
	}
	return length(t.File)
}

func (t *target) Write(b []byte) (int, error) {
	if !t.begun {
		n, err := length(t.File)
		if err == nil && n > 0 {
			err = t.Truncate(0)
		}
		if err != nil {
			return 0, err
		}
		t.begun = true
	}
	return t.File.Write(b)
}

// length returns the number of bytes of a file that is a regular one, and 0 of any other.
func length(f *os.File) (uint64, error) {
	s, err := f.Stat()
	switch {
	case err != nil:
		return 0, err
	case s.IsDir():
		return 0, fmt.Errorf("%s is a folder", f.Name())
	case !s.Mode().IsRegular():
		return 0, nil
	}
	return uint64(s.Size()), nil
}

// flushed writes results so that they are out at once.
type flushed struct{ a *app }

func (w flushed) Write(b []byte) (int, error) {
	n, err := w.a.out.Write(b)
	return n, joinOnce(err, w.a.flush())
}
