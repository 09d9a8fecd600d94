package causes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

// observation is a difference between what is and what should be, from the evidence alone. Causes
// explain observations; one that no cause explains is a finding of its own.
type observation struct {
	kind       *catalogue.Entry
	subject    string // such as "pod default/web-1" or "eni-0a…"; unique within its kind and node
	is, should string
	severity   catalogue.Severity // by its effect
	pods       []string           // that it hits
	since      time.Time          // zero if unknown
	source     string             // id, of what was read
	names      map[string]string  // for commands, by placeholder: ENI, LINK, POD
	fixes      []int              // those that apply of the cause that shows it or of its kind, best first, from 1; all if empty
	said       string             // what another program says of it: explain knows its meaning and the next step
	wide       bool               // it is about an object of the cluster, whatever its kind
}

// String says what is, as one line of evidence.
func (o observation) String() string { return strings.TrimPrefix(o.subject+": "+o.is, ": ") }

func (o observation) about() string { return o.subject }

// observed is the observation of what a fact states, none if that does not hold.
func (f Fact) observed(subject string, severity catalogue.Severity) []observation {
	if f.State != Yes {
		return nil
	}
	return []observation{{subject: subject, is: f.Value, should: f.Expected, severity: severity, source: f.Source}}
}

// observer finds the observations of one kind on a node. It need not set the kind, nor the source if that is the first required one.
type observer struct {
	kind string // code
	find func(c *Case) []observation
	once bool // holds for a moment or compares readings: need not be in both
	info bool // a finding also if it is only worth knowing
	wide bool // about an object of the cluster, not of the node
}

// observers are the three families of kinds.
var observers = slices.Concat(viewObservers, awsObservers, valueObservers, kubeObservers, failureObservers)

// kindEntries are the entries of the observers' kinds, by code.
var kindEntries = sync.OnceValue(func() map[string]*catalogue.Entry {
	out := map[string]*catalogue.Entry{}
	for e := range catalogue.All() {
		if e.Group() == catalogue.GroupObserved {
			out[e.Code] = e
		}
	}
	return out
})

// seen returns the observations of one kind. With two readings, they must be in both.
func (c *Case) seen(code string) []observation {
	if found, ok := c.observed[code]; ok {
		return found
	}
	at := slices.IndexFunc(observers, func(o observer) bool { return o.kind == code })
	if at < 0 || kindEntries()[code] == nil {
		panic("no kind of observation " + code)
	}
	found := observers[at].find(c)
	if c.Earlier != nil && !observers[at].once && len(found) > 0 && c.Earlier.inconclusive(code) == "" {
		before := c.Earlier.seen(code)
		found = slices.DeleteFunc(found, func(o observation) bool {
			return !slices.ContainsFunc(before, func(b observation) bool { return b.subject == o.subject })
		})
	}
	for i := range found {
		found[i].kind = kindEntries()[code]
		found[i].source = cmp.Or(found[i].source, kindEntries()[code].Required[0])
	}
	c.observed[code] = found
	return found
}

// inconclusive returns the source whose absence keeps a kind from being looked for, empty if all
// were read.
func (c *Case) inconclusive(code string) string { return c.unreadOf(kindEntries()[code].Required) }

// unreadOf returns the first source that was not read, empty if all were.
func (c *Case) unreadOf(sources []string) string {
	at := slices.IndexFunc(sources, func(id string) bool { return c.missing[id] != "" })
	if at < 0 {
		return ""
	}
	return sources[at]
}

// observes states that there are observations of one of these kinds. It is unread if none was
// found and a source that shows one of them is missing.
func (c *Case) observes(codes ...string) Fact {
	return c.observesThose(func(observation) bool { return true }, codes...)
}

// observesThose is observes for some observations.
func (c *Case) observesThose(which func(observation) bool, codes ...string) Fact {
	first := kindEntries()[codes[0]]
	f := Fact{Source: first.Required[0], Path: first.Title, Expected: "no", At: c.Now}
	var texts []string
	open := ""
	for _, code := range codes {
		for _, o := range c.seen(code) {
			if !which(o) {
				continue
			}
			if len(texts) == 0 {
				f.Source, f.Path, f.Expected = o.source, o.kind.Title, o.should
			}
			texts = append(texts, o.String())
		}
		if open == "" {
			open = c.unreadOf(slices.Concat(kindEntries()[code].Required, kindEntries()[code].Supporting))
		}
	}
	switch {
	case len(texts) > 0:
		f.State, f.Value = Yes, Some(texts)
	case open != "":
		f.Source, f.Reason = open, c.missing[open]
	default:
		f.State, f.Value = No, "no"
	}
	return f
}

// hit lists the pods of the kinds' observations.
func (c *Case) hit(codes ...string) (pods []string) {
	for _, code := range codes {
		for _, o := range c.seen(code) {
			pods = union(pods, o.pods)
		}
	}
	return pods
}

// worst returns the highest severity of the kinds' observations.
func (c *Case) worst(codes ...string) catalogue.Severity {
	worst := catalogue.Info
	for _, code := range codes {
		for _, o := range c.seen(code) {
			worst = max(worst, o.severity)
		}
	}
	return worst
}

