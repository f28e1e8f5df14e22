// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/internal/version"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// opener puts an interface to use, as xdpfab.Open does.
type opener func(ctx context.Context, ifname string, attr xdpfab.DomainAttr) (*xdpfab.Domain, error)

// app is what the commands share: the outside world, which tests replace.
type app struct {
	open opener
	in   io.Reader
	out  io.Writer  // results alone
	err  io.Writer  // errors and progress
	tty  bool       // err is a terminal, so progress lines make sense
	rows func() int // of the terminal that out is; nil if it is none
	json bool       // --json
	ran  bool       // an operation that changes something has run, or a copy to a file

	copied  bool     // a get or put has come to its end
	results *results // behind out

	goesOn bool // the command has work to finish when nobody reads its output

	// Where the configuration is; nil: nowhere.
	env     func(string) string
	environ []string // all of the environment; nil once it has been looked through
	files   []string

	exit   func(code int)          // ends the process; nil where the process has to go on
	giveUp context.CancelCauseFunc // ends the command, for a reason other than a signal
}

// run executes a command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	ctx, a.giveUp = context.WithCancelCause(ctx)
	defer a.giveUp(nil)
	root := a.root()
	if c, rest, err := root.Find(args); err == nil && c.Annotations[takesNumbers] != "" {
		c.InitDefaultHelpFlag()
		args = append(strings.Fields(c.CommandPath())[1:], permute(c.Flags(), rest)...)
	}
	root.SetArgs(args)
	a.results = &results{to: a.out, unread: func() {
		if !a.goesOn {
			a.giveUp(errUnread)
		}
	}}
	out := bufio.NewWriter(a.results)
	a.out = out
	root.SetOut(out)
	root.SetErr(a.err)
	refuseUnknown(root)
	err := cmp.Or(helpless(root, args), repeated(root, args))
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	err = whyGivenUp(ctx, err) // before the last output: a reader who misses that changes nothing
	err = a.unprinted(joinOnce(err, out.Flush()), a.results)
	if err != nil {
		a.tellError(err, args)
	}
	return exitCode(err)
}

func (a *app) root() *cobra.Command {
	c := &cobra.Command{
		Use:   "xdpfab",
		Short: "Remote atomics for Ethernet",
		Long: `xdpfab runs atomic operations on memory of other nodes: exactly once, in
microseconds, over AF_XDP. A daemon (xdpfabd) or any program with the library
serves the memory.

PEER is an IP address, a MAC address, a short name of the configuration, the name of
a node in the cluster's directory (see "xdpfab nodes --help"), or that of a host, with
"/" and an endpoint number if that is not 0. By default a command uses the interface
that leads to the peer; -i chooses another. See "xdpfab config --help".

Only one process at a time can use an interface, even with UDP sockets. A daemon on
this node shares its interface: any number of commands and programs can use it at once.
Without a daemon, a command keeps the interface to itself until it ends.

Exit codes: 0 success; 1 the operation was refused or not executed; 2 wrong usage;
3 the outcome of a change is unknown, or the operation ran and its result could not be
printed, or the peer restarted; 4 the peer is silent or unreachable, or no daemon
answers; 5 the interface cannot be used, or privileges are missing; 6 a compare-and-swap
ran and did not swap all of its elements, or a bound did not hold. With --json, errors
are JSON, too, with the exit code and the known facts about the operation.

A command without end, such as receive or watch, exits with 0 when it is interrupted.
One that has not seen what it was to wait for, such as watch --until, exits with 1, as
an interrupted get does, and a put that was writing with 3. A command treats a closed
stdout like /dev/null. When the reader of a pipe goes away, as head does, the command
ends as if interrupted; a batch goes on.`,
		Example: `  xdpfab info eth0
  xdpfab list 10.0.0.2
  xdpfab atomic sum uint64 1 --peer 10.0.0.2 --region counters
  sudo xdpfab demo`,
		Version:       version.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          operations,
		RunE:          help,
	}
	r := build()
	c.SetVersionTemplate(r.Text("xdpfab"))
	c.SetFlagErrorFunc(flagError)
	c.SetUsageTemplate(usageTemplate(c))
	c.AddCommand(
		a.infoCmd(), a.doctorCmd(), a.diagnoseCmd(), a.nodesCmd(), a.listCmd(), a.pingCmd(), a.atomicCmd(),
		a.getCmd(), a.putCmd(), a.sendCmd(), a.receiveCmd(), a.watchCmd(), a.benchCmd(), a.captureCmd(),
		a.statCmd(), a.keptCmd(), a.withdrawCmd(), a.regionCmd(), a.residentCmd(), a.versionCmd(), a.demoCmd(),
		a.workCmd(), a.configCmd())
	return c
}

