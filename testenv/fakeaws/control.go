package fakeaws

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// ControlHelp lists what ControlHandler serves.
const ControlHelp = `GET    /world                    the world: VPCs, subnets, instances, ENIs
GET    /calls?from=N             EC2 requests from number N on (0 the first), and the next N
GET    /imds-calls?from=N        metadata requests, likewise
GET    /violations               what clients said that the services do not know
GET    /faults                   the faults, oldest first
POST   /faults                   add a fault, answers {"id": …}:
                                 {"action": "CreateNetworkInterface", "last": 3, "reply": "closed", "effect": true}
DELETE /faults, /faults/ID       remove all faults, or one
GET    /settings                 lags, delays, latencies, limits
PATCH  /settings                 change those given: {"metadataLag": "10s", "throttle": "account"}
POST   /subnets/ID/occupy        {"count": 100}: others take addresses
POST   /subnets/ID/fragment      leave no /28 free
POST   /subnets/ID/vacate        undo occupy and fragment
POST   /enis                     create an ENI: {"subnetId": …, "ips": 2, "attach": {"instanceId": …, "device": 1}}
DELETE /enis/ID                  delete an ENI that is not attached
POST   /enis/ID/attach           {"instanceId": …, "card": 0, "device": 1}
POST   /enis/ID/detach           end its attachment
POST   /enis/ID/assign           {"count": 2} or {"prefixes": 1}
POST   /enis/ID/unassign         {"cidrs": ["10.0.0.9/32"]}
POST   /enis/ID/settle           end what holds its attachment (fault "hold")
PATCH  /tags/ID                  set tags of an ENI, instance or subnet; null removes: {"Name": "a", "old": null}
POST   /tokens/revoke            make every metadata token stale
`

const maxControlBody = 1 << 20 // bytes

// ControlHandler serves a world's control API: JSON over plain HTTP, for programs and
// users who drive a test from outside. It has no authentication; listen on loopback.
//
// Invalid requests get status 400, 404 or 409 and {"error": …}, plus EC2's "code" if EC2
// would refuse them.
func ControlHandler(w *World) http.Handler {
	c := controlServer{w}
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(*http.Request) (any, error){
		"GET /world":                c.state,
		"GET /calls":                c.calls,
		"GET /imds-calls":           c.imdsCalls,
		"GET /violations":           func(*http.Request) (any, error) { return listOf(w.Violations()), nil },
		"GET /faults":               func(*http.Request) (any, error) { return listOf(w.Faults()), nil },
		"POST /faults":              c.addFault,
		"DELETE /faults":            func(*http.Request) (any, error) { w.RemoveFaults(); return done, nil },
		"DELETE /faults/{id}":       c.removeFault,
		"GET /settings":             func(*http.Request) (any, error) { return w.settings(), nil },
		"PATCH /settings":           c.set,
		"POST /subnets/{id}/{verb}": c.subnet,
		"POST /enis":                c.createENI,
		"DELETE /enis/{id}":         func(r *http.Request) (any, error) { return done, w.DeleteENI(r.PathValue("id")) },
		"POST /enis/{id}/attach":    c.attachENI,
		"POST /enis/{id}/detach":    c.detachENI,
		"POST /enis/{id}/assign":    c.assign,
		"POST /enis/{id}/unassign":  c.unassign,
		"POST /enis/{id}/settle":    func(r *http.Request) (any, error) { return done, w.Settle(r.PathValue("id")) },
		"PATCH /tags/{id}":          c.tags,
		"POST /tokens/revoke":       func(*http.Request) (any, error) { w.RevokeTokens(); return done, nil },
	} {
		mux.HandleFunc(pattern, func(rw http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(rw, r.Body, maxControlBody)
			v, err := serve(r)
			writeControl(rw, v, err)
		})
	}
	mux.HandleFunc("GET /{$}", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(rw, ControlHelp) // a client that hung up needs no answer
	})
	return asJSON(mux)
}

// asJSON makes a mux answer unmatched requests in JSON, like every other error.
func asJSON(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(rw, r) // sets the values of the path
			return
		}
		refusal := refusal{header: rw.Header()}
		h.ServeHTTP(&refusal, r)
		switch refusal.status {
		case http.StatusMethodNotAllowed:
			refuse(rw, refusal.status, fmt.Errorf("%s is not accepted by %q, %s is; GET / lists what is served", r.Method, r.URL.Path, rw.Header().Get("Allow")))
		default:
			refuse(rw, http.StatusNotFound, fmt.Errorf("there is no path %q; GET / lists what is served", r.URL.Path))
		}
	})
}

// refusal keeps the status of an answer and drops its body.
type refusal struct {
	header http.Header
	status int
}

