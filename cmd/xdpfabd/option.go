// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/mr"
)

// option is a setting: its key in the file is also the name of its flag.
type option[T any] struct {
	key   string
	usage string // in --help and in the printed configuration; `x` names the value
	at    func(*T) field
}

// options are the options of the daemon.
var options = []option[Config]{
	{"interface", "network `interface` to serve on",
		func(c *Config) field { return textField(&c.Interface, checkInterface) }},
	{"queues", "use `n` queues, from queue 0 on; 0: four queues, or all if there are fewer. The others pass " +
		"their frames on with a copy",
		func(c *Config) field { return intField(&c.Queues, 0, 64) }},
	{"lend", "keep the next `n` queues ready to lend to guests whose rule has queues=N; needs Linux 6.4",
		func(c *Config) field { return intField(&c.Lend, 0, 63) }},
	{"spread", "distribute sessions over the queues in turn, for a NIC that puts all frames into one queue",
		func(c *Config) field { return boolField(&c.Spread) }},
	{"steer", "make the NIC deliver frames to the queues in use, by rules or by its indirection table, which affects " +
		"all traffic; the daemon restores it at the end, see --unsteer",
		func(c *Config) field { return boolField(&c.Steer) }},
	{"cores", "pin the queues' pollers to these `CPUs`, in turn, e.g. 2,3; none: the kernel chooses",
		func(c *Config) field { return coresField(&c.Cores) }},
	{"spin", "an idle poller spins for this `time` before it sleeps",
		func(c *Config) field { return durationField(&c.Spin, time.Nanosecond, time.Hour) }},
	{"busy-poll", "each poller runs the NIC's driver itself, for this `time` per call, and holds back the interrupts " +
		"of its queue (docs/tuning.md); 0: never; not on veth or with generic XDP",
		func(c *Config) field { return durationField(&c.BusyPoll, 0, time.Second) }},
	{"busy-budget", "most `frames` that the driver hands over per call",
		func(c *Config) field { return intField(&c.BusyBudget, 1, 1<<16-1) }},
	{"copy", "AF_XDP `mode`: auto, copy, or zero-copy (fails if the driver cannot)",
		func(c *Config) field { return choiceField(&c.Copy, copyModes) }},
	{"xdp", "`mode` of XDP: native; generic: works on any interface, slower; auto: native, but generic " +
		"on a bond, a team or a netvsc with its virtual function, to follow fail-over; any: like auto, but generic " +
		"if the driver has no native XDP",
		func(c *Config) field { return choiceField(&c.XDP, xdpModes) }},
	{"udp", "accept frames over UDP (port 34997) to the interface's IP addresses as well as raw Ethernet; this " +
		"machine's firewall does not see them. false: only raw Ethernet",
		func(c *Config) field { return boolField(&c.UDP) }},
	{"vlan", "take frames by their 802.1Q tag, and leave others to the kernel: untagged; any; or a VLAN's `id`: " +
		"the daemon then tags all frames, and the VLAN's interface (eth0.100) has the IP addresses",
		func(c *Config) field { return vlanField(&c.VLAN) }},
	{"transport", "`transport` of frames: xdp; udp: UDP sockets, which need no privilege, but round trips take " +
		"about twice as long; auto: xdp if possible, otherwise udp",
		func(c *Config) field { return choiceField(&c.Transport, transports) }},
	{"window", "most request `frames` in flight per session",
		func(c *Config) field { return intField(&c.Window, 1, 64) }},
	{"give-up", "`time` of silence after which the daemon gives up operations to a peer",
		func(c *Config) field { return durationField(&c.GiveUp, time.Millisecond, time.Hour) }},
	{"rto-min", "least `time` before a retransmission; above the peers' scheduling noise",
		func(c *Config) field { return durationField(&c.RTOMin, time.Microsecond, time.Minute) }},
	{"base-rtt", "longest round-trip `time` of the idle network, if any peer is as near; any longer time is queueing",
		func(c *Config) field { return durationField(&c.BaseRTT, time.Microsecond, time.Second) }},
	{"idle-retire", "least `time` of silence after which the daemon forgets a peer's session; a peer may ask for more",
		func(c *Config) field { return durationField(&c.IdleRetire, time.Second, 24*time.Hour) }},
	{"sessions", "most `sessions` per queue, 9 KiB each; a session joins two endpoints: N programs that talk with M " +
		"programs of another node, each way, have 2 N M",
		func(c *Config) field { return intField(&c.Sessions, 16, 1<<14) }},
	{"resident-sessions",
		"most `sessions` that can use resident regions at a time, 130 KiB each",
		func(c *Config) field { return intField(&c.ResidentSessions, 1, 1<<14) }},
	{"pin", "`folder` on a BPF file system in which resident regions outlive the daemon; auto: a folder below " +
		"/sys/fs/bpf/xdpfab, or beside it if another user owns that, or none if neither works; none",
		func(c *Config) field { return textField(&c.Pin, checkPin) }},
	{"leave", "when the daemon ends, leave the contents of that folder for the next daemon",
		func(c *Config) field { return boolField(&c.Leave) }},
	{"control", "`path` of the control socket, whose folder is made if the one above is there; empty: " +
		"/run/xdpfabd/<interface>.sock",
		func(c *Config) field { return textField(&c.Control, nil) }},
	{"socket-group", "`group` of the control socket, name or number; empty: the daemon's",
		func(c *Config) field { return textField(&c.SocketGroup, checkID) }},
	{"socket-mode", "`permissions` of the control socket: users who may write to it may connect; " +
		"--guest says who may attach",
		func(c *Config) field { return modeField(&c.SocketMode) }},
	{"metrics-address", "serve metrics for Prometheus, /healthz and /readyz at this `host:port`, to anyone who can " +
		"reach it; empty: only at the control socket (docs/metrics.md)",
		func(c *Config) field { return textField(&c.MetricsAddress, checkMetricsAddress) }},
	{"directory", "keep an entry of this node in the directory at this `URL`: etcd://HOST:PORT (docs/directory.md)",
		func(c *Config) field { return textField(&c.Directory, checkDirectory) }},
	{"node", "`name` of this node in the directory; empty: the host's",
		func(c *Config) field { return textField(&c.Node, checkNode) }},
	{"log-level", "least important `level` to log: debug, info, warn or error",
		func(c *Config) field { return choiceField(&c.LogLevel, logLevels) }},
	{"log-format", "`format` of log lines: text or json",
		func(c *Config) field { return choiceField(&c.LogFormat, logFormats) }},
}