// bySeverity returns how bad it is that a problem hits these pods: those that run are cut off.
func bySeverity(pods []string, otherwise catalogue.Severity) catalogue.Severity {
	if len(pods) > 0 {
		return catalogue.Critical
	}
	return otherwise
}

// neverStarted are the kinds of pods that do not start. For want of CPU or a volume that is no fault of the network, but it
// is the answer to who asks about such a pod.
var neverStarted = []string{"obs/pod-not-starting", "obs/pod-not-network", "obs/pod-unschedulable"}

// unexplained returns the observations above info of a node that none of its findings explains,
// as findings, a kind each.
func (d *diagnosis) unexplained(c *Case, here []found) (out []found) {
	covered := func(o observation) bool {
		return slices.ContainsFunc(here, func(f found) bool {
			return f.confidence >= catalogue.Probable && (f.explains(o.kind.Code, o.subject) || f.saidIn(o))
		})
	}
	for _, o := range observers {
		entry := kindEntries()[o.kind]
		if d.Wants != nil && !d.Wants(o.kind) || entry.Ceiling.Of(d.mode) == catalogue.None {
			continue
		}
		if o.kind != kindNoVPCCNI && c.noVPCCNI() {
			d.kinds[o.kind] = max(d.kinds[o.kind], kindNotRun)
			continue
		}
		id := c.inconclusive(o.kind)
		all := c.seen(o.kind)
		d.checked(o.kind, id == "", len(all) > 0, c)
		for _, o := range all {
			d.note(o, c, here)
		}
		worth := o.info
		left := slices.DeleteFunc(slices.Clone(all), func(o observation) bool { return o.severity == catalogue.Info && !worth || covered(o) })
		if len(left) == 0 {
			continue
		}
		for i := range left {
			if d.asked != "" && slices.Contains(neverStarted, o.kind) && slices.Contains(left[i].pods, string(d.asked)) {
				left[i].severity = max(left[i].severity, catalogue.Error)
			}
		}
		cd := byItself(entry, left)
		cd.Scope.Cluster = o.wide || !slices.ContainsFunc(left, func(o observation) bool { return !o.wide })
		f := d.finding(entry, cd, entry.Ceiling.Of(d.mode), c)
		if o.wide {
			f.Scope.Pod = onlyPod(left[0].pods)
			if len(left) > 1 {
				f.Scope.Pod = ""
			}
		}
		out = append(out, f)
	}
	// A pod that does not start and what is said about it are one problem.
	return slices.DeleteFunc(slices.Clone(out), func(f found) bool {
		return slices.ContainsFunc(out, func(other found) bool {
			return !slices.ContainsFunc(c.seen(f.Code), func(o observation) bool { return !other.explains(f.Code, o.subject) }) &&
				other.severity >= f.severity
		})
	})
}

// explains reports whether a finding explains an observation of a kind.
func (f *found) explains(code, subject string) bool {
	if code == "obs/event" && strings.Contains(subject, notCreated) && f.Code != "boot/webhook" &&
		!(f.Code == "boot/daemon-missing" && strings.Contains(subject, "/aws-node")) {
		return false // it has nothing to do with the node
	}
	return f.entry.ObservesOf(code, subject) && !(f.mild && catalogue.Stops(code))
}

// saidIn reports whether a message that is observed says in its own words what was found.
func (f *found) saidIn(o observation) bool {
	if o.said == "" || !slices.Contains(messages, o.kind.Code) {
		return false
	}
	return slices.ContainsFunc(catalogue.Explain(o.said), func(c catalogue.Candidate) bool {
		return c.How == catalogue.Whole && slices.Contains(c.Causes(), f.Code)
	})
}

// messages are the kinds of observations that may lie in the past.
var messages = []string{"obs/event", "obs/log-error", "obs/ec2-error"}

// weigh gives findings the severity of what they explain: that of the effect.
func weigh(c *Case, here []found) {
	for i := range here {
		f := &here[i]
		if f.confidence < catalogue.Probable || f.severity == catalogue.Info {
			continue
		}
		for _, code := range f.entry.Observes() {
			if kindEntries()[code] != nil && !slices.Contains(messages, code) {
				for _, o := range c.seen(code) {
					if f.explains(code, o.subject) {
						f.severity = max(f.severity, o.severity)
					}
				}
			}
		}
		if catalogue.StopsGrowth(f.Code) && c.stillServes() { // pods fail next, not now
			f.severity = min(f.severity, catalogue.Warning)
		}
	}
}

// stillServes reports whether new pods get addresses: some are free, the daemon gives them out, and nothing waits for one.
func (c *Case) stillServes() bool {
	return c.dry().State == No && c.failing().State != Yes && c.unsettled().State != Yes &&
		c.worst("obs/add-waiting", "obs/add-failing", "obs/daemon-not-ready") == catalogue.Info
}

