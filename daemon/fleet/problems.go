package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/doctor/causes/catalogue"
)

// Problem codes that are neither cause codes nor reasons.
const (
	CodeNoFreeAddress  = "no-free-address"
	CodeMaxPodsOver    = "max-pods-over"
	CodeMaxPodsUnder   = "max-pods-under"
	CodeMaxPodsAtRisk  = "max-pods-at-risk"
	CodeConfig         = "config"
	CodeStatedLimit    = "stated-limit"
	CodeUnplaced       = "unplaced-assignment"
	CodeTerminating    = "terminating"
	CodeCordoned       = "cordoned"
	CodePartlyReadable = "partly-read"
	CodeMetricsOnly    = "metrics-only"
	CodeNoDaemon       = "no-daemon"
)

// Errors are past events. An error counts as a warning while its cause may persist; after
// that it is history and does not affect the node's state.
const (
	// freshError applies when nothing else points to trouble. A back-off caused by an error is
	// a separate problem for as long as it lasts.
	freshError = 30 * time.Second
	// freshWhileWaiting applies while ADDs wait: earlier errors may explain it.
	freshWhileWaiting = 5 * time.Minute
)

// Problems lists what is wrong with a node, worst first.
func Problems(n document.NodeIPAM) []document.Problem {
	ps := problems{node: n.Metadata.Name}
	ps.reading(n)
	if n.Summary == nil {
		return ps.list
	}
	var now time.Time
	if n.SampledAt != nil {
		now = *n.SampledAt
	}
	ps.pool(*n.Summary, now)
	ps.branches(*n.Summary, now)
	ps.clocks(*n.Summary, now)
	ps.errors(*n.Summary, now)
	ps.settings(*n.Summary, now)
	slices.SortStableFunc(ps.list, func(a, b document.Problem) int {
		return cmp.Or(a.Severity.Rank()-b.Severity.Rank(), ByCause(a.Code, b.Code))
	})
	return ps.list
}

// ByCause orders codes of one severity: ADDs that wait come last, as a consequence of the others.
func ByCause(a, b string) int {
	dry, _ := catalogue.Reported(string(cause.PoolDry))
	last := func(code string) int {
		if code == string(cause.PoolDry) || code == dry.Code {
			return 1
		}
		return 0
	}
	return last(a) - last(b)
}

// Judged returns a problem with the doctor's code for it. Pods that fail for a cause that the doctor
// calls critical are critical here too.
func Judged(p document.Problem) document.Problem {
	p.Effect = p.Severity
	if e, ok := catalogue.Reported(p.Code); ok {
		p.Finding = e.Code
		if p.Severity == document.SeverityError && e.Severity == catalogue.Critical {
			p.Effect = document.SeverityCritical
		}
	}
	return p
}

// waits reports whether ADDs wait for an address.
func waits(s introspect.Summary) bool { return s.WaitingADDs != nil && *s.WaitingADDs > 0 }

// waitsLong reports whether ADDs wait longer than it takes to attach an interface.
func waitsLong(s introspect.Summary, now time.Time) bool {
	return waits(s) && (s.WaitingSince == nil || now.Sub(*s.WaitingSince) >= catalogue.SandboxTime)
}

type problems struct {
	node string
	list []document.Problem
}

// add appends a problem and returns it so that the caller can set its times.
func (ps *problems) add(severity document.Severity, code, format string, args ...any) *document.Problem {
	ps.list = append(ps.list, Judged(document.Problem{Node: ps.node, Severity: severity, Code: code, Message: fmt.Sprintf(format, args...)}))
	return &ps.list[len(ps.list)-1]
}

