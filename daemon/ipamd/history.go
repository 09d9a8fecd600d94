package ipamd

import (
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
)

// history is what the owner remembers for people: counters since the start and the
// last failures, repeated ones folded together.
type history struct {
	adds, dels introspect.RequestCounts
	errors     []introspect.LastError // newest first
	growth     growthError            // the newest failure of a pool action
}

// growthError is a failed pool action: the likely reason why an ADD waits in vain.
type growthError struct {
	at     time.Time
	code   cause.Code
	text   string // what EC2 said
	detail string
}

func newHistory() history {
	return history{
		errors: []introspect.LastError{},
		adds:   introspect.RequestCounts{Causes: map[string]int{}},
		dels:   introspect.RequestCounts{Causes: map[string]int{}},
	}
}

func (h *history) added()   { h.adds.Total++ }
func (h *history) deleted() { h.dels.Total++ }

func (h *history) addFailed(now time.Time, code cause.Code, detail string) {
	h.adds.Total++
	h.adds.Failed++
	h.adds.Causes[string(code)]++
	h.note(introspect.LastError{At: now, Operation: "ADD", Cause: string(code), Message: detail})
}

func (h *history) delFailed(now time.Time, code cause.Code, detail string) {
	h.dels.Total++
	h.dels.Failed++
	h.dels.Causes[string(code)]++
	h.note(introspect.LastError{At: now, Operation: "DEL", Cause: string(code), Message: detail})
}

func (h *history) actionFailed(now time.Time, action string, code cause.Code, err error) {
	text := bounded(err.Error())
	h.growth = growthError{at: now, code: code, text: text, detail: code.Title() + ": " + text}
	h.failed(now, action, code, err)
}

func (h *history) failed(now time.Time, operation string, code cause.Code, err error) {
	h.note(introspect.LastError{At: now, Operation: operation, Cause: string(code), Message: err.Error()})
}

// note puts an error first; one of the same operation and cause moves up and counts.
func (h *history) note(e introspect.LastError) {
	e.Message = bounded(e.Message)
	e.At, e.Count = e.At.UTC(), 1
	same := func(o introspect.LastError) bool { return o.Operation == e.Operation && o.Cause == e.Cause }
	if i := slices.IndexFunc(h.errors, same); i >= 0 {
		e.Count += h.errors[i].Count
		h.errors = slices.Delete(h.errors, i, i+1)
	}
	h.errors = slices.Insert(h.errors, 0, e)
	h.errors = h.errors[:min(len(h.errors), introspect.MaxLastErrors)]
}

// bounded cuts a message of the outside to what a person reads.
func bounded(message string) string {
	const limit = 300
	if len(message) <= limit {
		return message
	}
	return strings.ToValidUTF8(message[:limit], "") + "…"
}

// growthErrorSince returns the newest failed pool action if it happened while a
// request was waiting.
func (h *history) growthErrorSince(t time.Time) (growthError, bool) {
	return h.growth, !h.growth.at.IsZero() && h.growth.at.After(t)
}
