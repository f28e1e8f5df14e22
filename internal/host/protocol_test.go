// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
)

const protocolPage = "../../docs/attach-protocol.md"

// The examples of the page are answered as it says.
func TestAttachProtocol(t *testing.T) {
	all := examples(t)
	d := newDaemon(t, host.GuestLimits{Kept: 1 << 16})
	d.accepts()
	upgrade := all[0]
	p := &program{TB: t, daemon: d, became: map[string]string{}}
	seen := map[string]bool{}
	for _, x := range all[1:] {
		var call share.Call
		if err := json.Unmarshal([]byte(x.request), &call); err != nil {
			t.Fatalf("%s: %v", x.request, err)
		}
		seen[call.Verb] = true
		if p.talk == nil || call.Verb == share.CallAttach && p.attached {
			p.begin(upgrade)
		}
		p.attached = p.attached || call.Verb == share.CallAttach
		p.do(x)
		if call.Verb == share.CallListen {
			d.asks("02:00:00:00:00:0a/8")
		}
	}
	p.end()
	for _, verb := range host.Verbs() {
		if !seen[verb] {
			t.Errorf("no example of %q", verb)
		}
	}
}

// The page has every kind of error, with its number, and every feature.
func TestAttachProtocolNames(t *testing.T) {
	page, err := os.ReadFile(protocolPage)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]string{} // the cell behind each name
	for _, line := range strings.Split(string(page), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, name := range strings.Split(cells[1], ",") {
			named[strings.Trim(name, " `")] = strings.TrimSpace(cells[2])
		}
	}
	for kind, is := range node.GuestErrors {
		if code, _ := errno.Of(is); named[kind] != fmt.Sprint(code) {
			t.Errorf("kind %q has the errno %q, want %d", kind, named[kind], code)
		}
	}
	for _, f := range share.Features {
		if named[f] == "" {
			t.Errorf("feature %q is not on the page", f)
		}
	}
}

// A program gets the features that it asks for and the daemon has, and can speak like an
// older one all the same.
func TestFeatures(t *testing.T) {
	upgrade := examples(t)[0]
	d := newDaemon(t, host.GuestLimits{})
	for asked, agreed := range map[string]string{
		``: ``, `"features":null,`: ``, `"features":[],`: ``, `"features":["flying"],`: ``,
		`"features":["text","flying"],`:       `,"features":["text"]`,
		`"features":["text","errno","text"],`: `,"features":["errno","text"]`,
	} {
		p := &program{TB: t, daemon: d, became: map[string]string{}}
		p.begin(upgrade)
		p.do(example{`{"id":1,"verb":"attach","arguments":{"version":3,` + asked +
			`"sizes":{"entries":64,"arena":65536,"arrivals":65536}}}`, "segment",
			`{"id":1,"result":{"version":3,"netns":1,"pid":1,"interface":"","mac":[2,0,0,0,0,10],` +
				`"address":"02:00:00:00:00:0a","mtu":1500` + agreed + `}}`, "doorbell"})
		p.do(example{request: `{"id":2,"verb":"endpoint","arguments":{"number":3,"origin":7}}`, reply: `{"id":2,"result":3}`})
		p.do(example{request: `{"id":3,"verb":"peer","arguments":{"origin":7,"addr":{"MAC":[2,0,0,0,0,11],"IP":"","Endpoint":0,"Lane":0}}}`,
			reply: `{"id":3,"result":1}`})
		p.end()
	}
}

// example is a text of a program, or what it says in HTTP, and the answer; behind a plus
// the file descriptors that go along.
type example struct{ request, with, reply, brings string }

// examples reads them from the page, HTTP first.
func examples(t *testing.T) (all []example) {
	t.Helper()
	page, err := os.ReadFile(protocolPage)
	if err != nil {
		t.Fatal(err)
	}
	var at *string
	for _, line := range strings.Split(string(page), "\n") {
		text := strings.TrimSpace(line)
		switch said, by, _ := cutSpeaker(text); {
		case !strings.HasPrefix(line, "    "):
			at = nil
		case by == "program":
			all = append(all, example{request: said})
			at = &all[len(all)-1].request
		case by == "daemon":
			at = &all[len(all)-1].reply
			*at = said
		case at != nil && len(all) == 1:
			*at += "\r\n" + text
		case at != nil:
			*at += " " + text
		}
	}
	if len(all) < 25 {
		t.Fatalf("%d examples", len(all))
	}
	for i := range all {
		x := &all[i]
		x.request, x.with, _ = strings.Cut(x.request, " + ")
		x.reply, x.brings, _ = strings.Cut(x.reply, " + ")
	}
	return all
}

