// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// blocks are the blocks of README's lines of Go, and those that are indented, each with
// the line of text before it.
func blocks(t *testing.T) (code []string, indented []shown) {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	code = goBlocks(string(text))
	before, inside := "", false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside
		case inside || line == "":
		case strings.HasPrefix(line, "    "):
			if n := len(indented); before != "" || n == 0 {
				indented, before = append(indented, shown{before: before}), ""
			}
			b := &indented[len(indented)-1]
			b.lines = append(b.lines, strings.TrimSpace(line))
		default:
			before = line
		}
	}
	return code, indented
}

// goBlocks are the blocks of Go in a page.
func goBlocks(page string) (code []string) {
	for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(page, -1) {
		code = append(code, m[1])
	}
	return code
}

type shown struct {
	before string
	lines  []string
}

// has reports whether a line is a command, with a comment or without.
func (b shown) has(command string) bool {
	return slices.ContainsFunc(b.lines, func(line string) bool {
		line, _, _ = strings.Cut(line, "#")
		return strings.TrimSpace(line) == command
	})
}

// eth0 is a pair whose interfaces and addresses are those of README: the node with the
// memory is 10.0.0.2.
func eth0(t *testing.T) *testnet.Pair {
	t.Helper()
	net := testnet.NewVeth(t, testnet.Options{})
	for n, side := range []*testnet.Side{net.A, net.B} {
		testnet.IP(t, side, "link set veth0 down", "link set veth0 name eth0", "link set eth0 up",
			fmt.Sprintf("addr add 10.0.0.%d/24 dev eth0", n+1))
		side.IfName = "eth0"
	}
	return net
}

// README's commands run as they stand: those of the node with the memory there, in the
// order of the page, and the others on another node; those of make name its targets.
func TestReadmeCommands(t *testing.T) {
	testnet.Require(t)
	if testnet.KernelBefore(t, 5, 18) {
		t.Skip("README shows a resident region")
	}
	net := eth0(t)
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, all := blocks(t)
	dir, socket, ran := t.TempDir(), filepath.Join(t.TempDir(), socketName), 0
	var d *node
blocks:
	for _, b := range all {
		patience := "XDPFAB_TIMEOUT=" + limit.String() // a live peer may be kept from answering by a busy machine
		side, at := net.B, env("XDPFAB_CONTROL="+socket, patience)
		if strings.HasSuffix(b.before, "on any other node:") {
			side, at = net.A, env("XDPFAB_CONTROL=", patience)
		}
		for _, line := range b.lines {
			line, _, _ = strings.Cut(line, "#")
			words := strings.Fields(strings.TrimPrefix(line, "sudo "))
			switch words[0] {
			case "make":
				if !strings.Contains(string(makefile), "\n"+words[1]+":") {
					t.Errorf("the Makefile has no target %s", words[1])
				}
			case "xdpfabd":
				if d != nil {
					d.end()
				}
				d = launch(t, side, socket, words[1:]...)
				d.ready()
			case "xdpfab":
				p := start(t, side, xdpfabPath, words[1:], at, func(c *exec.Cmd) { c.Dir = dir })
				p.wants(0)
			case "go", "bin/xdpfabd", "bin/xdpfab": // TestReadmeWithoutRoot, TestReadmeUnprivileged
				continue
			case "xdpfab:": // a message of a put, to its end
				continue blocks
			default:
				t.Errorf("a block that is neither a command nor output: %s", line)
			}
			ran++
		}
	}
	if d == nil || ran < 20 {
		t.Fatalf("only %d commands ran", ran)
	}
	d.end()
}

