// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
)

// SocketConfig is a control socket in addition to the usual one. A rule may apply to the
// programs that connect to it.
type SocketConfig struct {
	Path  string
	Group string // name or number; empty: the process's
	Mode  fs.FileMode
}

func defaultSocket() SocketConfig { return SocketConfig{Mode: control.DefaultMode} }

// access reports who may connect to the socket.
func (s SocketConfig) access() (control.Access, error) {
	a := control.Access{Mode: s.Mode}
	id, err := number(s.Group, "group", groupNumber)
	if id != nil {
		gid := int(*id)
		a.Group = &gid
	}
	return a, err
}

// socketOptions are the settings of a socket.
var socketOptions = []option[SocketConfig]{
	{"path", "path of the socket", func(s *SocketConfig) field { return textField(&s.Path, checkSocket) }},
	{"mode", "permissions of the socket", func(s *SocketConfig) field { return modeField(&s.Mode) }},
	{"group", "group of the socket, name or number; empty: the daemon's",
		func(s *SocketConfig) field { return textField(&s.Group, checkID) }},
}

// checkSocket keeps paths to what --socket and --guest can take.
func checkSocket(s string) error {
	if strings.ContainsAny(s, ",:\n") {
		return wants(s, "a path without comma and colon")
	}
	return nil
}

// parseSocket reads the value of --socket: a path and then, after a colon, settings.
func parseSocket(text string) (SocketConfig, error) {
	s := defaultSocket()
	path, more, _ := strings.Cut(text, ":")
	if s.Path = path; path == "" {
		return s, wants(text, "a path, as in /run/box/xdpfab.sock:mode=0666")
	}
	if err := assignEach(&s, socketOptions[1:], listed(more), "mode=… or group=…"); err != nil {
		return s, err
	}
	return s, checkSocket(path)
}

// validateSockets finds sockets that cannot be, and rules about none.
func (c Config) validateSockets() (found []problem) {
	paths := []string{c.controlPath()}
	add := func(key, format string, args ...any) {
		found = append(found, problem{key: key, text: fmt.Sprintf(format, args...)})
	}
	for i, s := range c.Sockets {
		at := fmt.Sprintf("socket[%d].path", i)
		switch {
		case s.Path == "":
			add(at, "missing: programs connect to it")
		case len(s.Path) > control.MaxPath:
			add(at, "path of %d bytes: want at most %d", len(s.Path), control.MaxPath)
		case slices.Contains(paths, s.Path):
			add(at, "%q: another control socket has this path; want one of its own", s.Path)
		}
		paths = append(paths, s.Path)
	}
	for i, g := range c.Guests {
		if g.Socket != "" && !slices.Contains(paths, g.Socket) {
			add(fmt.Sprintf("guest[%d].socket", i), "%q: want the path of one of the daemon's sockets: %s", g.Socket,
				strings.Join(paths, ", "))
		}
	}
	return found
}

// service is what the daemon offers at a control socket.
func (s *server) service(path string) control.Service {
	verbs := append(s.regionVerbs(), control.Verb{Name: "withdraw", Do: s.withdraw},
		control.Look("region-list", s.regionList))
	verbs = append(verbs, control.PeersVerbs(s.host.Peers)...)
	offer := control.Service{
		Source: s.status, Detail: s.detail, Verbs: verbs, Alive: s.host.Alive,
		Admit: func(ctx context.Context, p control.Program) (control.Place, error) { return s.admit(ctx, p, path) },
	}
	if offer.Capture = s.admitCapture; path != s.cfg.controlPath() {
		offer.Capture = elsewhere
	}
	return offer
}

// suchAs adds to the error of a control socket that this user may not have the path of
// one that the user may have.
func suchAs(ifname string, err error) error {
	if errors.Is(err, control.ErrGroup) {
		return err
	}
	home, _ := os.UserHomeDir()
	for _, folder := range []string{os.Getenv("XDG_RUNTIME_DIR"), home, os.TempDir()} {
		if folder != "" && unix.Access(folder, unix.W_OK) == nil {
			return fmt.Errorf("%w, such as %s", err, filepath.Join(folder, ifname+".sock"))
		}
	}
	return err
}
