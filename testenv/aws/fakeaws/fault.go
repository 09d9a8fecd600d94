package fakeaws

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// Fault is what happens to a call instead of, or in addition to, the normal service. The
// zero value changes nothing. Members combine: an effect and an error code make a call
// that EC2 carried out and then reported as failed.
type Fault struct {
	// Code and Message are EC2's error, Status its HTTP status (0: what EC2 uses for
	// the code). A metadata request fails with Status alone.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Status  int    `json:"status,omitempty"`

	// Effect says that the call is carried out first, so that only its answer is
	// lost or wrong. Without it a faulty call changes nothing, see [Reply].
	Effect bool `json:"effect,omitempty"`

	// Reply is how the answer goes wrong on the wire.
	Reply Reply `json:"reply,omitempty"`

	// AtMost bounds what one call assigns, creates with an ENI, or unassigns, although
	// EC2 could do more; the answer says success. 0: no bound.
	AtMost int `json:"atMost,omitempty"`

	// Hold keeps what an attach or detach began from ending, until World.Settle.
	Hold Hold `json:"hold,omitempty"`
}

// Reply is how an answer goes wrong. Stalled, truncated, empty and foreign answers are derived
// from the real one: their calls always take effect.
type Reply string

const (
	ReplyClosed    Reply = "closed"    // the connection ends without an answer
	ReplyHang      Reply = "hang"      // no answer until the client gives up or the world is closed
	ReplyStall     Reply = "stall"     // status, headers and half of the body, then nothing
	ReplyTruncated Reply = "truncated" // half of the body, then the connection closes
	ReplyGarbage   Reply = "garbage"   // status 200 with bytes that are neither XML nor text
	ReplyHTML      Reply = "html"      // status 200 with a web page, as a proxy in between would send
	ReplyEmpty     Reply = "empty"     // a well-formed answer without content
	ReplyForeign   Reply = "foreign"   // a well-formed answer with ids of things that do not exist
)

var replies = []Reply{"", ReplyClosed, ReplyHang, ReplyStall, ReplyTruncated, ReplyGarbage, ReplyHTML, ReplyEmpty, ReplyForeign}

// Hold is a step of an attachment that does not complete.
type Hold string

const (
	HoldAttaching Hold = "attaching" // AttachNetworkInterface: the state stays "attaching"; no link, nothing in IMDS
	HoldLink      Hold = "link"      // AttachNetworkInterface: EC2 and IMDS say attached, the node sees no link
	HoldDetaching Hold = "detaching" // DetachNetworkInterface: the state stays "detaching", the link stays
)

var holds = map[Hold]string{HoldAttaching: "AttachNetworkInterface", HoldLink: "AttachNetworkInterface", HoldDetaching: "DetachNetworkInterface"}

// bounded are the actions to which AtMost applies.
var bounded = []string{"AssignPrivateIpAddresses", "AssignIpv6Addresses", "UnassignPrivateIpAddresses", "UnassignIpv6Addresses", "CreateNetworkInterface"}

// answer returns the fault's error, or nil if it has none.
func (f *Fault) answer() error {
	if !f.failing() {
		return nil
	}
	return &Error{Code: f.Code, Message: f.Message, Status: f.Status}
}

// failing reports whether the call is answered with the fault's error.
func (f *Fault) failing() bool { return f.Code != "" || f.Status != 0 }

// effective reports whether the call is carried out.
func (f *Fault) effective() bool {
	switch f.Reply {
	case ReplyStall, ReplyTruncated, ReplyEmpty, ReplyForeign:
		return true
	case "":
		return f.Effect || !f.failing()
	}
	return f.Effect
}

// String names the fault in the call log, such as "hang after effect" or "InternalError"; "" for
// the zero value.
func (f *Fault) String() string {
	var words []string
	switch {
	case f.Reply != "":
		words = append(words, string(f.Reply))
	case f.Code != "":
		words = append(words, f.Code)
	case f.Status != 0:
		words = append(words, fmt.Sprintf("status %d", f.Status))
	}
	if len(words) > 0 && f.effective() {
		words = append(words, "after effect")
	}
	if f.AtMost > 0 {
		words = append(words, fmt.Sprintf("at most %d", f.AtMost))
	}
	if f.Hold != "" {
		words = append(words, "held "+string(f.Hold))
	}
	return strings.Join(words, ", ")
}

