// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// The files of get and put.

// openTarget opens the file of a get, empty unless the get is resumed.
func openTarget(c *cobra.Command, resume bool, path string) (*os.File, error) {
	mode := os.O_TRUNC
	if resume {
		mode = os.O_APPEND
	}
	file, err := os.OpenFile(path, mode|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, usage(c, "%v: want a file in a folder that is there, and that this user may write", err)
	}
	return file, nil
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
