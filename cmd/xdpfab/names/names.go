// SPDX-License-Identifier: Apache-2.0

// Package names reads the directory of a cluster's nodes for a command line, which names
// it by a text.
package names

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"syscall"

	"github.com/xdpfab/xdpfab/xdpfab/directory"
	"github.com/xdpfab/xdpfab/xdpfab/directory/etcd"
)

// None is the text that stands for no directory, even if the configuration names one.
const None = "none"

// AwayError means that the directory cannot be reached at present. Every other error is
// for the user to mend.
type AwayError struct{ err error }

func (e *AwayError) Error() string { return e.err.Error() }

// Unwrap returns what the directory said.
func (e *AwayError) Unwrap() error { return e.err }

// Read reads the entries of a directory: a URL of etcd, or the path of a file. It waits
// for etcd until ctx ends. log, which may be nil, hears of entries that cannot be
// understood.
func Read(ctx context.Context, text string, log *slog.Logger) (*directory.Directory, error) {
	if !strings.Contains(text, "://") {
		return readFile(ctx, text)
	}
	source, err := etcd.Open(text, log)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	d, err := directory.Open(ctx, source)
	if err != nil {
		return nil, &AwayError{fmt.Errorf("%w; `etcdctl endpoint health` tells more, and --directory none does without",
			err)}
	}
	d.Close()
	return d, nil
}

// Check checks the text of a directory that no name is looked up in: the form of a URL,
// or a file's lines. It asks no server.
func Check(ctx context.Context, text string) error {
	if !strings.Contains(text, "://") {
		_, err := readFile(ctx, text)
		return err
	}
	source, err := etcd.Open(text, nil)
	if err != nil {
		return err
	}
	return source.Close()
}

// readFile reads a file.
func readFile(ctx context.Context, path string) (*directory.Directory, error) {
	d, err := directory.Open(ctx, directory.File(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w, or etcd://HOST:PORT", err)
	}
	if errors.Is(err, syscall.EISDIR) {
		return nil, fmt.Errorf("%w: want a file in it, with lines such as \"node7 10.0.0.7 counters\", or "+
			"etcd://HOST:PORT", err)
	}
	if err != nil {
		return nil, err
	}
	d.Close()
	return d, nil
}

// Number gives addresses the endpoint number of a text, if that has one.
func Number(addrs []string, text string) []string {
	_, number, is := strings.Cut(text, "/")
	if !is {
		return addrs
	}
	all := make([]string, len(addrs))
	for i, a := range addrs {
		host, _, _ := strings.Cut(a, "/")
		all[i] = host + "/" + number
	}
	return all
}
