// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/udpnode"
)

// What UDP sockets cannot do is refused, by flags and by the file, with what to do.
func TestSocketsRefuse(t *testing.T) {
	for name, c := range map[string]struct{ flag, file, want string }{
		"resident region": {"--region=r=4KiB:resident", "[[region]]\nname=\"r\"\nsize=4096\nbacking=\"resident\"", "no XDP program"},
		"pin":             {"--pin=/sys/fs/bpf/x", "pin = \"/sys/fs/bpf/x\"", "no XDP program"},
		"leave":           {"--leave", "leave = true", "no XDP program"},
		"queues":          {"--queues=2", "queues = 2", "one queue"},
		"lend":            {"--lend=1", "lend = 1", "one queue"},
		"spread":          {"--spread", "spread = true", "one queue"},
		"copy":            {"--copy=copy", "copy = \"copy\"", "no mode of AF_XDP"},
		"xdp":             {"--xdp=generic", "xdp = \"generic\"", "no mode of AF_XDP"},
		"takeover":        {"--takeover", "", "takes over no other daemon"},
	} {
		t.Run(name, func(t *testing.T) {
			want := []string{"transport: \"udp\" ", c.want, "want ", "\"xdp\""}
			_, code, msg := load(t, "--interface=e", "--transport=udp", c.flag)
			for _, w := range want {
				if code != exitUsage || !strings.Contains(msg, w) {
					t.Errorf("%s: code %d, %q; want 2, %q", c.flag, code, msg, w)
				}
			}
			if c.file == "" {
				return
			}
			_, err := check("interface = \"e\"\ntransport = \"udp\"\n" + c.file)
			for _, w := range want {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("%s: %v, want %q", c.file, err, w)
				}
			}
			for _, other := range []string{"xdp", "auto"} { // may have it
				if _, err := check("interface = \"e\"\ntransport = \"" + other + "\"\n" + c.file); err != nil {
					t.Errorf("%s with %s: %v", other, c.file, err)
				}
			}
		})
	}
	c, code, msg := load(t, "--interface=e", "--transport=udp", "--queues=1", "--cores=0", "--pin=none")
	if code != exitOK || c.Transport != udpnode.UDP {
		t.Errorf("code %d, %q, %+v", code, msg, c)
	}
	for _, transport := range []string{"udp", "auto"} {
		_, code, msg := load(t, "--interface=e", "--udp=false", "--transport="+transport)
		if code != exitUsage || !strings.Contains(msg, "udp: false contradicts transport \""+transport) {
			t.Errorf("--udp=false --transport=%s: code %d, %q", transport, code, msg)
		}
	}
}
