// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package guest has the devices of domains that use the interface of another process,
// their host: one that the host carries the operations of, and one that drives a queue
// which the host lends.
package guest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/mr"
)

// OpenAttached attaches to the daemon of an interface, by the path of its socket, and
// whether the caller has chosen that. The error wraps ErrNoDaemon if there is none.
func OpenAttached(ctx context.Context, ifname, path string, chosen bool) (*Attached, error) {
	talk, err := DialHost(ctx, path, Within(chosen))
	if err != nil {
		return nil, err
	}
	again := func(ctx context.Context) (*share.Talk, error) { return DialHost(ctx, path, 0) }
	dev, err := Attach(ctx, talk, path, again)
	if err != nil {
		return nil, fmt.Errorf("daemon at %s: %w", path, err)
	}
	if err := Serves(path, ifname, chosen, &dev.info, &dev.host); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return dev, nil
}

// Serves refuses the daemon of another interface, or of one in another namespace unless
// the caller has chosen its socket.
func Serves(path, ifname string, chosen bool, i *node.InterfaceInfo, host *share.Attached) error {
	if i.Name == ifname && (chosen || host.NetNS == node.Here(0).Namespace) {
		return nil
	}
	if i.Name != ifname && host.NetNS == node.Here(0).Namespace {
		return errno.Refuse(errno.NoDaemon, "the daemon at %s, process %d, serves %s, not %s: name the socket of the "+
			"daemon of %s, or open %s", path, host.PID, i.Name, ifname, ifname, i.Name)
	}
	return errno.Refuse(errno.NoDaemon,
		"the daemon at %s, process %d, serves the interface %s, of network namespace %d: want %s of "+
			"this one; name the socket of its daemon",
		path, host.PID, i.Name, host.NetNS, ifname)
}

// DialHost connects to a control socket, and asks to upgrade from HTTP to a conversation.
// It asks no daemon of another network namespace than the given one, unless that is 0.
func DialHost(ctx context.Context, path string, namespace uint64) (*share.Talk, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("%w: %w", errno.NoDaemon, err)
	case errors.Is(err, fs.ErrPermission):
		return nil,
			fmt.Errorf("%w that this program may use: %w: run it as a user or group that may write to the socket "+
				"(xdpfabd --socket-group, --socket-mode)", errno.NoDaemon, err)
	case errors.Is(err, syscall.EAGAIN): // others wait to be let in, as many as the kernel allows
		return nil, fmt.Errorf("daemon at %s: %w (%w)", path, ErrHostSilent, err)
	case err != nil:
		return nil, err
	}
	conn := c.(*net.UnixConn)
	pid := listener(conn)
	if elsewhere(pid, namespace) {
		_ = conn.Close()
		return nil, fmt.Errorf("the daemon at %s, process %d, is in another network namespace: %w", path, pid,
			errno.NoDaemon)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, answerWithin, ErrHostSilent)
	defer cancel()
	begin := time.Now()
	if err := upgrade(ctx, conn, path); err != nil {
		if ctx.Err() != nil {
			err = unanswered(path, pid, time.Since(begin), context.Cause(ctx))
		}
		_ = conn.Close()
		return nil, err
	}
	return share.NewTalk(conn), nil
}

// upgrade turns the connection from HTTP into one for share.Talk.
func upgrade(ctx context.Context, conn *net.UnixConn, path string) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := io.WriteString(conn,
		"POST "+share.AttachPath+" HTTP/1.1\r\nHost: xdpfabd\r\nConnection: Upgrade\r\n"+
			"Upgrade: xdpfab\r\nContent-Length: 0\r\n\r\n"); err != nil {
		return err
	}
	// One byte at a time, since what follows the answer is not for this reader.
	r, err := http.ReadResponse(bufio.NewReaderSize(oneByte{conn}, 16), nil)
	if err != nil {
		return fmt.Errorf("daemon at %s: %w", path, err)
	}
	if r.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(r.Body, 4096))
	switch r.StatusCode {
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return fmt.Errorf("%w for other programs: the daemon at %s is of an older release", errno.NoDaemon, path)
	case http.StatusForbidden:
		return &hostError{fmt.Sprintf("daemon at %s: %s", path, bytes.TrimSpace(text)), []error{errno.Denied}}
	}
	return fmt.Errorf("daemon at %s: %s: %s", path, r.Status, bytes.TrimSpace(text))
}

// oneByte reads single bytes.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(b []byte) (int, error) { return o.r.Read(b[:min(len(b), 1)]) }

// Register has the host let peers operate on a region. d.mu is held.
func (a *Attached) Register(r *mr.Region, m *mr.Memory, o mr.Options) error {
	if m.Kind() != mr.KindMemfd {
		return a.attend(r)
	}
	x := offered{memory: m, Region: share.Region{
		Key: r.Key(), Access: uint8(o.Access), Name: o.Name, Offset: o.Offset, Length: r.Len(), Base: r.Base(),
		AuthKey: o.AuthKey, Incarnation: r.Incarnation()}}
	if err := a.offer(context.Background(), x); err != nil {
		return err
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.regions = append(a.regions, x)
	return nil
}

// Withdraw takes a region back. It does nothing after the host has ended. The end of the
// domain withdraws no kept region.
func (a *Attached) Withdraw(key uint64) {
	if a.leaving.Load() && a.keeps(key) {
		return
	}
	a.moving.RLock()
	defer a.moving.RUnlock()
	if a.unattend(key) {
		return
	}
	var tally *share.Tally
	var kept *share.Region
	a.Mu.Lock()
	a.regions = slices.DeleteFunc(a.regions, func(x offered) bool {
		if x.Key == key {
			tally = x.tally
		}
		if x.Key == key && x.kept {
			kept = &x.Region
		}
		return x.Key == key
	})
	a.Mu.Unlock()
	if err := a.Call(context.Background(), share.CallDeregister, key, nil); kept != nil &&
		errors.Is(err, errno.HostLost) {
		a.Mu.Lock()
		a.closedKept = append(a.closedKept, *kept)
		a.Mu.Unlock()
	}
	a.free(tally)
}

// TermsOf asks a host what it offers.
func TermsOf(ctx context.Context, talk *share.Talk) (o share.Offer, err error) {
	result, fds, err := Ask(ctx, talk, share.CallOffer, struct{}{})
	share.CloseAll(fds)
	if err == nil {
		err = json.Unmarshal(result, &o)
	}
	return o, err
}
