package report

import (
	"fmt"
	"slices"
	"strings"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/lazy"
	"cnictl/doctor/evidence"
)

// Reason says in words why a source is missing.
func Reason(reason string) string {
	switch reason {
	case evidence.MissingMode:
		return "cannot be read from here"
	case evidence.MissingNotAsked:
		return "not requested"
	case evidence.MissingAbsent:
		return "does not exist"
	case evidence.MissingRefused:
		return "connection refused"
	case evidence.MissingForbidden:
		return "permission denied"
	case evidence.MissingDisabled:
		return "disabled by a setting"
	}
	return reason
}

// Unread lists sources that could not be read, for the same reason and on the same nodes.
type Unread struct {
	Reason  string // in words
	Nodes   []string
	Sources []string // by id
}

// Unreads groups the sources that could not be read. It omits what does not exist, cannot be read
// from here, or was not requested.
func Unreads(r *document.DoctorReport) []Unread {
	var out []Unread
	for _, m := range r.NotChecked {
		if evidence.Untried(m.Reason) {
			continue
		}
		at := slices.IndexFunc(out, func(u Unread) bool { return u.Reason == Reason(m.Reason) && slices.Equal(u.Nodes, m.Nodes) })
		if at < 0 {
			at, out = len(out), append(out, Unread{Reason: Reason(m.Reason), Nodes: m.Nodes})
		}
		if !slices.Contains(out[at].Sources, m.Source) {
			out[at].Sources = append(out[at].Sources, m.Source)
		}
	}
	return out
}

// families names the sources in words, by the beginning of their ids.
var families = map[string]string{
	"intro": "daemon documents", "metrics": "daemon metrics", "log": "logs", "ckpt": "checkpoint", "k8s": "Kubernetes objects",
	"ec2": "EC2", "iam": "IAM", "imds": "instance metadata", "kern": "kernel", "host": "host", "probe": "connection tests",
}

// What names the sources in words, with the ids of a few.
func (u Unread) What() string {
	var order []string
	ids := map[string][]string{}
	for _, id := range u.Sources {
		family, _, _ := strings.Cut(id, ".")
		if ids[family] == nil {
			order = append(order, family)
		}
		ids[family] = append(ids[family], id)
	}
	for i, family := range order {
		words := families[family]
		switch n := len(ids[family]); {
		case words == "":
			order[i] = strings.Join(ids[family], " ")
		case n > 3:
			order[i] = fmt.Sprintf("%s (%d sources)", words, n)
		case ids[family][0] == family:
			order[i] = words
		default:
			order[i] = words + " (" + strings.Join(ids[family], ", ") + ")"
		}
	}
	return strings.Join(order, ", ")
}

// sentence matches a value that names what it is about, and so needs no title before it:
// "subnet-0a1b: 0 free addresses", "shop/cart-1 has no link".
var sentence = lazy.Regexp(`^[a-z][a-z0-9.]*[-/0-9][A-Za-z0-9./:-]*,? [^ ]`)

// Line formats a piece of evidence on one line, without its source.
func Line(e document.FindingEvidence) string {
	if strings.HasPrefix(e.Path, `"`) && e.Value != "not logged" {
		return e.Value // the message that contains the text of the path
	}
	if sentence().MatchString(e.Value) {
		return e.Value
	}
	return e.Path + ": " + e.Value
}

// long is the length in bytes from which a value is not printed twice.
const long = 40

// Untitled returns a summary of a finding, of all nodes or of one, without the title, which a card has above it.
func Untitled(f *document.Finding, summary string) string {
	return strings.TrimPrefix(summary, f.Title+": ")
}

// Brief returns what was found without long values that the evidence repeats. It is empty if
// nothing would be left.
func Brief(f *document.Finding) string {
	text := Untitled(f, f.Summary)
	for _, e := range f.Evidence {
		if e.Holds && len(e.Value) >= long {
			if text == e.Value {
				return ""
			}
			text = strings.Replace(text, ": "+e.Value, "", 1)
			text = strings.Replace(text, " ("+e.Value+")", "", 1)
		}
	}
	return text
}
