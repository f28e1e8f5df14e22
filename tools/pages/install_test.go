// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// files lists those below a folder.
func files(t *testing.T, root string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, strings.TrimPrefix(path, root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// What is installed lies where it is looked for, names its own prefix, and is removed again;
// a configuration that somebody changed stays, both times.
func TestInstall(t *testing.T) {
	bin, pages, root := t.TempDir(), t.TempDir(), t.TempDir()
	for _, name := range []string{"xdpfab", "xdpfabd", "provider/libxdpfab-fi.so"} {
		write(t, filepath.Join(bin, name))
	}
	for _, name := range []string{"man/xdpfab.1", "man/xdpfabd.8", "bash/xdpfab", "bash/xdpfabd", "zsh/_xdpfab", "zsh/_xdpfabd",
		"fish/xdpfab.fish", "fish/xdpfabd.fish"} {
		write(t, filepath.Join(pages, name))
	}
	install := func(args ...string) {
		t.Helper()
		cmd := exec.Command("../../scripts/install", append(args, bin, pages)...)
		cmd.Env = append(os.Environ(), "DESTDIR="+root, "PREFIX=/opt/x", "PROVIDERDIR=/opt/x/lib/libfabric")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	install()
	found := files(t, root)
	for _, want := range []string{"/opt/x/bin/xdpfabd", "/opt/x/share/man/man8/xdpfabd.8", "/opt/x/lib/libfabric/libxdpfab-fi.so",
		"/opt/x/share/bash-completion/completions/xdpfab", "/etc/xdpfab/xdpfabd.toml", "/etc/sysusers.d/xdpfab.conf",
		"/etc/tmpfiles.d/xdpfab.conf"} {
		if !slices.Contains(found, want) {
			t.Errorf("%s is not installed: %q", want, found)
		}
	}
	unit, err := os.ReadFile(filepath.Join(root, "opt/x/lib/systemd/system/xdpfabd@.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ExecStart=/opt/x/bin/xdpfabd ", "ExecReload=/opt/x/libexec/xdpfab/takeover "} {
		if !strings.Contains(string(unit), "\n"+want) {
			t.Errorf("the unit lacks %q", want)
		}
	}
	wantLinks(t, filepath.Join(root, "opt/x/share/doc/xdpfab"))
	install("--remove")
	if left := files(t, root); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	for _, dir := range []string{"opt/x/share/doc/xdpfab", "etc/xdpfab", "opt/x/libexec/xdpfab"} {
		if _, err := os.Stat(filepath.Join(root, dir)); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
	write(t, filepath.Join(root, "etc/xdpfab/xdpfabd.toml"))
	install()
	install("--remove")
	if left := files(t, root); !slices.Equal(left, []string{"/etc/xdpfab/xdpfabd.toml"}) {
		t.Errorf("left: %q, want the configuration that was changed", left)
	}
}

var link = regexp.MustCompile(`\]\(([^)\s#]+)(?:#[^)\s]*)?\)`)

// wantLinks wants every link of the pages that are installed to lead to something that is,
// too.
func wantLinks(t *testing.T, doc string) {
	t.Helper()
	followed := 0
	for _, page := range files(t, doc) {
		if filepath.Ext(page) != ".md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(doc, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if to := m[1]; !strings.Contains(to, "://") {
				followed++
				if _, err := os.Stat(filepath.Join(doc, filepath.Dir(page), to)); err != nil {
					t.Errorf("%s: the link %s leads nowhere", page, to)
				}
			}
		}
	}
	if followed < 200 {
		t.Errorf("only %d links in what is installed", followed)
	}
}

// write makes a file that says its name.
func write(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(filepath.Base(path)), 0o755); err != nil {
		t.Fatal(err)
	}
}