// byItself is the finding about observations that no cause explains.
func byItself(entry *catalogue.Entry, all []observation) Result {
	slices.SortStableFunc(all, func(a, b observation) int { return cmp.Compare(b.severity, a.severity) })
	var texts, pods []string
	cd := Result{names: all[0].names, fixes: all[0].fixes}
	for _, o := range all {
		texts, pods = append(texts, o.String()), union(pods, o.pods)
		cd.Decisive = append(cd.Decisive, Fact{
			State: Yes, Source: o.source, Path: entry.Title, Value: o.String(), Expected: o.should, At: o.since,
		})
	}
	cd.Summary = entry.Title + ": " + Some(texts)
	if len(pods) > 0 && !strings.Contains(cd.Summary, pods[0]) {
		cd.Summary += fmt.Sprintf("; pods: %s", Some(pods))
	}
	for _, o := range all {
		if meaning, fixes := meaning(o.said); len(fixes) > 0 && o.severity == all[0].severity {
			cd.Summary, cd.first = strings.TrimSuffix(cd.Summary, ".")+". "+meaning, fixes
			cd.names = named(o.names, o.said)
			break
		}
	}
	return cd.As(all[0].severity)
}

// meaning returns what a sentence of another program means and what to do about it: the fix of the sentence,
// or else what to look at next. It returns nothing for a sentence that is not known word by word.
func meaning(said string) (string, []catalogue.Fix) {
	if said == "" {
		return "", nil
	}
	for _, m := range catalogue.Explain(said) {
		if m.Normal() || m.How != catalogue.Whole {
			continue
		}
		if fix, ok := m.Fix(); ok && m.Symptom == nil && m.Signature.Fix != "" { // which the text of a cause calls for
			return m.Meaning(), []catalogue.Fix{fix}
		}
		return m.Meaning(), step(m.Symptom, m.Check())
	}
	if s, ok := catalogue.Foreign(said); ok {
		return s.Meaning, step(s, s.Check)
	}
	return "", nil
}

// named adds to names those that a text has for other words.
func named(names map[string]string, text string) map[string]string {
	out := catalogue.NamesIn(text)
	for word, name := range names {
		if name != "" {
			out[word] = name
		}
	}
	return out
}

// step returns the fixes of a sentence, or else the check.
func step(s *catalogue.Symptom, check catalogue.Check) []catalogue.Fix {
	if s != nil && len(s.Fixes) > 0 {
		return s.Fixes
	}
	return []catalogue.Fix{{Text: check.Text, Command: check.Command}}
}

// note records an observation for the report, with what explains it.
func (d *diagnosis) note(o observation, c *Case, here []found) {
	doc := document.Observation{
		Kind: o.kind.Code, Node: c.Name, Subject: o.subject, Is: o.is, Should: o.should, Severity: o.severity.String(),
		Pods: union([]string{}, o.pods), Source: o.source, ExplainedBy: []string{},
	}
	if !o.since.IsZero() {
		doc.Since = &o.since
	}
	for _, f := range here {
		if f.confidence >= catalogue.Probable && (f.explains(o.kind.Code, o.subject) || o.severity > catalogue.Info && f.saidIn(o)) {
			doc.ExplainedBy = union(doc.ExplainedBy, []string{f.Code})
		}
	}
	d.observations = append(d.observations, doc)
}

// checked counts a kind of observation that was looked for on a node, or could not be.
func (d *diagnosis) checked(code string, read, found bool, c *Case) {
	switch {
	case found:
		d.kinds[code] = kindFound
	case read:
		d.kinds[code] = max(d.kinds[code], kindPassed)
	case evidence.Untried(c.missing[c.inconclusive(code)]):
		d.kinds[code] = max(d.kinds[code], kindNotRun)
	default:
		d.kinds[code] = max(d.kinds[code], kindInconclusive)
	}
}

// How a kind of observation fared over all nodes; the highest counts.
type kindResult int

const (
	kindNotRun kindResult = iota
	kindPassed
	kindInconclusive
	kindFound
)

// shown returns the rule of a cause that its observations show by themselves. effect says what
// they do to pods.
func shown(effect string, codes ...string) func(*Case) []Result {
	return func(c *Case) []Result {
		harmful := func(o observation) bool { return o.severity > catalogue.Info }
		cd := Result{Decisive: []Fact{c.observesThose(harmful, codes...)}}
		cd.Summary = effect + ": " + cd.Decisive[0].Value
		worst := catalogue.Info
		for _, code := range codes {
			for _, o := range c.seen(code) {
				if harmful(o) && (cd.names == nil || o.severity > worst) {
					cd.names, cd.fixes, worst = o.names, o.fixes, o.severity
				}
			}
		}
		if pods := c.hit(codes...); len(pods) > 0 {
			cd.Summary = fmt.Sprintf("%s; %s", cd.Summary, podsText(pods))
			cd.pods = pods
		}
		return []Result{cd.As(c.worst(codes...))}
	}
}

// podsText names the pods that a problem hits.
func podsText(pods []string) string {
	if len(pods) == 1 {
		return "1 pod: " + pods[0]
	}
	names, _, _ := strings.Cut(Some(pods), " (") // without their number
	return fmt.Sprintf("%d pods: %s", len(pods), names)
}

func onlyPod(pods []string) string {
	if len(pods) == 1 && strings.Contains(pods[0], "/") {
		return pods[0]
	}
	return ""
}
