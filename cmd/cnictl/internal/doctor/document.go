package doctor

import (
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
)

// causeOf returns the document of a catalogue entry.
func causeOf(e *catalogue.Entry) document.Cause {
	doc := document.Cause{
		Code: e.Code, Title: e.Title, Severity: e.Severity.String(), Shows: e.Shows,
		Required: list0(e.Required), Supporting: list0(e.Supporting),
		Confidence: document.CauseConfidence{
			Node: e.Ceiling.Of("node").String(), Laptop: e.Ceiling.Of("laptop").String(),
			Bundle: e.Ceiling.Of("bundle").String(), Cluster: e.Ceiling.Of("cluster").String(),
		},
		Check: document.CauseCheck(e.Check), Fixes: []document.CauseFix{}, Links: list0(e.Links), Upstream: e.Upstream, Ours: e.Ours,
		Explains: list0(e.Explains), ExplainedBy: list0(e.ExplainedBy()), Always: e.Always,
		Signatures: []document.CauseSignature{}, DaemonCodes: list0(daemonCodes(e)),
	}
	for _, fix := range e.Fixes {
		doc.Fixes = append(doc.Fixes, FixOf(fix))
	}
	for _, s := range e.Signatures {
		doc.Signatures = append(doc.Signatures, document.CauseSignature{Text: s.Text, Sources: s.Where, Note: s.Note})
	}
	return doc
}

// list0 returns the list, but never nil.
func list0(names []string) []string { return append([]string{}, names...) }

func daemonCodes(e *catalogue.Entry) []string {
	var codes []string
	for _, c := range e.Daemon {
		codes = append(codes, string(c))
	}
	return codes
}

// FixOf returns a fix as documents show it.
func FixOf(fix catalogue.Fix) document.CauseFix {
	return document.CauseFix{Text: fix.Text, Command: fix.Command, SideEffects: fix.SideEffect, Risk: fix.Risk.String()}
}
