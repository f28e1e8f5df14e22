// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/cmd/xdpfab/value"
	"github.com/xdpfab/xdpfab/internal/route"
	"github.com/xdpfab/xdpfab/internal/tell"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// What a refused command line, or a refused operation, lacks to be right.

// flagValues tells what the values of flags of a type look like.
var flagValues = map[string]string{
	"uint64": "a whole number, 0 or more", "int": "a whole number", "float64": "a number",
	"bytes":    "a whole number, 0 or more, of bytes, KiB, MiB, GiB or TiB, such as 4096 or 4KiB",
	"duration": "a time such as 500ms, 5s or 1m", "bool": "true or false", "intSlice": "whole numbers, such as 2,3",
}

// otherFlags are the names that other programs have for flags, and those here.
var otherFlags = map[string]string{
	"size": "length", "type": "datatype", "dtype": "datatype", "n": "count", "number": "count",
	"address": "peer", "host": "peer", "p": "peer", "iface": "interface", "dev": "interface", "name": "region",
	"r": "region", "index": "offset", "expected": "compare", "expect": "compare", "output": "write", "o": "write",
	"file": "write", "id": "mailbox", "until": "wait", "duration": "wait", "threads": "endpoints",
	"clients": "endpoints", "parallel": "endpoints", "runtime": "duration", "seconds": "duration",
}

// flagError words the error of a flag: what was given, and what its type takes. The flag
// behind a mistyped command is that command's: the word in front of it is what is wrong.
func flagError(c *cobra.Command, err error) error {
	if words := c.Flags().Args(); c.HasSubCommands() && len(words) > 0 {
		if wrong := c.ValidateArgs(words); wrong != nil {
			return wrong
		}
	}
	if unknown := new(pflag.NotExistError); errors.As(err, &unknown) && !c.HasParent() && len(c.Flags().Args()) == 0 {
		return usage(c, "%v%s: a command's flags stand behind it, as in `xdpfab list 10.0.0.2 --json`", err,
			tell.LikeFlag(c.Flags(), unknown))
	} else if errors.As(err, &unknown) {
		return usage(c, "%v%s", err, inPlaceOf(c, unknown))
	}
	if missing := new(pflag.ValueRequiredError); errors.As(err, &missing) {
		return usage(c, "--%s needs a value%s", missing.GetFlag().Name, valueOf(missing.GetFlag()))
	}
	invalid := new(pflag.InvalidValueError)
	if !errors.As(err, &invalid) {
		return usage(c, "%v", err)
	}
	f := invalid.GetFlag()
	want, known := flagValues[f.Value.Type()]
	if !known {
		return usage(c, "--%s: %s", f.Name, tell.Plain(invalid.Unwrap()))
	}
	like := ""
	_, number := strconv.ParseFloat(invalid.GetValue(), 64)
	switch {
	case f.Value.Type() == "bytes":
		like = tell.LikeSize(invalid.GetValue())
	case f.Value.Type() == "duration" && number == nil:
		like = ", did you mean " + invalid.GetValue() + "s?"
	}
	return usage(c, "--%s %q%s: want %s", f.Name, invalid.GetValue(), like, want)
}

// inPlaceOf says what a command has in place of an unknown flag: an argument, a flag of
// another name or one like it, or else all of its flags.
func inPlaceOf(c *cobra.Command, unknown *pflag.NotExistError) string {
	name := unknown.GetSpecifiedName()
	if argument := strings.ToUpper(name); slices.Contains(strings.FieldsFunc(c.Use, notUpper), argument) {
		return fmt.Sprintf(": %s is an argument: `%s %s`", argument, c.Parent().CommandPath(), c.Use)
	}
	if other := otherFlags[name]; c.Flags().Lookup(other) != nil {
		return ": here it is --" + other
	}
	if form, err := atomic.ParseFunc(name); err == nil && c.Flags().Lookup("form") != nil {
		return fmt.Sprintf(": here it is --form %v; VALUE is decimal, or hexadecimal with 0x", form)
	}
	if (name == "region" || name == "regions") && c.Name() == "list" {
		return allRegions
	}
	if name == "resume" && c.Name() == "put" {
		return ": put goes on with --skip and the number of bytes that the error of the former one names"
	}
	if name == "skip" && c.Name() == "get" {
		return ": get goes on with --resume, by the length of the file"
	}
	if name == "mailbox" && c.Name() == "send" {
		return ": the mailbox stands behind the peer, as in `xdpfab send 10.0.0.2/9 hello`"
	}
	if name == "csv" && c.Flags().Lookup("json") != nil {
		return ": want --json; bench alone has --csv"
	}
	if name == "json" && c.Name() == "doctor" {
		return ": it prints JSON always"
	}
	if like := tell.LikeFlag(c.Flags(), unknown); like != "" {
		return like
	}
	var all []string
	c.Flags().VisitAll(func(f *pflag.Flag) { all = append(all, "--"+f.Name) })
	return ": want " + strings.Join(all, ", ")
}

