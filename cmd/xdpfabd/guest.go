// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/tell"
)

// GuestConfig is a rule about programs that want to use the interface through the daemon.
// The first rule that fits a program counts.
type GuestConfig struct {
	User, Group string // name or number; empty fits any
	Socket      string // path of the control socket by which the program comes; empty fits any
	Deny        bool
	Serve       string           // pattern of the names of regions that it may serve
	Guests      int              // programs at a time that the rule lets attach; 0 means defaultGuests
	Total       int              // bytes of memory that all its programs take together; 0 means no limit of its own
	Limits      host.GuestLimits // 0 means the library's default
}

// defaultGuests is how many programs at a time a rule lets attach, unless it says
// otherwise.
const defaultGuests = 1024

// defaultGuest is a rule that allows everything.
func defaultGuest() GuestConfig { return GuestConfig{Serve: "*"} }

// effective is the rule with the limits that it leaves out. A rule that denies has none.
func (g GuestConfig) effective() GuestConfig {
	if !g.Deny {
		g.Guests, g.Limits = cmp.Or(g.Guests, defaultGuests), g.Limits.Effective()
	}
	return g
}

// defaultKept is how many bytes root and the daemon's own user may have kept where no
// rule is about them.
const defaultKept = 16 << 30

// rule is a GuestConfig with the numbers of its user and group, its places, and what its
// programs take together.
type rule struct {
	GuestConfig
	name     string // in errors
	uid, gid *uint32
	places   places
	budgets  []*host.Budget
}

func newRule(g GuestConfig, name string, all *host.Budget) *rule {
	r := &rule{GuestConfig: g, name: name,
		places: places{most: cmp.Or(g.Guests, defaultGuests), name: name, sole: g.User != ""}}
	if g.Total > 0 {
		r.budgets = append(r.budgets, host.NewBudget("total of that rule", host.Cost{Memory: g.Total}))
	}
	r.budgets = append(r.budgets, all)
	return r
}

// rules decides which programs may attach.
type rules struct {
	given    []*rule // by the configuration
	fallback *rule   // counts where none of these does, for root and the daemon's own user
}

// newRules looks up the users and groups of a configuration, and finds those that are
// unknown here.
func newRules(guests []GuestConfig) (all rules, found []problem) {
	budget := newBudget()
	usual := defaultGuest()
	usual.Limits.Kept = defaultKept
	all.fallback = newRule(usual, "the rule for root and the daemon's own user", budget)
	for i, g := range guests {
		r := newRule(g, fmt.Sprintf("rule guest[%d] (%s) of the daemon's configuration", i, g), budget)
		var err error
		if r.uid, err = number(g.User, "passwd", userNumber); err != nil {
			found = append(found, problem{key: fmt.Sprintf("guest[%d].user", i), text: err.Error()})
		}
		if r.gid, err = number(g.Group, "group", groupNumber); err != nil {
			found = append(found, problem{key: fmt.Sprintf("guest[%d].group", i), text: err.Error()})
		}
		all.given = append(all.given, r)
	}
	return all, found
}

// validateGuests finds rules, and settings of rules, that have no effect.
func (c Config) validateGuests() (found []problem) {
	fresh := defaultGuest()
	for i, g := range c.Guests {
		at := fmt.Sprintf("guest[%d]", i)
		if j := slices.IndexFunc(c.Guests[:i], func(former GuestConfig) bool { return former.covers(g) }); j >= 0 {
			found = append(found, problem{key: at, text: fmt.Sprintf("%s: this rule is never reached: guest[%d] "+
				"(%s) fits the same programs, and the first rule that fits decides; want this one before it, or "+
				"neither", g, j, c.Guests[j])})
		}
		for _, o := range guestOptions[firstLimit : len(guestOptions)-1] {
			if text := o.at(&g).String(); g.Deny && text != o.at(&fresh).String() {
				found = append(found, problem{key: at + "." + o.key, text: fmt.Sprintf("%s: a program that may not "+
					"attach has no limits; want no %s in a rule that denies", text, o.key)})
			}
		}
		if g.Limits.Queues > 0 && c.Lend == 0 {
			found = append(found, problem{key: at + ".queues", text: fmt.Sprintf("%d: this daemon lends none; want "+
				"lend, too, with so many queues or more, or no queues in rules", g.Limits.Queues)})
		}
	}
	return found
}

