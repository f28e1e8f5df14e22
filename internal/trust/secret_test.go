// SPDX-License-Identifier: Apache-2.0

//go:build linux

package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A key is read from a file that others cannot read; errors have the remedy, and nothing
// of the key.
func TestKey(t *testing.T) {
	key := strings.Repeat("k", 32)
	for name, x := range map[string]struct {
		text string
		mode os.FileMode
		want string // of the error; empty for the key
	}{
		"with a newline":    {key + "\n", 0o600, ""},
		"without":           {key, 0o640, ""},
		"the longest":       {key + key + "\n", 0o400, ""},
		"longer":            {key + key + "k", 0o400, "key has more than 64 bytes: want 16 to 64, with or without a newline: name the file"},
		"too short":         {key[:15] + "\n", 0o600, "key has fewer than 16 bytes: want 16 to 64"},
		"empty":             {"", 0o600, "fewer than 16 bytes: want 16 to 64"},
		"others may read":   {key, 0o644, "has mode 0644: want a file that others cannot use (chmod o= "},
		"others may write":  {key, 0o602, "has mode 0602"},
		"others may run it": {key, 0o601, "has mode 0601"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(path, []byte(x.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, x.mode); err != nil {
				t.Fatal(err)
			}
			got, err := Key(path)
			switch {
			case x.want == "":
				if err != nil || string(got) != strings.TrimSuffix(x.text, "\n") {
					t.Errorf("%q, %v", got, err)
				}
			case err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "kkk"):
				t.Errorf("%q, %v; want %q, and nothing of the key", got, err, x.want)
			case strings.Contains(err.Error(), ">"): // a shell would overwrite the file
				t.Errorf("%v: a command that writes to a file which is there", err)
			}
		})
	}
	if _, err := Key(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Key(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
