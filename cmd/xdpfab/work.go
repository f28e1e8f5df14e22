// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// The words of the region that the workloads use, as indices of 8 bytes, a cache
// line apart.
const (
	wordCounter = 8 * iota
	wordLock
	wordGuarded
	wordMax
	wordFloat
)

// workload is a small program of several clients. Its last value can be worked out
// beforehand from the values that it finds in memory.
type workload struct {
	name  string
	title string
	word  uint64 // index of the word that shows the result
	run   func(ctx context.Context, t *team) (got, want string, err error)
}

var workloads = []workload{
	{"counter", "fetch-and-add: every increment counts once", wordCounter, countUp},
	{"lock", "compare-and-swap lock around load, add, store", wordGuarded, lockUp},
	{"max", "leaderboard: the greatest score stands", wordMax, compete},
	{"float", "float64 sum of quarters, up and down", wordFloat, addQuarters},
}

// workReport is the JSON output of work.
type workReport struct {
	Workload string  `json:"workload"`
	Title    string  `json:"title"`
	Clients  int     `json:"clients"`
	Rounds   int     `json:"rounds"` // of each client
	Seconds  float64 `json:"seconds"`
	Got      string  `json:"got"`
	Want     string  `json:"want"`
	Exact    bool    `json:"exact"`
}

// team is the clients of a workload: each has a session of its own.
type team struct {
	region string
	rounds int
	peers  []*xdpfab.Peer
}

// workCmd is hidden: it is how the demo runs clients as processes.
func (a *app) workCmd() *cobra.Command {
	var (
		link            linkFlags
		region          string
		clients, rounds int
	)
	c := &cobra.Command{
		Use:     "work NAME PEER",
		Short:   "Run a workload of the demo and check its result",
		Example: "  xdpfab work counter 10.0.0.2 --region demo --clients 8 --rounds 1000",
		Hidden:  true,
		Args:    exactArgs("NAME", "PEER"),
		RunE: func(c *cobra.Command, args []string) error {
			i := slices.IndexFunc(workloads, func(w workload) bool { return w.name == args[0] })
			if i < 0 {
				return usage(c, "unknown workload %q: want one of %s", args[0], workloadNames())
			}
			if clients < 1 || clients > 256 || rounds < 1 {
				return usage(c, "%d clients, %d rounds: want 1 to 256, and 1 or more", clients, rounds)
			}
			return a.work(c, &link, workloads[i], args[1],
				&team{region: region, rounds: rounds, peers: make([]*xdpfab.Peer, clients)})
		},
	}
	link.register(c)
	a.jsonFlag(c)
	c.Flags().StringVar(&region, "region", "demo", "region of at least 512 bytes to work in")
	c.Flags().IntVar(&clients, "clients", 8, "concurrent clients")
	c.Flags().IntVar(&rounds, "rounds", 1000, "rounds of each client")
	return c
}

func (a *app) work(c *cobra.Command, link *linkFlags, w workload, peer string, t *team) (err error) {
	cl, err := a.connect(c, link, peer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cl.close()) }()
	for i := range t.peers {
		if t.peers[i], err = cl.dom.Dial(c.Context(), cl.addr); err != nil {
			return err
		}
	}
	r := workReport{Workload: w.name, Title: w.title, Clients: len(t.peers), Rounds: t.rounds}
	start := time.Now()
	if r.Got, r.Want, err = w.run(c.Context(), t); err != nil {
		return err
	}
	r.Seconds = time.Since(start).Seconds()
	r.Exact = r.Got == r.Want
	err = a.print(&r, func(out io.Writer) {
		fmt.Fprintf(out, "%s: %d clients, %d rounds each, %.2f s: %s, want %s\n", r.Title, r.Clients, r.Rounds,
			r.Seconds, r.Got, r.Want)
	})
	if !r.Exact {
		err = errors.Join(err, fmt.Errorf("%s: %s, want %s", r.Title, r.Got, r.Want))
	}
	return err
}

