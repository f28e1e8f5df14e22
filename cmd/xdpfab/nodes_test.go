// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A peer may be given by the name of a node in the directory, which a flag, the
// environment or a file names.
func TestPeerOfDirectory(t *testing.T) {
	n := newNode(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	testnet.NewHosts(t)
	file := write("nodes", "node7 "+peerAddr+",10.0.0.7 r ro\nnode8 10.0.0.8 # no region\n")
	for _, line := range []string{
		"ping node7 -c 1", "list node7/0", "atomic read uint64 --peer node7 --region r", "bench node7 --region r --count 10 --op fetch_read",
		"get node7 " + filepath.Join(dir, "copy") + " --region ro",
	} {
		if r := n.run("", n.line(line+" --directory "+file)...); r.code != exitOK {
			t.Errorf("%s: %+v", line, r)
		}
	}
	checkRefusal(t, "twice", n.run("", n.line("bench node7 node7 --region r --count 10 --op fetch_read --directory "+file)...), exitUsage,
		peerAddr+" is named twice: want each node once")
	n.env = func(name string) string { return map[string]string{"XDPFAB_DIRECTORY": file}[name] }
	if r := n.run("", n.line("ping node7 -c 1")...); r.code != exitOK {
		t.Errorf("by the environment: %+v", r)
	}
	n.files = []string{write("config.toml", "directory = \"/absent\"\n[peers]\nnode8 = \""+peerAddr+" r\"\n")}
	if r := n.run("", n.line("ping node8 -c 1")...); r.code != exitOK {
		t.Errorf("a short name of the configuration comes before the directory: %+v", r)
	}
	checkRefusal(t, "another name", n.run("", n.line("ping node9.invalid")...), exitUsage,
		`node "node9.invalid": `+file+" has none of this name: it has node7, node8; nor is it the name of a host; see")
	checkRefusal(t, "a near miss of a node", n.run("", n.line("ping nod7")...), exitUsage, `unknown peer "nod7", did you mean node7?: want an address`)
	checkRefusal(t, "a near miss of a short name", n.run("", n.line("ping nod8 --directory none")...), exitUsage, `unknown peer "nod8", did you mean node8?: want an address`)
	checkRefusal(t, "no name", n.run("", n.line("ping node9.invalid --directory none")...), exitUsage,
		"no such host; `xdpfab config --help` says how to give peers names; see")
	checkRefusal(t, "none", n.run("", n.line("ping 10.0.0.300 --directory none")...), exitUsage, "10.0.0.300")
	n.env = nil
	checkRefusal(t, "no file", n.run("", n.line("ping node7")...), exitUsage, "/absent: no such file or directory: want a file with lines such as")
	checkRefusal(t, "a wrong line", n.run("", n.line("ping node7 --directory "+write("wrong", "node7\n"))...), exitUsage, "line 1: node node7 has no address")
	checkRefusal(t, "a wrong URL", n.run("", n.line("ping node7 --directory http://x:1")...), exitUsage, "want etcd, or etcds")
	checkRefusal(t, "a wrong URL, beside an address", n.run("", n.line("ping PEER -c 1 --directory http://x:1")...), exitUsage, "want etcd, or etcds")
	checkRefusal(t, "no file, beside an address", n.run("", n.line("ping PEER -c 1 --directory /absent")...), exitUsage, "/absent: no such file or directory")
	checkRefusal(t, "whoever waits", n.run("", n.line("receive --directory "+file)...), exitUsage, "this command waits for peers")
	if r := n.run("", n.line("ping "+peerAddr+" -c 1")...); r.code != exitOK {
		t.Errorf("an address needs no directory: %+v", r)
	}
}

// An etcd that is away is told as what it is, with the remedy.
func TestDirectoryAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody answers there
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n := newNode(t)
	url := "etcd://" + l.Addr().String()
	for _, command := range []string{"ping node7 -i pipe0", "nodes"} {
		r := n.run("", strings.Fields(command+" --timeout 300ms --directory "+url)...)
		checkRefusal(t, command, r, exitUnreachable, url+"/xdpfab: it has not answered yet: is it there, and reachable?: it was tried for 300ms in all (--timeout)")
		if !strings.Contains(r.err, "--directory none does without") {
			t.Errorf("%s: %s", command, r.err)
		}
	}
}

// nodes prints the entries of the directory.
func TestNodes(t *testing.T) {
	n := newNode(t)
	checkRefusal(t, "a folder", n.run("", "nodes", "--directory", "/"), exitUsage, "is a directory: want a file in it, with lines such as")
	checkRefusal(t, "no directory", n.run("", "nodes"), exitUsage, "no directory is named: want --directory")
	file := filepath.Join(t.TempDir(), "nodes")
	if err := os.WriteFile(file, []byte("node8 10.0.0.8\nnode7 10.0.0.7,02:00:00:00:00:0b scores counters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := n.run("", "nodes", "--directory", file)
	want := "NAME   ADDRESSES                   REGIONS\n" +
		"node7  10.0.0.7 02:00:00:00:00:0b  counters scores\n" +
		"node8  10.0.0.8                    -\n"
	if r.code != exitOK || r.out != want {
		t.Errorf("%+v, want %s", r, want)
	}
	n.env = func(name string) string { return map[string]string{"XDPFAB_DIRECTORY": file}[name] }
	var got []nodeEntry
	r = n.run("", "nodes", "--json")
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.code != exitOK {
		t.Fatalf("%v, %+v", err, r)
	}
	entries := []nodeEntry{
		{"node7", []string{"10.0.0.7", "02:00:00:00:00:0b"}, []string{"counters", "scores"}}, {"node8", []string{"10.0.0.8"}, []string{}},
	}
	if !reflect.DeepEqual(got, entries) {
		t.Errorf("%+v, want %+v", got, entries)
	}
}
