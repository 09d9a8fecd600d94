package fakeaws

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// IMDSHandler serves the instance metadata service, version 2 only. identify returns the
// instance that sent a request; in AWS the network link decides that.
func IMDSHandler(w *World, identify func(*http.Request) (instanceID string)) http.Handler {
	return &imdsServer{w, identify}
}

// OneInstance attributes every request to the same instance.
func OneInstance(id string) func(*http.Request) string {
	return func(*http.Request) string { return id }
}

type imdsServer struct {
	world    *World
	identify func(*http.Request) string
}

// token is an IMDSv2 session token.
type token struct {
	instance string
	expires  time.Time
}

const (
	tokenPath  = "/latest/api/token"
	tokenTTL   = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
	tokenName  = "X-Aws-Ec2-Metadata-Token"
	maxTTL     = 21600 // seconds: 6 hours
	maxSession = 10000 // number of tokens above which expired ones are deleted
)

func (s *imdsServer) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	start, began := s.world.opts.Now(), time.Now()
	id := s.identify(r)
	fault := s.world.imdsFaultFor(strings.TrimPrefix(strings.TrimSuffix(r.URL.Path, "/"), "/latest/"))
	status, body := s.serve(rw, r, id, fault.Status)
	if fault.Reply == ReplyEmpty {
		body = ""
	}
	s.world.wire.do(func() {
		s.world.wire.imdsCalls = append(s.world.wire.imdsCalls, IMDSCall{Method: r.Method, Path: r.URL.Path, InstanceID: id,
			Status: status, Start: start, Took: time.Since(began), Fault: fault.String()})
	})
	h := http.Header{}
	h.Set("Content-Type", "text/plain")
	h.Set("Server", "EC2ws")
	response{status: status, header: h, body: []byte(body), fault: fault.Reply}.send(rw, r, s.world.done)
}

// serve returns a status and a body; a fault's status overrides it unless it is 0.
func (s *imdsServer) serve(rw http.ResponseWriter, r *http.Request, id string, fault int) (int, string) {
	w := s.world
	path := strings.TrimSuffix(r.URL.Path, "/")
	w.pause(metadataAction)
	i, v, started, known := w.metadata(id)
	switch {
	case !known:
		w.violate("IMDS: %s %s: the caller is not an instance (%q)", r.Method, r.URL.Path, id)
		return http.StatusForbidden, ""
	case fault != 0:
		return fault, http.StatusText(fault)
	case r.Header.Get("X-Forwarded-For") != "":
		return http.StatusForbidden, ""
	case path == tokenPath:
		return s.newToken(rw, r, id)
	case r.Method != http.MethodGet:
		w.violate("IMDS: %s %s: only GET is served", r.Method, r.URL.Path)
		return http.StatusMethodNotAllowed, ""
	case !w.validToken(r.Header.Get(tokenName), id):
		return http.StatusUnauthorized, ""
	}
	return s.document(path, strings.HasSuffix(r.URL.Path, "/"), tree{region: w.opts.Region, account: w.opts.AccountID, instance: i, view: v, started: started, now: w.opts.Now()})
}

func (s *imdsServer) newToken(rw http.ResponseWriter, r *http.Request, id string) (int, string) {
	w := s.world
	if r.Method != http.MethodPut {
		w.violate("IMDS: %s %s: a token is asked for by PUT", r.Method, r.URL.Path)
		return http.StatusMethodNotAllowed, ""
	}
	ttl, err := strconv.Atoi(r.Header.Get(tokenTTL))
	if err != nil || ttl < 1 || ttl > maxTTL {
		w.violate("IMDS: token with a lifetime of %q: 1 to %d seconds are accepted", r.Header.Get(tokenTTL), maxTTL)
		return http.StatusBadRequest, ""
	}
	name := w.uuid()
	now := w.opts.Now()
	w.wire.do(func() {
		if len(w.wire.tokens) >= maxSession {
			for k, t := range w.wire.tokens {
				if !t.expires.After(now) {
					delete(w.wire.tokens, k)
				}
			}
		}
		w.wire.tokens[name] = token{id, now.Add(time.Duration(ttl) * time.Second)}
	})
	rw.Header().Set(tokenTTL, strconv.Itoa(ttl))
	return http.StatusOK, name
}

// MetadataTokens lists the session tokens that the metadata service issued to an instance.
func (w *World) MetadataTokens(instanceID string) []string {
	return locked(&w.wire, func() (out []string) {
		for name, t := range w.wire.tokens {
			if t.instance == instanceID {
				out = append(out, name)
			}
		}
		slices.Sort(out)
		return out
	})
}

func (w *World) validToken(name, instanceID string) bool {
	now := w.opts.Now()
	return locked(&w.wire, func() bool {
		t, there := w.wire.tokens[name]
		return there && t.instance == instanceID && t.expires.After(now)
	})
}

// RevokeTokens makes all metadata tokens stale, as a restart of the service does.
func (w *World) RevokeTokens() { w.wire.do(func() { clear(w.wire.tokens) }) }

// document answers a GET. A path where this instance has nothing is a 404; one that no
// instance could have is a violation too.
func (s *imdsServer) document(path string, slash bool, t tree) (int, string) {
	rel, underLatest := strings.CutPrefix(path+"/", "/latest/")
	if !underLatest {
		s.world.violate("IMDS: %s: only /latest is served", path)
		return http.StatusNotFound, ""
	}
	rel = strings.TrimSuffix(rel, "/")
	body, directory, known := t.read(rel)
	switch {
	case !known:
		s.world.violate("IMDS: unknown path %s", path)
		return http.StatusNotFound, ""
	case body == "", slash && !directory:
		return http.StatusNotFound, ""
	}
	return http.StatusOK, body
}