// covers reports whether a rule fits all programs that another one fits.
func (g GuestConfig) covers(other GuestConfig) bool {
	return (g.User == "" || g.User == other.User) && (g.Group == "" || g.Group == other.Group) &&
		(g.Socket == "" || g.Socket == other.Socket)
}

// budgets returns those of the rule of a name. What another daemon's rule has kept counts
// for those of all.
func (all rules) budgets(name string) []*host.Budget {
	if i := slices.IndexFunc(all.given, func(r *rule) bool { return r.name == name }); i >= 0 {
		return all.given[i].budgets
	}
	return all.fallback.budgets
}

// number returns the number of a user or group; nil for any. The list is the one of
// getent(1) that has the names.
func number(name, list string, look func(string) (string, error)) (*uint32, error) {
	if name == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(name, 10, 32)
	if err != nil {
		text, err := look(name)
		if err != nil {
			return nil, wants(name, "a name of this machine, as `getent "+list+"` lists them, or a number")
		}
		if n, err = strconv.ParseUint(text, 10, 32); err != nil {
			return nil, err
		}
	}
	id := uint32(n)
	return &id, nil
}

func userNumber(name string) (string, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return "", err
	}
	return u.Uid, nil
}

func groupNumber(name string) (string, error) {
	g, err := user.LookupGroup(name)
	if err != nil {
		return "", err
	}
	return g.Gid, nil
}

// fits reports whether the rule is about a program that comes by a control socket.
func (r *rule) fits(p control.Program, socket string) bool {
	if r.Socket != "" && r.Socket != socket {
		return false
	}
	if r.uid != nil && *r.uid != p.UID {
		return false
	}
	return r.gid == nil || *r.gid == p.GID || slices.Contains(p.Groups, *r.gid)
}

// admit returns the rule that lets a program attach that comes by a control socket, or
// the error that says which rule keeps it out, and what to do.
func (all rules) admit(p control.Program, socket string) (*rule, error) {
	i := slices.IndexFunc(all.given, func(r *rule) bool { return r.fits(p, socket) })
	if i < 0 {
		if p.UID == 0 || p.UID == uint32(os.Geteuid()) {
			return all.fallback, nil
		}
		return nil, refusedGuest{refusedNoRule, fmt.Errorf("user %d, group %d: only root and the daemon's own user "+
			"may attach where no rule says otherwise; add [[guest]] user = %q to the daemon's configuration, or "+
			"start it with --guest allow:user=%d", p.UID, p.GID, strconv.Itoa(int(p.UID)), p.UID)}
	}
	r := all.given[i]
	if r.Deny {
		return nil, refusedGuest{refusedDenied, fmt.Errorf("user %d, group %d: %s denies it; put a rule that allows "+
			"it before that one", p.UID, p.GID, r.name)}
	}
	return r, nil
}

// limits are those of each program that the rule lets attach.
func (r *rule) limits() host.GuestLimits {
	limits := r.Limits
	limits.Rule, limits.Budgets = r.name, r.budgets
	if r.Serve != "*" {
		limits.Serve = func(region string) error {
			if matches(r.Serve, region) {
				return nil
			}
			return fmt.Errorf("%s lets this program serve regions with names like %q alone; choose such a name, or "+
				"have the rule changed", r.name, r.Serve)
		}
	}
	return limits
}

// matches reports whether a name is like a pattern, in which * stands for any text. The
// empty pattern is like no name, not even the empty one.
func matches(pattern, name string) bool {
	if pattern == "" {
		return false
	}
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return name == pattern
	}
	if len(name) < len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) {
		return false
	}
	name = name[len(first) : len(name)-len(last)]
	for _, p := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(name, p)
		if !found {
			return false
		}
		name = after
	}
	return true
}

// String is the rule as --guest takes it.
func (g GuestConfig) String() string {
	verb := "allow"
	if g.Deny {
		verb = "deny"
	}
	var settings []string
	fresh := defaultGuest()
	for _, o := range guestOptions {
		if text := o.at(&g).String(); o.key != "deny" && text != o.at(&fresh).String() {
			settings = append(settings, o.key+"="+strings.ReplaceAll(text, ",", `\,`))
		}
	}
	return strings.TrimSuffix(verb+":"+strings.Join(settings, ","), ":")
}

