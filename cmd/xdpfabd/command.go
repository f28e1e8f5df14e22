// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/internal/version"
	"github.com/xdpfab/xdpfab/internal/wire"
)

const examples = `  xdpfabd --interface eth0 --region counters=64KiB
  xdpfabd --interface eth0 --region counters=64KiB --region scores=1MiB:ro,key=0x7
  xdpfabd --interface eth0 --region counters=64KiB --region hot=4KiB:resident
  xdpfabd --interface eth0 --region ledger=1GiB:backing=/var/lib/xdpfabd/ledger
  xdpfabd --interface eth0 --region ledger=1MiB:auth-key=/etc/xdpfab/ledger.key
  xdpfabd --interface eth0 --socket-group fabric --guest allow:group=fabric,memory=1GiB
  xdpfabd --config /etc/xdpfab/xdpfabd.toml --cores 2,3 --log-format json
  xdpfabd --config xdpfabd.toml --check
  xdpfabd --interface eth0 --region counters=64KiB --print-config > xdpfabd.toml`

const long = `xdpfabd serves named memory regions on a network interface: other nodes run
atomic operations on them. The interface keeps its other traffic.

The configuration comes from the file, if --config names one; flags override it. A
flag has the name of the file's key. --region replaces the file's region of the
same name, or adds one:

  --region name=size[:option[,option]...]   without =size: a file, as large as it is
  option: ro, wo, rw, memfd, resident, key=0x7, access=read|write|both,
          backing=anonymous|memfd|resident|/path, huge=auto|never|require,
          auth-key=/path; a comma in a path is \,

Any peer that can reach the interface can use a region as its access says, unless the
region has an auth-key. Then peers have to prove the key in that file: 16 to 64 random
bytes, which other users must not be able to read. Clients prove it with --auth-key-file.

The XDP program itself executes the operations of peers on a resident region,
without a poller. This needs Linux 5.18. If the daemon is killed, the kernel keeps
serving resident regions and the sessions that use them. The next daemon takes back each
region that it configures with the same name and size. It refuses to start if it has
that name with another size or backing; regions that it does not name end.
--pin names the folder of this state. A daemon that ends normally removes the state
and tells its peers, unless --leave is given; "xdpfab resident remove" removes the
state of a dead daemon.

"xdpfab region create" and "xdpfab region remove" add and remove regions of any kind
while the daemon runs. To keep a region after a restart, put it into the configuration,
too.

Programs on this machine use the interface through the daemon: they open it as
usual, attach at the control socket, and need no privilege. --socket-group and
--socket-mode decide who can write to the socket; rules decide which of these programs
may attach. The first rule that fits a program's user and groups decides; if none fits,
only root and the daemon's own user may attach. Rules are [[guest]] in the file; rules
of --guest come before them:

  --guest allow|deny[:setting[,setting]...]
  setting: user=NAME, group=NAME (or numbers; left out: any), socket=PATH to which
           the program connects (left out: any), serve=PATTERN of names of regions
           (* for any text; empty: none), guests (programs at a time); limits of
           each: entries, arena, arrivals, endpoints, peers, regions, memory,
           queues that it borrows (see --lend); kept, for regions that outlive
           their programs; weight, its share in proportion to others' weights

More control sockets, say one for each container, are [[socket]] in the file, or:

  --socket path[:setting[,setting]...]
  setting: mode=0660, group=NAME

SIGTERM and SIGINT end the daemon: it closes its sessions and releases the
interface. A second signal ends it at once, unless it comes within a second of the
first. SIGHUP changes nothing, because the daemon reads its configuration only once.
SIGQUIT ends it at once, with its stacks for a report of a bug on the standard error.
To apply a new configuration, use --takeover, as "systemctl reload" does.

Peers reach the daemon by the interface's MAC address, and over UDP by the IP
addresses that the interface has at each moment; it may have none at the start.
The daemon continues while the interface is down, and when its name changes. It ends
with code 1 when peers can no longer reach it: the interface is removed, replaced,
moved to another network namespace or given another hardware address, another
program detaches the XDP program, or the MTU is set below its value at the start.
Raising the MTU and setting it back does no harm. With --transport udp the daemon
notices none of this: until it is stopped, it serves the IP addresses that the interface
had at the start.

` + takeoverHelp + `

The daemon needs CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_PERFMON, and
CAP_IPC_LOCK or a sufficient limit of locked memory (ulimit -l). It does not need
root.

Exit codes: 0 the daemon ended on request; 1 failure; 2 wrong arguments or
configuration; 5 the interface is missing, in use or unsuitable, the control socket is in
use or cannot be made, or privileges are missing.`

// arguments are the flags that are not options.
type arguments struct {
	config       string
	regions      []string
	guests       []string
	sockets      []string
	check, print bool
	takeover     bool
	unsteer      bool
	flagged      Config // the options that were given as flags
}

// build describes this program.
func build() version.Report {
	return version.NewReport(
		version.Protocol{Name: "wire", Version: wire.Version, Features: wire.Offered.Names()},
		version.Protocol{Name: "attach", Version: share.Version, Features: share.Features},
		version.Protocol{Name: "handover", Version: host.HandoverVersion})
}