func cutSpeaker(text string) (said, by string, is bool) {
	by, said, is = strings.Cut(text, ":")
	if !is || by != "program" && by != "daemon" {
		return text, "", false
	}
	return strings.TrimSpace(said), by, true
}

// program is one that attaches and says what is on the page.
type program struct {
	testing.TB
	*daemon
	conn     *net.UnixConn
	talk     *share.Talk
	attached bool
	became   map[string]string // origins of the page, which are other ones here
}

func (p *program) begin(upgrade example) {
	p.end()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: p.socket, Net: "unix"})
	if err != nil {
		p.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(testnet.Patience))
	want := upgrade.reply + "\r\n\r\n"
	got := make([]byte, len(want))
	if _, err = io.WriteString(conn, upgrade.request+"\r\n\r\n"); err == nil {
		_, err = io.ReadFull(conn, got)
	}
	if err != nil || string(got) != want {
		p.Fatalf("answered with %q, %v; want %q", got, err, want)
	}
	p.conn, p.talk, p.attached = conn, share.NewTalk(conn), false
}

// end ends the conversation, and waits until the host has noticed.
func (p *program) end() {
	if p.talk == nil {
		return
	}
	_ = p.talk.Close()
	testnet.Eventually(p, "the end of the program", func() bool { return len(p.node.Guests()) == 0 })
}

// do says a text, and compares the answer.
func (p *program) do(x example) {
	p.Helper()
	for is, became := range p.became {
		x.request = strings.ReplaceAll(x.request, is, became)
	}
	fds := p.files(x)
	if err := p.talk.Send(json.RawMessage(x.request), fds...); err != nil {
		p.Fatalf("%s: %v", x.request, err)
	}
	share.CloseAll(fds)
	var reply json.RawMessage
	got, err := p.talk.Receive(&reply)
	if err != nil {
		p.Fatalf("%s: %v", x.request, err)
	}
	share.CloseAll(got)
	if (len(got) == 1) != (x.brings != "") {
		p.Errorf("%s: %d file descriptors came, want %q", x.request, len(got), x.brings)
	}
	if wrong := p.differ("", number(p, x.reply), number(p, string(reply))); wrong != "" {
		p.Errorf("%s\n is answered with\n%s\n on the page\n%s\n%s", x.request, reply, x.reply, wrong)
	}
}

// files makes what goes along with a text.
func (p *program) files(x example) []int {
	p.Helper()
	var fd int
	var err error
	switch x.with {
	case "":
		return nil
	case "segment":
		var call struct{ Arguments share.Attach }
		if err = json.Unmarshal([]byte(x.request), &call); err == nil {
			fd, err = copyOf(share.NewSegment(call.Arguments.Sizes))
		}
	case "region":
		fd, err = copyOf(mr.Memfd("region", 4096))
	case "tallies":
		fd, err = copyOf(share.NewTallies())
	default:
		p.Fatalf("%s: nobody knows what %q is", x.request, x.with)
	}
	if err != nil {
		p.Fatal(err)
	}
	return []int{fd}
}

// copyOf copies the descriptor of memory that it closes.
func copyOf[M interface {
	FD() int
	Close() error
}](m M, err error) (int, error) {
	if err != nil {
		return -1, err
	}
	defer m.Close()
	return unix.Dup(m.FD())
}

// number decodes JSON whose numbers stay texts.
func number(t testing.TB, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// varies are the fields whose values are other ones each time: of these the page has the
// type. In place of further fields it has one of the name "…".
var varies = []string{"netns", "pid", "interface", "origin", "incarnation", "met",
	"guest_taken", "guest_refused", "guest_completed"}

// differ reports where an answer is not that of the page.
func (p *program) differ(at string, want, got any) string {
	name := at[strings.LastIndex(at, ".")+1:]
	if slices.Contains(varies, name) && reflect.TypeOf(want) == reflect.TypeOf(got) {
		if name == "origin" {
			p.became[fmt.Sprint(want)] = fmt.Sprint(got)
		}
		return ""
	}
	fields, is := want.(map[string]any)
	gots, both := got.(map[string]any)
	if !is || !both {
		if !reflect.DeepEqual(want, got) {
			return fmt.Sprintf("%s is %v, on the page %v", at, got, want)
		}
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if _, is := gots[key]; !is && key != "…" {
			return fmt.Sprintf("%s.%s is missing", at, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(gots)) {
		value, is := fields[key]
		if !is && fields["…"] == nil {
			return fmt.Sprintf("%s.%s is not on the page", at, key)
		}
		if wrong := ""; is {
			if wrong = p.differ(at+"."+key, value, gots[key]); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}
