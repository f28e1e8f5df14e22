// SPDX-License-Identifier: Apache-2.0

package tell

import (
	"errors"
	"fmt"
	"testing"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"xdpfab: port: route: veth0 to 10.0.0.9: no route":                                                                       "veth0 to 10.0.0.9: no route",
		"xdpfab: 10.0.0.9: silent: port: route: nobody there":                                                                    "10.0.0.9: silent: nobody there",
		`key: strconv.ParseUint: parsing "-8": invalid syntax`:                                                                   `key: parsing "-8": invalid syntax`,
		"bpf: loading: assign values: field Steer: program steer: map sockets: map create: too many open files":                  "loading: map create: too many open files",
		"port: vb: queue 0: xsk: binding to queue 0 of interface 2: zero-copy not supported: operation not supported; want copy": "vb: queue 0: zero-copy not supported; want copy",
		"xdpfab: handover: domain on vb: nic: vb: interface is down: network is down: `up`":                                      "vb: interface is down: `up`",
		"interface vb is gone; open it again when it is back":                                                                    "interface vb is gone; start again when it is back",
		"close the domain without ResidentLeave (xdpfabd: end it, without --leave), and open it anew":                            "end it, without --leave, and start again",
		"number 5 is not open there: dial another one, or have a program there open it (Domain.Serve, NewMailbox)":               "number 5 is not open there: dial another one, or have a daemon or a program serve it there",
		"or the program has ProgressManual and does not call Progress; x":                                                        "or the program does not make progress; x",
		"mailbox 5: interface can no longer be used: interface vb is gone, removed; open it again when it is back":               "mailbox 5: interface vb is gone, removed; start again when it is back",
		"authorization key refused: its endpoint has one, this endpoint none: want the same (DomainAttr.AuthKey): name it":       "authorization key refused: its endpoint has one, this endpoint none: name it",
		"the memory may be new: find its regions again by their names, with Rebind or Lookup":                                    "the memory may be new: read it before you run the command again",
		"the region is gone: find it again by its name, with Rebind or Lookup":                                                   "the region is gone: run the command again",
		"the memory may be new: find its regions again by their names, with Rebind or Lookup; 5 bytes: continue with --skip 5":   "the memory may be new; 5 bytes: continue with --skip 5",
		"the region is gone: find it again by its name, with Rebind or Lookup: watch again":                                      "the region is gone: watch again",
		"the daemon that has the interface has ended; 5 bytes were copied":                                                       "the daemon that has the interface has ended: start it again; 5 bytes were copied",
		"no daemon: dial unix /run/a.sock: connect: permission denied":                                                           "no daemon: /run/a.sock: connect: permission denied",
		"lookup b on 10.0.0.53:53: dial udp 10.0.0.53:53: connect: network is unreachable":                                       "lookup b on 10.0.0.53:53: network is unreachable",
		"lookup b on 10.0.0.53:53: read udp 10.0.0.1:7->10.0.0.53:53: i/o timeout":                                               "lookup b on 10.0.0.53:53: i/o timeout",
		"veth0: in use":         "veth0: in use",
		"support: export: done": "support: export: done",
	} {
		if got := Plain(errors.New(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := Plain(errors.Join(errors.New("xdpfab: one"), fmt.Errorf("xdpfab: two"))); got != "one; two" {
		t.Errorf("joined errors: %q", got)
	}
}

func TestClosest(t *testing.T) {
	names := []string{"region", "guest", "socket", "interface", "udp"}
	for word, want := range map[string]string{
		"regions": "region", "Region": "region", "reigon": "region", "gest": "guest", "interfaces": "interface",
		"udp4": "udp", "cores": "", "": "", "x": "",
	} {
		if got, is := Closest(word, names); got != want || is != (want != "") {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	for word, want := range map[string]string{"smu": "sum", "uint46": "uint64", "uint63": "uint64", "mni": "min", "ixn": ""} {
		if got, _ := Closest(word, []string{"min", "max", "sum", "prod", "uint16", "uint64", "int64"}); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	long := []string{"metrics-address", "memory", "log-level", "log-format", "socket-group"}
	for word, want := range map[string]string{"metrics": "metrics-address", "mem": "memory", "group": "socket-group", "log": "", "me": ""} {
		if got, _ := Closest(word, long); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := DidYouMean("regions", names); got != ", did you mean region?" {
		t.Errorf("question %q", got)
	}
	if got := DidYouMean("quite another", names); got != "" {
		t.Errorf("question %q, want none", got)
	}
}

func TestList(t *testing.T) {
	if got := List([]string{"a", "b", "c"}, 2); got != "a, b, …" {
		t.Error(got)
	}
	if got := List([]string{"a", "b"}, 2); got != "a, b" {
		t.Error(got)
	}
}