// regionOptions are those of a region.
var regionOptions = []option[RegionConfig]{
	{"name", "name by which peers find the region",
		func(r *RegionConfig) field { return textField(&r.Name, checkName) }},
	{"size", "bytes, also with KiB, MiB, GiB or TiB; may be left out for an existing file",
		func(r *RegionConfig) field { return sizeField(&r.Size) }},
	{"key", "fixed 64-bit key; left out: unguessable, new at each start",
		func(r *RegionConfig) field { return keyField(&r.Key) }},
	{"access", "what peers may do: read, write or both",
		func(r *RegionConfig) field { return accessField(&r.Access) }},
	{"backing", "anonymous, memfd, resident (the XDP program executes) or the path of a file",
		func(r *RegionConfig) field { return textField(&r.Backing, checkBacking) }},
	{"huge", "huge pages: auto, never or require",
		func(r *RegionConfig) field { return choiceField(&r.Huge, huges) }},
	{"auth-key", "path of a file with the authorization key that peers have to prove (docs/security.md); none",
		func(r *RegionConfig) field { return textField(&r.AuthKey, checkAuthKey) }},
}

// likeAccess are other words for the values of access, some of them those of --region.
var likeAccess = map[string]string{"ro": "read", "r": "read", "read-only": "read", "readonly": "read", "wo": "write",
	"w": "write", "write-only": "write", "rw": "both", "read-write": "both", "readwrite": "both", "all": "both"}

// accessField is what peers may do.
func accessField(p *mr.Access) field {
	f := choiceField(p, accesses)
	set := f.set
	f.set = func(s string) error {
		if like := likeAccess[s]; like != "" {
			return unlike(s, ", did you mean "+like+"?", f.wants)
		}
		return set(s)
	}
	return f
}

var (
	logLevels = []choice[slog.Level]{{"debug", slog.LevelDebug}, {"info", slog.LevelInfo}, {"warn", slog.LevelWarn},
		{"error", slog.LevelError}}
	logFormats = []choice[logFormat]{{"text", logText}, {"json", logJSON}}
	accesses   = []choice[mr.Access]{{"read", mr.RemoteRead}, {"write", mr.RemoteWrite},
		{"both", mr.RemoteRead | mr.RemoteWrite}}
	huges = []choice[mr.Huge]{{"auto", mr.HugeAuto}, {"never", mr.HugeNever}, {"require", mr.HugeRequire}}
)

// checkInterface applies the kernel's rules (dev_valid_name).
func checkInterface(s string) error {
	if rest, is := strings.CutPrefix(s, "nterface"); is && unknown(s) { // of -interface
		return wants("-i"+s, "two dashes: --interface "+cmp.Or(strings.TrimPrefix(rest, "="), "eth0"))
	}
	if _, err := netip.ParseAddr(s); err == nil && unknown(s) {
		return wants(s, "the name of a network interface, not an address: `ip address` shows which one has it")
	}
	if s == "" || len(s) > 15 || s == "." || s == ".." || strings.ContainsFunc(s, func(r rune) bool {
		return r == '/' || r == ':' || unicode.IsSpace(r)
	}) {
		return wants(s, "the name of a network interface, e.g. eth0: 1 to 15 bytes without space, / and :")
	}
	return nil
}

