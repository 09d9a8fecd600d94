package causes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// fresh is the maximum age of an error that still counts as current.
const fresh = 10 * time.Minute

// recent returns the time since when errors count as current. Both readings use the same.
func (c *Case) recent() time.Time {
	if c.Earlier != nil {
		return c.Earlier.recent()
	}
	return c.Now.Add(-fresh)
}

// message is a message of a log or an event: its last time, and how often it occurred.
type message struct {
	at    time.Time
	count int
	every time.Duration
	text  string
	level string
	pod   evidence.Pod // the pod that an event is about
}

// failed reports whether the message is an error.
func (s message) failed() bool {
	return strings.HasPrefix(s.level, "err") || s.level == "fatal" || s.level == "panic"
}

// times adds to a text how often it was reported, if that is more than once.
func times(text string, count int) string {
	if count > 1 {
		text = fmt.Sprintf("%s (%d times in 10 minutes)", text, count)
	}
	return text
}

// since returns how often the message occurred after a time.
func (s message) since(t time.Time) int {
	n := 0
	for i := range s.count {
		if s.every == 0 && s.at.After(t) {
			return s.count
		}
		if !s.at.Add(-time.Duration(i) * s.every).After(t) {
			break
		}
		n++
	}
	return n
}

// logSource holds all messages of one source, oldest first, or why it could not be read.
type logSource struct {
	lines     []message
	missing   string
	truncated bool
}

// logSource reads a log or the events. The name of a container follows a slash: log.awsnode/aws-node.
func (c *Case) logSource(id string) *logSource {
	if v, ok := c.logs[id]; ok {
		return v
	}
	v := c.listen(id)
	c.logs[id] = v
	return v
}

func (c *Case) listen(id string) *logSource {
	v := &logSource{}
	logs := func(s evidence.Source[evidence.Log]) {
		if v.missing = s.Missing; s.OK() {
			v.add(&s.Content, c.Now)
		}
	}
	source, container, _ := strings.Cut(id, "/")
	switch source {
	case "log.ipamd":
		if f := c.Settings.LogFile; c.R.LogAWSNode.OK() && (f == "stdout" || f == "stderr") {
			log := c.R.LogAWSNode.Content[containerNode]
			v.add(&log, c.Now)
		} else {
			logs(c.R.LogIPAMD)
		}
	case "intro.summary":
		v.missing = c.R.Summary.Missing
		for _, e := range c.R.Summary.Content.LastErrors {
			v.lines = append(v.lines, message{at: e.At, count: 1, text: strings.Join([]string{e.Operation, e.Cause, e.Message}, " ")})
		}
	case "intro.failures":
		v.missing = c.R.Failures.Missing
		for _, f := range c.R.Failures.Content.Items {
			v.lines = append(v.lines, message{at: f.At, count: 1, text: f.Cause + " " + f.Detail})
		}
	case "log.plugin":
		logs(c.R.LogPlugin)
	case "log.np":
		logs(c.R.LogAgent)
	case "log.kubelet":
		logs(c.R.LogKubelet)
	case "log.awsnode":
		v.missing = c.R.LogAWSNode.Missing
		for _, name := range slices.Sorted(maps.Keys(c.R.LogAWSNode.Content)) {
			if log := c.R.LogAWSNode.Content[name]; container == "" || name == container {
				v.add(&log, c.Now)
			}
		}
	case "k8s.evt":
		v.missing = c.R.Events.Missing
		for _, e := range c.R.Events.Content {
			if c.concerns(e) {
				s := message{at: e.At, count: max(1, e.Count), text: strings.Join([]string{e.Name, e.Reason, e.Action, e.Message}, " "), level: e.Type}
				if s.count > 1 && e.First.Before(e.At) && !e.First.IsZero() {
					s.every = e.At.Sub(e.First) / time.Duration(s.count-1)
				}
				if e.Kind == "Pod" {
					s.pod = evidence.Pod(e.Name)
				}
				v.lines = append(v.lines, s)
			}
		}
	default:
		panic("no log or event source: " + id)
	}
	if !slices.ContainsFunc(v.lines, func(s message) bool { return s.at.IsZero() }) {
		slices.SortStableFunc(v.lines, func(a, b message) int { return a.at.Compare(b.at) })
	}
	return v
}