func (r *refusal) Header() http.Header         { return r.header }
func (r *refusal) Write(b []byte) (int, error) { return len(b), nil }
func (r *refusal) WriteHeader(status int)      { r.status = status }

type controlServer struct{ world *World }

// done answers requests that have no result.
var done = struct{}{}

// listOf encodes an empty list as [], not null.
func listOf[T any](all []T) []T { return append([]T{}, all...) }

// missingError is an error about something that does not exist.
type missingError struct{ what string }

func (e *missingError) Error() string { return "there is no " + e.what }

// controlError is the answer to a refused request.
type controlError struct {
	Error string `json:"error"`
	Code  string `json:"code,omitempty"` // EC2's
}

func writeControl(rw http.ResponseWriter, v any, err error) {
	var missing *missingError
	var refused *Error
	switch {
	case err == nil:
		writeJSON(rw, http.StatusOK, v)
	case errors.As(err, &missing):
		refuse(rw, http.StatusNotFound, err)
	case errors.As(err, &refused):
		writeJSON(rw, http.StatusConflict, controlError{refused.Message, refused.Code})
	default:
		refuse(rw, http.StatusBadRequest, err)
	}
}

func refuse(rw http.ResponseWriter, status int, err error) {
	writeJSON(rw, status, controlError{Error: err.Error()})
}

func writeJSON(rw http.ResponseWriter, status int, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_, _ = rw.Write(append(body, '\n')) // a client that hung up needs no answer
}

// decode reads a request's JSON object. Unknown members are errors.
func decode(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("read the body: %w", err)
	}
	if err := strictJSON(body, into); err != nil {
		return fmt.Errorf("read the body: %w", err)
	}
	return nil
}

// notNegative checks a number in a request's body.
func notNegative(member string, n int) error {
	if n < 0 {
		return fmt.Errorf("%s=%d: a number from 0 is accepted", member, n)
	}
	return nil
}

func (c controlServer) addFault(r *http.Request) (any, error) {
	var rule Rule
	if err := decode(r, &rule); err != nil {
		return nil, err
	}
	id, err := c.world.AddFault(rule)
	return struct {
		ID string `json:"id"`
	}{id}, err
}

func (c controlServer) removeFault(r *http.Request) (any, error) {
	if id := r.PathValue("id"); !c.world.RemoveFault(id) {
		return nil, &missingError{fmt.Sprintf("fault %q", id)}
	}
	return done, nil
}

func (c controlServer) subnet(r *http.Request) (any, error) {
	id := r.PathValue("id")
	switch verb := r.PathValue("verb"); verb {
	case "occupy":
		var in struct {
			Count int `json:"count"`
		}
		if err := decode(r, &in); err != nil {
			return nil, err
		}
		if err := notNegative("count", in.Count); err != nil {
			return nil, err
		}
		taken, err := c.world.Occupy(id, in.Count)
		return struct {
			Taken int `json:"taken"`
		}{taken}, err
	case "fragment":
		return done, c.world.Fragment(id)
	case "vacate":
		return done, c.world.Vacate(id)
	default:
		return nil, &missingError{fmt.Sprintf("verb %q: occupy, fragment and vacate are served", verb)}
	}
}

// controlAttach says where to attach an ENI.
type controlAttach struct {
	InstanceID string `json:"instanceId"`
	Card       int    `json:"card"`
	Device     int    `json:"device"`
	Hold       Hold   `json:"hold,omitempty"`
}

