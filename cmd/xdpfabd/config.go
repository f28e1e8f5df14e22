// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/internal/udpnode"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab/directory"
	"github.com/xdpfab/xdpfab/xsk"
)

// Config is everything that can be set. It is made of defaults, the file and the flags,
// in this order, and does not change while the daemon runs.
type Config struct {
	Interface      string
	Queues         int // 0: at most nic.DefaultQueues
	Lend           int // further ones, for guests
	Spread         bool
	Steer          bool // the NIC's frames to those queues
	Cores          []int
	Spin           time.Duration
	BusyPoll       time.Duration // SO_BUSY_POLL; 0: interrupts
	BusyBudget     int           // frames for each call
	Copy           xsk.Mode
	XDP            bpf.Mode
	UDP            bool
	VLAN           bpf.VLANPolicy
	Transport      udpnode.Transport
	Window         int // frames
	GiveUp         time.Duration
	RTOMin         time.Duration
	BaseRTT        time.Duration
	IdleRetire     time.Duration
	Control        string // path; empty: control.DefaultPath
	MetricsAddress string // host:port; empty: none
	Directory      string // URL; empty: none
	Node           string // name in it; empty: the host's
	LogLevel       slog.Level
	LogFormat      logFormat
	Regions        []RegionConfig
	Guests         []GuestConfig

	Sessions         int // of a queue
	ResidentSessions int
	Pin              string // pinAuto, pinNone or a folder for resident regions
	Leave            bool   // what is there, at the end

	Sockets     []SocketConfig
	SocketGroup string // name or number; empty: the process's
	SocketMode  fs.FileMode

	takeover bool         // of a running daemon; a flag alone
	monitor  net.Listener // at MetricsAddress, opened before the interface; nil: still to be opened
}

// RegionConfig describes a region to serve.
type RegionConfig struct {
	Name    string
	Size    int     // bytes; 0 for all of an existing file
	Key     *uint64 // nil: unguessable, new at each start
	Access  mr.Access
	Backing string // backingAnonymous, backingMemfd, backingResident or the path of a file
	Huge    mr.Huge
	AuthKey string  // path of the file of its authorization key; empty for none
	auth    authKey // what is in that file; see readKey
}

// Backings that are no files.
const (
	backingAnonymous = "anonymous"
	backingMemfd     = "memfd"
	backingResident  = "resident"
)

// logFormat is how log lines look.
type logFormat uint8

const (
	logText logFormat = iota
	logJSON
)

// defaultConfig spells out the library's defaults, so that --print-config shows the
// values in force.
func defaultConfig() Config {
	return Config{
		UDP: true, Spin: 50 * time.Microsecond, Window: 64, GiveUp: 5 * time.Second,
		RTOMin: 10 * time.Millisecond, BaseRTT: 50 * time.Microsecond, IdleRetire: 90 * time.Second,
		SocketMode: control.DefaultMode, BusyBudget: 64, Sessions: 16384, ResidentSessions: 256, Pin: pinAuto,
	}
}

func defaultRegion() RegionConfig {
	return RegionConfig{Access: mr.RemoteRead | mr.RemoteWrite, Backing: backingAnonymous}
}

// isFile reports whether the region's bytes are those of a file.
func (r RegionConfig) isFile() bool {
	return r.Backing != backingAnonymous && r.Backing != backingMemfd && r.Backing != backingResident
}

// controlPath returns the path of the control socket.
func (c Config) controlPath() string {
	if c.Control != "" {
		return c.Control
	}
	return control.DefaultPath(c.Interface)
}

// resolve makes paths absolute: this daemon's status shows them to programs elsewhere,
// and a next daemon may begin in another folder.
func (c *Config) resolve() error {
	paths := []*string{&c.Control}
	for i := range c.Sockets {
		paths = append(paths, &c.Sockets[i].Path)
	}
	for i := range c.Guests {
		paths = append(paths, &c.Guests[i].Socket)
	}
	for i := range c.Regions {
		if c.Regions[i].isFile() {
			paths = append(paths, &c.Regions[i].Backing)
		}
	}
	for _, p := range paths {
		if *p == "" || filepath.IsAbs(*p) {
			continue
		}
		at, err := filepath.Abs(*p)
		if err != nil {
			return fmt.Errorf("%s: %w: want an absolute path", *p, err)
		}
		*p = at
	}
	return nil
}

