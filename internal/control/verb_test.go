// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func steady() (Status, error) { return sample, nil }

// A verb of the daemon's own gets its arguments, and its result or its error comes
// back.
func TestVerb(t *testing.T) {
	double := Verb{"double", func(_ context.Context, arguments json.RawMessage) (any, error) {
		var n int
		if err := json.Unmarshal(arguments, &n); err != nil {
			return nil, errors.New("arguments: want a number")
		}
		return 2 * n, nil
	}}
	c := dial(t, start(t, steady, double))
	var got int
	if err := c.Call(ask(t), "double", 21, &got); err != nil || got != 42 {
		t.Errorf("%d, %v", got, err)
	}
	for want, call := range map[string]func() error{
		"double: arguments: want a number":                                            func() error { return c.Call(ask(t), "double", "x", &got) },
		`treble: unknown verb "treble": want one of double, metrics, regions, status`: func() error { return c.Call(ask(t), "treble", 1, &got) },
		"status: arguments 1: want none":                                              func() error { return c.Call(ask(t), "status", 1, &got) },
		"double: result: ":                                                            func() error { var s Status; return c.Call(ask(t), "double", 21, &s) },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// answers posts a request to a daemon, whatever is in it.
func answers(t *testing.T, request string) (int, Answer) {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(steady).ServeHTTP(w, httptest.NewRequest("POST", pathRequest, strings.NewReader(request)))
	var a Answer
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatalf("%s: %v in %q", request, err, w.Body.String())
	}
	return w.Code, a
}

func TestDaemonRefusesWhatItDoesNotUnderstand(t *testing.T) {
	for request, want := range map[string]string{
		`{"version":2,"verb":"status"}`: "control protocol 2: this daemon speaks 1; use the client of its release",
		`{"verb":"status"}`:             "control protocol 0",
		`{"version":1}`:                 `unknown verb ""`,
		`not JSON`:                      "request: ",
		`{"verb":"` + strings.Repeat("x", maxRequest) + `"}`: "too large",
	} {
		if code, a := answers(t, request); code != http.StatusBadRequest || a.Version != ProtocolVersion || !strings.Contains(a.Error, want) {
			t.Errorf("%.40s: %d, %+v; want %q", request, code, a, want)
		}
	}
}

// daemon answers everything alike.
func daemon(t *testing.T, code int, body string) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	})}}
	srv.Start()
	t.Cleanup(srv.Close)
	return dial(t, path)
}

func TestClientRefusesOtherVersions(t *testing.T) {
	for _, c := range []struct {
		code       int
		body, want string
	}{
		{200, `{"version":2,"result":{}}`, "the daemon speaks control protocol 2, this client 1; use the client of its release"},
		{200, `{"result":{}}`, "the daemon speaks control protocol 0"},
		{404, "404 page not found\n", "of an older release than this client"},
		{405, "Method Not Allowed\n", "of an older release than this client"},
		{200, "<html>", "is it of another version?"},
	} {
		if _, err := daemon(t, c.code, c.body).Status(ask(t)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.body, err, c.want)
		}
	}
}

// Clients of before there were requests, and people with curl, get the bare result,
// or an error in the form that they know.
func TestLookingByGet(t *testing.T) {
	get := func(path string) (int, []byte) {
		w := httptest.NewRecorder()
		Handler(steady, Look("secret", func() (int, error) { return 1, nil })).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Body.Bytes()
	}
	want := sample
	want.Regions = append([]Region(nil), sample.Regions...)
	want.Regions[1].Name = "sco\uFFFDres" // JSON has no other bytes
	var s Status
	if code, body := get("/v1/status"); code != 200 || json.Unmarshal(body, &s) != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("status: %d, %s", code, body)
	}
	var r []Region
	if code, body := get("/v1/regions"); code != 200 || json.Unmarshal(body, &r) != nil || !reflect.DeepEqual(r, want.Regions) {
		t.Errorf("regions: %d, %s", code, body)
	}
	if code, body := get("/metrics"); code != 200 || !bytes.Contains(body, []byte("xdpfab_regions 2\n")) {
		t.Errorf("metrics: %d, %s", code, body)
	}
	for _, verb := range []string{"nothing", "secret"} { // a verb that may change something is not for GET
		var f fault
		if code, body := get("/v1/" + verb); code != 400 || json.Unmarshal(body, &f) != nil || !strings.Contains(f.Error, "want one of regions, status") {
			t.Errorf("%s: %d, %s", verb, code, body)
		}
	}
}