// each runs f as every client at the same time; the first error ends all.
func (t *team) each(ctx context.Context, f func(ctx context.Context, id int, p *xdpfab.Peer) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for id, p := range t.peers {
		wg.Go(func() {
			if err := f(ctx, id, p); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// total returns how many rounds there are in all.
func (t *team) total() int { return len(t.peers) * t.rounds }

// tally runs f as every client on its own handle of the first word, and returns the
// values of the word before and after.
func tally[T xdpfab.Element](ctx context.Context, t *team, word uint64,
	f func(ctx context.Context, id int, p *xdpfab.Peer, w xdpfab.Remote[T]) error) (before, after T, err error) {
	w, err := xdpfab.Word[T](ctx, t.peers[0], t.region, word)
	if err != nil {
		return before, after, err
	}
	if before, err = w.Load(ctx); err != nil {
		return before, after, err
	}
	err = t.each(ctx, func(ctx context.Context, id int, p *xdpfab.Peer) error {
		w, err := xdpfab.Word[T](ctx, p, t.region, word)
		if err != nil {
			return err
		}
		return f(ctx, id, p, w)
	})
	if err == nil {
		after, err = w.Load(ctx)
	}
	return before, after, err
}

// countUp has every client add 1. The sum must be right, and every value must have
// been returned to exactly one of the clients.
func countUp(ctx context.Context, t *team) (got, want string, err error) {
	returned := make([][]uint64, len(t.peers))
	before, after, err := tally(ctx, t, wordCounter,
		func(ctx context.Context, id int, _ *xdpfab.Peer, w xdpfab.Remote[uint64]) error {
			for range t.rounds {
				n, err := w.Add(ctx, 1)
				if err != nil {
					return err
				}
				returned[id] = append(returned[id], n)
			}
			return nil
		})
	if err != nil {
		return "", "", err
	}
	all := slices.Concat(returned...)
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != t.total() {
		return "", "", fmt.Errorf("%d increments returned %d different values", t.total(), n)
	}
	return fmt.Sprint(after), fmt.Sprint(before + uint64(t.total())), nil
}

// lockUp guards load, add and store, which are not atomic together, with a lock that
// holds its owner's number.
func lockUp(ctx context.Context, t *team) (got, want string, err error) {
	before, after, err := tally(ctx, t, wordGuarded,
		func(ctx context.Context, id int, p *xdpfab.Peer, guarded xdpfab.Remote[uint64]) error {
			lock, err := xdpfab.Word[uint64](ctx, p, t.region, wordLock)
			for range t.rounds {
				if err != nil {
					return err
				}
				err = holding(ctx, lock, uint64(id+1), func() error {
					n, err := guarded.Load(ctx)
					if err != nil {
						return err
					}
					return guarded.Store(ctx, n+1)
				})
			}
			return err
		})
	return fmt.Sprint(after), fmt.Sprint(before + uint64(t.total())), err
}

// holding runs f while the lock belongs to owner.
func holding(ctx context.Context, lock xdpfab.Remote[uint64], owner uint64, f func() error) error {
	for {
		mine, err := lock.CompareAndSwap(ctx, 0, owner)
		if err != nil {
			return err
		}
		if mine {
			break
		}
		// Another client has the lock for two round trips. Each of those that
		// wait looks again a little later, at a time of its own.
		time.Sleep(time.Duration(rand.IntN(50)) * time.Microsecond)
	}
	if err := f(); err != nil {
		return err
	}
	released, err := lock.CompareAndSwap(ctx, owner, 0)
	if err == nil && !released {
		err = errors.New("the lock was taken away")
	}
	return err
}

// compete has every client submit scores from a generator that starts from the
// client's number, so the greatest of all is known.
func compete(ctx context.Context, t *team) (got, want string, err error) {
	best := make([]int64, len(t.peers))
	before, after, err := tally(ctx, t, wordMax,
		func(ctx context.Context, id int, _ *xdpfab.Peer, w xdpfab.Remote[int64]) error {
			scores := rand.New(rand.NewPCG(uint64(id), 1))
			for range t.rounds {
				score := scores.Int64N(1_000_000_000)
				if _, err := xdpfab.Max(ctx, w, score); err != nil {
					return err
				}
				best[id] = max(best[id], score)
			}
			return nil
		})
	return fmt.Sprint(after), fmt.Sprint(max(before, slices.Max(best))), err
}

// addQuarters adds multiples of 1/4, whose sums a float64 holds exactly, so that
// the order does not matter.
func addQuarters(ctx context.Context, t *team) (got, want string, err error) {
	added := make([]float64, len(t.peers))
	sum, after, err := tally(ctx, t, wordFloat,
		func(ctx context.Context, id int, _ *xdpfab.Peer, w xdpfab.Remote[float64]) error {
			for i := range t.rounds {
				v := float64((id+1)*(i%100)-40) / 4
				if _, err := w.Add(ctx, v); err != nil {
					return err
				}
				added[id] += v
			}
			return nil
		})
	for _, v := range added {
		sum += v
	}
	return decimal(after), decimal(sum), err
}

// decimal prints a float without an exponent, as package value does.
func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// workloadNames lists the workloads, for messages.
func workloadNames() string {
	var names []string
	for _, w := range workloads {
		names = append(names, w.name)
	}
	return strings.Join(names, ", ")
}