// noArgs refuses arguments. Most often one of them is an interface, so the error has its
// flag.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if slices.Contains([]string{"true", "false", "yes", "no", "on", "off"}, args[0]) {
		return fmt.Errorf("unexpected argument %q: true or false is joined to its flag, as in --udp=false; see "+
			"`xdpfabd --help`", args[0])
	}
	ifname := "eth0"
	for _, arg := range args {
		if _, err := net.InterfaceByName(arg); err == nil {
			ifname = arg
		}
	}
	return fmt.Errorf("unexpected argument %q: want flags alone, such as --interface %s; see `xdpfabd --help`", args[0],
		ifname)
}

// flagError words the error of a flag: which flag may be meant by an unknown one, and
// what is wrong with a value, once.
func flagError(cmd *cobra.Command, err error) error {
	unknown, missing, invalid := new(pflag.NotExistError), new(pflag.ValueRequiredError), new(pflag.InvalidValueError)
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedName() == "mtu":
		return fmt.Errorf("%w: the MTU is the interface's: `ip link set dev eth0 mtu 9000`", err)
	case errors.As(err, &unknown):
		return fmt.Errorf("%w%s; see `xdpfabd --help`", err, tell.LikeFlag(cmd.Flags(), unknown))
	case errors.As(err, &missing):
		f := missing.GetFlag()
		what, _ := pflag.UnquoteUsage(f)
		if what == "n" {
			what = "number"
		}
		if example := cmp.Or(exampleValues[f.Name], f.DefValue); example != "" {
			what += ", as in --" + f.Name + " " + example
		}
		return fmt.Errorf("--%s needs a value: want its %s; see `xdpfabd --help`", f.Name, what)
	case errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "bool":
		return fmt.Errorf("--%s: %q: want true or false", invalid.GetFlag().Name, invalid.GetValue())
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
	}
	return fmt.Errorf("%w; see `xdpfabd --help`", err)
}

// exampleValues are values of flags that most command lines have.
var exampleValues = map[string]string{"interface": "eth0", "region": "counters=64KiB", "guest": "allow:user=alice",
	"config": "/etc/xdpfab/xdpfabd.toml", "socket": "/run/box/xdpfab.sock:mode=0666", "queues": "2", "lend": "1",
	"cores": "2,3", "control": "/run/xdpfabd/eth0.sock", "socket-group": "fabric", "metrics-address": "127.0.0.1:9497",
	"directory": "etcd://10.0.0.1:2379", "node": "node7"}

// newCommand makes the command line; its errors are *exitError or cobra's own.
func newCommand(stdout, stderr io.Writer) *cobra.Command {
	a := &arguments{flagged: defaultConfig()}
	cmd := &cobra.Command{
		Use: "xdpfabd", Short: "Serve memory regions for remote atomics", Long: long, Example: examples,
		Version: version.Version, Args: noArgs, SilenceErrors: true, SilenceUsage: true,
	}
	r := build()
	cmd.SetVersionTemplate(r.Text("xdpfabd"))
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	cmd.SetFlagErrorFunc(flagError)
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.VarPF(once(textField(&a.config, nil), "want one file"), "config", "", "read the TOML `file`")
	for _, o := range options {
		v := o.at(&a.flagged)
		short := ""
		if o.key == "interface" {
			short = "i" // as the client has it
			v = once(v, "one daemon serves one interface; start one for each")
		}
		f := flags.VarPF(v, o.key, short, o.usage)
		if v.shape == shapeBool {
			f.NoOptDefVal = "true"
		}
	}
	flags.StringArrayVar(&a.regions, "region", nil, "serve a `region`: name=size[:option,…], see above; repeatable")
	flags.StringArrayVar(&a.guests, "guest", nil,
		"a `rule` about programs that attach: allow[:…] or deny[:…], see above; repeatable")
	flags.StringArrayVar(&a.sockets, "socket", nil, "another control `socket`: path[:setting,…], see above; repeatable")
	flags.BoolVar(&a.check, "check", false, "check the configuration, say what it would serve, and exit; opens nothing")
	flags.BoolVar(&a.takeover, "takeover", false, "take the place of the daemon that serves the interface, see above")
	flags.BoolVar(&a.print, "print-config", false, "print the effective configuration as TOML and exit")
	flags.BoolVar(&a.unsteer, "unsteer", false,
		"put back the NIC's settings that a daemon with --steer or --busy-poll left when it was killed, and exit")
	cmd.RunE = func(*cobra.Command, []string) error {
		cfg, err := a.load(flags.Changed)
		if err != nil {
			return &exitError{code: exitUsage, err: err}
		}
		switch {
		case a.print:
			return cfg.print(stdout)
		case a.check:
			_, err := fmt.Fprintln(stdout, cfg.summary())
			return err
		case a.unsteer:
			return unsteer(cmd.Context(), cfg, newLogger(cfg, stderr))
		}
		return start(cfg, stderr)
	}
	complete(cmd)
	return cmd
}

