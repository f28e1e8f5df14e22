// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A user who replaces a socket by a link, or by a file, does not get other files by the
// daemon's right to change their permissions.
func TestAccessFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "x.sock")
	if err := os.Symlink(secret, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, secret} {
		err := Access{Mode: 0o666}.Apply(path)
		if err == nil || !strings.Contains(err.Error(), "is no socket") {
			t.Errorf("%s: %v; want an error that it is no socket", path, err)
		}
	}
	if info, err := os.Stat(secret); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file has mode %v, %v; want 0600", info.Mode(), err)
	}
}

// Neither is a socket made or changed in a folder in which others can replace it.
func TestSocketsWantASafeFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "box")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "x.sock")
	l, err := Listen(t.Context(), path, Access{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		mode fs.FileMode
		want string
	}{{0o777, "mode 0777"}, {0o775, "mode 0775"}, {0o777 | fs.ModeSticky, ""}, {0o755, ""}} {
		if err := os.Chmod(dir, c.mode); err != nil {
			t.Fatal(err)
		}
		err := Access{Mode: 0o666}.Apply(path)
		other, err2 := Listen(t.Context(), filepath.Join(dir, "y.sock"), Access{})
		if other != nil {
			_ = other.Close()
		}
		for _, err := range []error{err, err2} {
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("mode %v: %v; want an error with %q, if any", c.mode, err, c.want)
			}
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("the socket has mode %v, %v; want 0666", info.Mode(), err)
	}
}
