package causes

import (
	"slices"
	"strings"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

// OfPod returns the finding that says why a pod, NAMESPACE/NAME, has no network; nil if nothing was
// observed of it. It is among those of Diagnose: one about the pod itself, else the worst that explains
// what was observed and is not about other pods, else what the daemon says of the pod's last ADD, else the
// observation.
func OfPod(ev *evidence.Evidence, pod string) *document.Finding {
	r := Diagnose(ev, Options{})
	var codes, others []string
	for _, o := range r.Observations {
		if o.Subject == pod || slices.Contains(o.Pods, pod) {
			codes = append(append(codes, o.ExplainedBy...), o.Kind)
		}
		others = union(others, o.Pods)
	}
	others = slices.DeleteFunc(others, func(name string) bool { return name == pod })
	var explains *document.Finding
	for _, list := range [][]document.Finding{r.Findings, r.Explained} {
		for i := range list {
			switch f := &list[i]; {
			case kindEntries()[f.Code] != nil: // not a cause
			case f.Scope.Pod == pod:
				return f
			case !slices.Contains(codes, f.Code):
			case hasName(f.Summary, pod):
				return f
			case explains == nil && !slices.ContainsFunc(others, func(other string) bool { return hasName(f.Summary, other) }):
				explains = f
			}
		}
	}
	if explains == nil && len(codes) > 0 {
		explains = lastADD(ev, pod)
	}
	if at := slices.IndexFunc(r.Observations, func(o document.Observation) bool { return o.Subject == pod }); explains == nil && at >= 0 {
		o := r.Observations[at]
		title := kindEntries()[o.Kind].Title
		explains = &document.Finding{Code: o.Kind, Title: title, Severity: o.Severity, Nodes: []string{o.Node}, Summary: o.Is}
	}
	return explains
}

// lastADD returns what the daemon reports of the last failed ADD of a pod, under the doctor's code; nil if
// nothing.
func lastADD(ev *evidence.Evidence, pod string) *document.Finding {
	for i := range ev.Nodes {
		for _, item := range ev.Nodes[i].First.Failures.Content.Items { // newest first
			if e, ok := catalogue.Reported(item.Cause); ok && item.Pod.Namespace+"/"+item.Pod.Name == pod {
				return &document.Finding{Code: e.Code, Title: e.Title, Severity: e.Severity.String(), Nodes: []string{ev.Nodes[i].Name},
					Summary: item.Detail}
			}
		}
	}
	return nil
}

// hasName reports whether a text contains a name, not only as part of a longer one.
func hasName(text, name string) bool {
	part := func(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '/' }
	for {
		i := strings.Index(text, name)
		if i < 0 {
			return false
		}
		end := i + len(name)
		if (i == 0 || !part(text[i-1])) && (end == len(text) || !part(text[end])) {
			return true
		}
		text = text[end:]
	}
}
