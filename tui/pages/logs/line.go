package logs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/daemonlog"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/show"
)

// origin is where a line comes from.
type origin string

const (
	fromLog        origin = "log"        // the daemon's log
	fromEvent      origin = "event"      // a state change of the daemon
	fromKubernetes origin = "kubernetes" // a Kubernetes event
	fromContainer  origin = "container"  // what the daemon's container wrote
)

// line is one line of a log or one event. Its texts are safe to print.
type line struct {
	From  origin
	At    time.Time
	Level logline.Level
	Known bool // whether Level is known
	Node  string
	Pod   string // namespace/name
	ENI   string
	IP    string
	Kind  string // kind of event, or reason of a Kubernetes event; "" for a log line
	Text  string
	Rest  string // what the line contains besides its text

	seq    uint64 // order of arrival
	access bool   // it records a request for introspection

	item   document.EventItem // of an event, as in cnictl events
	title  string             // of an event's kind
	pieces []string           // of an event: its facts
	ref    introspect.PodRef
	eni    string // ENI as the node wrote it
}

// maxMembers limits the members of a line.
const maxMembers = 64

// shownNode is the name of a node as lines have it.
func shownNode(node string) string { return show.Safe(node) }

// parse reads a line of the daemon's log. A line of unknown form is kept as text; one
// without a time gets the time of the line before it.
func parse(node, text string, before time.Time) line {
	read := daemonlog.Parse(text)
	l := line{From: fromLog, At: before, Node: shownNode(node), Text: show.Safe(read.Message)}
	l.access = read.Access()
	if !read.At.IsZero() {
		l.At = read.At
	}
	if read.Level != "" {
		l.Level, l.Known = logline.ParseLevel(read.Level)
	}
	if read.Known && (l.Known && !read.HasMessage || read.HasMessage && read.Message == "") {
		l.Text = "(no message)"
	}
	read.Members = read.Members[:min(len(read.Members), maxMembers)]
	about, others := read.Subject()
	l.ENI, l.eni, l.IP = show.Safe(about.ENI), about.ENI, show.Safe(about.IP)
	l.ref = introspect.PodRef{Namespace: about.Namespace, Name: about.Pod}
	rest := make([]string, len(others))
	for i, m := range others {
		rest[i] = show.Safe(m.Key) + "=" + quoted(m.Value)
	}
	l.Pod = pages.PodName(l.ref.Namespace, l.ref.Name)
	l.Rest = show.Safe(strings.Join(rest, " "))
	return l
}

func quoted(s string) string {
	s = show.Safe(s)
	if strings.ContainsAny(s, " \t") || s == "" {
		return `"` + s + `"`
	}
	return s
}

// event makes a line from a state change.
func event(node, epoch string, e introspect.Event) line {
	l := line{
		From: fromEvent, At: e.At, Node: shownNode(node), Kind: show.Safe(string(e.Kind)), Known: true, Level: logline.Info,
		ENI: show.Safe(e.ENIID), eni: e.ENIID,
		Text: inventory.EventLine(e), title: e.Kind.Title(), pieces: inventory.EventPieces(e),
		item: inventory.DaemonEvent(node, epoch, e, e.At).EventItem,
	}
	switch inventory.EventSeverity(e.Kind) {
	case document.SeverityError:
		l.Level = logline.Error
	case document.SeverityWarning:
		l.Level = logline.Warn
	}
	if e.Pod != nil {
		l.ref = *e.Pod
		l.Pod = pages.PodName(e.Pod.Namespace, e.Pod.Name)
	}
	if e.Address.IsValid() {
		l.IP = e.Address.String()
	}
	return l
}

// kubeEvent makes a line from a Kubernetes event.
func kubeEvent(node string, e watch.KubeEvent) line {
	l := line{
		From: fromKubernetes, At: e.At, Node: shownNode(node), Kind: show.Safe(e.Reason), Known: true, Level: logline.Info,
		Text: show.Safe(e.Message), item: inventory.KubernetesEvent(e, e.At).EventItem,
	}
	if l.item.Warning {
		l.Level = logline.Warn
	}
	if e.Kind == "Pod" {
		l.ref = pages.SplitPod(e.Object)
		l.Pod = pages.PodName(l.ref.Namespace, l.ref.Name)
	} else {
		l.Rest = show.Safe(strings.TrimSpace(e.Kind + " " + e.Object))
	}
	if e.Count > 1 {
		l.Rest = strings.TrimSpace(l.Rest + " " + strconv.Itoa(e.Count) + " times")
	}
	return l
}

// levelText returns the level as shown.
func levelText(l line) string {
	if !l.Known {
		return show.Unknown
	}
	return l.Level.String()
}

func levelRole(l line) draw.Role {
	switch {
	case !l.Known || l.Level == logline.Debug:
		return draw.Faint
	case l.Level >= logline.Error:
		return draw.Bad
	case l.Level == logline.Warn:
		return draw.Warn
	}
	return draw.Info
}

// sources are the words of the column that says where a line is from.
var sources = map[origin]string{fromLog: "log", fromEvent: "event", fromKubernetes: "k8s", fromContainer: "stdout"}

// lineOf makes a line of the view, with the node's name if there are several nodes: nodes has their colours.
func lineOf(l *line, of repeats, now time.Time, nodes map[string]draw.Role, names pages.NodeNames) components.LogLine {
	spans := make([]draw.Span, 0, 8)
	spans = append(spans, draw.T(draw.Faint, draw.Clock(l.At, now)+" "), draw.T(levelRole(*l), pad(levelText(*l), 6)))
	if role, several := nodes[l.Node]; several {
		spans = append(spans, draw.T(role, pad(draw.Head(names.Short(l.Node), 19), 16)))
	}
	spans = append(spans, draw.T(draw.Faint, pad(sources[l.From], 7)))
	text := inventory.Rounded(l.Text)
	switch {
	case l.From == fromEvent && l.Text == l.title: // the kind says it all
		text = strings.TrimPrefix(l.Text, "the ")
	case l.Kind != "" && l.From != fromLog: // the text of a log line contains it
		spans = append(spans, draw.T(draw.Accent, l.Kind+" "))
	}
	if of.times > 1 {
		spans = append(spans, draw.T(draw.Title, show.Times(of.times)+" "))
	}
	spans = append(spans, draw.T(draw.Text, text))
	if l.From == fromEvent { // its text names the pod, ENI and address
		return components.LogLine{Parts: spans, Value: l}
	}
	if l.Pod != "" {
		spans = append(spans, draw.T(draw.Accent, "  "+l.Pod))
	}
	for _, more := range []string{l.ENI, l.IP, inventory.Rounded(l.Rest)} {
		if more != "" {
			spans = append(spans, draw.T(draw.Faint, "  "+more))
		}
	}
	return components.LogLine{Parts: spans, Value: l}
}

func pad(s string, n int) string { return s + draw.Blank(max(n-draw.Width(s), 1)) }

// sortLines sorts by time, then by arrival.
func sortLines(all []*line) {
	slices.SortStableFunc(all, func(a, b *line) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.seq, b.seq)) })
}