// reading reports why a node could not be read.
func (ps *problems) reading(n document.NodeIPAM) {
	code, message := string(n.State), ""
	if n.Error != nil {
		code, message = string(n.Error.Reason), ": "+n.Error.Message
	}
	switch {
	case Excused(n):
		ps.add(document.SeverityInfo, CodeNoDaemon, WordNoDaemon)
	case n.State == document.StateStale:
		ps.add(document.SeverityError, code, "stale%s", message)
	case n.State == document.StateMetricsOnly:
		ps.add(document.SeverityWarning, CodeMetricsOnly, "only its metrics could be read%s", message)
	case n.Summary != nil && n.Error != nil:
		ps.add(document.SeverityWarning, CodePartlyReadable, "partly read%s", message)
	case n.Summary != nil, n.Error == nil && n.State == document.StateAPIOnly:
		// Everything was read, or nothing was requested yet.
	default:
		ps.add(document.SeverityError, code, "%s%s", ReadingWord(n.State), message)
	}
}

func (ps *problems) pool(s introspect.Summary, now time.Time) {
	if waits(s) {
		severity := document.SeverityInfo // an interface is being attached
		if waitsLong(s, now) {
			severity = document.SeverityError
		}
		waiting := human.Plural(*s.WaitingADDs, "ADD waits", "ADDs wait")
		ps.add(severity, string(cause.PoolDry), "%s for an address", waiting).Since = s.WaitingSince
	}
	for _, c := range s.Cards {
		if c.Free > 0 || c.Total == 0 {
			continue
		}
		full := !canGrow(c)
		switch {
		case full && c.Cooling != nil && *c.Cooling > 0:
			ps.add(document.SeverityWarning, string(cause.AddressesCooling), "no free address, %d cooling, limit reached%s", *c.Cooling,
				onCard(s, c))
		case full:
			ps.add(document.SeverityWarning, string(cause.PoolFull), "all %d addresses in use, the node's limit%s", c.Total, onCard(s, c))
		default:
			ps.add(document.SeverityWarning, CodeNoFreeAddress, "none of %d addresses free%s", c.Total, onCard(s, c))
		}
	}
	if s.Unplaced != nil && *s.Unplaced > 0 {
		ps.add(document.SeverityWarning, CodeUnplaced, "%s on no known ENI", human.Plural(*s.Unplaced, "pod address is", "pod addresses are"))
	}
}

// branches reports pods that wait for a branch ENI on a node with a trunk. Without a trunk something else is wrong.
func (ps *problems) branches(s introspect.Summary, now time.Time) {
	t := s.Trunk
	if t == nil || t.ENIID == "" || t.BranchWaiting == nil || *t.BranchWaiting == 0 {
		return
	}
	severity := document.SeverityInfo // the resource controller is about to give it one
	if t.WaitingSince != nil && now.Sub(*t.WaitingSince) > catalogue.BranchTime {
		severity = document.SeverityError
	}
	pods := human.Plural(*t.BranchWaiting, "pod waits", "pods wait")
	ps.add(severity, string(cause.BranchPending), "%s for a branch ENI", pods).Since = t.WaitingSince
}

// onCard names the card if the node has several.
func onCard(s introspect.Summary, c introspect.CardSummary) string {
	if len(s.Cards) < 2 {
		return ""
	}
	return " on card " + strconv.Itoa(c.Card)
}

func (ps *problems) clocks(s introspect.Summary, now time.Time) {
	for _, b := range s.Backoffs {
		if !b.Until.After(now) {
			continue
		}
		severity := document.SeverityWarning
		if waits(s) && b.Scope != "release" {
			severity = document.SeverityError
		}
		p := ps.add(severity, b.Cause, "back-off on %s%s", b.Object(), titled(b.Cause))
		if p.Until = &b.Until; b.Cause == string(cause.SubnetExhausted) && b.ID != "" && hasRoom(s, b.ID) {
			p.Finding, p.Effect = codeRecovered, severity
		}
	}
	if s.Terminating != nil && *s.Terminating {
		ps.add(document.SeverityInfo, CodeTerminating, "the daemon is shutting down")
	}
	if s.Cordoned != nil && *s.Cordoned {
		ps.add(document.SeverityInfo, CodeCordoned, "cordoned")
	}
}