// jsonFlag gives a command its --json.
func (a *app) jsonFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.json, "json", false, "print the result as JSON, and an error on stderr, too")
}

// print writes a result: v as JSON, or else the output of text, in which tabs align
// columns.
func (a *app) print(v any, text func(w io.Writer)) error {
	if a.json {
		e := json.NewEncoder(a.out)
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	text(w)
	return w.Flush()
}

// input returns stdin, which ends with the context: no command waits for text that nobody
// has typed yet.
func (a *app) input(ctx context.Context) io.Reader {
	a.tellTyping()
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, a.in)
		_ = w.CloseWithError(err) // with EOF if that is nil; it does not fail
	}()
	context.AfterFunc(ctx, func() { _ = w.CloseWithError(context.Cause(ctx)) })
	return r
}

// flush shows the output printed so far, for commands that print as they go.
func (a *app) flush() error {
	if b, ok := a.out.(*bufio.Writer); ok {
		return b.Flush()
	}
	return nil
}

// takesNumbers marks commands whose arguments can be negative numbers.
const takesNumbers = "xdpfab/numbers"

var negativeNumber = regexp.MustCompile(`^-(\.?[0-9]|(?i:inf|infinity|nan)([+-]|$)).*`)

// permute puts flags first, then "--", then all other arguments in their order, so that
// -5 is an operand and not a flag.
func permute(flags *pflag.FlagSet, args []string) []string {
	var options, operands []string
	for i := 0; i < len(args); i++ {
		s := args[i]
		switch {
		case s == "--":
			operands = append(operands, args[i+1:]...)
			i = len(args)
		case len(s) < 2 || s[0] != '-' || negativeNumber.MatchString(s):
			operands = append(operands, s)
		default:
			options = append(options, s)
			switch needs := takesNext(flags, s); {
			case needs && i+1 < len(args):
				i++
				options = append(options, args[i])
			case needs:
				return options // "--" would be its value
			}
		}
	}
	return append(append(options, "--"), operands...)
}

// takesNext reports whether the value of a flag is the next argument.
func takesNext(flags *pflag.FlagSet, s string) bool {
	var f *pflag.Flag
	if name, long := strings.CutPrefix(s, "--"); long {
		f = flags.Lookup(name) // nil for --name=value
	} else if len(s) == 2 {
		f = flags.ShorthandLookup(s[1:])
	}
	return f != nil && f.NoOptDefVal == ""
}

// unknownCommand refuses arguments that name no command. Below the root there are few,
// which it names if none is close to the word.
func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if c.Name() == "stat" && isAddress(args[0]) {
		return usage(c, "%q: stat asks a daemon of this machine: want no peer; `xdpfab list %s` and `xdpfab diagnose "+
			"%s` ask one", args[0], args[0], args[0])
	}
	if c.Name() == "stat" && isInterface(args[0]) {
		return usage(c, "unknown command %q: an interface is named by -i, as in `xdpfab stat -i %s`", args[0], args[0])
	}
	if !c.HasSubCommands() {
		return usage(c, "unexpected argument %q: want none", args[0])
	}
	hint := suggestion(c, args[0])
	if hint == "" && c.HasParent() {
		var names []string
		for _, sub := range c.Commands() {
			names = append(names, sub.Name())
		}
		hint = ": want " + strings.Join(names, " or ")
	}
	return usage(c, "unknown command %q%s", args[0], hint)
}

// operations is unknownCommand for the root: an operation is no command of its own.
func operations(c *cobra.Command, args []string) error {
	if len(args) > 0 && otherCommands[args[0]] == "" {
		name := strings.ToLower(args[0])
		if other := otherNames[name]; other != "" {
			name = other
		}
		if _, err := atomic.ParseOp(name); err == nil {
			return usage(c, "unknown command %q: that is `xdpfab atomic %s`", args[0], name)
		}
	}
	return instead(otherCommands)(c, args)
}