// allRegions is what list does about the name of a region.
const allRegions = ": it lists all regions of the peer; leave out the name"

// notUpper separates the words in capitals of a command's use.
func notUpper(r rune) bool { return r < 'A' || r > 'Z' }

// missing adds to the error of a region that the peer does not have which it has.
func (f *regionFlags) missing(ctx context.Context, p *xdpfab.Peer, err error) error {
	if !errors.Is(err, xdpfab.ErrNoRegion) {
		return err
	}
	if oe, is := errors.AsType[*xdpfab.OpError](err); is {
		err = oe // without the advice for programs
	}
	list, failed := p.Regions(ctx)
	if failed != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("%w: the peer publishes none: start its daemon with --region NAME=SIZE, or `xdpfab region "+
			"create` there", err)
	}
	var names []string
	for _, r := range list {
		names = append(names, printable(r.Name))
	}
	slices.Sort(names)
	const most = 20
	return fmt.Errorf("%w%s; the peer has %s", err, tell.DidYouMean(f.name, names), tell.List(names, most))
}

// lacksEndpoint reports whether a peer has refused a session since nobody serves the
// endpoint. Peers refuse for other reasons, too, which only the text tells apart.
func lacksEndpoint(err error) bool {
	return errors.Is(err, xdpfab.ErrRefused) && strings.Contains(err.Error(), "no such endpoint")
}

// noEndpoint is the error of an endpoint that nobody serves, without the advice for
// programs.
func noEndpoint(err error) error {
	if oe, is := errors.AsType[*xdpfab.OpError](err); is && lacksEndpoint(err) {
		oe.Cause = fmt.Errorf("%w: it has no such endpoint", xdpfab.ErrRefused)
	}
	return err
}

// atEndpoint adds to the error of a dial that nobody serves the endpoint of an address
// what the number behind the slash means: in an address that was pasted with the length
// of its prefix, that length.
func atEndpoint(err error, to wire.Addr) error {
	if !lacksEndpoint(err) {
		return err
	}
	err = noEndpoint(err)
	if to.Endpoint == 0 {
		return fmt.Errorf("%w: a program has the interface there that serves no regions, or is just starting: want "+
			"xdpfabd, or a program that serves some", err)
	}
	number, prefix := to.Endpoint, ""
	if to.IsIP() && int(number) <= to.IP.BitLen() {
		prefix = ", not the length of a prefix"
	}
	to.Endpoint, to.Lane = 0, 0
	return fmt.Errorf("%w: %d behind the slash is the number of an endpoint%s: give %v for that of its daemon", err,
		number, prefix, to)
}

// notNetwork adds to the error of a peer that does not answer that its address is one of
// a network: such an address was meant for all of the network's nodes, or was mistyped.
func notNetwork(err error, to []wire.Addr) error {
	silent := func(is error) bool { return errors.Is(err, is) }
	if len(to) == 0 || !to[0].IsIP() || !slices.ContainsFunc(
		[]error{xdpfab.ErrPeerSilent, route.ErrNoRoute, route.ErrUnreachable}, silent) {
		return err
	}
	ip, number := to[0].IP, int(to[0].Endpoint)
	if number == 0 || number > ip.BitLen()-2 || netip.PrefixFrom(ip, number).Masked().Addr() != ip {
		return err
	}
	return fmt.Errorf("%v/%d is endpoint %d of %v, not a network: give the address of one node: %w", ip, number, number,
		ip, err)
}

