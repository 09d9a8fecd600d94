package introspect

import "fmt"

// Fault answers in place of the requested document, with an HTTP status of 4xx or 5xx.
type Fault struct {
	APIVersion string `json:"apiVersion"` // version of the document
	Kind       string `json:"kind"`       // Fault
	Code       string `json:"code"`       // a stable word
	Message    string `json:"message"`    // what is wrong and what to do, in one sentence
}

func (f *Fault) Error() string { return fmt.Sprintf("%s (%s)", f.Message, f.Code) }

// Codes of faults.
const (
	FaultBadParameter  = "bad-parameter"  // 400: a query parameter is unknown, malformed or out of range
	FaultForeignHost   = "foreign-host"   // 403: the Host header does not name the node's loopback
	FaultNotServed     = "not-served"     // 404: this daemon does not serve the path
	FaultNotFound      = "not-found"      // 404: the requested object does not exist
	FaultMethod        = "method"         // 405: only GET and HEAD are supported
	FaultBusy          = "busy"           // 503: too many waiting requests; Retry-After is set
	FaultUnavailable   = "unavailable"    // 503: the daemon could not read the requested data
	FaultAnswerTooLong = "answer-too-big" // 500: the answer would exceed MaxBody
	FaultInternal      = "internal"       // 500
)
