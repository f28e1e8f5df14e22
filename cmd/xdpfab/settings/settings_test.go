// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The environment takes precedence over the user's file, and that over the system's.
func TestPrecedence(t *testing.T) {
	user := write(t, "timeout = \"2s\"\ninterface = \"eth1\"\n[peers]\na = \"10.0.0.1\"\nb = \"02:00:00:00:00:0b/5\"\n")
	system := write(t, "control = \"/run/x.sock\"\ntimeout = \"9s\"\ninterface = \"eth0\"\n[peers]\na = \"10.9.9.9\"\nc = \"host\"\ne = \"10.0.0.5,02:00:00:00:00:05 counters\"\n")
	absent := filepath.Join(t.TempDir(), "absent")
	s, err := Load(environment(map[string]string{"XDPFAB_INTERFACE": "eth2"}), []string{absent, user, system})
	if err != nil {
		t.Fatal(err)
	}
	want := []Value{
		{"control", "/run/x.sock", system, 1}, {"interface", "eth2", "XDPFAB_INTERFACE", 4}, {"timeout", "2s", user, 2},
		{"peers.a", "10.0.0.1", user, 2}, {"peers.b", "02:00:00:00:00:0b/5", user, 2}, {"peers.c", "host", system, 1},
		{"peers.e", "10.0.0.5,02:00:00:00:00:05 counters", system, 1},
	}
	if got := s.All(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if !s.Get(Interface).Precedes(s.Get(Timeout)) || !s.Get(Timeout).Precedes(s.Get(Control)) || s.Get("absent").Precedes(s.Get(Control)) {
		t.Errorf("precedence: %+v", s.All())
	}
	if s.Get(Timeout) != want[2] || s.Get("absent") != (Value{}) {
		t.Error(s.Get(Timeout), s.Get("absent"))
	}
	for name, want := range map[string]string{
		"a": "10.0.0.1", "b": "02:00:00:00:00:0b/5", "c": "host", "e": "10.0.0.5 02:00:00:00:00:05", "10.0.0.2/1": "", "d": "", "": "",
	} {
		if got, is := s.Addresses(name); strings.Join(got, " ") != want || is != (want != "") {
			t.Errorf("%s: %s, %t, want %s", name, got, is, want)
		}
	}
	var none Settings
	named := func(s *Settings) bool { _, is := s.Addresses("a"); return is }
	if named(&none) || none.Get(Control) != (Value{}) || len(none.All()) > 0 {
		t.Error("the zero value has settings")
	}
}

// A file that cannot be meant is refused, with its name, the key and what would do.
func TestRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"interfce = \"eth0\"":               "interfce: unknown key, did you mean interface?; known are auth-key-file, control, directory, interface, timeout, transport, and the table [peers]",
		"interface = 3":                     "interface: 3: want a string",
		"control = \"\"":                    "want a string in quotes, which is not empty",
		"timeout = \"5\"":                   `timeout: "5": want a time`,
		"timeout = \"-1s\"":                 "more than 0",
		"transport = \"upd\"":               `transport: "upd", did you mean udp?: want "xdp", "udp" or "auto"`,
		"peers = 3":                         "want a table",
		"[peers]\n\"a/b\" = \"x\"":          `"a/b" is no name of a node: want`,
		"[peers]\na = \"10.0.0.1,,x\"":      `peers.a: node a has the address ""`,
		"[peers]\na = \" \"":                "peers.a: node a has no address",
		"[peers]\na = 3":                    "peers.a: 3: want a string",
		"[peers]\na.b = \"x\"":              "peers.a: map",
		"interface = \"a\"\nnonsense":       ":2: expected '=' after key",
		"timeout = \"2s\"\n\ninterface = 3": ":3: interface: 3: want a string",
		"\n[peers]\na = \"x\"\nb = 3":       ":4: peers.b: 3: want a string",
		"peers = { a = 3 }":                 ":1: peers.a: 3: want a string",
		"\ninterface = va # mine":           `:2: interface: va: want quotes: interface = "va"`,
		"timeout = 5s\r\n":                  `:1: timeout: 5s: want quotes: timeout = "5s"`,
		"[peers]\nnode7 = 10.0.0.7/5":       `:2: node7: 10.0.0.7/5: want quotes: node7 = "10.0.0.7/5"`,
		"\ninterface = \"eth0":              ":2: interface: unterminated basic string (column 17): want a quotation mark",
	} {
		path := write(t, text)
		if _, err := Load(environment(nil), []string{path}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := Load(environment(map[string]string{"XDPFAB_TIMEOUT": "soon"}), nil); err == nil || !strings.Contains(err.Error(), "XDPFAB_TIMEOUT") {
		t.Error(err)
	}
	if _, err := Load(environment(nil), []string{t.TempDir()}); err == nil {
		t.Error("a folder was read as a file")
	}
}

// A variable is told of if its name is nearly one that is read, and no other.
func TestMisspelt(t *testing.T) {
	got := Misspelt([]string{"XDPFAB_TIMEOT=3s", "XDPFAB_TIMEOUT=3s", "XDPFAB_ETCD_PASSWORD=x", "XDPFAB_INTERFCE=", "XDPFAB_ETCD=x", "XDPFAB_SEEDS=3", "TIMEOT=3s", "XDPFAB_=", "XDPFAB"})
	want := []string{"XDPFAB_TIMEOT, did you mean XDPFAB_TIMEOUT?", "XDPFAB_INTERFCE, did you mean XDPFAB_INTERFACE?"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFiles(t *testing.T) {
	for _, c := range []struct {
		vars map[string]string
		want string
	}{
		{map[string]string{"XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/x/xdpfab/config.toml " + System},
		{map[string]string{"HOME": "/h"}, "/h/.config/xdpfab/config.toml " + System},
		{nil, System},
	} {
		if got := strings.Join(Files(environment(c.vars)), " "); got != c.want {
			t.Errorf("%v: %s", c.vars, got)
		}
	}
}