// check refuses faults that cannot happen to calls of an action ("IMDS": metadata
// requests, "*": every EC2 action).
func (f *Fault) check(action string) error {
	switch {
	case !slices.Contains(replies, f.Reply):
		return fmt.Errorf("reply %q: one of %q is accepted", f.Reply, replies[1:])
	case f.Reply != "" && f.failing():
		return fmt.Errorf("reply %q and an error: one of the two is accepted", f.Reply)
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("status %d: 400 to 599 are accepted", f.Status)
	case f.AtMost < 0:
		return fmt.Errorf("atMost %d: a positive number is accepted", f.AtMost)
	case *f == Fault{} || *f == Fault{Effect: true}:
		return fmt.Errorf("the fault does nothing: code, status, reply, atMost or hold is wanted")
	}
	if action == metadataAction {
		if f.Code != "" || f.Effect || f.AtMost != 0 || f.Hold != "" || f.Reply == ReplyForeign {
			return fmt.Errorf("a metadata request can meet a status or a reply other than %q", ReplyForeign)
		}
		return nil
	}
	if f.Status != 0 && f.Code == "" {
		return fmt.Errorf("status %d without a code: EC2's errors have one", f.Status)
	}
	if f.AtMost != 0 && !slices.Contains(bounded, action) {
		return fmt.Errorf("atMost with %q: %q are accepted", action, bounded)
	}
	if f.Hold == "" {
		return nil
	}
	if only, known := holds[f.Hold]; !known || action != only {
		return fmt.Errorf("hold %q with %q: %q and %q with AttachNetworkInterface, %q with DetachNetworkInterface are accepted", f.Hold, action, HoldAttaching, HoldLink, HoldDetaching)
	}
	if f.failing() && !f.Effect {
		return fmt.Errorf("hold %q of a call without effect", f.Hold)
	}
	return nil
}

// FaultFunc returns the fault of the nth call of an action, counted from 1 over the world's
// lifetime, or nil. Calls that fail because of their form or throttling count too.
type FaultFunc func(action string, nth int) *Fault

// SetFaults installs a fault function; nil removes it. It is called before the rules of AddFault
// apply, runs under a lock and must not call the world.
func (w *World) SetFaults(f FaultFunc) { w.wire.do(func() { w.wire.fault = f }) }

// FailCalls returns a FaultFunc for the first to last call of one action.
func FailCalls(action string, first, last int, f Fault) FaultFunc {
	return func(a string, nth int) *Fault {
		if a == action && first <= nth && nth <= last {
			return &f
		}
		return nil
	}
}

// chance returns a number in [0, 1) that depends only on its arguments.
func chance(seed uint64, name string, nth int) float64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // a hash never fails
	return rand.New(rand.NewPCG(seed^h.Sum64(), uint64(nth))).Float64()
}

// IMDSFaultFunc returns the HTTP status with which the nth request of a metadata path fails,
// or 0. Paths are below /latest, without a trailing slash; requests count from 1.
type IMDSFaultFunc func(path string, nth int) (status int)

// SetIMDSFaults installs a metadata fault function; nil removes it. It is called before the
// rules of AddFault apply, runs under a lock and must not call the world.
func (w *World) SetIMDSFaults(f IMDSFaultFunc) { w.wire.do(func() { w.wire.imdsFault = f }) }

// Throttled, Unavailable and Internal are faults of EC2 that clients must handle.
var (
	Throttled   = Fault{Code: codeThrottled, Message: "Request limit exceeded.", Status: http.StatusServiceUnavailable}
	Unavailable = Fault{Code: "Unavailable", Message: "The server is overloaded and can't handle the request.", Status: http.StatusServiceUnavailable}
	Internal    = Fault{Code: "InternalError", Message: "An internal error has occurred", Status: http.StatusInternalServerError}
)
