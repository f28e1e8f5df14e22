// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sharedav

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// helperEnv makes the test binary a process that uses a table: see TestMain.
const helperEnv = "XDPFAB_SHAREDAV_HELPER"

// TestMain is, in a helper process, the creator of a table in the directory that the
// environment names: it appends what it reads, line by line, and prints the numbers.
func TestMain(m *testing.M) {
	dir := os.Getenv(helperEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	t, err := open(context.Background(), dir, "t", false)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		n, err := t.Append(context.Background(), in.Text())
		fmt.Println(n, err)
	}
	if err := t.Close(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// helper is another process that uses the table.
type helper struct {
	t   *testing.T
	cmd *exec.Cmd
	in  *os.File
	out *bufio.Scanner
}

func newHelper(t *testing.T, dir string) *helper {
	t.Helper()
	h := &helper{t: t, cmd: exec.Command(os.Args[0])}
	h.cmd.Env = append(os.Environ(), helperEnv+"="+dir)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	h.cmd.Stdin, h.in = r, w
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.out = bufio.NewScanner(out)
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	t.Cleanup(func() { w.Close(); _ = h.cmd.Wait() })
	h.expect("open")
	return h
}

// expect reads a line of the process.
func (h *helper) expect(want string) {
	h.t.Helper()
	if h.out.Scan(); h.out.Text() != want {
		h.t.Fatalf("the process says %q, want %q", h.out.Text(), want)
	}
}

func (h *helper) append(text string, n int) {
	h.t.Helper()
	fmt.Fprintln(h.in, text)
	h.expect(fmt.Sprintf("%d <nil>", n))
}

// mustOpen opens the table of a directory.
func mustOpen(t *testing.T, dir string, readOnly bool) *Table {
	t.Helper()
	x, err := open(t.Context(), dir, "t", readOnly)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func (t *Table) expect(tb testing.TB, n int, want string, wantGone bool) {
	tb.Helper()
	if text, gone, err := t.Get(n); text != want || gone != wantGone || err != nil {
		tb.Errorf("record %d is %q, removed %t, %v; want %q, %t", n, text, gone, err, want, wantGone)
	}
}

// files returns what is in a directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Another process sees what one inserts and removes, under the same numbers, and both may
// insert. The file goes with the last user.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	h := newHelper(t, dir)
	h.append("10.0.0.1", 0)
	reader, writer := mustOpen(t, dir, true), mustOpen(t, dir, false)
	reader.expect(t, 0, "10.0.0.1", false)
	h.append("10.0.0.2/7", 1)
	reader.expect(t, 1, "10.0.0.2/7", false)
	if n, err := writer.Append(t.Context(), "fd00::3"); n != 2 || err != nil {
		t.Errorf("number %d, %v; want 2", n, err)
	}
	h.append("10.0.0.4", 3)
	if err := writer.Remove(t.Context(), 1); err != nil {
		t.Error(err)
	}
	reader.expect(t, 1, "10.0.0.2/7", true)
	if err := writer.Remove(t.Context(), 1); !errors.Is(err, ErrNoRecord) {
		t.Errorf("removed twice: %v", err)
	}
	if _, _, err := reader.Get(4); !errors.Is(err, ErrNoRecord) {
		t.Errorf("record 4: %v", err)
	}
	if _, err := reader.Append(t.Context(), "x"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a reader appends: %v", err)
	}
	h.in.Close()
	if err := errors.Join(h.cmd.Wait(), writer.Close()); err != nil {
		t.Fatal(err)
	}
	if len(files(t, dir)) != 1 {
		t.Error("the file is gone, and has a user")
	}
	reader.expect(t, 3, "10.0.0.4", false)
	if err := reader.Close(); err != nil || len(files(t, dir)) != 0 {
		t.Errorf("%v; files %v are left", err, files(t, dir))
	}
	if _, err := open(t.Context(), dir, "t", true); !errors.Is(err, ErrNone) {
		t.Errorf("a reader of a table that nobody has made: %v", err)
	}
}

// A process that is killed leaves nobody waiting: others go on, and what it leaves when
// there are no others is nobody's table.
func TestProcessKilled(t *testing.T) {
	dir := t.TempDir()
	kill := func(h *helper) {
		t.Helper()
		if err := h.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = h.cmd.Wait()
	}
	h := newHelper(t, dir)
	h.append("10.0.0.1", 0)
	other := mustOpen(t, dir, false)
	kill(h)
	other.expect(t, 0, "10.0.0.1", false)
	if n, err := other.Append(t.Context(), "10.0.0.2"); n != 1 || err != nil {
		t.Errorf("number %d, %v; want 1", n, err)
	}
	if err := other.Close(); err != nil || len(files(t, dir)) != 0 {
		t.Errorf("%v; files %v are left", err, files(t, dir))
	}
	h = newHelper(t, dir)
	h.append("10.0.0.9", 0)
	kill(h)
	if _, err := open(t.Context(), dir, "t", true); !errors.Is(err, ErrNone) || len(files(t, dir)) != 0 {
		t.Errorf("a reader of what a dead process left: %v, files %v", err, files(t, dir))
	}
	h = newHelper(t, dir)
	h.append("10.0.0.9", 0)
	kill(h)
	fresh := mustOpen(t, dir, false)
	defer fresh.Close()
	if n, err := fresh.Len(); n != 0 || err != nil {
		t.Errorf("a table that is made where a dead process left one has %d records, %v; want none", n, err)
	}
}

// Any number of users come and go at the same time: each number has one text, and no file
// is left.
func TestUsersAtOnce(t *testing.T) {
	dir := t.TempDir()
	keeper := mustOpen(t, dir, false)
	var users sync.WaitGroup
	var mu sync.Mutex
	given := map[int]string{}
	for i := range 8 {
		users.Go(func() {
			for j := range 20 {
				x, err := open(t.Context(), dir, "t", false)
				if err != nil {
					t.Error(err)
					return
				}
				text := fmt.Sprintf("%d of %d", j, i)
				n, err := x.Append(t.Context(), text)
				mu.Lock()
				if given[n] != "" || err != nil {
					t.Errorf("%q got number %d, %v, which %q has", text, n, err, given[n])
				}
				given[n] = text
				mu.Unlock()
				if err := x.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	users.Wait()
	for n, text := range given {
		keeper.expect(t, n, text, false)
	}
	if n, err := keeper.Len(); n != 160 || err != nil {
		t.Errorf("%d records, %v; want 160", n, err)
	}
	if err := keeper.Close(); err != nil {
		t.Error(err)
	}
	for i := range 8 { // now the first and the last one change all the time
		users.Go(func() {
			for range 20 {
				x, err := open(t.Context(), dir, "t", false)
				if err != nil {
					t.Error(err)
					return
				}
				n, err := x.Append(t.Context(), fmt.Sprint(i))
				if text, _, err2 := x.Get(n); text != fmt.Sprint(i) || err != nil || err2 != nil {
					t.Errorf("number %d is %q, %v, %v; want %d", n, text, err, err2, i)
				}
				if err := x.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	users.Wait()
	if left := files(t, dir); len(left) != 0 {
		t.Errorf("files %v are left", left)
	}
}

// A file that is no table, or not a whole one, or that others can write, is refused, and
// not changed.
func TestDamaged(t *testing.T) {
	good := func(dir string) []byte {
		x := mustOpen(t, dir, false)
		defer x.Close()
		if _, err := x.Append(t.Context(), "10.0.0.1"); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(x.path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}(t.TempDir())
	edit := func(at int, v byte) []byte { b := append([]byte(nil), good...); b[at] = v; return b }
	for name, c := range map[string]struct {
		contents []byte
		opens    bool // its head is sound: the record is refused
	}{
		"cut off in the head":   {good[:40], false},
		"another file":          {[]byte(strings.Repeat("other ", 40)), false},
		"another version":       {edit(7, '9'), false},
		"too many records":      {edit(countAt+3, 1), false},
		"a record that is not":  {edit(countAt, 2), true},
		"cut off in a record":   {good[:headLen+20], true},
		"no state":              {edit(headLen, 0), true},
		"another state":         {edit(headLen, 3), true},
		"no text":               {edit(headLen+1, 0), true},
		"a text that is longer": {edit(headLen+1, maxText+1), true},
	} {
		dir := t.TempDir()
		user := mustOpen(t, dir, false) // the file is in use, so it is not made anew
		if err := os.WriteFile(user.path, c.contents, 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := open(t.Context(), dir, "t", true)
		if c.opens && err == nil {
			n, lenErr := x.Len()
			_, _, err = x.Get(n - 1)
			if lenErr != nil {
				t.Errorf("%s: %v", name, lenErr)
			}
		}
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, want %v", name, err, ErrDamaged)
		}
		if x != nil {
			x.Close()
		}
		if err := user.f.Close(); err != nil { // as if its process had died
			t.Fatal(err)
		}
		if c.opens {
			continue
		}
		if _, err := open(t.Context(), dir, "t", false); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: made anew over a file that is no table: %v", name, err)
		}
		if b, err := os.ReadFile(user.path); err != nil || string(b) != string(c.contents) {
			t.Errorf("%s: the file was changed: %v", name, err)
		}
	}
	dir := t.TempDir()
	path := mustOpen(t, dir, false).path
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t.Context(), dir, "t", false); err == nil || !strings.Contains(err.Error(), "mode 600") {
		t.Errorf("a file that others can write: %v", err)
	}
	if err := errors.Join(os.Remove(path), os.Symlink("/dev/null", path)); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t.Context(), dir, "t", false); err == nil {
		t.Error("a symbolic link is followed")
	}
	for _, bad := range []string{"", "a/b", "..\x00", strings.Repeat("x", MaxName+1), "ä"} {
		if _, err := Open(t.Context(), bad, false); err == nil {
			t.Errorf("name %q is taken", bad)
		}
	}
	x := mustOpen(t, t.TempDir(), false)
	defer x.Close()
	for _, bad := range []string{"", strings.Repeat("x", maxText+1)} {
		if _, err := x.Append(t.Context(), bad); err == nil {
			t.Errorf("a text of %d bytes is taken", len(bad))
		}
	}
}

// A writer that is stopped while it has the table holds up others only as long as they
// want to wait.
func TestWriterStopped(t *testing.T) {
	dir := t.TempDir()
	one, other := mustOpen(t, dir, false), mustOpen(t, dir, false)
	defer one.Close()
	if held, err := one.lock(unix.F_WRLCK, writersByte); held || err != nil {
		t.Fatal(held, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := other.Append(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}
