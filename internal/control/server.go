// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/xdpfab/xdpfab/internal/share"
)

const (
	// patience bounds how long a client may take to send a request or to take
	// the answer, and how long it may stay connected idly.
	patience = 10 * time.Second
	// closeTimeout bounds how long answers under way may take once the server stops.
	closeTimeout = 200 * time.Millisecond
)

// Service is what a daemon offers at its socket.
type Service struct {
	Source Source
	Detail func() Detail // what metrics show beside the status; nil for nothing
	Verbs  []Verb        // in addition to those that every daemon has
	// Alive is that of Monitor; nil: verbs wait for the pollers as long as it takes.
	Alive func(asks func(queue int))
	Admit Admit // nil: no program can attach
	// Takeover talks with another process that wants to take this one's place; the
	// connection is closed when it returns. Nil: none can.
	Takeover func(*net.UnixConn)
	// Capture admits programs that want to see packets; nil: nobody may.
	Capture Admit
	// Leave, if it is not nil, is called when no more requests are taken, before the
	// connections of programs are closed.
	Leave func()

	most int // connections of a user at a time, for tests; 0 means mostConns
}

// mostConns is how many connections a user may have at a time.
func (s *Service) mostConns() int { return cmp.Or(s.most, mostConns) }

// ServeListener answers requests until the context ends, which is no error. It
// closes the listener, which removes the socket, and the connections of the programs that
// are attached, and returns when their hosts have.
func ServeListener(ctx context.Context, l net.Listener, s Service) error {
	programs := &attachments{admit: s.Admit}
	defer programs.end()
	if s.Leave != nil {
		defer s.Leave()
	}
	h := handler(s, programs)
	defer s.takeovers(h)()
	defer s.captures(h)()
	srv := newServer(h)
	srv.ConnContext, srv.ConnState = withConn, newCrowd(s.mostConns()).turn
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		limit, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		err := srv.Shutdown(limit)
		if errors.Is(err, context.DeadlineExceeded) { // a client reads too slowly and loses its answer
			err = srv.Close()
		}
		stopped <- err
	})
	err := srv.Serve(l)
	if !stop() { // the context ended, so this is why Serve returned
		return <-stopped
	}
	return errors.Join(err, srv.Close())
}

// newServer bounds what a client may take.
func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: patience,
	}
}

// handler answers the requests of the package: the verbs that every daemon has, and
// more.
func handler(s Service, programs http.Handler) *http.ServeMux {
	verbs := append(Verbs(s.Source, s.Detail), s.Verbs...)
	if s.Alive != nil {
		attend(verbs, pollers(s.Alive, 0))
	}
	mux := http.NewServeMux()
	mux.Handle("POST "+share.AttachPath, programs)
	mux.HandleFunc("POST "+pathRequest, func(w http.ResponseWriter, r *http.Request) { serve(w, r, verbs) })
	mux.HandleFunc("GET "+pathVerbs, func(w http.ResponseWriter, r *http.Request) { look(w, r, verbs) })
	mux.HandleFunc("GET "+pathMetrics, scraped(s.Source, s.Detail, 0))
	return mux
}

// maxRequest bounds what a client may send, bytes.
const maxRequest = 1 << 20

// serve answers a Request.
func serve(w http.ResponseWriter, r *http.Request, verbs []Verb) {
	var req Request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
		reply(w, http.StatusBadRequest, Answer{Version: ProtocolVersion, Error: "request: " + err.Error()})
		return
	}
	result, err := unhurried(w, func() (any, error) { return run(r.Context(), verbs, &req) })
	a := Answer{Version: ProtocolVersion}
	if err == nil {
		a.Result, err = json.Marshal(result)
	}
	if err != nil {
		a.Error, a.Kind = err.Error(), kindOf(err)
	}
	reply(w, status(err), a)
}

// look answers a GET of a verb that takes no arguments with the bare result, for
// people with curl and for clients older than Request.
func look(w http.ResponseWriter, r *http.Request, verbs []Verb) {
	var body any
	verbs = slices.DeleteFunc(slices.Clone(verbs), func(v Verb) bool { return !slices.Contains(looking, v.Name) })
	result, err := unhurried(w, func() (any, error) {
		return run(r.Context(), verbs, &Request{Version: ProtocolVersion, Verb: r.PathValue("verb")})
	})
	if body = result; err != nil {
		body = fault{err.Error()}
	}
	reply(w, status(err), body)
}

// unhurried calls f without the time limits of the client, which are for what it sends
// and takes. They would end the context and lose the answer of what takes longer, such as
// a resident region on a NIC that starts anew for another program.
func unhurried(w http.ResponseWriter, f func() (any, error)) (any, error) {
	c := http.NewResponseController(w) // of a connection that has ended its errors say no more
	_, _ = c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{})
	defer func() { _ = c.SetWriteDeadline(time.Now().Add(patience)) }()
	return f()
}

// looking are the verbs that may be asked for by GET: they change nothing.
var looking = []string{"status", "regions", "kept"}

// fault is the body of an answer to GET that reports an error.
type fault struct {
	Error string `json:"error"`
}

// status returns the HTTP status of an error.
func status(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, new(*refusal)):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // fails only when the client has gone
}
