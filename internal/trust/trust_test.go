// SPDX-License-Identifier: Apache-2.0

//go:build linux

package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stranger is a user who is neither root nor the one that runs the tests.
const stranger = 65534

func folder(t *testing.T, mode fs.FileMode, parts ...string) string {
	t.Helper()
	path := filepath.Join(parts...)
	if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t *testing.T, target, path string) string {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFolder(t *testing.T) {
	t.Parallel()
	dir := folder(t, 0o755, t.TempDir(), "d")
	folder(t, 0o700, dir, "own", "below")
	folder(t, 0o777, dir, "open", "below")
	folder(t, 0o777|fs.ModeSticky, dir, "sticky")
	folder(t, 0o755, dir, "sticky", "below")
	if err := os.Chmod(filepath.Join(dir, "open"), 0o777); err != nil {
		t.Fatal(err)
	}
	folder(t, 0o775, dir, "group")
	link(t, "own/../own", filepath.Join(dir, "link"))
	link(t, filepath.Join(dir, "open"), filepath.Join(dir, "away"))
	link(t, "loop", filepath.Join(dir, "loop"))
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"":              "",
		"own/below":     "",
		"sticky":        "",
		"sticky/below":  "",
		"link":          "",
		"link/below":    "",
		"open":          "mode 0777",
		"open/below":    "mode 0777",
		"group":         "mode 0775",
		"away/below":    "mode 0777",
		"loop":          "too many levels",
		"file":          "not a directory",
		"own/none":      "no such file",
		"own/none/none": "no such file",
	} {
		switch err := Folder(filepath.Join(dir, path)); {
		case want == "" && err != nil:
			t.Errorf("%s: %v; want nil", path, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v; want an error with %q", path, err, want)
		}
	}
	if err := Folder(filepath.Join(dir, "own/none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v; want fs.ErrNotExist", err)
	}
}

// A file descriptor can lead to a folder that has no path.
func TestFolderOfDescriptor(t *testing.T) {
	t.Parallel()
	dir := folder(t, 0o755, t.TempDir(), "d")
	folder(t, 0o755, dir, "below")
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	path := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd())
	if err := errors.Join(os.Rename(dir, dir+"2"), Folder(path), Folder(path+"/below")); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(dir+"2", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Folder(path + "/below"); err == nil || !strings.Contains(err.Error(), "mode 0777") {
		t.Errorf("%v; want an error with the mode", err)
	}
}

func TestFolderOfStranger(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("giving a folder to another user takes root")
	}
	dir := folder(t, 0o755, t.TempDir(), "d")
	theirs := folder(t, 0o755, dir, "theirs")
	below := folder(t, 0o755, theirs, "below")
	own := folder(t, 0o755, dir, "own")
	way := link(t, own, filepath.Join(dir, "way"))
	if err := errors.Join(os.Chown(theirs, stranger, -1), os.Lchown(way, stranger, -1)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{theirs, below, way} {
		if err := Folder(path); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
			t.Errorf("%s: %v; want an error that names the owner", path, err)
		}
	}
	if err := Folder(own); err != nil {
		t.Error(err)
	}
}
