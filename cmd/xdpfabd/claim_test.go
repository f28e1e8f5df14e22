// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/mr"
)

// A daemon claims UDP of one that has it. It does not guess if that one does not tell: a
// claim of UDP that is not there is refused. Without UDP it does not ask.
func TestClaimOfUDP(t *testing.T) {
	for name, x := range map[string]struct {
		answer string // to a request for the status; empty: none comes
		code   int
		udp    bool // of this daemon
		claims bool
		fails  string // in the error
	}{
		"both":              {`{"version":1,"result":{"interface":{"udp":true}}}`, 200, true, true, ""},
		"only this one":     {`{"version":1,"result":{"interface":{"udp":false}}}`, 200, true, false, ""},
		"only that one":     {"", 0, false, false, ""},
		"no answer":         {"", 0, true, false, "context canceled"},
		"no such request":   {"not found", 404, true, true, ""},
		"another protocol":  {`{"version":7}`, 200, true, true, ""},
		"a failed question": {`{"version":1,"error":"gone"}`, 200, true, false, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := defaultConfig()
			cfg.UDP, cfg.Control = x.udp, filepath.Join(t.TempDir(), "c.sock")
			l, err := net.Listen("unix", cfg.Control)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if !x.udp {
					t.Error("it asks for what it need not know")
				}
				if x.answer == "" {
					cancel() // the caller has waited long enough
					<-t.Context().Done()
					return
				}
				w.WriteHeader(x.code)
				_, _ = io.WriteString(w, x.answer)
			})}
			go func() { _ = srv.Serve(l) }()
			defer srv.Close()
			defer cancel()
			c, err := cfg.claimAt(ctx)
			if (err != nil) != (x.fails != "") || err != nil && !strings.Contains(err.Error(), x.fails) {
				t.Fatalf("error %v, want %q", err, x.fails)
			}
			if err == nil && c.UDP != x.claims {
				t.Errorf("it claims UDP: %t", c.UDP)
			}
		})
	}
	cfg := defaultConfig()
	cfg.Control = filepath.Join(t.TempDir(), "none.sock")
	if _, err := cfg.claimAt(t.Context()); !errors.Is(err, control.ErrNoDaemon) {
		t.Errorf("no daemon: %v", err)
	}
}

// A takeover that is refused names rights by the words of the configuration.
func TestRightsOfTakeover(t *testing.T) {
	has, wants := legacyOf{Access: mr.RemoteRead}.unlike(legacyOf{Access: mr.RemoteRead | mr.RemoteWrite})
	if has != "access read" || wants != "access both" {
		t.Errorf("%q and %q", has, wants)
	}
}
