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

// arguments are the flags that are not options.
type arguments struct {
	config       string
	regions      []string
	guests       []string
	sockets      []string
	check, print bool
	helpAll      bool
	takeover     bool
	unsteer      bool
	flagged      Config   // the options that were given as flags
	notes        []string // of a check: see Config.preview
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

// behaviours are the flags by which other daemons go to the background, or stay in front.
var behaviours = []string{"daemon", "daemonize", "background", "foreground", "detach"}

// flagError words the error of a flag: which flag may be meant by an unknown one, and
// what is wrong with a value, once.
func flagError(cmd *cobra.Command, err error) error {
	unknown, missing, invalid := new(pflag.NotExistError), new(pflag.ValueRequiredError), new(pflag.InvalidValueError)
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedName() == "mtu":
		return fmt.Errorf("%w: the MTU is the interface's: `ip link set dev eth0 mtu 9000`", err)
	case errors.As(err, &unknown) && (slices.Contains(behaviours, unknown.GetSpecifiedName()) ||
		strings.EqualFold(unknown.GetSpecifiedName(), "d")):
		return fmt.Errorf("%w: it always runs in the foreground; `systemctl start xdpfabd@eth0` runs it as a service",
			err)
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return fmt.Errorf("%w%s; see `xdpfabd --help`", err, likeLetter(cmd.Flags(), unknown))
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

// likeLetter asks whether a letter was meant for the flags that begin with it: the common
// ones have no letters but that of the interface.
func likeLetter(flags *pflag.FlagSet, err *pflag.NotExistError) string {
	var like []string
	flags.VisitAll(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Name, err.GetSpecifiedName()) {
			like = append(like, "--"+f.Name)
		}
	})
	if len(like) == 0 || len(like) > 4 {
		return ""
	}
	return ", did you mean " + strings.Join(like, " or ") + "?"
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
	full := cmd.HelpFunc()
	cmd.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c != cmd {
			full(c, args)
			return
		}
		_, _ = io.WriteString(stdout, brief)
	})
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
		if o.key == "metrics-address" {
			v = once(v, "want one of them, or :PORT for all addresses of the machine")
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
	flags.BoolVar(&a.check, "check", false,
		"check the configuration, say what a start would do, and exit; changes nothing")
	flags.BoolVar(&a.takeover, "takeover", false, "take the place of the daemon that serves the interface, see above")
	flags.BoolVar(&a.print, "print-config", false, "print the effective configuration as TOML and exit")
	flags.BoolVar(&a.unsteer, "unsteer", false,
		"put back the NIC's settings that a daemon with --steer or --busy-poll left when it was killed, and exit")
	flags.BoolVar(&a.helpAll, "help-all", false, "print all of the help: the manual page has the same")
	cmd.RunE = func(*cobra.Command, []string) error {
		if a.helpAll {
			full(cmd, nil)
			return nil
		}
		cfg, err := a.load(flags.Changed)
		if err != nil {
			return &exitError{code: exitUsage, err: err}
		}
		if err := a.oneTask(); err != nil {
			return &exitError{code: exitUsage, err: err}
		}
		switch {
		case a.print:
			return cfg.print(stdout)
		case a.check:
			_, err = fmt.Fprintln(stdout, strings.Join(append([]string{cfg.summary()}, a.notes...), "\n"))
			return err
		case a.unsteer:
			return unsteer(cmd.Context(), cfg, newLogger(cfg, stderr))
		}
		return start(cfg, stderr)
	}
	complete(cmd)
	return cmd
}

// oneTask refuses flags that each have the program do something else than to serve.
func (a *arguments) oneTask() error {
	if a.check && a.takeover && !a.print && !a.unsteer {
		return errors.New("--check with --takeover: the check says what a takeover would do, too: leave out --takeover")
	}
	given := ""
	for _, task := range []struct {
		flag string
		is   bool
	}{{"--print-config", a.print}, {"--check", a.check}, {"--unsteer", a.unsteer}, {"--takeover", a.takeover}} {
		if task.is && given != "" {
			return fmt.Errorf("%s with %s: only one of them would be done; want one of them", given, task.flag)
		}
		if task.is {
			given = task.flag
		}
	}
	return nil
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
	var wrong, refused error
	if a.config != "" {
		text, err := os.ReadFile(a.config)
		if err != nil {
			return cfg, fmt.Errorf("--config: %w: want a file of TOML that this user may read", err)
		}
		f, wrong = parseFile(a.config, string(text), &cfg)
	}
	if err := errors.Join(wrong, a.override(&cfg, f, changed)); err != nil {
		return cfg, err
	}
	if err := cfg.resolve(); err != nil {
		return cfg, err
	}
	found := cfg.validate()
	if !a.print { // a printed configuration may be for another machine
		found = append(append(found, cfg.validateHere()...), cfg.readKeys()...)
	}
	if a.check {
		var here []problem
		a.notes, here, refused = cfg.preview()
		found = append(found, here...)
	}
	for i, p := range found {
		if f.line(p.key) == 0 {
			found[i].key = cfg.flagOf(p.key, changed)
		}
	}
	return cfg, errors.Join(f.errors(found), refused)
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
	var errs []error
	fromFile := len(cfg.Regions)
	for _, text := range a.regions {
		r, err := parseRegion(text)
		if err != nil {
			errs = append(errs, ofFlag("region", text, err))
			continue
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
			errs = append(errs, ofFlag("socket", text, err))
		}
		cfg.Sockets = append(cfg.Sockets, s)
	}
	return errors.Join(append(errs, a.rules(cfg, f))...)
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
	var errs []error
	for _, text := range a.guests {
		g, err := parseGuest(text)
		if err != nil {
			errs = append(errs, ofFlag("guest", text, err))
		}
		rules = append(rules, g)
	}
	f.shift("guest", len(cfg.Guests), len(rules))
	cfg.Guests = append(rules, cfg.Guests...)
	return errors.Join(errs...)
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
