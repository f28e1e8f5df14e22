// SPDX-License-Identifier: Apache-2.0

package tell

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A long error is broken where its parts end. No text is lost, and nothing in quotes is
// broken.
func TestFold(t *testing.T) {
	long := "xdpfab: connect on 02:00:00:00:00:77: not executed: peer does not answer: silent for 2s and 9 packets over " +
		"raw Ethernet; it has never answered: the likely causes: (1) no host with 02:00:00:00:00:77 is known here: " +
		"compare it with `ip link` at the peer; (2) no xdpfabd runs there: look with `xdpfab stat` there"
	want := "xdpfab: connect on 02:00:00:00:00:77: not executed: peer does not answer:\n" +
		"  silent for 2s and 9 packets over raw Ethernet; it has never answered: the likely causes:\n" +
		"  (1) no host with 02:00:00:00:00:77 is known here: compare it with `ip link` at the peer;\n" +
		"  (2) no xdpfabd runs there: look with `xdpfab stat` there"
	if got := Fold(long); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	begun := "xdpfab: eth0 is in use by another xdpfab, process 1234 (xdpfabd), since long ago, and one at a time can have it: " +
		"go through it by its control socket, which is there"
	if first, _, _ := strings.Cut(Fold(begun), "\n"); !strings.HasPrefix(first, "xdpfab: eth0 is in use") {
		t.Errorf("the program's name has the line %q", first)
	}
	for _, text := range []string{
		"", "short: text", strings.Repeat("x", 500), "a `" + strings.Repeat("b ", 200) + "` c", "an \"odd quote " + long,
		strings.Repeat("unknown: known are a, b; ", 20), strings.Repeat("a word ", 60), "one\n" + long, long + "\n" + long,
		strings.Repeat("é", Longest), strings.Repeat("é ", Longest), ": : : " + strings.Repeat(" ", 300), "\xff" + long,
	} {
		got := Fold(text)
		if back := strings.ReplaceAll(got, "\n"+indent, " "); back != text {
			t.Errorf("%q became %q", text, got)
		}
		for line := range strings.SplitSeq(got, "\n") {
			if strings.Count(line, "`")%2 != 0 || len(strings.Fields(line)) > 1 && utf8.RuneCountInString(line) > Longest &&
				!strings.Contains(line, "`") {
				t.Errorf("%q has the line %q", text, line)
			}
		}
	}
}

// Users read the words of the commands, not those of Go.
func TestWordsOfTheCommands(t *testing.T) {
	for text, want := range map[string]string{
		"by its socket (--control, XDPFAB_CONTROL, DomainAttr.Control), since":                                                      "by its socket (--control, XDPFAB_CONTROL), since",
		"slower: DomainAttr.Transport (TransportAuto) or --transport udp":                                                           "slower: --transport udp",
		"right: have its owner grant it (mr.Options.Access), and use its authorization key if it has one (EndpointAttr.AuthKey): x": "right: x",
		"revoked: look the region up by its name (Endpoint.Lookup)":                                                                 "revoked",
		"region: want Offset and elements within the Base and the Size that Endpoint.Lookup finds":                                  "region",
		"--xdp generic, DomainAttr.XDP":                              "--xdp generic",
		"without xdpfabd --udp=false or DomainAttr.EthernetOnly, or": "without xdpfabd --udp=false, or",
		"(xdpfabd --udp, no DomainAttr.EthernetOnly)":                "(xdpfabd --udp)",
		"no queues to lend (DomainAttr.Lend): want none":             "no queues to lend: want none",
		"find it again by its name, with Rebind or Lookup":           "find it again by its name",
		"raise sysctl vm.nr_hugepages or use HugeAuto":               "raise sysctl vm.nr_hugepages or use huge=auto",
	} {
		if got := Plain(errorString(text)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

type errorString string

func (e errorString) Error() string { return string(e) }