// add appends the lines of a log. Times without a year get the year of near.
func (v *logSource) add(log *evidence.Log, near time.Time) {
	if log.Previous != nil {
		v.add(log.Previous, near)
	}
	v.truncated = v.truncated || log.Truncated
	for _, l := range log.Lines {
		if l.Text == "" {
			v.lines = append(v.lines, message{at: l.At, count: max(1, l.Count), every: l.Every, text: l.Msg, level: l.Level})
			continue
		}
		for _, p := range reading.ParseLine(l.Text, near) {
			v.lines = append(v.lines, message{at: p.At, count: 1, text: p.Msg, level: p.Level})
		}
	}
}

// concerns reports whether an event is about this node now: about the node, one of its pods, an
// unbound pod, or an object of no node.
func (c *Case) concerns(e evidence.KubeEvent) bool {
	if e.Kind != "Pod" {
		return e.Kind != "Node" && e.Kind != "CNINode" || e.Name == c.own
	}
	pod := evidence.Pod(e.Name)
	if e.Reason == "FailedCreatePodSandBox" && c.ready[pod] {
		return false // it has its sandbox by now
	}
	if on, ok := c.podNode[pod]; ok {
		return on == "" || on == c.own
	}
	return true
}

// matches reports whether a text has all parts of a pattern, in order; "…" separates them.
func matches(text, pattern string) bool {
	for part := range strings.SplitSeq(pattern, "…") {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

func matchesAny(text string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(text, p) })
}

// wayOut are the fixes of what some texts say; without texts, of anything else.
type wayOut struct {
	texts []string // any of them; "…" separates the parts of one
	fixes []int
}

// fitting returns the fixes of the first way that matches a text, none if no way does.
func fitting(text string, ways []wayOut) []int {
	way, _ := find(ways, func(w wayOut) bool { return w.texts == nil || matchesAny(text, w.texts) })
	return way.fixes
}

// pattern describes texts to look for, where, and what voids them.
type pattern struct {
	sources []string // ids, with a container after a slash
	texts   []string // any of them; "…" separates the parts of one
	except  []string // a line with one of these means something else
	cured   []string // a later line with one of these shows that it works again
	since   time.Time
	any     bool // at any age
}

// lastMessage returns the last message that matches, and how many did within the last ten minutes.
func (c *Case) lastMessage(m pattern) (last message, id string, count int) {
	cured := c.lastTime(m.sources, m.cured)
	for _, source := range m.sources {
		var here message
		n := 0
		for _, l := range c.logSource(source).lines {
			switch {
			case l.at.Before(cured) && !l.at.IsZero():
			case matchesAny(l.text, m.texts) && !matchesAny(l.text, m.except) && (m.since.IsZero() || !l.at.Before(m.since)):
				here = l
				n += l.since(c.recent())
			case matchesAny(l.text, m.cured):
				here, n = message{}, 0
			}
		}
		if count += n; here.text != "" && (last.text == "" || here.at.After(last.at)) {
			last, id = here, source
		}
	}
	return last, id, count
}

// lastTime returns when one of the texts was last message, zero if never.
func (c *Case) lastTime(sources, texts []string) (at time.Time) {
	for _, source := range sources {
		for _, l := range c.logSource(source).lines {
			if l.at.After(at) && matchesAny(l.text, texts) {
				at = l.at
			}
		}
	}
	return at
}

// equivalent are sources that contain everything that the first source of a pattern does.
var equivalent = []string{"intro.summary", "log.kubelet"}

// active states that a message is current: within the last ten minutes, and after the last
// success. The silence of a truncated log proves nothing.
func (c *Case) active(m pattern) Fact {
	f := Fact{Source: base(m.sources[0]), Path: quote(m.texts[0]), Expected: "not logged", At: c.Now}
	last, id, count := c.lastMessage(m)
	switch {
	case last.text != "" && (m.any || count > 0 || last.at.IsZero()):
		f.State, f.Source, f.At = Yes, base(id), last.at
		f.Value = times(clip(last.text), count)
		return f
	case last.text != "":
		f.State, f.At, f.Value = No, last.at, "last logged long ago: "+clip(last.text)
		return f
	}
	for i, source := range m.sources {
		v := c.logSource(source)
		switch {
		case i > 0 && !slices.Contains(equivalent, source): // its silence proves nothing
		case v.missing != "":
			f.Source, f.Reason = base(source), or(f.Reason, v.missing)
		case v.truncated:
			f.Source, f.Reason = base(source), or(f.Reason, "the log was cut")
		default:
			f.State, f.Source, f.Value, f.Reason = No, base(source), "not logged", ""
			return f
		}
	}
	return f
}

func base(id string) string {
	id, _, _ = strings.Cut(id, "/")
	return id
}

