// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }
func (p pipes) Close() error   { return nil }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p <- theirs
	return ours, nil
}

// A client that asks what a poller has to answer learns within the limit of the probes
// which one hangs, however many clients ask; what needs no poller is answered.
func TestStatusOfHungPoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		asked, looked := 0, 0
		s := Service{
			Source: func() (Status, error) { looked++; <-hang; return steady() },
			Alive:  func(asks func(int)) { asked++; asks(0); asks(3); <-hang },
			Verbs:  []Verb{Look("idle", func() (string, error) { return "done", nil })},
		}
		h := handler(s, &attachments{})
		ask := func(verb string) (int, string) {
			w := httptest.NewRecorder()
			body := strings.NewReader(`{"version":1,"verb":"` + verb + `"}`)
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, pathRequest, body))
			return w.Code, w.Body.String()
		}
		began := time.Now()
		for _, verb := range []string{"status", "regions", "kept", "metrics"} {
			code, body := ask(verb)
			if code != http.StatusInternalServerError || !strings.Contains(body, "the poller of queue 3 has not answered for ") {
				t.Errorf("%s: %d, %s", verb, code, body)
			}
		}
		if took := time.Since(began); took > aliveLimit || asked != 1 || looked != 0 {
			t.Errorf("after %v, %d questions and %d statuses; want %v, 1 and none", took, asked, looked, aliveLimit)
		}
		if code, body := ask("idle"); code != http.StatusOK {
			t.Errorf("a verb that needs no poller: %d, %s", code, body)
		}
		close(hang)
		synctest.Wait()
		if code, body := ask("status"); code != http.StatusOK {
			t.Errorf("when the poller answers again: %d, %s", code, body)
		}
	})
}

// What takes a daemon longer than a client may take is done, and answered. A client that
// does not take its answer is given up.
func TestSlowVerb(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := Verb{"slow", func(ctx context.Context, _ json.RawMessage) (any, error) {
			select {
			case <-time.After(3 * patience):
				return "done", nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
		l := make(pipes)
		srv := newServer(handler(Service{Source: steady, Verbs: []Verb{slow}}, &attachments{}))
		served := make(chan error, 1)
		go func() { served <- srv.Serve(l) }()
		defer func() {
			close(l)
			<-served
			_ = srv.Close()
		}()
		const request = `{"version":1,"verb":"slow"}`
		client := &http.Client{Transport: &http.Transport{DialContext: l.dial, DisableKeepAlives: true}}
		resp, err := client.Post("http://xdpfabd"+pathRequest, "", strings.NewReader(request))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); err != nil || !bytes.Contains(body, []byte(`"done"`)) {
			t.Errorf("%s, %v; want \"done\"", body, err)
		}

		deaf, _ := l.dial(t.Context(), "", "")
		defer deaf.Close()
		began := time.Now()
		head := "POST " + pathRequest + " HTTP/1.1\r\nHost: xdpfabd\r\nContent-Length: 27\r\n\r\n"
		if _, err := io.WriteString(deaf, head+request); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * patience)
		rest, err := io.ReadAll(deaf)
		if took := time.Since(began); err != nil || len(rest) > 0 || took > 6*patience {
			t.Errorf("a client that takes nothing for %v: %q, %v", took, rest, err)
		}
	})
}
