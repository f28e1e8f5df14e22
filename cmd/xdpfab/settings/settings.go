// SPDX-License-Identifier: Apache-2.0

// Package settings is the configuration of the client: what the environment and two files
// say where a flag says nothing.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/xdpfab/directory"
)

// System is the file for all users of a machine.
const System = "/etc/xdpfab/client.toml"

// Keys of settings.
const (
	Interface = "interface"
	Control   = "control"
	Directory = "directory"
	Timeout   = "timeout"
	AuthKey   = "auth-key-file"
	Transport = "transport"
	peers     = "peers"
)

// variables are the environment variables of the keys.
var variables = map[string]string{
	Interface: "XDPFAB_INTERFACE", Control: "XDPFAB_CONTROL", Directory: "XDPFAB_DIRECTORY", Timeout: "XDPFAB_TIMEOUT",
	AuthKey: "XDPFAB_AUTH_KEY_FILE", Transport: "XDPFAB_TRANSPORT",
}

// Transports are the values of Transport.
var Transports = []string{"xdp", "udp", "auto"}

// Value is a setting.
type Value struct {
	Key   string `json:"key"` // of a peer, "peers." and its name
	Value string `json:"value"`
	From  string `json:"from"` // a file, or an environment variable
	rank  int    // the higher takes precedence; 0: not set
}

// Precedes reports whether a setting takes precedence over another one.
func (v Value) Precedes(other Value) bool { return v.rank > other.rank }

// Settings are the settings that a user has made. The zero value has none.
type Settings struct{ values map[string]Value }

// Files returns the files of a user, the one that takes precedence first.
func Files(env func(string) string) []string {
	folder := env("XDG_CONFIG_HOME")
	if home := env("HOME"); folder == "" && home != "" {
		folder = filepath.Join(home, ".config")
	}
	if folder == "" {
		return []string{System}
	}
	return []string{filepath.Join(folder, "xdpfab", "config.toml"), System}
}

// Load reads the files that are there for this user, the one that takes precedence first,
// and the environment, which takes precedence over all. An error names the file or
// variable, and the key.
func Load(env func(string) string, files []string) (*Settings, error) {
	s := &Settings{values: map[string]Value{}}
	for n, path := range slices.Backward(files) {
		text, err := os.ReadFile(path)
		if absent(err) {
			continue
		}
		if err == nil {
			err = s.read(Value{From: path, rank: len(files) - n}, text)
		} else {
			err = fmt.Errorf("configuration file: %w: want a file that this user may read, or none", err)
		}
		if err != nil {
			return nil, err
		}
	}
	for key, name := range variables {
		if v := env(name); v != "" {
			if err := s.set(Value{Key: key, From: name, rank: len(files) + 1}, v); err != nil {
				return nil, fmt.Errorf("environment variable %s: %w", name, err)
			}
		}
	}
	return s, nil
}

// absent reports whether an error means that a user has no such file: also in a folder of
// another user, whose environment a program of nobody may have.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// Readable reports whether a file is there for this user.
func Readable(path string) bool {
	f, err := os.Open(path)
	if err == nil {
		_ = f.Close()
	}
	return err == nil
}

// read adds the settings of a file. An error begins with the file and the line.
func (s *Settings) read(from Value, text []byte) error {
	var tree map[string]any
	if err := toml.Unmarshal(text, &tree); err != nil {
		return syntax(from.From, string(text), err)
	}
	key, err := s.add(from, tree)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s:%d: %w", from.From, tell.Line(string(text), key), err)
}

// syntax reports an error of TOML syntax, or that a value lacks quotes: all are texts.
func syntax(file, text string, err error) error {
	if d := new(toml.DecodeError); errors.As(err, &d) {
		line, _ := d.Position()
		if key, value, is := tell.Bare(strings.TrimRight(strings.Split(text, "\n")[line-1], "\r")); is {
			return fmt.Errorf("%s:%d: %w", file, line, tell.Quotes(key, value))
		}
	}
	return tell.Syntax(file, text, err)
}