// quoted returns what a fact about a text or a counter found, with the name of a counter.
func quoted(f Fact) string {
	if f.Source == "metrics" {
		return f.Path + " " + f.Value
	}
	return f.Value
}

func quote(pattern string) string { return `"` + pattern + `"` }

// clip shortens a text for display; the log has all of it.
func clip(text string) string {
	const most = 240
	if text = strings.Join(strings.Fields(text), " "); len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// series states that a counter rose between the two readings. A single reading says nothing about
// now.
func (c *Case) series(name string, labels ...string) Fact {
	f := Fact{Source: "metrics", Path: name + labelText(labels), Expected: "not rising", At: c.Now}
	now, ok := c.sample(name, labels)
	switch {
	case !ok:
		f.Reason = c.R.Metrics.Missing
		return f
	case now == 0:
		f.State, f.Value = No, "0"
		return f
	case c.Earlier == nil:
		f.Value, f.Reason = fmt.Sprint(now), "one reading only"
		return f
	}
	before, ok := c.Earlier.sample(name, labels)
	if !ok {
		f.Reason = c.Earlier.R.Metrics.Missing
		return f
	}
	if started := c.R.Metrics.Content.ProcessStart; started.After(c.Earlier.Now) {
		before = 0 // a new process counts from zero
	}
	f.State, f.Value = stateOf(now > before), fmt.Sprintf("%g, then %g", before, now)
	return f
}

func labelText(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return "{" + strings.Join(labels, ",") + "}"
}

// sample adds up the series of a name that have all labels (name="value"). A missing series has
// not counted yet.
func (c *Case) sample(name string, labels []string) (sum float64, ok bool) {
	if !c.R.Metrics.OK() {
		return 0, false
	}
	for series, value := range c.R.Metrics.Content.Samples {
		rest, found := strings.CutPrefix(series, name)
		if !found || rest != "" && rest[0] != '{' {
			continue
		}
		if !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(rest, l) }) {
			sum += value
		}
	}
	return sum, true
}

// pluginSays are the sources in which the plugin reports what failed.
var pluginSays = []string{"log.plugin", "k8s.evt", "log.kubelet"}

// daemonSays are the sources in which a daemon reports the errors of its calls.
var daemonSays = []string{"log.ipamd", "intro.summary", "intro.failures"}

// ec2Fails states that EC2 currently answers with one of these codes.
func (c *Case) ec2Fails(codes ...string) Fact {
	return c.counted(c.active(pattern{sources: daemonSays, texts: codes, cured: grown}), codes)
}

// counted returns what logs say about some EC2 codes, or the counters if logs do not say it.
func (c *Case) counted(logged Fact, codes []string) Fact {
	var counters []Fact
	for _, code := range codes {
		counters = append(counters, c.series("awscni_aws_api_error_count", `error="`+code+`"`))
	}
	return orElse(logged, Either(counters...))
}

// within returns the time between the first and the last matching line of the last ten minutes.
func (c *Case) within(m pattern) time.Duration {
	var first, last time.Time
	for _, source := range m.sources {
		for _, l := range c.logSource(source).lines {
			n := l.since(c.recent())
			if n == 0 || !matchesAny(l.text, m.texts) || matchesAny(l.text, m.except) {
				continue
			}
			if at := l.at.Add(-time.Duration(n-1) * l.every); first.IsZero() || at.Before(first) {
				first = at
			}
			if l.at.After(last) {
				last = l.at
			}
		}
	}
	return last.Sub(first)
}

// failures states that our daemon refused requests within ten minutes for one of these causes and
// has logged no success since, or that it would refuse one now.
func (c *Case) failures(cured []string, codes ...cause.Code) Fact {
	if c.R.Failures.Missing == evidence.MissingAbsent {
		return onlyIfTrue(c.Known("intro.failures", "failed ADDs", "none", "none: the daemon is upstream's", false))
	}
	for _, b := range c.R.Plan.Content.Blocked {
		if slices.Contains(codes, cause.Code(b.Cause)) {
			return c.Known("intro.plan", "blocked cards", "none", clip(b.Cause+": "+b.Message), true)
		}
	}
	over := c.lastTime([]string{"log.ipamd"}, cured)
	return On(c, c.R.Failures, "intro.failures", "failed ADDs", "none", func(doc introspect.NodeFailures) (any, State) {
		for _, item := range doc.Items {
			if slices.Contains(codes, cause.Code(item.Cause)) && item.At.After(c.recent()) && item.At.After(over) {
				return clip(item.Cause + ": " + item.Detail), Yes
			}
		}
		return "none", No
	})
}
