// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/xdpfab/xdpfab/internal/errno"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// told is a source that reports what the test sends.
type told chan func(func([]Node, error))

func (t told) String() string { return "told" }

func (t told) Watch(ctx context.Context, report func([]Node, error)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case f := <-t:
			f(report)
		}
	}
}

// say has the source report, and waits until it has.
func (t told) say(list []Node, err error) {
	done := make(chan struct{})
	t <- func(report func([]Node, error)) { report(list, err); close(done) }
	<-done
}

func TestLookUps(t *testing.T) {
	s := make(told)
	go s.say([]Node{
		{Name: "node7", Addrs: []string{"10.0.0.7", "02:00:00:00:00:0b"}, Regions: []string{"counters", "locks"}},
		{Name: "node8", Addrs: []string{"10.0.0.8"}, Regions: []string{"locks"}},
	}, nil)
	d, err := Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if n, err := d.Node("node7"); err != nil || n.Addrs[0] != "10.0.0.7" {
		t.Errorf("node7: %v, %v", n, err)
	}
	if n, err := d.Home("counters"); err != nil || n.Name != "node7" {
		t.Errorf("home of counters: %v, %v", n, err)
	}
	if _, err := d.Node("node9"); !errors.Is(err, ErrNoNode) || !strings.Contains(err.Error(), "node7, node8") {
		t.Errorf("node9: %v, want ErrNoNode with the names that there are", err)
	}
	if _, err := d.Home("nothing"); !errors.Is(err, ErrNoNode) {
		t.Errorf("home of nothing: %v, want ErrNoNode", err)
	}
	_, locks := d.Home("locks")
	if !errors.Is(locks, ErrAmbiguous) || !strings.Contains(locks.Error(), "node7, node8") {
		t.Errorf("home of locks: %v, want ErrAmbiguous with both names", locks)
	}
	_, node := d.Node("node9")
	_, nothing := d.Home("nothing")
	checkPrefix(t, locks, node, nothing, CheckName("-"), CheckRegion(","))
}

func TestSourceGoesAndComes(t *testing.T) {
	s := make(told)
	go s.say([]Node{{Name: "a", Addrs: []string{"10.0.0.1"}}}, nil)
	d, err := Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	away := errors.New("away")
	changed := d.Changed()
	s.say(nil, away)
	<-changed
	if err := d.Stale(); !errors.Is(err, away) {
		t.Errorf("Stale: %v, want the source's failure", err)
	}
	if n, err := d.Node("a"); err != nil || n.Addrs[0] != "10.0.0.1" {
		t.Errorf("the entry is gone with its source: %v, %v", n, err)
	}
	if _, err := d.Node("b"); !strings.Contains(err.Error(), "away") {
		t.Errorf("%v: want it to say that the entries are old", err)
	}
	s.say([]Node{{Name: "a", Addrs: []string{"10.0.0.2"}}}, nil)
	if n, _ := d.Node("a"); d.Stale() != nil || n.Addrs[0] != "10.0.0.2" {
		t.Errorf("%v, %v: want the new entry", n, d.Stale())
	}
}

func TestOpenFails(t *testing.T) {
	s := make(told)
	away := errors.New("away")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		s.say(nil, away)
		cancel()
	}()
	if _, err := Open(ctx, s); !errors.Is(err, away) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v: want the source's failure, and the end of the context", err)
	}
}

// A file that cannot be read is no reason to wait for the context.
func TestWrongFileFailsAtOnce(t *testing.T) {
	dir := t.TempDir()
	absent, wrong := filepath.Join(dir, "absent"), filepath.Join(dir, "wrong")
	if err := os.WriteFile(wrong, []byte("node7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{absent: "no such file", wrong: "line 1: node node7 has no address"} {
		_, err := Open(t.Context(), File(path))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "has not been read since") {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		checkPrefix(t, err)
		if path == absent && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v: want it to be os.ErrNotExist", err)
		}
	}
}

func TestFileIsFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nodes")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write("# comment\nnode7 10.0.0.7,02:00:00:00:00:0b scores counters # both\n\n")
	d, err := Open(t.Context(), File(path))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	n, err := d.Node("node7")
	want := Node{"node7", []string{"10.0.0.7", "02:00:00:00:00:0b"}, []string{"counters", "scores"}}
	if err != nil || !n.Equal(want) {
		t.Errorf("%v, %v: want %v", n, err, want)
	}
	changed := d.Changed()
	write("node8 10.0.0.8\nnode9 \nnode8 10.0.0.9\n")
	<-changed
	err = d.Stale()
	if err == nil || !strings.Contains(err.Error(), "line 2: node node9 has no address") ||
		!strings.Contains(err.Error(), "line 3: node node8 has line 1 already") {
		t.Errorf("%v: want both lines named", err)
	}
	if _, err := d.Node("node7"); err != nil {
		t.Errorf("a mistake in the file took the former entries: %v", err)
	}
	changed = d.Changed()
	write("node8 10.0.0.8\n")
	<-changed
	if list := d.Nodes(); len(list) != 1 || list[0].Name != "node8" || d.Stale() != nil {
		t.Errorf("%v, %v: want node8 alone", list, d.Stale())
	}
}

// A file of another kind is refused in a few words, whatever bytes it has.
func TestAnotherFile(t *testing.T) {
	text := "# services\nnode\x1b[31mRED\n" + strings.Repeat("x", 5000) + "_ 7/udp\nnode7 10.0.0.300\n" + strings.Repeat("\xff\x01\n", 364)
	_, err := ReadFile(strings.NewReader(text))
	if err == nil {
		t.Fatal("it was read")
	}
	said := strings.Split(err.Error(), "; ")
	if len(said) != 4 || !strings.HasPrefix(said[0], `xdpfab: line 2: "node\x1b[31mRED" is no name of a node`) ||
		said[3] != "and 364 more lines: is this a directory file?" || strings.ContainsAny(err.Error(), "\x1b\x01") || !utf8.ValidString(err.Error()) || len(err.Error()) > 600 {
		t.Errorf("%q", said)
	}
	_, err = ReadFile(strings.NewReader("a\nb\nc\nd\n"))
	if err == nil || !strings.HasSuffix(err.Error(), "; and 1 more line: is this a directory file?") {
		t.Errorf("%v: want the fourth line counted", err)
	}
}

// Lines of TOML are refused as such: as an entry, one would have the address =.
func TestFileOfTOML(t *testing.T) {
	for _, line := range []string{"[[node]]", "[peers]", `node7 = "10.0.0.7"`, "node7=10.0.0.7"} {
		_, err := ReadFile(strings.NewReader(line + "\n"))
		want := fmt.Sprintf("line 1: %q looks like TOML: want lines such as \"node7 10.0.0.7 counters\"", line)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

func TestTextIsParsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := Node{
			Name:    rapid.StringMatching(`[a-z0-9]([a-z0-9._-]{0,20}[A-Z0-9])?`).Draw(t, "name"),
			Addrs:   rapid.SliceOfN(rapid.StringMatching(`(10\.[0-9]\.1\.[0-9]|([0-9a-f]{2}:){5}0b|[a-f]+[0-9]?(\.[a-f]+\.)?|fd00::[1-9])(/[0-9]+)?`), 1, MostAddrs).Draw(t, "addrs"),
			Regions: rapid.SliceOfNDistinct(rapid.StringMatching(`[^\s,#\pC\pZ]+`), 0, 9, rapid.ID).Draw(t, "regions"),
		}
		slices.Sort(n.Regions)
		if err := n.Check(); err != nil {
			t.Skip(err)
		}
		if m, err := Parse(n.Name, n.Text()); err != nil || !m.Equal(n) {
			t.Fatalf("%q parsed as %v, %v: want %v", n.Text(), m, err, n)
		}
	})
}

