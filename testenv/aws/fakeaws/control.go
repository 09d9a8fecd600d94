package fakeaws

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const controlHelp = `GET    /world            the world: VPCs, subnets, instances, ENIs
GET    /calls            the EC2 requests so far
GET    /faults           the faults, oldest first
POST   /faults           add a fault, answers {"id": …}:
                         {"action": "CreateNetworkInterface", "last": 3, "reply": "closed", "effect": true}
DELETE /faults           remove all faults
PATCH  /settings         change those given: {"metadataLag": "10s", "describeLag": "2s", "throttle": "account"}
POST   /enis/ID/settle   end what holds its attachment (fault "hold")
`

const maxControlBody = 1 << 20 // bytes

// controlHandler serves a world's control API: JSON over plain HTTP, for programs and
// users who drive a test from outside. It has no authentication; listen on loopback.
// Refused requests get status 400 and {"error": …}.
func controlHandler(w *World) http.Handler {
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(*http.Request) (any, error){
		"GET /world":  func(*http.Request) (any, error) { return w.Snapshot(), nil },
		"GET /calls":  func(*http.Request) (any, error) { return map[string]any{"calls": append([]Call{}, w.Calls()...)}, nil },
		"GET /faults": func(*http.Request) (any, error) { return w.Faults(), nil },
		"POST /faults": func(r *http.Request) (any, error) {
			var rule Rule
			if err := decode(r, &rule); err != nil {
				return nil, err
			}
			id, err := w.AddFault(rule)
			return map[string]string{"id": id}, err
		},
		"DELETE /faults":         func(*http.Request) (any, error) { w.RemoveFaults(); return struct{}{}, nil },
		"PATCH /settings":        func(r *http.Request) (any, error) { return struct{}{}, w.set(r) },
		"POST /enis/{id}/settle": func(r *http.Request) (any, error) { return struct{}{}, w.Settle(r.PathValue("id")) },
	} {
		mux.HandleFunc(pattern, func(rw http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(rw, r.Body, maxControlBody)
			v, err := serve(r)
			rw.Header().Set("Content-Type", "application/json")
			if err != nil {
				rw.WriteHeader(http.StatusBadRequest)
				v = map[string]string{"error": err.Error()}
			}
			enc := json.NewEncoder(rw)
			enc.SetIndent("", "  ")
			_ = enc.Encode(v) // a client that hung up needs no answer
		})
	}
	mux.HandleFunc("GET /{$}", func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, controlHelp) // a client that hung up needs no answer
	})
	return mux
}

// decode reads a request's JSON object.
func decode(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = strictJSON(body, into)
	}
	if err != nil {
		return fmt.Errorf("read the body: %w", err)
	}
	return nil
}

// set changes the settings that a request gives.
func (w *World) set(r *http.Request) error {
	var in struct{ MetadataLag, DescribeLag, Throttle *string }
	if err := decode(r, &in); err != nil {
		return err
	}
	metadata, err := lag(in.MetadataLag)
	describe, also := lag(in.DescribeLag)
	var throttle *Throttle
	var too error
	if in.Throttle != nil {
		throttle, too = ParseThrottle(*in.Throttle)
	}
	if err := errors.Join(err, also, too); err != nil {
		return err
	}
	if in.MetadataLag != nil {
		w.SetMetadataLag(metadata)
	}
	if in.DescribeLag != nil {
		w.SetDescribeLag(describe)
	}
	if in.Throttle != nil {
		w.setThrottle(throttle)
	}
	return nil
}

func lag(s *string) (time.Duration, error) {
	if s == nil {
		return 0, nil
	}
	d, err := time.ParseDuration(*s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration such as \"1.5s\"", *s)
	}
	return d, nil
}

// ParseThrottle reads "none" or "account", for AccountBuckets.
func ParseThrottle(s string) (*Throttle, error) {
	switch s {
	case "none":
		return nil, nil
	case "account":
		return AccountBuckets(), nil
	}
	return nil, fmt.Errorf("throttle %q: none or account is accepted", s)
}
