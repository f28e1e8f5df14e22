// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/test/vm"
)

var boots = flag.Bool("boot", false, "run the tests that boot virtual machines")

func TestGoFlags(t *testing.T) {
	g, err := goFlags([]string{"./xsk", "-run", "X", "./bpf", "-v", "-count=2", "-short", "-timeout", "3m", "-tags=a,b", "-args", "-seeds=3", "-v"}, nil)
	want := []string{"-test.run=X", "-test.count=2", "-test.short=true", "-seeds=3", "-v"}
	if err != nil || g.short || !slices.Equal(g.packages, []string{"./xsk", "./bpf"}) || !slices.Equal(g.args, want) ||
		g.format != vm.Verbose || g.timeout != 3*time.Minute || g.tags != "a,b" {
		t.Errorf("%+v, %v", g, err)
	}
	if g, err := goFlags([]string{"-json"}, vm.ShortSet); err != nil || g.format != vm.JSON || !g.short || !slices.Contains(g.packages, "./xsk") || len(g.args) != 0 {
		t.Errorf("the short set: %+v, %v", g, err)
	}
	for _, bad := range []string{"-race", "-list=.", "-run", "-timeout=0", "-timeout=soon", "-nonsense=1"} {
		if _, err := goFlags([]string{"./xsk", bad}, nil); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestBadCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"-kernel 6.66 ./xsk":                     `"6.66" is neither a file nor one of`,
		"-nic e1000 ./xsk":                       `NIC "e1000": want one of virtio`,
		"-nic igb -kernel 6.1,6.12 ./xsk":        "want one kernel",
		"-kernel /no/vmlinuz ./xsk":              "no such file",
		"-arch mips ./xsk":                       `architecture "mips": want one of amd64, arm64`,
		"-nic igb -arch arm64 ./xsk":             "-nic igb with -arch arm64",
		"-memory -1 ./xsk":                       "-1 MiB",
		"-cpus 0 ./xsk":                          "0 CPUs",
		"-exec":                                  "-exec takes one kernel or NIC and a test binary",
		"-exec /no/such.test":                    "/no/such.test",
		"-accel warp -kernel 6.12 -exec /bin/sh": "CGO_ENABLED=0",
		"./test/vm/cmd/vminit":                   "no tests in ./test/vm/cmd/vminit",
		"./no/such":                              "no/such",
		"-nonsense":                              "nonsense",
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), append([]string{"-cache", t.TempDir()}, strings.Fields(line)...), &out, &errs); code != exitBroken || !strings.Contains(errs.String(), want) {
			t.Errorf("vmtest %s: code %d, %q; want %d and %q", line, code, errs.String(), exitBroken, want)
		}
	}
}

// As go test -exec runs it: the binary's own exit code and output.
func TestExec(t *testing.T) {
	if !*boots {
		t.Skip("boots virtual machines: make test-vm-self")
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir+"/", ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for args, want := range map[string]string{"-run=TestCloseTwice -v": "--- PASS: TestCloseTwice", "-run=TestNone": "no tests to run", "-nonsense": "flag provided but not defined"} {
		cmd := exec.Command("go", append([]string{"test", "-count=1", "-exec", filepath.Join(dir, "vmtest") + " -exec", "../../../../internal/testnet/veth"}, strings.Fields(args)...)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if failed := err != nil; failed != (args == "-nonsense") || !strings.Contains(string(out), want) {
			t.Errorf("go test -exec vmtest %s: %v, %s", args, err, out)
		}
	}
}