// checkPrefix checks that errors begin as those of all public packages do, and have that
// once.
func checkPrefix(t *testing.T, all ...error) {
	t.Helper()
	for _, err := range all {
		if err == nil || strings.LastIndex(err.Error(), "xdpfab: ") != 0 {
			t.Errorf("%v: want it to begin with xdpfab:, once", err)
		}
	}
}

func TestWrongEntries(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"node7", "", "no address"},
		{"", "10.0.0.7", "no name of a node"},
		{"-node", "10.0.0.7", "no name of a node"},
		{"no de", "10.0.0.7", "no name of a node"},
		{strings.Repeat("n", 64), "10.0.0.7", "1 to 63"},
		{"node7", "10.0.0.7,,10.0.0.8", `the address ""`},
		{"node7", "10.77.0.999", "no IP address"},
		{"node7", "10.0.0/5", "no IP address"},
		{"node7", "10.0.0.7:34997", "no IP address"},
		{"node7", "10.0.0.7/99999", `endpoint "99999" after the slash, want a number from 0 to 65535`},
		{"node7", "host/five", `endpoint "five" after the slash`},
		{"node7", "/5", `the address "/5", with nothing before the number of an endpoint: want one like 10.0.0.7/5`},
		{"node7", strings.Repeat("10.0.0.7,", 20) + "10.0.0.8", "want 1 to 16"},
		{"node7", "10.0.0.7 a,b", `the region "a,b"`},
	} {
		_, err := Parse(c.name, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %q: %v, want %q", c.name, c.text, err, c.want)
		}
		_, inFile := ReadFile(strings.NewReader("node1 10.0.0.1\n" + c.name + " " + c.text + "\n-\n"))
		checkPrefix(t, err, inFile)
	}
}

// A Directory that Open has not returned has no entries, and no method panics.
func TestNoDirectory(t *testing.T) {
	for _, d := range []*Directory{nil, {}} {
		d.Close()
		_, named := d.Node("node7")
		_, home := d.Home("counters")
		for what, err := range map[string]error{"Node": named, "Home": home, "Stale": d.Stale()} {
			if !errors.Is(err, errno.Closed) || !strings.Contains(err.Error(), "want one of Open") {
				t.Errorf("%s: %v, want ErrClosed and the remedy", what, err)
			}
			checkPrefix(t, err)
		}
		if list := d.Nodes(); list != nil || d.Changed() != nil {
			t.Errorf("%v: want no entries, and no change", list)
		}
	}
}

// The error of a region that no node publishes names those that there are.
func TestNoHome(t *testing.T) {
	s := make(told)
	go s.say([]Node{
		{Name: "node7", Addrs: []string{"10.0.0.7"}, Regions: []string{"counters", "locks"}},
		{Name: "node8", Addrs: []string{"10.0.0.8"}, Regions: []string{"locks"}},
	}, nil)
	d, err := Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for name, want := range map[string]string{
		"Counters": `xdpfab: region "Counters": no node of told publishes it, did you mean "counters"?: the nodes have "counters", "locks"`,
		"none":     `xdpfab: region "none": no node of told publishes it: the nodes have "counters", "locks"`,
	} {
		if _, err := d.Home(name); !errors.Is(err, ErrNoNode) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s.say(nil, nil)
	if _, err := d.Home("none"); err == nil || !strings.HasSuffix(err.Error(), "publishes it: the nodes publish none") {
		t.Error(err)
	}
}

// A directory without a source, and one without a context, say what is wanted.
func TestNoSource(t *testing.T) {
	var none context.Context
	for text, open := range map[string]func() error{
		"xdpfab: directory without a source: want File, or one of package etcd": func() error { _, err := Open(t.Context(), nil); return err },
		"xdpfab: the context is nil: want one, such as context.Background()": func() error {
			_, err := Open(none, File("x"))
			return err
		},
	} {
		if err := open(); err == nil || err.Error() != text {
			t.Errorf("%v, want %s", err, text)
		}
	}
}
