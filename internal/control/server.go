// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"
)

const (
	// patience bounds how long a client may take to send a request or to take
	// the answer, and how long it may stay connected idly.
	patience = 10 * time.Second
	// farewell bounds how long answers under way may take once the server stops.
	farewell = 200 * time.Millisecond
)

// ServeListener answers requests until the context ends, which is no error. It
// closes the listener, which removes the socket.
func ServeListener(ctx context.Context, l net.Listener, source Source) error {
	srv := &http.Server{
		Handler:           Handler(source),
		ReadHeaderTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: patience,
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		limit, cancel := context.WithTimeout(context.Background(), farewell)
		defer cancel()
		err := srv.Shutdown(limit)
		if errors.Is(err, context.DeadlineExceeded) { // somebody reads slowly: their loss
			err = srv.Close()
		}
		stopped <- err
	})
	err := srv.Serve(l)
	if !stop() { // the context ended, so Serve returned because of us
		return <-stopped
	}
	return errors.Join(err, srv.Close())
}

// Handler answers the requests of the package.
func Handler(source Source) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathStatus, answer(source, func(s Status) any { return s }))
	mux.HandleFunc("GET "+pathRegions, answer(source, func(s Status) any { return s.Regions }))
	mux.Handle("GET "+pathMetrics, metrics(source))
	return mux
}

// fault is the body of an answer that reports an error.
type fault struct {
	Error string `json:"error"`
}

// answer makes a handler that sends a part of the status.
func answer(source Source, part func(Status) any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		code := http.StatusOK
		var body any
		if s, err := source(); err != nil {
			code, body = http.StatusInternalServerError, fault{err.Error()}
		} else {
			body = part(s)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body) // fails only when the client has gone
	}
}