// codeRecovered is the doctor's code for a pause after which the subnet has addresses again.
const codeRecovered = "ip/alloc-backoff"

// hasRoom reports whether EC2 counted free addresses in a subnet, "" for any.
func hasRoom(s introspect.Summary, id string) bool {
	return slices.ContainsFunc(s.Subnets, func(n introspect.Subnet) bool {
		return (id == "" || n.ID == id) && n.Available != nil && *n.Available > 0
	})
}

func titled(code string) string {
	if title := cause.Code(code).Title(); title != "" {
		return ": " + title
	}
	return ""
}

func (ps *problems) errors(s introspect.Summary, now time.Time) {
	for _, e := range s.LastErrors {
		severity := document.SeverityWarning
		switch {
		case isOver(e, s, now):
			severity = document.SeverityInfo
		case waitsLong(s, now) && stopsGrowth(e, s):
			severity = document.SeverityError // as a back-off, which ends when the next call begins
		}
		times := ""
		if e.Count > 1 {
			times = fmt.Sprintf(" (%d times)", e.Count)
		}
		p := ps.add(severity, e.Cause, "%s: %s%s", e.Operation, e.Message, times)
		if !e.At.IsZero() {
			p.At = &e.At
		}
	}
}

// stopsGrowth reports whether an error is why a pool that could grow did not.
func stopsGrowth(e introspect.LastError, s introspect.Summary) bool {
	if e.Operation == "release" || e.Operation == "detach" || len(s.Cards) > 0 && !slices.ContainsFunc(s.Cards, canGrow) {
		return false
	}
	switch cause.Code(e.Cause) {
	case cause.SubnetExhausted:
		return !hasRoom(s, "")
	case cause.EC2Throttled, cause.EC2Unauthorized, cause.EC2Error, cause.ENIAttachLimit, cause.ENILinkMissing, cause.SubnetFragmented,
		cause.NoUsableSubnet:
		return true
	}
	return false
}

// canGrow reports whether a card's pool is below its limit.
func canGrow(c introspect.CardSummary) bool {
	return c.AddressLimit == nil || c.Total < *c.AddressLimit
}

// isOver reports whether an error is history: too old, or about a shortage of addresses that
// has ended.
func isOver(e introspect.LastError, s introspect.Summary, now time.Time) bool {
	age := now.Sub(e.At).Abs() // a node may read its clock a moment after it sets Date
	switch {
	case waits(s):
		return age > freshWhileWaiting
	case age > freshError:
		return true
	}
	switch cause.Code(e.Cause) {
	case cause.PoolDry, cause.PoolFull, cause.AddressesCooling:
		return slices.ContainsFunc(s.Cards, func(c introspect.CardSummary) bool { return c.Free > 0 })
	}
	return false
}

func (ps *problems) settings(s introspect.Summary, now time.Time) {
	for _, c := range s.Cards {
		ps.stated(c.StatedENILimit, now, "network interfaces", onCard(s, c))
	}
	if len(s.Cards) > 0 { // the same on every card
		ps.stated(s.Cards[0].StatedSlots, now, "addresses or prefixes per network interface", "")
	}
	if m := s.MaxPods; m != nil && m.Value != nil && m.TotalCapacity != nil {
		switch m.Verdict {
		case introspect.MaxPodsOver:
			ps.add(document.SeverityWarning, CodeMaxPodsOver, "max-pods is %d, but there are addresses for only %d pods", *m.Value, *m.TotalCapacity)
		case introspect.MaxPodsUnder:
			ps.add(document.SeverityInfo, CodeMaxPodsUnder, "max-pods %d leaves %d of %d possible pods unused", *m.Value, *m.TotalCapacity-*m.Value,
				*m.TotalCapacity)
		}
		if m.AtRisk > 0 && m.Verdict != introspect.MaxPodsOver { // which already covers it
			ps.add(document.SeverityInfo, CodeMaxPodsAtRisk, "max-pods %d counts branch ENIs: %s may get no address", *m.Value,
				human.Plural(m.AtRisk, "pod without one", "pods without one"))
		}
	}
	if s.ConfigProblems != nil && *s.ConfigProblems > 0 {
		ps.add(document.SeverityWarning, CodeConfig, "%s: see node config",
			human.Plural(*s.ConfigProblems, "setting has a problem", "settings have problems"))
	}
}