func (c controlServer) createENI(r *http.Request) (any, error) {
	var in struct {
		SubnetID       string            `json:"subnetId"`
		Type           string            `json:"type"`
		Description    string            `json:"description"`
		SecurityGroups []string          `json:"securityGroups"`
		IPs            int               `json:"ips"`
		Prefixes       int               `json:"prefixes"`
		Tags           map[string]string `json:"tags"`
		Attach         *controlAttach    `json:"attach"`
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if err := cmp.Or(notNegative("ips", in.IPs), notNegative("prefixes", in.Prefixes)); err != nil {
		return nil, err
	}
	e, err := c.world.CreateENI(ENISpec{SubnetID: in.SubnetID, Type: in.Type, Description: in.Description, SecurityGroups: in.SecurityGroups,
		IPs: in.IPs, Prefixes: in.Prefixes, Tags: in.Tags})
	if err != nil {
		return nil, err
	}
	if in.Attach != nil {
		if _, err := c.attach(e.ID, *in.Attach); err != nil {
			return nil, errors.Join(err, c.world.DeleteENI(e.ID))
		}
	}
	return c.eni(e.ID)
}

func (c controlServer) attachENI(r *http.Request) (any, error) {
	var in controlAttach
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	return c.attach(r.PathValue("id"), in)
}

func (c controlServer) attach(id string, in controlAttach) (any, error) {
	if in.Hold != "" && holds[in.Hold] != "AttachNetworkInterface" {
		return nil, fmt.Errorf("hold %q: %q or %q is accepted", in.Hold, HoldAttaching, HoldLink)
	}
	if _, err := c.world.AttachENI(AttachSpec{ENIID: id, InstanceID: in.InstanceID, Card: in.Card, Device: in.Device, Hold: in.Hold}); err != nil {
		return nil, err
	}
	return c.eni(id)
}

// eni renders the current state of an ENI.
func (c controlServer) eni(id string) (any, error) {
	e, ok := c.world.ENI(id)
	if !ok {
		return nil, noENI(id)
	}
	return describeENI(e), nil
}

func (c controlServer) detachENI(r *http.Request) (any, error) {
	e, ok := c.world.ENI(r.PathValue("id"))
	if !ok {
		return nil, noENI(r.PathValue("id"))
	}
	return done, c.world.DetachENI(e.Attachment.ID)
}

func (c controlServer) assign(r *http.Request) (any, error) {
	var in struct {
		Count    int `json:"count"`
		Prefixes int `json:"prefixes"`
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if err := cmp.Or(notNegative("count", in.Count), notNegative("prefixes", in.Prefixes)); err != nil {
		return nil, err
	}
	cidrs, err := c.world.Assign(r.PathValue("id"), AssignSpec{Count: in.Count, PrefixCount: in.Prefixes})
	return struct {
		CIDRs []netip.Prefix `json:"cidrs"`
	}{listOf(cidrs)}, err
}

func (c controlServer) unassign(r *http.Request) (any, error) {
	var in struct {
		CIDRs []string `json:"cidrs"`
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	cidrs := make([]netip.Prefix, len(in.CIDRs))
	for i, s := range in.CIDRs {
		var err error
		if cidrs[i], err = netip.ParsePrefix(s); err != nil {
			return nil, fmt.Errorf("cidrs: %q: one like 10.0.0.9/32 is accepted", s)
		}
	}
	return done, c.world.Unassign(r.PathValue("id"), cidrs...)
}

func (c controlServer) tags(r *http.Request) (any, error) {
	var in map[string]*string
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	if _, ok := c.world.Tags(id); !ok {
		return nil, &missingError{fmt.Sprintf("resource %q", id)}
	}
	set := make(map[string]string)
	for _, k := range slices.Sorted(maps.Keys(in)) {
		if in[k] != nil {
			set[k] = *in[k]
		} else if err := c.world.RemoveTags(id, k); err != nil {
			return nil, err
		}
	}
	return done, c.world.SetTags(set, id)
}

// loggedCall is one request in the control API's log.
type loggedCall struct {
	Time     time.Time         `json:"time"`
	Action   string            `json:"action,omitempty"`
	Params   map[string]string `json:"params,omitempty"`
	Method   string            `json:"method,omitempty"`
	Path     string            `json:"path,omitempty"`
	Instance string            `json:"instance,omitempty"`
	Status   int               `json:"status,omitempty"`
	Code     string            `json:"code,omitempty"`
	Fault    string            `json:"fault,omitempty"`
	TookMS   float64           `json:"tookMs"`
}

func (c controlServer) calls(r *http.Request) (any, error) {
	return logFrom(r, c.world.Calls(), func(c Call) loggedCall {
		return loggedCall{Time: c.Start, Action: c.Action, Params: c.Params, Code: c.Code, Fault: c.Fault, TookMS: milliseconds(c.Took)}
	})
}

func (c controlServer) imdsCalls(r *http.Request) (any, error) {
	return logFrom(r, c.world.IMDSCalls(), func(c IMDSCall) loggedCall {
		return loggedCall{Time: c.Start, Method: c.Method, Path: c.Path, Instance: c.InstanceID, Status: c.Status, Fault: c.Fault, TookMS: milliseconds(c.Took)}
	})
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func logFrom[C any](r *http.Request, all []C, render func(C) loggedCall) (any, error) {
	from := 0
	if s := r.URL.Query().Get("from"); s != "" {
		var err error
		if from, err = strconv.Atoi(s); err != nil || from < 0 {
			return nil, fmt.Errorf("from=%q: a number from 0 is accepted", s)
		}
	}
	out := struct {
		Next  int          `json:"next"`
		Calls []loggedCall `json:"calls"`
	}{len(all), []loggedCall{}}
	for _, c := range all[min(from, len(all)):] {
		out.Calls = append(out.Calls, render(c))
	}
	return out, nil
}
