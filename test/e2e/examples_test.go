// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// examplesEnv names a folder with the programs of examples/, ready to run.
const examplesEnv = "XDPFAB_EXAMPLES"

// examples returns that folder, or builds some of them in one that anybody can enter.
func examples(t *testing.T, which string) (folder string) {
	t.Helper()
	if folder := os.Getenv(examplesEnv); folder != "" {
		return folder
	}
	if os.Getenv(testnet.ProgramsEnv) != "" {
		t.Skip("the examples are built here, which takes Go; or have " + examplesEnv + " name a folder with them")
	}
	folder, err := os.MkdirTemp("", "xdpfab-examples-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", folder+"/", "github.com/xdpfab/xdpfab/examples/"+which).CombinedOutput(); err != nil {
		t.Fatalf("building the examples: %v\n%s", err, out)
	}
	return folder
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What the examples print for these arguments, once they have had their way.
var exampleRuns = []struct{ args, prints string }{
	{"counter -n 200", `counted 200 times: 200 certain, 0 unknown, 0 lost in a restart; the counter is at \d+`},
	{"sequencer -n 200", `200 numbers, from \d+ to \d+`},
	{"ratelimiter -n 20 -period 1000h", `admitted \d+ of 20 requests of 4 customers`},
	{"leaderboard -n 100", `1\. player +\d+ +\d+\n2\. player`},
	{"hashtable -n 50", `put 50 keys, found 50`},
	{"workqueue", `done: \d+ tasks`},
	{"lock -n 2 -lease 200ms", `working as holder \d+\nworking as holder \d+`},
	{"barrier -n 3 -rounds 3", `3 programs met 3 times`},
	{"bulkcopy", `4194304 bytes written, 4194304 read back`},
	{"metrics -n 100", `requests_total \d+\nrequests_unsure_total 0`},
	{"doorbell -n 50", `50 records written and read; the doorbell is at \d+`},
}

// served are the examples whose home is a program of its own.
var served = []string{"workqueue", "doorbell"}

// Every example runs as nobody, through a daemon and by UDP sockets, with the memory of a
// daemon whose regions are those that examples/README.md names.
func TestExamples(t *testing.T) {
	testnet.Require(t)
	testnet.SkipOnNICs(t, "addresses of its own")
	bin := examples(t, "...")
	var regions []string
	for _, m := range regexp.MustCompile("(?m)^\\| \\[\\w+\\]\\(.*?\\) \\| `(.*?)` ").FindAllStringSubmatch(read(t, "examples", "README.md"), -1) {
		regions = append(regions, "--region", m[1])
	}
	if len(regions) != 2*(len(exampleRuns)-len(served)) {
		t.Fatalf("the page names the regions %q", regions)
	}
	for _, through := range []string{"a daemon", "sockets"} {
		t.Run(through, func(t *testing.T) {
			t.Parallel()
			net := testnet.NewPair(t, testnet.Options{})
			d := serve(t, net.B, regions...)
			socket := filepath.Join(folder, socketName) // in a folder that anybody can enter
			if through == "a daemon" {
				hostAt(t, net.A, socket, "--socket-mode", "0666", "--guest", "allow:user=65534")
			} else {
				socket += ".none"
			}
			control := env("XDPFAB_CONTROL=" + socket)
			homes, numbers := map[string]*process{}, map[string]string{}
			for _, name := range served {
				p := start(t, net.B, filepath.Join(bin, name), []string{"-i", net.B.IfName, "-serve", "-timeout", limit.String()},
					env("XDPFAB_CONTROL="+d.socket))
				p.eventually("serving", func() bool {
					_, numbers[name], _ = strings.Cut(strings.TrimSpace(p.out.String()), "/")
					return strings.HasSuffix(p.out.String(), "\n")
				})
				homes[name] = p
			}
			for _, e := range exampleRuns {
				args := strings.Fields(e.args)
				addr := net.B.IP4.String()
				if number := numbers[args[0]]; number != "" {
					addr += "/" + number
				}
				p := start(t, net.A, filepath.Join(bin, args[0]), append(args[1:], "-i", net.A.IfName, "-timeout", limit.String(), addr),
					unprivileged, control)
				if p.wants(0); !regexp.MustCompile(e.prints).MatchString(p.out.String()) {
					t.Errorf("%s prints %q, want %s", e.args, p.out.String(), e.prints)
				}
			}
			for _, p := range homes {
				p.signal(syscall.SIGINT)
				p.wants(0)
			}
			d.end()
		})
	}
}

// The commands at the end of the tutorial do what it says.
func TestTutorialCommands(t *testing.T) {
	testnet.Require(t)
	testnet.SkipOnNICs(t, "addresses of its own")
	bin := examples(t, "ratelimiter")
	net := testnet.NewPair(t, testnet.Options{})
	_, last, _ := strings.Cut(read(t, "docs", "tutorial.md"), "\n## With a daemon\n")
	ran := 0
	for _, m := range regexp.MustCompile(`(?m)^    (\S.*)$`).FindAllStringSubmatch(last, -1) {
		line, _, _ := strings.Cut(m[1], "#")
		ran++
		if args, is := strings.CutPrefix(line, "xdpfabd --interface eth0 "); is {
			serve(t, net.B, strings.Fields(args)...)
			continue
		}
		line = strings.NewReplacer("eth0", net.A.IfName, "10.0.0.2", net.B.IP4.String(), "go run ./examples/", bin+"/",
			"xdpfab atomic", xdpfabPath+" atomic").Replace(line)
		args := strings.Fields(line)
		start(t, net.A, args[0], args[1:]).wants(0)
	}
	if ran != 4 {
		t.Errorf("ran %d commands, want 4", ran)
	}
}

// The program of the last step runs on two nodes, as nobody, by the commands of the page.
func TestTutorialOnTwoNodes(t *testing.T) {
	testnet.Require(t)
	testnet.SkipOnNICs(t, "addresses of its own")
	bin := examples(t, "internal/tutorial/step7")
	net := testnet.NewPair(t, testnet.Options{})
	_, last, _ := strings.Cut(read(t, "docs", "tutorial.md"), "\n## 7. Two machines\n")
	lines := regexp.MustCompile(`(?m)^    go run \./examples/internal/tutorial/(\S.*)$`).FindAllStringSubmatch(last, -1)
	if len(lines) != 2 {
		t.Fatalf("the page has the commands %q, want one for each node", lines)
	}
	run := func(line string, at *testnet.Side) *process {
		args := strings.Fields(strings.NewReplacer("eth0", at.IfName, "10.0.0.2", net.B.IP4.String()).Replace(line))
		return start(t, at, filepath.Join(bin, args[0]), args[1:], unprivileged)
	}
	home := run(lines[0][1], net.B)
	home.eventually("serving", func() bool { return strings.HasPrefix(home.out.String(), "serving at ") })
	other := run(lines[1][1], net.A)
	if other.wants(0); strings.TrimSpace(other.out.String()) != "true true true"+strings.Repeat(" false", 7) {
		t.Errorf("the other node prints %q", other.out.String())
	}
	home.signal(syscall.SIGINT)
	home.wants(0)
}