// explain adds to the error of an operation that a region refused what the region would
// take. The size of a region that is given by its key is not known.
func (r *request) explain(err error, at xdpfab.RemoteRegion, link *linkFlags) error {
	size := uint64(r.dt.Size())
	align := min(size, mostAlign)
	switch {
	case errors.Is(err, xdpfab.ErrPeerRestarted) && errors.Is(err, xdpfab.ErrNotExecuted):
		return &codeError{err, exitFailed} // 3 would leave open whether it ran
	case errors.Is(err, xdpfab.ErrMisaligned):
		below := r.offset / align * align
		return fmt.Errorf("%w: %v is aligned to %d bytes, offset %d is not: use %s %d or %d", err, r.dt, align,
			r.offset, r.field("offset"), below, below+align)
	case errors.Is(err, xdpfab.ErrAccess):
		return link.denied(unadvised(err), at, r.op.String(), r.rights())
	case errors.Is(err, xdpfab.ErrNoKey) && at.Name == "":
		return unknownKey(err)
	case at.Name == "":
		return err
	case errors.Is(err, xdpfab.ErrOutOfBounds):
		need := uint64(r.count) * size
		if need > at.Size {
			return fmt.Errorf("%w: region %q has %d bytes, room for %d of %v: use a lower %s", err, at.Name,
				at.Size, at.Size/size, r.dt, r.field(map[bool]string{true: "n", false: "count"}[r.batch]))
		}
		return fmt.Errorf("%w: region %q has %d bytes: use %s %d or less for %d of %v", err, at.Name, at.Size,
			r.field("offset"), (at.Size-need)/align*align, r.count, r.dt)
	}
	return err
}

// mostAlign is the greatest alignment of a datatype, bytes.
const mostAlign = 16

// rights are those that the operation takes.
func (r *request) rights() mr.Access {
	switch {
	case r.op == atomic.Read:
		return mr.RemoteRead
	case r.op == atomic.Write && r.form == atomic.Base:
		return mr.RemoteWrite
	}
	return mr.RemoteRead | mr.RemoteWrite
}

// Why an operation with a condition left an element as it was.
var (
	errNotSwapped = errors.New("not swapped")
	errNotWithin  = errors.New("not within the bound")
)

// stayed returns an error if the operation left elements as they were, since its
// condition did not hold.
func (r *request) stayed(before []byte, region fmt.Stringer) error {
	left := r.unapplied(before)
	if len(left) == 0 {
		return nil
	}
	i, size := left[0], r.dt.Size()
	element := func(b []byte) string { return value.Format(r.dt, b[i*size:(i+1)*size]) }
	err, remedy := errNotSwapped, "to swap it, give that to --compare"
	const beyond = "with %s %s it would be %s %s, or beyond %v: give a lower value, or another bound by --compare"
	switch operand, bound := element(r.operand), element(r.compare); r.op {
	case atomic.SumAtMost:
		err, remedy = errNotWithin, fmt.Sprintf(beyond, operand, "more", "above", bound, r.dt)
	case atomic.DiffAtLeast:
		err, remedy = errNotWithin, fmt.Sprintf(beyond, operand, "less", "below", bound, r.dt)
	}
	some := ""
	if r.count > 1 {
		some = fmt.Sprintf("%d of %d elements stayed as they were; the first is ", len(left), r.count)
	}
	return &codeError{fmt.Errorf("%w: %s%v+%d, which is %s: %s", err, some, region, r.offset+uint64(i*size),
		element(before), remedy), exitNotSwapped}
}

// unapplied returns the elements that the operation left as they were, by index.
func (r *request) unapplied(before []byte) (left []int) {
	if r.form != atomic.Compare {
		return nil
	}
	size := r.dt.Size()
	for i := range r.count {
		element := func(b []byte) []byte { return b[i*size : (i+1)*size] }
		if !atomic.Applied(r.op, r.dt, element(before), element(r.operand), element(r.compare)) {
			left = append(left, i)
		}
	}
	return left
}

