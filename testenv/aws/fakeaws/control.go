package fakeaws

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// ControlHelp lists what ControlHandler serves.
const ControlHelp = `GET    /world                    the world: VPCs, subnets, instances, ENIs
GET    /calls?from=N             EC2 requests from number N on (0 the first), and the next N
GET    /faults                   the faults, oldest first
POST   /faults                   add a fault, answers {"id": …}:
                                 {"action": "CreateNetworkInterface", "last": 3, "reply": "closed", "effect": true}
DELETE /faults, /faults/ID       remove all faults, or one
PATCH  /settings                 change those given: {"metadataLag": "10s", "describeLag": "2s", "throttle": "account"}
POST   /subnets/ID/occupy        {"count": 100}: others take addresses
POST   /subnets/ID/fragment      leave no /28 free
POST   /subnets/ID/vacate        undo occupy and fragment
POST   /enis/ID/settle           end what holds its attachment (fault "hold")
`

const maxControlBody = 1 << 20 // bytes

// ControlHandler serves a world's control API: JSON over plain HTTP, for programs and
// users who drive a test from outside. It has no authentication; listen on loopback.
// Refused requests get status 400, 404 or 409 and {"error": …}.
func ControlHandler(w *World) http.Handler {
	c := controlServer{w}
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(*http.Request) (any, error){
		"GET /world":                  func(*http.Request) (any, error) { return w.Snapshot(), nil },
		"GET /calls":                  c.calls,
		"GET /faults":                 func(*http.Request) (any, error) { return append([]Rule{}, w.Faults()...), nil },
		"POST /faults":                c.addFault,
		"DELETE /faults":              func(*http.Request) (any, error) { w.RemoveFaults(); return done, nil },
		"DELETE /faults/{id}":         c.removeFault,
		"PATCH /settings":             c.set,
		"POST /subnets/{id}/occupy":   c.occupy,
		"POST /subnets/{id}/fragment": func(r *http.Request) (any, error) { return done, w.Fragment(r.PathValue("id")) },
		"POST /subnets/{id}/vacate":   func(r *http.Request) (any, error) { return done, w.Vacate(r.PathValue("id")) },
		"POST /enis/{id}/settle":      func(r *http.Request) (any, error) { return done, w.Settle(r.PathValue("id")) },
	} {
		mux.HandleFunc(pattern, func(rw http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(rw, r.Body, maxControlBody)
			v, err := serve(r)
			answerControl(rw, v, err)
		})
	}
	mux.HandleFunc("GET /{$}", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(rw, ControlHelp) // a client that hung up needs no answer
	})
	return mux
}

type controlServer struct{ world *World }

// done answers requests that have no result.
var done = struct{}{}

var errNoFault = errors.New("there is no such fault")

func answerControl(rw http.ResponseWriter, v any, err error) {
	status := http.StatusOK
	var refused *Error
	switch {
	case errors.Is(err, errNoFault):
		status = http.StatusNotFound
	case errors.As(err, &refused):
		status = http.StatusConflict
	case err != nil:
		status = http.StatusBadRequest
	}
	if err != nil {
		v = map[string]string{"error": err.Error()}
	}
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_, _ = rw.Write(append(body, '\n')) // a client that hung up needs no answer
}

// decode reads a request's JSON object.
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

func (c controlServer) addFault(r *http.Request) (any, error) {
	var rule Rule
	if err := decode(r, &rule); err != nil {
		return nil, err
	}
	id, err := c.world.AddFault(rule)
	return map[string]string{"id": id}, err
}

func (c controlServer) removeFault(r *http.Request) (any, error) {
	if !c.world.RemoveFault(r.PathValue("id")) {
		return nil, errNoFault
	}
	return done, nil
}

func (c controlServer) occupy(r *http.Request) (any, error) {
	var in struct{ Count uint }
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	taken, err := c.world.Occupy(r.PathValue("id"), int(min(in.Count, 1<<16)))
	return map[string]int{"taken": taken}, err
}

func (c controlServer) set(r *http.Request) (any, error) {
	var in struct {
		MetadataLag, DescribeLag *Duration
		Throttle                 *string
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	if in.Throttle != nil {
		t, err := ParseThrottle(*in.Throttle)
		if err != nil {
			return nil, err
		}
		c.world.SetThrottle(t)
	}
	if in.MetadataLag != nil {
		c.world.SetMetadataLag(time.Duration(*in.MetadataLag))
	}
	if in.DescribeLag != nil {
		c.world.SetDescribeLag(time.Duration(*in.DescribeLag))
	}
	return done, nil
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

// LoggedCall is a call as the control API and `fakeaws --log` show it.
type LoggedCall struct {
	Time   time.Time         `json:"time"`
	Action string            `json:"action"`
	Code   string            `json:"code,omitempty"`
	Fault  string            `json:"fault,omitempty"`
	TookMS float64           `json:"tookMs"`
	Params map[string]string `json:"params,omitempty"`
}

// Logged returns the call as it is shown.
func (c Call) Logged() LoggedCall {
	return LoggedCall{c.Start, c.Action, c.Code, c.Fault, float64(c.Took) / float64(time.Millisecond), c.Params}
}

func (c controlServer) calls(r *http.Request) (any, error) {
	all := c.world.Calls()
	var from uint64
	if s := r.URL.Query().Get("from"); s != "" {
		var err error
		if from, err = strconv.ParseUint(s, 10, 31); err != nil {
			return nil, fmt.Errorf("from=%q: a number from 0 is accepted", s)
		}
	}
	out := []LoggedCall{}
	for _, call := range all[min(int(from), len(all)):] {
		out = append(out, call.Logged())
	}
	return map[string]any{"next": len(all), "calls": out}, nil
}