// beside returns the path of a file beside the control socket.
func (c Config) beside(suffix string) string {
	return strings.TrimSuffix(c.controlPath(), ".sock") + suffix
}

// summary says in a line what a daemon with this configuration serves.
func (c Config) summary() string {
	names := make([]string, len(c.Regions))
	for i, r := range c.Regions {
		names[i] = r.Name
	}
	regions := "no regions"
	if len(names) > 0 {
		regions = counted(len(names), "region", "regions") + " (" + strings.Join(names, ", ") + ")"
	}
	there := ""
	if _, err := net.InterfaceByName(c.Interface); err != nil {
		there = ", which is not there at present"
	}
	return fmt.Sprintf("the configuration is good: %s on %s%s; %s for programs; control socket %s", regions,
		c.Interface, there, counted(len(c.Guests), "rule", "rules"), c.controlPath())
}

// node returns how the node works.
func (c Config) node() node.Config {
	return node.Config{
		Spread: c.Spread, Cores: c.Cores, Spin: c.Spin,
		Window: c.Window, GiveUp: c.GiveUp, RTOMin: c.RTOMin, BaseRTT: c.BaseRTT, IdleRetire: c.IdleRetire,
		Sessions: c.Sessions, ResidentSessions: c.ResidentSessions,
	}
}

// options returns how the interface is opened. Resident regions are kept in a folder;
// empty for none.
func (c Config) options(log *slog.Logger, folder string) host.Options {
	o := host.Options{
		Queues: c.Queues, Lend: c.Lend, Copy: c.Copy, XDP: c.XDP, UDP: c.UDP, VLAN: c.VLAN,
		Transport: c.Transport, Pin: folder, Config: c.node(),
	}
	if o.Remember = c.beside(nic.DeferSuffix); c.BusyPoll > 0 {
		o.BusyPoll = xsk.BusyPoll{Time: c.BusyPoll, Budget: c.BusyBudget}
	}
	o.Log, o.ResidentLeave = log, c.Leave && folder != ""
	return o
}

// problem is a fault of the configuration, in one key. once is more of the text, which is
// said of the first of several problems.
type problem struct{ key, text, once string }

// validate finds the problems that no single option shows: missing options, and
// contradictions between options. It looks at nothing outside the configuration.
func (c Config) validate() []problem {
	var found []problem
	add := func(key, format string, args ...any) {
		found = append(found, problem{key: key, text: fmt.Sprintf(format, args...)})
	}
	if c.Interface == "" {
		add("interface", "missing: set it in the configuration file, or with --interface eth0")
	} else if strings.ContainsAny(c.Interface, ", ") {
		add("interface", "%q: one daemon serves one interface; start one for each", c.Interface)
	} else if len(c.controlPath()) > control.MaxPath {
		add("control", "path of %d bytes: want at most %d", len(c.controlPath()), control.MaxPath)
	}
	found = append(found, c.validateSockets()...)
	if c.Leave && c.Pin == pinNone {
		add("leave", "there is nothing to leave with pin = \"none\"; want \"auto\" or a folder")
	}
	if c.VLAN != bpf.VLANUntagged && c.Transport != udpnode.XDP {
		add("vlan", "%q goes with transport \"xdp\": UDP sockets leave tags to the kernel; want \"untagged\", and the "+
			"VLAN's own interface if it is one's", c.VLAN)
	}
	if c.Transport != udpnode.XDP && !c.UDP {
		add("udp", "false contradicts transport %q, by which UDP carries frames; want true, or transport \"xdp\"",
			c.Transport.String())
	}
	if c.Transport == udpnode.UDP {
		if lack := c.beyondSockets(); lack != "" {
			add("transport", "\"udp\" %s", lack)
		}
	}
	if c.BusyPoll == 0 && c.BusyBudget != defaultConfig().BusyBudget {
		add("busy-budget", "%d: no driver is polled without busy-poll; want busy-poll, such as 20us, or no busy-budget",
			c.BusyBudget)
	}
	if c.Directory == "" && c.Node != "" {
		add("node", "%q is a name in the directory, and none is configured; want directory, too, or no node", c.Node)
	}
	if c.Directory != "" {
		if err := directory.CheckName(c.nodeName()); err != nil {
			add("node", "%s", tell.Plain(err))
		}
	}
	if c.RTOMin >= c.GiveUp && c.RTOMin == defaultConfig().RTOMin {
		add("give-up", "%v: want more than the %v of rto-min, or nothing is ever sent again; a smaller rto-min allows "+
			"less", c.GiveUp, c.RTOMin)
	} else if c.RTOMin >= c.GiveUp {
		add("rto-min", "%v: want less than the %v of give-up, or nothing is ever sent again", c.RTOMin, c.GiveUp)
	}
	found = append(found, c.validateRegions()...)
	found = append(found, c.validateGuests()...)
	n := c.node()
	n.Cores = nil
	if err := refused(n); err != "" { // problems within the ranges of single options
		add("idle-retire", "%s", strings.TrimPrefix(err, "idle retirement after "))
	}
	return found
}

