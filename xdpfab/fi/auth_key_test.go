// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

var (
	red  = fi.AuthKey("red, and long enough to be good")
	blue = fi.AuthKey("blue, and long enough to be good")
)

// keyed gives a domain a serving endpoint with a key, and regions of that key, of another
// one, and of the domain.
func keyed(t *testing.T, d *xdpfab.Domain, number int, key fi.AuthKey) {
	t.Helper()
	ep, err := d.NewEndpoint(fi.EndpointAttr{Number: number, AuthKey: key})
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	m, err := mr.Alloc(4096, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Register(m, mr.Options{Name: fmt.Sprintf("own%d", number), Access: mr.RemoteRead | mr.RemoteWrite, AuthKey: key}); err != nil {
		t.Fatal(err)
	}
}

// addOne dials an endpoint and adds 1 to the first word of a region, one by one and then
// in a run.
func addOne(t *testing.T, d *xdpfab.Domain, addr, region string) error {
	t.Helper()
	p, err := d.Dial(ctx(t), addr)
	if err != nil {
		return err
	}
	defer p.Close()
	w, err := xdpfab.Word[uint64](ctx(t), p, region, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, one := w.Add(ctx(t), 1)
	v, err := xdpfab.Vector[uint64](ctx(t), p, region)
	if err != nil {
		t.Fatal(err)
	}
	if many := v.Add(ctx(t), []uint64{0, 1, 0}, []uint64{1, 1, 1}, nil); (many == nil) != (one == nil) {
		t.Errorf("one addition ends with %v, a run with %v", one, many)
	}
	return one
}

// Over a real network: endpoints of one key have sessions with each other and with no
// other, and in a session regions of that key can be used and no other.
func TestVethAuthKey(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewPair(t, testnet.Options{})
	open := func(s *testnet.Side, key fi.AuthKey) (d *xdpfab.Domain) {
		err := s.Do(func() error {
			list, err := fi.GetInfo(ctx(t), &fi.Info{Domain: fi.DomainInfo{Name: s.IfName, AuthKey: key}, AddrFormat: fi.AddrEthernet})
			if err != nil {
				return err
			}
			d, err = on(openInfo(ctx(t), &list[0], fi.DomainAttr{}))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	server := open(pair.B, red)
	defer server.CloseAll()
	keyed(t, server, 0, nil) // the domain's
	keyed(t, server, 1, blue)
	for name, c := range map[string]struct {
		key      fi.AuthKey
		endpoint int
		region   string
		want     error
		text     string
	}{
		"the domain's":            {red, 0, "own0", nil, ""},
		"the endpoint's":          {blue, 1, "own1", nil, ""},
		"another region":          {red, 0, "own1", fi.ErrAccess, "does not grant"},
		"another region there":    {blue, 1, "own0", fi.ErrAccess, "does not grant"},
		"another than domain's":   {blue, 0, "own0", fi.ErrAuthKey, "another one than this endpoint: want the same (DomainAttr.AuthKey)"},
		"another than endpoint's": {red, 1, "own1", fi.ErrAuthKey, "another one than this endpoint: want the same (DomainAttr.AuthKey)"},
		"none":                    {nil, 0, "own0", fi.ErrAuthKey, "this endpoint none: want the same (DomainAttr.AuthKey)"},
	} {
		client := open(pair.A, c.key)
		err := addOne(t, client, server.Name(uint16(c.endpoint)), c.region)
		if !errors.Is(err, c.want) || err != nil && (!strings.Contains(err.Error(), c.text) || !errors.Is(err, fi.ErrNotExecuted)) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.want, c.text)
		}
		if c.want == fi.ErrAuthKey && !errors.Is(err, syscall.EKEYREJECTED) && !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v has not the errno", name, err)
		}
		if err := client.CloseAll(); err != nil {
			t.Fatal(err)
		}
	}
}

// A key of one's own where the peer has none is refused. Keys are checked, kept apart
// from the caller's buffer, told by the info, and never shown.
func TestAuthKeyInForce(t *testing.T) {
	mine := bytes.Clone(red)
	a, b, err := xdpfab.Pipe(fi.DomainAttr{AuthKey: mine}, fi.DomainAttr{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.CloseAll()
	defer b.CloseAll()
	clear(mine)
	keyed(t, b, 0, nil)
	keyed(t, b, 1, red)
	if err := addOne(t, a, b.Name(0), "own0"); !errors.Is(err, fi.ErrAuthKey) || !strings.Contains(err.Error(), "this endpoint one: want none here, or the same there (DomainAttr.AuthKey)") {
		t.Errorf("%v, want the session refused since the peer has no key", err)
	}
	if err := addOne(t, a, b.Name(1), "own1"); err != nil {
		t.Errorf("%v, though the keys are equal", err)
	}
	if err := addOne(t, a, b.Name(1), "own0"); !errors.Is(err, fi.ErrAccess) {
		t.Errorf("%v, want no access to a region without a key", err)
	}
	i := a.Info()
	if !bytes.Equal(i.Domain.AuthKey, red) || i.Domain.AuthKeySize != fi.Limit(len(red)) || !bytes.Equal(i.Endpoint.AuthKey, red) {
		t.Errorf("the info has %v, %v and %v, want the key", i.Domain.AuthKey, i.Domain.AuthKeySize, i.Endpoint.AuthKey)
	}
	ep, err := a.NewEndpoint(fi.EndpointAttr{AuthKey: blue})
	if err != nil {
		t.Fatal(err)
	}
	if i := ep.Info(); !bytes.Equal(i.Endpoint.AuthKey, blue) || !bytes.Equal(i.Domain.AuthKey, red) {
		t.Error("the endpoint's info has not its key and the domain's")
	}
	j, err := json.Marshal(a.Info())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{i.String(), string(j), fmt.Sprint(a.Attr()), fmt.Sprintf("%+v", a.Attr()), fmt.Sprintf("%#v", ep.Attr()), fmt.Sprintf("%s %v %x", red, red, red)} {
		for _, key := range []fi.AuthKey{red, blue} {
			if strings.Contains(text, string(key)) || strings.Contains(text, fmt.Sprintf("%x", []byte(key))) || strings.Contains(text, fmt.Sprint([]byte(key))) {
				t.Errorf("the key is in %q", text)
			}
		}
	}
	long := make([]byte, mr.MaxAuthKey+1)
	if _, err := a.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, AuthKey: long}); !errors.Is(err, fi.ErrAuthKey) {
		t.Errorf("an endpoint with a key of %d bytes: %v", len(long), err)
	}
	if _, _, err := xdpfab.Pipe(fi.DomainAttr{AuthKey: long}); !errors.Is(err, fi.ErrAuthKey) {
		t.Errorf("a domain with a key of %d bytes: %v", len(long), err)
	}
	m, err := mr.Alloc(64, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := a.Register(m, mr.Options{AuthKey: long}); !errors.Is(err, mr.ErrAuthKey) {
		t.Errorf("a region with a key of %d bytes: %v", len(long), err)
	}
	if _, err := a.Register(m, mr.Options{AuthKey: long[1:]}); err != nil {
		t.Errorf("a region with a key of %d bytes: %v", len(long)-1, err)
	}
}

// Sessions of different keys that a target serves in turn each keep to their regions.
func TestAuthKeysInTurn(t *testing.T) {
	a, b, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer a.CloseAll()
	defer b.CloseAll()
	keys := []fi.AuthKey{red, blue, nil}
	regions := make([]*mr.Region, len(keys))
	posters := make([]*fi.Endpoint, len(keys))
	queues := make([]*fi.CompletionQueue, len(keys))
	av, err := a.NewAddressVector()
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		target, err := b.NewEndpoint(fi.EndpointAttr{Number: i, AuthKey: key})
		if err != nil {
			t.Fatal(err)
		}
		m, err := mr.Alloc(64, mr.AllocOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if regions[i], err = b.Register(m, mr.Options{Access: mr.RemoteRead | mr.RemoteWrite, AuthKey: key}); err != nil {
			t.Fatal(err)
		}
		queues[i], err = a.NewCompletionQueue(fi.CQAttr{})
		if err != nil {
			t.Fatal(err)
		}
		if posters[i], err = a.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, AuthKey: key}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(target.Enable(), posters[i].Bind(av, 0), posters[i].Bind(queues[i], 0), posters[i].Enable()); err != nil {
			t.Fatal(err)
		}
		if _, err := av.Insert(ctx(t), b.Name(uint16(i))); err != nil {
			t.Fatal(err)
		}
	}
	const rounds = 50
	for range rounds {
		for i := range keys {
			for j, r := range regions {
				m := fi.Msg{Buf: []byte{1, 0, 0, 0, 0, 0, 0, 0}, Dest: fi.Address(i), Key: r.Key(), Datatype: atomic.Uint64, Op: atomic.Sum}
				if err := posters[i].Atomic(&m, fi.FlagDefaults); err != nil {
					t.Fatal(err)
				}
				err := queues[i].Wait(ctx(t), 1)
				if i == j {
					if n, err2 := queues[i].Read(make([]fi.Completion, 1)); n != 1 || err != nil {
						t.Fatalf("key %d, its region: %v, %v", i, err, err2)
					}
				} else if c, ok := queues[i].ReadErr(); !ok || !errors.Is(c.Err, fi.ErrAccess) {
					t.Fatalf("key %d, region of key %d: %v, want %v", i, j, c.Err, fi.ErrAccess)
				}
			}
		}
	}
	for i, r := range regions {
		if w, err := r.Uint64(0); err != nil || w.Load() != rounds {
			t.Errorf("region of key %d: %d, %v; want %d", i, w.Load(), err, rounds)
		}
	}
}
