// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// keyFile writes a key into a file, and returns its path.
func keyFile(t *testing.T, key string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A region with a key is for peers that prove it, and they use no other one; peers
// without a key use the rest. Regions that commands add are no different, and the key is
// in no output.
func TestRegionKeys(t *testing.T) {
	const one, two, three = "one-one-one-one-one", "two-two-two-two-two", "three-three-three-three"
	conn, cfg := notifySocket(t), testConfig(t)
	r, err := parseRegion("safe=4KiB:auth-key=" + keyFile(t, one))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Regions = append(cfg.Regions, r)
	if found := cfg.readKeys(); len(found) > 0 {
		t.Fatal(found)
	}
	p := servePipe(t, cfg)
	receive(t, conn)
	ctx := limited(t)
	c, err := control.Dial(cfg.Control)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var made control.Region
	if err := c.Call(ctx, "create-region", control.CreateRegion{Region: "late=4KiB:auth-key=" + keyFile(t, two)}, &made); err != nil || !made.AuthKey {
		t.Fatalf("%+v, %v", made, err)
	}
	// add adds to a region, by a mailbox of its own and so in a session of its own.
	add := func(key, region string) error {
		box, err := p.client.NewMailbox(xdpfab.MailboxAttr{AuthKey: fi.AuthKey(key)})
		if err != nil {
			t.Fatal(err)
		}
		defer box.Close()
		peer, err := box.Dial(ctx, p.server.Node().Name(0))
		if err != nil {
			return err
		}
		w, err := xdpfab.Word[uint64](ctx, peer, region, 0)
		if err == nil {
			_, err = w.Add(ctx, 1)
		}
		return err
	}
	check := func(key, region string, want error) {
		t.Helper()
		if err := add(key, region); !errors.Is(err, want) {
			t.Errorf("%q, region %s: %v, want %v", key, region, err, want)
		}
	}
	check("", "counters", nil)
	check("", "safe", xdpfab.ErrAccess)
	check("", "late", xdpfab.ErrAccess)
	check(one, "safe", nil)
	check(one, "late", xdpfab.ErrAccess)
	check(one, "counters", xdpfab.ErrAccess)
	check(two, "late", nil)
	check(two, "safe", xdpfab.ErrAccess)
	check(three, "safe", fi.ErrAuthKey)
	if err := c.Call(ctx, "remove-region", control.RemoveRegion{Name: "late"}, &made); err != nil {
		t.Error(err)
	}
	check(two, "counters", fi.ErrAuthKey) // whose key has gone with its region
	check(one, "safe", nil)
	s := statusOf(t, cfg)
	for _, r := range s.Regions {
		if r.AuthKey != (r.Name == "safe") {
			t.Errorf("region %s: key %t", r.Name, r.AuthKey)
		}
	}
	said := fmt.Sprintf("%s %+v %v %#v", p.log, s, cfg.Regions, cfg.Regions)
	if strings.Contains(said, "one-one") || strings.Contains(said, "two-two") || strings.Contains(said, fmt.Sprintf("%x", one[:6])) {
		t.Errorf("the key is told:\n%s", said)
	}
	if err := p.end(t); err != nil {
		t.Error(err)
	}
}

// There are no more keys than a hello can be compared with.
func TestMostRegionKeys(t *testing.T) {
	conn, cfg := notifySocket(t), testConfig(t)
	p := servePipe(t, cfg)
	receive(t, conn)
	_ = conn.Close() // there will be more to tell than the socket holds
	c, err := control.Dial(cfg.Control)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	create := func(i, key int) error {
		text := fmt.Sprintf("r%d=4KiB:auth-key=%s", i, keyFile(t, fmt.Sprintf("0123456789abcdef%d", key)))
		return c.Call(limited(t), "create-region", control.CreateRegion{Region: text}, new(control.Region))
	}
	for i := range 16 {
		if err := create(i, i); err != nil {
			t.Fatal(err)
		}
	}
	if err := create(16, 16); err == nil || !strings.Contains(err.Error(), "17 different authorization keys: want at most 16") {
		t.Errorf("one too many: %v", err)
	}
	if err := create(17, 15); err != nil {
		t.Errorf("another region of the same key: %v", err)
	}
	if n := len(statusOf(t, cfg).Regions); n != len(cfg.Regions)+17 {
		t.Errorf("%d regions", n)
	}
	if err := p.end(t); err != nil {
		t.Error(err)
	}
}

// A key that is missing, or that others can read, is an error of the configuration.
func TestKeyOfConfiguration(t *testing.T) {
	good, bad := keyFile(t, "0123456789abcdef"), keyFile(t, "0123456789abcdef")
	if err := os.Chmod(bad, 0o644); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"a=4KiB:auth-key=" + good:                   "",
		"a=4KiB:resident,auth-key=" + good:          "",
		"a=4KiB:auth-key=key":                       "want the absolute path of a file",
		"a=4KiB:auth-key=/nowhere/key":              "--region a: auth-key: open /nowhere/key: no such file",
		"a=4KiB:auth-key=" + bad:                    "--region a: auth-key: " + bad + " has mode 0644",
		"a=4KiB:auth-key=" + good + ",auth-key=/no": "auth-key: given twice",
	} {
		var errs strings.Builder
		code := run([]string{"--interface=e", "--region", text, "--check"}, &errs, &errs)
		if msg := unfolded(errs.String()); (code == exitOK) != (want == "") || !strings.Contains(msg, want) {
			t.Errorf("--region %s: %d, %s; want %q", text, code, msg, want)
		}
	}
}

// A takeover may change the key of a region, but not of one that the XDP program
// executes; and none is served without its key by a release that knows of none.
func TestKeysAtTakeover(t *testing.T) {
	one, two := authKey("one-one-one-one-"), authKey("two-two-two-two-")
	of := func(backing string, key authKey) RegionConfig {
		return RegionConfig{Name: "r", Size: 4096, Backing: backing, AuthKey: "/k", auth: key}
	}
	for name, x := range map[string]struct {
		is, next RegionConfig
		ok       bool
	}{
		"the same":             {of(backingAnonymous, one), of(backingAnonymous, one), true},
		"another":              {of(backingAnonymous, one), of(backingAnonymous, two), true},
		"resident, the same":   {of(backingResident, one), of(backingResident, one), true},
		"resident, another":    {of(backingResident, one), of(backingResident, two), false},
		"resident, none there": {of(backingResident, one), of(backingResident, nil), false},
		"resident, one there":  {of(backingResident, nil), of(backingResident, two), false},
	} {
		next := x.next
		if next.Backing == backingResident && name == "resident, the same" {
			next.AuthKey = "/another/path"
		}
		s := served{list: []*region{{RegionConfig: x.is}}}
		given, err := s.given([]legacyOf{next.legacy()})
		if (err == nil) != x.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "keeps the contents with leave = true") {
			t.Errorf("%s: %v; want what a restart does", name, err)
		}
		if err == nil && keysKept(given, &claim{Release: "0.1"}) == nil {
			t.Errorf("%s: an older release would serve it to everybody", name)
		}
		if err == nil && keysKept(given, &claim{AuthKeys: true}) != nil {
			t.Errorf("%s: this release does not take it", name)
		}
	}
}