// unknown reports whether there is no interface of a name now. Nearly any text may be
// one.
func unknown(ifname string) bool {
	_, err := net.InterfaceByName(ifname)
	return err != nil
}

func checkName(s string) error {
	if len(s) == 0 || len(s) > mr.MaxName {
		return wants(s, "a name of 1 to "+strconv.Itoa(mr.MaxName)+" bytes")
	}
	blank := func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }
	if !utf8.ValidString(s) || strings.ContainsFunc(s, blank) {
		return wants(s, "a name of printable characters without spaces")
	}
	return nil
}

func checkBacking(s string) error {
	if s != backingAnonymous && s != backingMemfd && s != backingResident && !strings.Contains(s, "/") {
		return wants(s, `"anonymous", "memfd", "resident", or the path of a file with at least one /`)
	}
	return nil
}

// shorthands are the words that --region takes in addition to key=value.
var shorthands = map[string]string{
	"ro": "access=read", "wo": "access=write", "rw": "access=both", "memfd": "backing=memfd",
	"resident": "backing=resident",
}

// parseRegion reads the value of --region: name=size[:option[,option]…], where an
// option is a shorthand or a key and value of regionOptions. The size may be
// empty for a file, and left out with its equals sign.
func parseRegion(s string) (RegionConfig, error) {
	r := defaultRegion()
	name, more, unsized := cutUnsized(s)
	size := ""
	if !unsized {
		var ok bool
		if name, size, ok = strings.Cut(s, "="); !ok {
			return r, wants(s, `name=size, e.g. counters=64KiB or scores=1MiB:ro,key=0x7`)
		}
		size, more, _ = strings.Cut(size, ":")
	}
	if size, options, is := strings.Cut(size, ","); is && more == "" {
		return r, fmt.Errorf("size: %q has options behind a comma: want a colon before them: %s=%s:%s",
			size+","+options, name, size, options)
	}
	settings := []string{"name=" + name}
	if size != "" {
		settings = append(settings, "size="+size)
	}
	return r, assignEach(&r, regionOptions, append(settings, listed(more)...),
		"ro, wo, rw, memfd, resident, key=…, access=…, backing=…, huge=… or auth-key=…")
}

// cutUnsized cuts name:option[,option]…, which has no size. A name may have a colon, so
// what is behind that must begin with the name of an option.
func cutUnsized(s string) (name, more string, is bool) {
	name, more, is = strings.Cut(s, ":")
	word := more
	if end := strings.IndexAny(more, "=,"); end >= 0 {
		word = more[:end]
	}
	return name, more, is && !strings.Contains(name, "=") && slices.Contains(words(regionOptions), word)
}

// listed splits settings with commas between them. \, is a comma in one of them.
func listed(settings string) (all []string) {
	if settings == "" {
		return nil
	}
	for part := range strings.SplitSeq(settings, ",") {
		if last := len(all) - 1; last >= 0 && strings.HasSuffix(all[last], `\`) {
			all[last] = strings.TrimSuffix(all[last], `\`) + "," + part
			continue
		}
		all = append(all, part)
	}
	return all
}

// assignEach sets the options of v by settings: a key and value each, or a shorthand.
func assignEach[T any](v *T, options []option[T], settings []string, want string) error {
	given := map[string]string{}
	for i, short := range settings {
		setting := cmp.Or(shorthands[short], short)
		key, value, _ := strings.Cut(setting, "=")
		o, other := find(options, key), given[key]
		switch {
		case o == nil:
			word, _, _ := strings.Cut(short, "=")
			if i > 0 && strings.Contains(settings[i-1], "/") {
				want += "; or write \\, for a comma in a path"
			}
			if first, _, is := strings.Cut(short, ":"); is && slices.Contains(words(options), first) {
				return fmt.Errorf("%q: want commas between options: %s", short, strings.ReplaceAll(short, ":", ","))
			}
			like := tell.DidYouMean(word, words(options))
			access := likeAccess[word]
			if slices.Contains(names(accesses), word) {
				access = word
			}
			if access != "" && find(options, "access") != nil {
				like = ", did you mean access=" + access + "?"
			}
			return unlike(short, like, want)
		case other != "":
			return fmt.Errorf("%s: given twice, as %q and %q: want one", key, other, short)
		case value == "" && key != "serve" && key != "name": // the pattern of no name; checkName says more
			return fmt.Errorf("%s: want a value, or leave it out", key)
		}
		given[key] = short
		if err := o.at(v).Set(value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// words are the keys of options, and the shorthands for them.
func words[T any](options []option[T]) []string {
	all := keys(options)
	for short, setting := range shorthands {
		if key, _, _ := strings.Cut(setting, "="); find(options, key) != nil {
			all = append(all, short)
		}
	}
	slices.Sort(all)
	return all
}

// find returns the option with a key, or nil.
func find[T any](options []option[T], key string) *option[T] {
	for i := range options {
		if options[i].key == key {
			return &options[i]
		}
	}
	return nil
}