// stated reports a limit that EC2 stated below that of the instance type.
func (ps *problems) stated(l *introspect.StatedLimit, now time.Time, what, where string) {
	if l == nil {
		return
	}
	p := ps.add(document.SeverityWarning, CodeStatedLimit, "EC2 refuses more than %d %s%s, the instance type has %d", l.Limit, what,
		where, l.OfType)
	if p.Since = l.Since; l.RetryAt != nil && l.RetryAt.After(now) {
		p.Until = l.RetryAt
	}
}

// Words for nodes that have neither a summary nor a problem.
const (
	WordUnread   = "not read yet"
	WordNoDaemon = "no daemon needed" // on Fargate and Windows, for example
)

// ReasonText says in a few words why a node could not be read.
func ReasonText(r introspect.Reason) string {
	switch r {
	case introspect.ReasonNotHTTP:
		return "not HTTP"
	case introspect.ReasonNotJSON:
		return "not JSON"
	}
	return strings.ReplaceAll(string(r), "-", " ")
}

// Word is the node's state in one or two words, for the STATUS column: its worst problem, else
// ok. Of the info problems only cordoned and terminating count.
func Word(n document.NodeIPAM) string { return WordOf(n, Problems(n)) }

// Codes for nodes without a problem and for nodes not read yet.
const (
	CodeOK     = "ok"
	CodeUnread = "unread"
)

// StatusCode is the node's state in one word for programs: the read state if the read failed,
// else the code of the worst problem as in Word, else ok.
func StatusCode(n document.NodeIPAM, problems []document.Problem) string {
	switch {
	case Excused(n):
		return CodeNoDaemon
	case n.Summary == nil && len(problems) == 0:
		return CodeUnread
	case n.Summary == nil, n.State == document.StateStale, n.State == document.StateMetricsOnly:
		return string(n.State)
	case waits(*n.Summary):
		return string(cause.PoolDry)
	}
	for _, p := range problems {
		if p.Severity != document.SeverityInfo || p.Code == CodeCordoned || p.Code == CodeTerminating {
			return p.Code
		}
	}
	return CodeOK
}

// ReadingWord describes the read state for people.
func ReadingWord(s document.State) string {
	if s == document.StateNoDaemon {
		return "no daemon"
	}
	return string(s)
}

// WordOf is Word for problems already computed.
func WordOf(n document.NodeIPAM, problems []document.Problem) string {
	switch {
	case Excused(n):
		return WordNoDaemon
	case n.State == document.StateStale && n.Error != nil:
		return "stale: " + string(n.Error.Reason)
	case n.State == document.StateMetricsOnly && n.Error != nil:
		return CodeMetricsOnly + ": " + string(n.Error.Reason)
	case n.Summary == nil && len(problems) == 0:
		return WordUnread
	case n.Summary != nil && waits(*n.Summary):
		return strconv.Itoa(*n.Summary.WaitingADDs) + " waiting"
	}
	for _, p := range problems {
		switch {
		case n.Summary == nil && n.Error != nil && string(n.Error.Reason) != string(n.State):
			return ReadingWord(n.State) + ": " + string(n.Error.Reason)
		case n.Summary == nil:
			return ReadingWord(n.State)
		case p.Severity == document.SeverityInfo && p.Code != CodeCordoned && p.Code != CodeTerminating:
			continue
		default:
			return p.Code
		}
	}
	return CodeOK
}
