// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sys/unix"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// answering is a daemon that tells one program what it offers, after all have been asked.
func answering(t *testing.T, all *sync.WaitGroup, ifname string) (path string) {
	t.Helper()
	path, l := testnet.StoppedDaemon(t)
	var served sync.WaitGroup
	t.Cleanup(served.Wait)
	t.Cleanup(func() { _ = l.Close() })
	served.Go(func() {
		conn, err := l.AcceptUnix()
		if err != nil {
			return
		}
		talk := share.NewTalk(conn)
		defer talk.Close()
		_, err = http.ReadRequest(bufio.NewReaderSize(iotest.OneByteReader(conn), 16))
		all.Done()
		all.Wait()
		if err == nil {
			_, err = fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
		}
		var c share.Call
		if err == nil {
			_, err = talk.Receive(&c)
		}
		i, _ := json.Marshal(InterfaceInfo{Name: ifname})
		result, _ := json.Marshal(share.Offer{Attached: share.Attached{Interface: i}, Endpoints: 7})
		if err == nil {
			err = talk.Send(share.Reply{ID: c.ID, Result: result})
		}
		if err != nil {
			t.Error(err)
		}
	})
	return path
}

// Daemons are asked side by side, each within a bound of its own: those that answer do so
// only once all have been asked, and those that are stopped keep no answer back.
func TestAskAll(t *testing.T) {
	var all sync.WaitGroup
	all.Add(2)
	within := map[string]time.Duration{}
	var list []daemonAt
	for n := range 4 {
		a := daemonAt{}
		if n%2 == 0 {
			a.path, _ = testnet.StoppedDaemon(t)
			within[a.path] = time.Millisecond
		} else {
			a.path = answering(t, &all, fmt.Sprint("eth", n))
			within[a.path] = testnet.Patience
		}
		list = append(list, a)
	}
	askAll(list, func(path string, namespace uint64) (*daemonOffer, error) {
		return askDaemon(t.Context(), path, namespace, within[path])
	})
	for n, a := range list {
		switch {
		case n%2 == 1 && (a.err != nil || a.offer.info.Name != fmt.Sprint("eth", n) || a.offer.Endpoints != 7 || a.offer.info.Daemon != a.path):
			t.Errorf("daemon %d: %+v, %v", n, a.offer, a.err)
		case n%2 == 0 && (!errors.Is(a.err, guestpkg.ErrHostSilent) || a.offer != nil || strings.Contains(a.err.Error(), "\n")):
			t.Errorf("daemon %d, which is stopped: %+v, %v", n, a.offer, a.err)
		}
	}
	for _, want := range []string{"daemon at " + list[0].path, "within 1ms what it offers", "kill -CONT"} {
		if err := list[0].err; !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
}

// A daemon whose socket takes no more connections counts as one that does not answer.
func TestAskFull(t *testing.T) {
	path, l := testnet.StoppedDaemon(t)
	raw, err := l.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := listenAnew(raw, 0); err != nil {
		t.Fatal(err)
	}
	for range 3 { // of which the kernel keeps one more than it was asked to
		c, err := net.Dial("unix", path)
		if err != nil {
			break
		}
		defer c.Close()
	}
	if _, err := askDaemon(t.Context(), path, 0, testnet.Patience); !errors.Is(err, guestpkg.ErrHostSilent) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}

// What there is of an interface whose daemon is stopped is listed behind the rest, and
// says what stands in the way. It meets hints as others do.
func TestGetInfoSilentDaemon(t *testing.T) {
	testnet.Require(t)
	pair := testnet.NewPair(t, testnet.Options{Queues: 1})
	path, _ := testnet.StoppedDaemon(t)
	defer func(d time.Duration) { offerWithin = d }(offerWithin)
	offerWithin = time.Millisecond
	get := func(hints Info) (list []Info, err error) {
		if e := pair.A.Do(func() error { list, err = GetInfo(t.Context(), &hints); return nil }); e != nil {
			t.Fatal(e)
		}
		return list, err
	}
	hints := Info{Domain: DomainInfo{Name: pair.A.IfName}, Interface: InterfaceInfo{Daemon: path}, Attach: AttachAlways, AddrFormat: AddrEthernet, Endpoint: EndpointInfo{Type: EndpointRDM}}
	list, err := get(hints)
	if err != nil || len(list) != 1 || list[0].Interface.Daemon != path || list[0].Attach != AttachAlways || list[0].Source != pair.A.MAC.String() {
		t.Fatalf("%+v, %v", list, err)
	}
	if len(list[0].Missing) != 1 || !strings.Contains(list[0].Missing[0], "daemon at "+path) || !strings.Contains(list[0].String(), "kill -CONT") {
		t.Errorf("%v", &list[0])
	}
	hints.Source = "02:00:00:00:00:77"
	if _, err := get(hints); !errors.Is(err, ErrNoInfo) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "src_addr") {
		t.Error(err)
	}
	hints.Source, hints.Domain.Name = "", "" // its interface is not known
	if _, err := get(hints); !errors.Is(err, ErrNoInfo) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	t.Setenv(ControlEnv, path)
	list, err = get(Info{Domain: DomainInfo{Name: pair.A.IfName}, AddrFormat: AddrEthernet, Endpoint: EndpointInfo{Type: EndpointRDM}})
	if err != nil || len(list) != 2 || list[0].Attach != AttachNever || list[1].Attach != AttachAlways {
		t.Errorf("%v, %v: want the interface itself first", list, err)
	}
}

// GetInfo waits for no daemon longer than its caller does.
func TestGetInfoGivenUp(t *testing.T) {
	path, l := testnet.StoppedDaemon(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	tea := errors.New("tea time")
	var asked sync.WaitGroup
	asked.Go(func() {
		if c, err := l.Accept(); err == nil {
			defer c.Close()
		}
		cancel(tea)
	})
	defer asked.Wait()
	defer l.Close()
	if list, err := GetInfo(ctx, &Info{Interface: InterfaceInfo{Daemon: path}}); !errors.Is(err, tea) {
		t.Errorf("%v, %v", list, err)
	}
}

// listenAnew sets how many connections wait at a socket.
func listenAnew(raw syscall.RawConn, backlog int) (err error) {
	inner := raw.Control(func(fd uintptr) { err = unix.Listen(int(fd), backlog) })
	return errors.Join(err, inner)
}

// A daemon to which no connection is made within the bound counts as one that does not
// answer, also if the bound ends in the middle of the call.
func TestAskTooLate(t *testing.T) {
	path, _ := testnet.StoppedDaemon(t)
	within := -time.Second
	for n := range 1000 {
		_, err := askDaemon(t.Context(), path, 0, within)
		if !errors.Is(err, guestpkg.ErrHostSilent) || !strings.Contains(err.Error(), path) {
			t.Fatalf("within %v: %v", within, err)
		}
		within = time.Duration(n%100) * time.Microsecond
	}
}