// parseGuest reads the value of --guest: allow or deny, and then, after a colon, keys and
// values of guestOptions with commas between them.
func parseGuest(s string) (GuestConfig, error) {
	g := defaultGuest()
	verb, more, _ := strings.Cut(s, ":")
	switch verb {
	case "allow":
	case "deny":
		g.Deny = true
	default:
		return g, unlike(s, tell.DidYouMean(verb, []string{"allow", "deny"}),
			"allow or deny, as in allow:user=alice,memory=1GiB or deny:group=guests")
	}
	settings := guestOptions[:len(guestOptions)-1] // deny is the verb
	return g, assignEach(&g, settings, listed(more), "one of "+known(settings))
}

// firstLimit is the number of the first setting that says what a program may do, and not
// which programs the rule fits.
const firstLimit = 3

// guestOptions are the settings of a rule. The last one has a word of its own in --guest.
var guestOptions = []option[GuestConfig]{
	{"user", "name or number of the user; left out: any",
		func(g *GuestConfig) field { return textField(&g.User, checkID) }},
	{"group", "name or number of a group that the user is in; left out: any",
		func(g *GuestConfig) field { return textField(&g.Group, checkID) }},
	{"socket", "path of the control socket by which the program comes; left out: any",
		func(g *GuestConfig) field { return textField(&g.Socket, checkSocket) }},
	{"serve", "pattern of the names of regions that the program may serve, * for any text; empty: none",
		func(g *GuestConfig) field { return textField(&g.Serve, nil) }},
	{"guests", "programs at a time that the rule lets attach; 1024",
		func(g *GuestConfig) field { return countField(&g.Guests, 1, math.MaxUint16) }},
	{"entries", "operations in flight; 4096",
		func(g *GuestConfig) field { return countField(&g.Limits.Entries, 16, 1<<16) }},
	{"arena", "bytes for operands and results on their way; 64MiB",
		func(g *GuestConfig) field { return sizeField(&g.Limits.Arena) }},
	{"arrivals", "bytes that peers have sent and the program has not read; 4MiB",
		func(g *GuestConfig) field { return sizeField(&g.Limits.Arrivals) }},
	{"endpoints", "numbers of endpoints; a scalable one has one for each receive context; 256",
		func(g *GuestConfig) field { return countField(&g.Limits.Endpoints, 1, math.MaxUint16) }},
	{"peers", "peers of its endpoints; 65536",
		func(g *GuestConfig) field { return countField(&g.Limits.Peers, 1, math.MaxInt32) }},
	{"regions", "regions that it serves; 1024",
		func(g *GuestConfig) field { return countField(&g.Limits.Regions, 1, math.MaxInt32) }},
	{"host", "bytes of the daemon's own memory that the program takes; 128MiB",
		func(g *GuestConfig) field { return sizeField(&g.Limits.Host) }},
	{"total", "bytes of memory that all programs of the rule take together; no limit but the daemon's",
		func(g *GuestConfig) field { return pagesField(&g.Total) }},
	{"kept", "bytes of regions that outlive their programs, of all programs of the rule together; none",
		func(g *GuestConfig) field { return pagesField(&g.Limits.Kept) }},
	{"memory", "bytes that its regions span; 16GiB",
		func(g *GuestConfig) field { return pagesField(&g.Limits.Memory) }},
	{"weight", "share of the interface, in proportion to other programs' weights; 1",
		func(g *GuestConfig) field { return countField(&g.Limits.Weight, 1, mostWeight) }},
	{"queues", "queues that programs of one user borrow, on which they can put any frame on the wire; 0",
		func(g *GuestConfig) field { return countField(&g.Limits.Queues, 1, 63) }},
	{"deny", "true: the program may not attach", func(g *GuestConfig) field { return boolField(&g.Deny) }},
}

// mostWeight is the most that the library takes.
const mostWeight = 100

func checkID(s string) error {
	if strings.ContainsAny(s, ",: \t\n") {
		return wants(s, "the name or number of a user or group")
	}
	return nil
}