// add adds the settings of a file's tree. With an error it returns the key.
func (s *Settings) add(from Value, tree map[string]any) (at string, err error) {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		if key == peers {
			if at, err := s.readPeers(from, tree[key]); err != nil {
				return at, err
			}
			continue
		}
		if variables[key] == "" {
			known := slices.Sorted(maps.Keys(variables))
			return key, fmt.Errorf("%s: unknown key%s; known are %s, and the table [%s]", key,
				tell.DidYouMean(key, append(known, peers)), strings.Join(known, ", "), peers)
		}
		from.Key = key
		if err := s.set(from, tree[key]); err != nil {
			return key, err
		}
	}
	return "", nil
}

// readPeers adds the short names of peers. With an error it returns the key.
func (s *Settings) readPeers(from Value, table any) (at string, err error) {
	names, is := table.(map[string]any)
	if !is {
		return peers, fmt.Errorf("%s: want a table: a line [%s], and lines such as node7 = \"10.0.0.7\"", peers, peers)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		from.Key = peers + "." + name
		if err := s.set(from, names[name]); err != nil {
			return from.Key, err
		}
		if _, err := directory.Parse(name, s.values[from.Key].Value); err != nil {
			return from.Key, fmt.Errorf("%s: %s", from.Key, tell.Plain(err))
		}
	}
	return "", nil
}

// set checks a value and adds the setting.
func (s *Settings) set(as Value, v any) error {
	key := as.Key
	text, is := v.(string)
	if key == Timeout && !is {
		return fmt.Errorf("%s: %v: want a time in quotes, such as \"5s\" or \"300ms\"", key, v)
	}
	if !is || text == "" {
		return fmt.Errorf("%s: %v: want a string in quotes, which is not empty", key, v)
	}
	if key == Timeout {
		if d, err := time.ParseDuration(text); err != nil || d <= 0 {
			return fmt.Errorf("%s: %q: want a time of more than 0, such as \"5s\" or \"300ms\"", key, text)
		}
	}
	if key == Transport && !slices.Contains(Transports, text) {
		return fmt.Errorf("%s: %q%s: want \"xdp\", \"udp\" or \"auto\"", key, text, tell.DidYouMean(text, Transports))
	}
	as.Value = text
	s.values[key] = as
	return nil
}

// Get returns a setting; a zero Value if it is not set.
func (s *Settings) Get(key string) Value { return s.values[key] }

// Addresses returns the addresses that a short name means, in the order of preference,
// and whether there is such a name.
func (s *Settings) Addresses(name string) ([]string, bool) {
	v, is := s.values[peers+"."+name]
	if !is {
		return nil, false
	}
	n, err := directory.Parse(name, v.Value)
	return n.Addrs, err == nil // which was checked
}

// All lists the settings: the single ones, and then the peers by name.
func (s *Settings) All() []Value {
	return slices.SortedFunc(maps.Values(s.values), func(a, b Value) int {
		inTable := func(v Value) int { return strings.Count(v.Key, ".") }
		return cmp.Or(cmp.Compare(min(inTable(a), 1), min(inTable(b), 1)), cmp.Compare(a.Key, b.Key))
	})
}

// prefix is that of the names of environment variables.
const prefix = "XDPFAB_"

// others are variables that packages below the client read.
var others = []string{"XDPFAB_ETCD_PASSWORD"}

// Misspelt lists the variables of an environment that nothing reads, although their names
// are like one that is read, each with the question whether that was meant.
func Misspelt(environ []string) (list []string) {
	known := append(slices.Sorted(maps.Values(variables)), others...)
	words := make([]string, len(known))
	for i, name := range known {
		words[i] = strings.TrimPrefix(name, prefix)
	}
	for _, line := range environ {
		name, _, _ := strings.Cut(line, "=")
		word, is := strings.CutPrefix(name, prefix)
		if !is || slices.Contains(known, name) {
			continue
		}
		// XDPFAB_ETCD is no slip of XDPFAB_ETCD_PASSWORD, but perhaps another program's.
		if like, is := tell.Closest(word, words); is && !strings.HasPrefix(like, word+"_") {
			list = append(list, fmt.Sprintf("%s, did you mean %s?", name, prefix+like))
		}
	}
	return list
}

// Variable returns the environment variable of a key.
func Variable(key string) string { return variables[key] }