// otherCommands are words that other programs have for what a command here does.
var otherCommands = map[string]string{
	"add": "`xdpfab atomic sum`", "incr": "`xdpfab atomic sum`", "cas": "`xdpfab atomic cswap`",
	"read":  "`xdpfab atomic read`, or `xdpfab get` for many bytes",
	"write": "`xdpfab atomic write`, or `xdpfab put` for many bytes", "cp": "`xdpfab get` or `xdpfab put`",
	"ls": "`xdpfab list`", "status": "`xdpfab stat`",
	"regions": "`xdpfab list`, or `xdpfab stat regions` for this node's",
	"serve":   "the daemon, `xdpfabd`", "start": "the daemon, `xdpfabd`", "server": "the daemon, `xdpfabd`",
}

// instead is unknownCommand for a command whose words a user may guess: it names what
// does that which they ask for.
func instead(does map[string]string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 0 && does[args[0]] != "" {
			return usage(c, "unknown command %q: that is %s", args[0], does[args[0]])
		}
		return unknownCommand(c, args)
	}
}

// refuseUnknown has the commands that cobra adds refuse what they do not know: theirs
// print help, and succeed. The root's output has to be set: completion keeps it.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.Args, c.RunE = unknownCommand, help
			for _, shell := range c.Commands() {
				shell.Args = unknownCommand
			}
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				of, rest, err := root.Find(args)
				if err != nil {
					return err
				}
				if of == root {
					return operations(of, rest)
				}
				return unknownCommand(of, rest)
			}
		}
	}
}

// helpless refuses --help of a command that there is not: cobra prints the help of the
// one above it, and succeeds. The commands whose names begin with "__" are cobra's own,
// for completion.
func helpless(root *cobra.Command, args []string) error {
	c, rest, err := root.Find(args)
	asked := slices.ContainsFunc(rest, func(s string) bool { return s == "--help" || s == "-h" })
	if err != nil || !asked || !c.HasSubCommands() || strings.HasPrefix(rest[0], "-") ||
		strings.HasPrefix(rest[0], "__") {
		return nil
	}
	return c.ValidateArgs(rest[:1])
}

// help is what a command does that has only subcommands.
func help(c *cobra.Command, _ []string) error { return c.Help() }

func suggestion(c *cobra.Command, word string) string {
	c.SuggestionsMinimumDistance = 2
	for _, like := range c.SuggestionsFor(word) {
		if strings.HasPrefix(like, word) && word != "" {
			return fmt.Sprintf(", did you mean %q?", like)
		}
	}
	if closest, is := tell.Closest(word, c.SuggestionsFor(word)); is && word != "" {
		return fmt.Sprintf(", did you mean %q?", closest)
	}
	return ""
}

// exactArgs wants exactly the arguments named.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return missingArgs(c, names[len(args):]...)
		case len(args) > len(names):
			hint := suggestion(c, args[len(names)])
			if file := c.Flags().Lookup("write"); hint == "" && file != nil && file.Shorthand == "w" {
				hint = ": the file is named by -w " + args[len(names)]
			} else if hint == "" && len(names) == 0 {
				hint = ": want none"
			} else if hint == "" && c.Name() == "list" {
				hint = allRegions
			} else if hint == "" {
				hint = ": want " + strings.Join(names, " ") + " alone"
			}
			regions := c.Flags().Lookup("region")
			if regions != nil && !regions.Changed && len(names) == 1 && !isAddress(args[1]) {
				hint = ": a region is named by --region " + args[1]
			} else if regions != nil && !regions.Changed {
				hint += "; --region names a region"
			}
			return usage(c, "unexpected argument %q%s", args[len(names)], hint)
		}
		return nil
	}
}

// missingArgs names arguments that are missing, and shows a command line that has them.
func missingArgs(c *cobra.Command, names ...string) error {
	example, _, _ := strings.Cut(strings.TrimSpace(c.Example), "\n")
	return usage(c, "missing %s: want for example `%s`", strings.Join(names, " and "), example)
}

// isInterface reports whether this machine has an interface of a name.
func isInterface(name string) bool {
	_, err := net.InterfaceByName(name)
	return err == nil
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// rowsOf returns what tells how many lines a terminal has at a moment, or nil.
func rowsOf(f *os.File) func() int {
	if !isTerminal(f) {
		return nil
	}
	return func() int {
		size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil {
			return 0 // not known
		}
		return int(size.Row)
	}
}
