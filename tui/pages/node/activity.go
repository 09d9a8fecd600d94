package node

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/store"
	"cnictl/doctor/causes/catalogue"
	"cnictl/tui/draw"
	"cnictl/tui/show"
)

// activity writes requests and EC2 calls with their errors.
func activity(sheet *draw.Sheet, n *store.Node, now time.Time) {
	s := n.Summary
	if s.ADDs == nil && s.DELs == nil && len(s.EC2Calls) == 0 && len(s.LastErrors) == 0 {
		return
	}
	sheet.Head("REQUESTS AND EC2 CALLS", "since the daemon started")
	for _, r := range []struct {
		name string
		n    *introspect.RequestCounts
	}{{"ADDs", s.ADDs}, {"DELs", s.DELs}} {
		if r.n == nil {
			continue
		}
		spans := []draw.Span{draw.T(draw.Text, strconv.Itoa(r.n.Total))}
		if n.Rates != nil && n.Rates.ADDs != nil && r.name == "ADDs" {
			spans = append(spans, draw.T(draw.Faint, "  "+show.Rate(*n.Rates.ADDs)+"/min"))
		}
		if failed := r.n.Failed; failed != nil && *failed > 0 {
			spans = append(spans, draw.T(draw.Bad, "  "+strconv.Itoa(*failed)+" failed"), draw.T(draw.Faint, causes(r.n.Causes)))
		}
		sheet.Row(r.name, 27, spans...)
	}
	for _, call := range s.EC2Calls {
		spans := []draw.Span{draw.T(draw.Text, strconv.Itoa(call.Calls))}
		if call.Errors > 0 {
			spans = append(spans, draw.T(draw.Bad, "  "+strconv.Itoa(call.Errors)+" failed"))
		}
		if call.Throttled > 0 {
			spans = append(spans, draw.T(draw.Warn, "  "+strconv.Itoa(call.Throttled)+" throttled"))
		}
		if call.LastAt != nil {
			spans = append(spans, draw.T(draw.Faint, "  last "+show.Since(call.LastAt, now)+" ago"))
		}
		sheet.Row(call.Action, 27, spans...)
	}
	for _, e := range s.LastErrors {
		if told(n, e.Cause) {
			continue
		}
		at := show.Unknown
		if !e.At.IsZero() {
			at = show.Since(&e.At, now)
		}
		times := ""
		if e.Count > 1 {
			times = " (" + strconv.Itoa(e.Count) + " times)"
		}
		sheet.Row(at+" ago", 9, draw.T(draw.Bad, catalogue.Named(e.Cause)), draw.T(draw.Text, " "+e.Operation+": "+e.Message+times))
	}
}

// causes lists failures by cause, sorted by code.
func causes(counts map[string]int) string {
	codes := make([]string, 0, len(counts))
	for code := range counts {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	var out []string
	for _, code := range codes {
		out = append(out, code+" "+strconv.Itoa(counts[code]))
	}
	if len(out) == 0 {
		return ""
	}
	return ": " + strings.Join(out, ", ")
}