// README's commands of Go run as they stand: one in a clone, with no network and no
// privilege, and the others in modules beside it, which then have the library.
func TestReadmeWithoutRoot(t *testing.T) {
	if os.Getenv(testnet.ProgramsEnv) != "" {
		t.Skip("the programs are built here, which takes Go")
	}
	clone, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(clone, filepath.Join(dir, "xdpfab")); err != nil {
		t.Fatal(err)
	}
	mine, alone := filepath.Join(dir, "mine"), filepath.Join(dir, "alone") // with a workspace, and without
	for _, module := range []string{mine, alone} {
		if err := os.Mkdir(module, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{
			"go.mod":  "module example.com/mine\n\ngo 1.26.0\n",
			"main.go": "package main\n\nimport (\"fmt\"; \"github.com/xdpfab/xdpfab/xdpfab\")\n\nfunc main() { _, _, err := xdpfab.Pipe(); fmt.Println(err) }\n",
		} {
			if err := os.WriteFile(filepath.Join(module, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, all := blocks(t)
	for _, run := range []struct{ in, command, prints string }{
		{clone, "go run ./examples/counter", "counted 10000 times"},
		{mine, "go work init . ../xdpfab", ""},
		{mine, "go run .", "<nil>"},
		{alone, "go mod edit -replace github.com/xdpfab/xdpfab=../xdpfab", ""},
		{alone, "go mod tidy", ""},
		{alone, "go run .", "<nil>"},
	} {
		if run.command != "go run ." && !slices.ContainsFunc(all, func(b shown) bool { return b.has(run.command) }) {
			t.Fatalf("README has no %q", run.command)
		}
		args := strings.Fields(run.command)[1:]
		if run.in == clone { // a busy machine may keep the program's own threads from answering
			args = append(args, "-patience", limit.String(), "-timeout", limit.String())
		}
		cmd := exec.Command("go", args...)
		// One build serves every folder.
		cmd.Dir, cmd.Env = run.in, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath", "PWD="+run.in)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), run.prints) {
			t.Fatalf("%s: %v: %s", run.command, err, out)
		}
	}
}

// README's two processes run as nobody, as they stand, in a network of their own, and the
// client prints what README says.
func TestReadmeUnprivileged(t *testing.T) {
	testnet.Require(t)
	side := eth0(t).A
	testnet.IP(t, side, "link set lo up")
	dir, err := os.MkdirTemp("", "xdpfab-clone-") // which belongs to nobody, as a clone to its user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := errors.Join(os.Chown(dir, nobody, nobody), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	there := func(c *exec.Cmd) { c.Dir = dir }
	_, all := blocks(t)
	var daemon, client *process
	for _, b := range all {
		for _, line := range b.lines {
			args := strings.Fields(line)
			switch args[0] {
			case "bin/xdpfabd":
				daemon = start(t, side, xdpfabdPath, args[1:], unprivileged, there)
				daemon.eventually("the daemon serves", func() bool { return strings.Contains(daemon.err.String(), "msg=serving") })
			case "bin/xdpfab":
				client = start(t, side, xdpfabPath, args[1:], unprivileged, there, env("XDPFAB_TIMEOUT="+limit.String()))
				client.wants(0)
			}
		}
	}
	if client == nil || !strings.Contains(read(t, "README.md"), "`"+strings.TrimSpace(client.out.String())+"`") {
		t.Errorf("README does not say what its first client prints: %+v", client)
	}
	daemon.signal(syscall.SIGTERM)
	daemon.wants(0)
}

// README's Go and that of docs/go.md run as they stand, with a check behind each line: as
// the node with the memory, and as another one.
func TestReadmeGo(t *testing.T) {
	testnet.Require(t)
	if os.Getenv(testnet.ProgramsEnv) != "" {
		t.Skip("the blocks are built here, which takes Go")
	}
	net := eth0(t)
	code, _ := blocks(t)
	if len(code) != 2 {
		t.Fatalf("README has %d blocks of Go, want a server and a client", len(code))
	}
	code = append(code, goBlocks(read(t, "docs/go.md"))...)
	if len(code) != 13 {
		t.Fatalf("docs/go.md has %d blocks of Go, want words, a wait, bytes, and messages and calls there and here, "+
			"locks, names and a test", len(code)-2)
	}
	path := filepath.Join(t.TempDir(), "readme")
	build := exec.Command("go", "build", "-overlay", overlay(t, code), "-o", path, "./readme")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	keep, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	server := start(t, net.B, path, []string{"server"}, func(c *exec.Cmd) { c.Stdin = keep })
	_ = keep.Close()
	server.eventually("the server is ready", func() bool { return strings.Contains(server.out.String(), "ready") })
	start(t, net.A, path, []string{"client"}).wants(0)
	if err := end.Close(); err != nil {
		t.Error(err)
	}
	server.wants(0)
}

// overlay writes a program that consists of README's blocks, in a folder "readme" of the
// module that is there for the compiler alone, and returns the file that says so.
func overlay(t *testing.T, code []string) string {
	t.Helper()
	dir := t.TempDir()
	nodes := filepath.Join(dir, "nodes")
	all := func(blocks ...int) (text string) {
		for _, i := range blocks {
			text += checked(strings.Replace(code[i], "/etc/xdpfab/nodes", nodes, 1))
		}
		return text
	}
	var b strings.Builder
	fmt.Fprintf(&b, `package main

import ("context"; "fmt"; "io"; "log"; "os"; "time"; "github.com/xdpfab/xdpfab/atomic"; "github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/directory"; "github.com/xdpfab/xdpfab/xdpfab/sync")

var (ctx = context.Background(); values = make([]uint64, 64); data = []byte("data"); buf = make([]byte, 64))

func check(err error) { if err != nil { log.Fatal(err) } }

func work(ctx context.Context, _ uint64) error { return ctx.Err() }

func main() {
	if os.Args[1] == "server" { server(); _, err := io.Copy(io.Discard, os.Stdin); check(err) } else { client() }
}

func server() {
%s_, err = dom.Serve("locks", 8192)
check(err)
%s}

func client() {
%s}
`, all(0, 8), strings.Replace(all(6, 5), "check(err)", `check(err); fmt.Println("ready")`, 1),
		all(1, 2, 3, 4, 9, 10, 11, 12, 7)) // the server ends with the last message, and finds that the doorbell has rung
	main := filepath.Join(dir, "main.go")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "readme", "main.go"): main}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	for path, text := range map[string][]byte{main: []byte(b.String()), file: list,
		nodes: []byte("node7 10.0.0.2 counters locks\n")} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

var assigned = regexp.MustCompile(`^(\w+(?:, \w+)*) :?= `)

// checked is code with a check of err behind each line that sets it, and a use of each
// variable.
func checked(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(line)
		m := assigned.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, name := range strings.Split(m[1], ", ") {
			if name == "err" {
				b.WriteString("check(err)\n")
			} else {
				fmt.Fprintf(&b, "_ = %s\n", name)
			}
		}
	}
	return b.String()
}