// publishedKeys is the remedy for a key that the peer does not know.
const publishedKeys = "`xdpfab list` shows the keys that the peer publishes"

// unknownKey adds the remedy to the error of a key that the peer does not know, in place
// of the advice for programs.
func unknownKey(err error) error {
	if oe, is := errors.AsType[*xdpfab.OpError](err); is {
		err = oe
	}
	return fmt.Errorf("%w: %s", err, publishedKeys)
}

// whole is a command line of an operation that lacks nothing, with the values that were
// given. Of two for a compare-and-swap, the first is the one that is there, as in other
// libraries' functions.
func (f *atomicFlags) whole(op atomic.Op, dt atomic.Datatype, values []string) string {
	line, compared := fmt.Sprintf("xdpfab atomic %v %v", op, dt), ""
	compares := atomic.Valid(atomic.Compare, op, dt)
	switch {
	case op == atomic.Read:
		values = nil
	case compares && len(f.compare) > 0:
		compared = strings.Join(f.compare, ",")
	case compares && len(values) == 2 && compareIs(op) == oldValue:
		values, compared = values[1:], values[0]
	case compares && len(values) == 2:
		values, compared = values[:1], values[1]
	case compares:
		compared = compareIs(op)
	}
	if op != atomic.Read && len(values) == 0 {
		values = []string{"VALUE"}
	}
	line = strings.Join(append([]string{line}, values...), " ")
	if compared != "" {
		line += " --compare " + compared
	}
	return "`" + line + " --peer " + cmp.Or(f.peer, "PEER") + " " + f.region.flag() + "`"
}

// oldValue is the compare value of a compare-and-swap.
const oldValue = "OLD"

// compareIs names the compare value of an operation.
func compareIs(op atomic.Op) string {
	switch op {
	case atomic.Mswap, atomic.Msum:
		return "MASK"
	case atomic.SumAtMost, atomic.DiffAtLeast:
		return "BOUND"
	}
	return oldValue
}

// isNumber reports whether an argument is a value of some datatype.
func isNumber(text string) bool {
	_, err := value.Parse(atomic.Double, text)
	_, whole := strconv.ParseUint(strings.TrimPrefix(text, "-"), 0, 64)
	return err == nil || whole == nil
}

func parseOp(text string) (atomic.Op, error) {
	op, err := atomic.ParseOp(text)
	_, other := atomic.ParseDatatype(text)
	like := strings.ReplaceAll(strings.ToLower(text), "-", "_")
	name := otherNames[like]
	if plain, is := strings.CutPrefix(like, "fetch_"); is && name == "" {
		if plain, e := atomic.ParseOp(plain); e == nil {
			name = fmt.Sprintf("%v, which prints the value from before", plain)
		}
	}
	switch {
	case err != nil && other == nil:
		err = fmt.Errorf("%q is a datatype: the order is OP DATATYPE VALUE", text)
	case err != nil && isAddress(text):
		err = fmt.Errorf("%q is an address: a peer's is for --peer, and the order is OP DATATYPE VALUE", text)
	case err != nil && name != "":
		err = fmt.Errorf("unknown operation %q: here it is %s", text, name)
	case err != nil:
		err = unknown("operation", text, opNames())
	}
	return op, err
}

func parseDatatype(text string) (atomic.Datatype, error) {
	dt, err := atomic.ParseDatatype(text)
	switch name := otherTypes[strings.ToLower(text)]; {
	case err != nil && isAddress(text):
		err = fmt.Errorf("%q is an address and no datatype: a peer's is for --peer", text)
	case err != nil && name != "":
		err = fmt.Errorf("unknown datatype %q: here it is %s", text, name)
	case err != nil:
		err = unknown("datatype", text, datatypeNames())
	}
	return dt, err
}

// unknown refuses a word that is not among the names of what it should be.
func unknown(what, word string, names []string) error {
	return fmt.Errorf("unknown %s %q%s: want one of %s", what, word, tell.DidYouMean(word, names),
		strings.Join(names, ", "))
}
