// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/internal/load"
)

// fetchAdd is a program in C for libfabric.
//
//go:embed libfabric/fetch_add.c
var fetchAdd []byte

// cAdds is how often it adds, and cOffset is the word, which no other part of the demo
// uses: the last one of the daemon's region.
const (
	cAdds   = 2000
	cOffset = 64<<10 - load.WordSize
)

// cReport is what it found; Skipped says why there is none.
type cReport struct {
	Skipped string  `json:"skipped,omitempty"`
	Adds    uint64  `json:"adds"`
	First   uint64  `json:"first"` // value of the word
	Last    uint64  `json:"last"`
	Seconds float64 `json:"seconds"` // with attaching
}

// Where libfabric looks for providers, and its headers.
const (
	installedProviders = "/usr/lib/*/libfabric/libxdpfab-fi.so"
	libfabricHeader    = "/usr/include/rdma/fi_atomic.h"
)

// providerPath looks for the provider beside a program, and then among what is
// installed. It returns its folder, or "" if it is installed, where libfabric finds it by
// itself; and it reports whether there is a provider.
func providerPath(self string) (string, bool) {
	beside := filepath.Join(filepath.Dir(self), "provider")
	if _, err := os.Stat(filepath.Join(beside, "libxdpfab-fi.so")); err == nil {
		return beside, true
	}
	installed, _ := filepath.Glob(installedProviders)
	return "", len(installed) > 0
}

// inC builds the program and runs it. What is missing for that is in the report, and no
// error.
func (d *demo) inC(ctx context.Context) error {
	r := &d.report.C
	providers, found := providerPath(d.self)
	gcc, err := exec.LookPath("gcc")
	switch {
	case err != nil:
		r.Skipped = "gcc is missing: apt-get install gcc libc6-dev"
	case !exists(libfabricHeader):
		r.Skipped = "the headers of libfabric are missing: apt-get install libfabric-dev"
	case !found:
		r.Skipped = "the provider is missing: make provider"
	}
	if r.Skipped != "" {
		return nil
	}
	program := filepath.Join(d.dir, "fetch_add")
	build := command(ctx, gcc, "-O1", "-x", "c", "-", "-o", program, "-lfabric")
	build.Stdin, build.Env = bytes.NewReader(fetchAdd), append(os.Environ(), "TMPDIR="+d.dir)
	if out, err := build.CombinedOutput(); err != nil {
		first, _, _ := strings.Cut(string(out), "\n")
		r.Skipped = fmt.Sprintf("gcc cannot build it: %v: %s", err, first)
		return context.Cause(ctx)
	}
	return d.runC(ctx, program, providers)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// runC runs it as a guest of a daemon in the client's namespace, on the demo's region.
func (d *demo) runC(ctx context.Context, program, providers string) (err error) {
	r := &d.report.C
	s, err := d.daemon.status(ctx)
	if err != nil {
		return err
	}
	host, err := startDaemon(ctx, d.pair.A, clientCPUs, d.binary, filepath.Join(d.dir, "client.sock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.close()) }()
	key := ""
	for _, region := range s.Regions {
		if region.Name == "demo" {
			key = region.Key
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, clientLimit, fmt.Errorf("took longer than %v", clientLimit))
	defer cancel()
	c := command(ctx, program, d.report.Server.IP, key, fmt.Sprint(cOffset), fmt.Sprint(cAdds))
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	c.Env = append(os.Environ(), "XDPFAB_CONTROL="+host.socket, "FI_LOG_LEVEL=warn", "FI_LOG_PROV=xdpfab")
	if providers != "" {
		c.Env = append(c.Env, "FI_PROVIDER_PATH="+providers)
	}
	start := time.Now()
	if err := startOn(d.pair.A, c, clientCPUs); err != nil {
		return fmt.Errorf("starting the program in C: %w", err)
	}
	if err := c.Wait(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("the program in C: %w: %s", err, strings.TrimSpace(errs.String()))
	}
	r.Adds, r.Seconds = cAdds, time.Since(start).Seconds()
	return json.Unmarshal(out.Bytes(), r)
}

// check returns an error unless each add counts once.
func (r *cReport) check() error {
	if r.Skipped == "" && (r.First != 0 || r.Last != r.Adds-1) {
		return errors.New("the program in C: " + r.sum())
	}
	return nil
}

func (r *cReport) sum() string {
	return fmt.Sprintf("it found %d before %d adds, and %d before the last", r.First, r.Adds, r.Last)
}

func (r *cReport) text(w io.Writer) {
	fmt.Fprintf(w, "\nA program in C, through libfabric and its provider\n\n")
	if r.Skipped != "" {
		fmt.Fprintf(w, "  skipped: %s\n", r.Skipped)
		return
	}
	fmt.Fprintf(w, "  fetch_add.c: every increment counts once\tUDP\t1 x %d\t%d\t%.2f s\n", r.Adds, r.Last+1, r.Seconds)
}