// beyondSockets reports which settings take an XDP program, and the remedy; empty for
// none.
func (c Config) beyondSockets() string {
	switch {
	case c.resides() || c.Leave || c.Pin != pinAuto && c.Pin != pinNone:
		return "has no XDP program, which resident regions need: leave out resident, pin and leave, or want \"xdp\""
	case c.Queues > 1 || c.Lend > 0 || c.Spread || c.Steer:
		return "has one queue; want neither more queues nor lend nor spread nor steer, or \"xdp\""
	case c.Copy != xsk.Auto || c.XDP != bpf.Auto:
		return "has no mode of AF_XDP; want neither copy nor xdp, or \"xdp\""
	case c.BusyPoll > 0:
		return "polls no driver; want no busy-poll, or \"xdp\""
	case c.takeover:
		return "takes over no other daemon; want \"xdp\", or stop the other one first"
	}
	return ""
}

// mostResident is the size of the largest resident region, in bytes: resident.MaxMemory.
const mostResident = 8 << 30

// validateRegions finds missing settings of regions, and contradictions between them.
func (c Config) validateRegions() (found []problem) {
	add := func(key, format string, args ...any) {
		found = append(found, problem{key: key, text: fmt.Sprintf(format, args...)})
	}
	names, keys := map[string]bool{}, map[uint64]string{}
	for i, r := range c.Regions {
		at := fmt.Sprintf("region[%d].", i)
		switch {
		case r.Name == "":
			add(at+"name", "missing: peers find the region by it")
		case names[r.Name]:
			add(at+"name", "%q: another region has this name; want one of its own", r.Name)
		}
		names[r.Name] = true
		if r.Size == 0 && !r.isFile() {
			add(at+"size", `missing: want bytes, e.g. 65536 or "64KiB"; only a file has a size of its own`)
		}
		if r.Backing == backingResident && r.Size > mostResident {
			add(at+"size", "%d bytes: a resident region has at most %d (8GiB); want several, or another backing",
				r.Size, mostResident)
		}
		if r.Huge == mr.HugeRequire && r.Backing != backingAnonymous {
			add(at+"huge", "%q: huge pages go with anonymous backing alone, not with %q; want \"auto\"",
				"require", r.Backing)
		}
		if r.Key == nil {
			continue
		}
		if first, taken := keys[*r.Key]; taken {
			add(at+"key", "%#x: region %q has this key; want another, or none for an unguessable one", *r.Key, first)
		}
		keys[*r.Key] = r.Name
	}
	return found
}

// validateHere finds the options that do not fit the machine: cores that it does not
// have, or that this process may not use, users and groups that it does not know.
func (c Config) validateHere() []problem {
	_, found := newRules(c.Guests)
	if err := refused(node.Config{Cores: c.Cores}); err != "" {
		found = append(found, problem{key: "cores", text: err})
	}
	if _, err := c.access(); err != nil {
		found = append(found, problem{key: "socket-group", text: err.Error()})
	}
	for i, s := range c.Sockets {
		if _, err := s.access(); err != nil {
			found = append(found, problem{key: fmt.Sprintf("socket[%d].group", i), text: err.Error()})
		}
	}
	return found
}

// access reports who may connect to the control socket.
func (c Config) access() (control.Access, error) {
	return SocketConfig{Group: c.SocketGroup, Mode: c.SocketMode}.access()
}

// refused returns the reason for which a node refuses its configuration; empty if it
// accepts that.
func refused(c node.Config) string {
	if _, err := c.WithDefaults(); err != nil {
		return strings.TrimPrefix(err.Error(), "xdpfab: ")
	}
	return ""
}
