// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

func TestSourceFails(t *testing.T) {
	c := dial(t, start(t, func() (Status, error) { return Status{}, errors.New("the NIC is on fire") }))
	for _, verb := range []string{"status", "regions", "metrics"} {
		var v any
		if err := c.Call(ask(t), verb, nil, &v); err == nil || !strings.Contains(err.Error(), "the NIC is on fire") || !strings.Contains(err.Error(), "daemon at /") {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

// A client that connects and sends nothing must not delay the end.
func TestSilentClientDoesNotHoldUp(t *testing.T) {
	path := start(t, func() (Status, error) { return sample, nil })
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // before the one of start
	if _, err := conn.Write([]byte("GET /v1/sta")); err != nil {
		t.Fatal(err)
	}
}

// answers posts any request body to a daemon.
func answers(t *testing.T, request string) (int, Answer) {
	t.Helper()
	w := httptest.NewRecorder()
	handler(Service{Source: steady}, &attachments{}).ServeHTTP(w, httptest.NewRequest("POST", pathRequest, strings.NewReader(request)))
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

// Clients older than Request, and people with curl, get the bare result, or an
// error in the form that they know.
func TestLookingByGet(t *testing.T) {
	get := func(path string) (int, []byte) {
		w := httptest.NewRecorder()
		handler(Service{Source: steady, Verbs: []Verb{Look("secret", func() (int, error) { return 1, nil })}}, &attachments{}).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
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
		if code, body := get("/v1/" + verb); code != 400 || json.Unmarshal(body, &f) != nil || !strings.Contains(f.Error, "want one of kept, regions, status") {
			t.Errorf("%s: %d, %s", verb, code, body)
		}
	}
}