// complete registers the values of flags that the shell can complete.
func complete(cmd *cobra.Command) {
	for flag, choices := range map[string][]string{
		"copy": names(copyModes), "xdp": names(xdpModes), "transport": names(transports), "log-level": names(logLevels),
		"log-format": names(logFormats),
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = cmd.RegisterFlagCompletionFunc("interface",
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var found []string
			entries, _ := os.ReadDir("/sys/class/net")
			for _, e := range entries {
				found = append(found, e.Name())
			}
			return found, cobra.ShellCompDirectiveNoFileComp
		})
	_ = cmd.MarkFlagFilename("config", "toml")
}

func names[T comparable](choices []choice[T]) (all []string) {
	for _, c := range choices {
		all = append(all, c.name)
	}
	return all
}

// load puts the configuration together and validates it.
func (a *arguments) load(changed func(string) bool) (Config, error) {
	cfg := defaultConfig()
	cfg.takeover = a.takeover
	var f *file
	if a.config != "" {
		text, err := os.ReadFile(a.config)
		if err != nil {
			return cfg, fmt.Errorf("--config: %w: want a file of TOML that this user may read", err)
		}
		if f, err = parseFile(a.config, string(text), &cfg); err != nil {
			return cfg, err
		}
	}
	if err := a.override(&cfg, f, changed); err != nil {
		return cfg, err
	}
	if err := cfg.resolve(); err != nil {
		return cfg, err
	}
	found := cfg.validate()
	if !a.print { // a printed configuration may be for another machine
		found = append(append(found, cfg.validateHere()...), cfg.readKeys()...)
	}
	for i, p := range found {
		if f.line(p.key) == 0 {
			found[i].key = cfg.flagOf(p.key, changed)
		}
	}
	return cfg, f.errors(found)
}

// inTable is a key of one of several tables.
var inTable = regexp.MustCompile(`^(region|guest|socket)\[([0-9]+)\]\.(.*)$`)

// flagOf names the flag that has set a key; the key itself if none has. The number of a
// table says where that is in a file, and nothing of a flag.
func (c *Config) flagOf(key string, changed func(string) bool) string {
	part := inTable.FindStringSubmatch(key)
	if part == nil {
		if changed(key) {
			return "--" + key
		}
		return key
	}
	value, i := "", 0
	switch i, _ = strconv.Atoi(part[2]); part[1] {
	case "region":
		value = c.Regions[i].Name
	case "guest":
		value = c.Guests[i].String()
	case "socket":
		value = c.Sockets[i].Path
	}
	return fmt.Sprintf("--%s %s: %s", part[1], value, part[3])
}

// override puts the flags over cfg, and makes f drop the lines of the keys that they
// replace, so that errors do not point into the file.
func (a *arguments) override(cfg *Config, f *file, changed func(string) bool) error {
	for _, o := range options {
		if !changed(o.key) {
			continue
		}
		if err := o.at(cfg).Set(o.at(&a.flagged).String()); err != nil {
			return fmt.Errorf("--%s: %w", o.key, err)
		}
		f.drop(o.key)
	}
	fromFile := len(cfg.Regions)
	for _, text := range a.regions {
		r, err := parseRegion(text)
		if err != nil {
			return ofFlag("region", text, err)
		}
		i := slices.IndexFunc(cfg.Regions[:fromFile], func(old RegionConfig) bool { return old.Name == r.Name })
		if i < 0 {
			cfg.Regions = append(cfg.Regions, r)
			continue
		}
		cfg.Regions[i] = r
		f.drop(fmt.Sprintf("region[%d]", i))
	}
	for _, text := range a.sockets {
		s, err := parseSocket(text)
		if err != nil {
			return ofFlag("socket", text, err)
		}
		cfg.Sockets = append(cfg.Sockets, s)
	}
	return a.rules(cfg, f)
}

// ofFlag names the flag of an error, and its value unless the error begins with that.
func ofFlag(flag, value string, err error) error {
	if strings.HasPrefix(err.Error(), strconv.Quote(value)) {
		return fmt.Errorf("--%s %w", flag, err)
	}
	return fmt.Errorf("--%s %s: %w", flag, value, err)
}

// rules puts the rules that flags give before those of the file.
func (a *arguments) rules(cfg *Config, f *file) error {
	var rules []GuestConfig
	for _, text := range a.guests {
		g, err := parseGuest(text)
		if err != nil {
			return ofFlag("guest", text, err)
		}
		rules = append(rules, g)
	}
	f.shift("guest", len(cfg.Guests), len(rules))
	cfg.Guests = append(rules, cfg.Guests...)
	return nil
}

// errInterface marks an error that comes from the interface or from missing privileges.
func errInterface(err error) error { return &exitError{code: exitInterface, err: err} }

// errFailure marks an error as a failure while running, unless it is marked already.
func errFailure(err error) error {
	if err == nil || errors.As(err, new(*exitError)) {
		return err
	}
	return &exitError{code: exitFailure, err: err}
}
