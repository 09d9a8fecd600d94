package causes

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/promtext"
	"cnictl/daemon/lazy"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

// failureObservers group reported failures: of Kubernetes, logs, EC2, the daemon itself.
var failureObservers = []observer{
	{kind: "obs/pod-not-starting", find: podNotStarting},
	{kind: "obs/pod-not-network", find: podNotNetwork, info: true},
	{kind: "obs/pod-not-ending", find: podNotEnding},
	{kind: "obs/pod-unschedulable", find: podUnschedulable, wide: true, info: true},
	{kind: "obs/event", find: eventsRepeat, once: true},
	{kind: "obs/log-error", find: errorsRepeat, once: true},
	{kind: "obs/ec2-error", find: ec2Errors, once: true},
	{kind: "obs/add-failing", find: addsFail, once: true},
	{kind: "obs/add-waiting", find: addsWait},
	{kind: "obs/daemon-back-off", find: backsOff},
	{kind: "obs/probe-failing", find: probesFail},
}

// unstarted returns the pods of the node that have been Pending for longer than most, with what kubelet says.
func unstarted(c *Case, network bool) (out []observation) {
	for _, p := range c.Here() {
		without := p.Reason == "" || p.Reason == "ContainerCreating" || p.Reason == "PodInitializing"
		if p.Phase != "Pending" || p.HostNetwork || c.Now.Sub(p.CreatedAt) <= attachTime {
			continue
		}
		o := ofPod(p.Pod, "Pending", "running", catalogue.Error)
		o.since, o.said = p.CreatedAt, c.lastWarning(p.Pod)
		if !p.CreatedAt.IsZero() {
			o.is += " for " + age(c.Now.Sub(p.CreatedAt))
		}
		elsewhere := true
		switch {
		case !without || len(p.IPs) > 0: // it has its network
			o.said = strings.TrimSpace(p.Reason + " " + p.Message + " " + o.said)
			o.severity = catalogue.Info
		case c.waitsElsewhere(p):
			o.severity = catalogue.Warning
		default:
			elsewhere = false
			o.is += " without an address"
			if c.branchPod(p) && p.Annotations[limitPodENI] == "" && c.Now.Sub(p.CreatedAt) <= branchTime {
				o.severity = catalogue.Info // the resource controller is about to annotate it
			}
			if o.said == "" {
				o.said = c.lastRefusal()
			}
		}
		if elsewhere == network || elsewhere && o.said == "" {
			continue
		}
		o.is = strings.TrimSuffix(o.is+": "+clip(o.said), ": ") // the reason stands at the end, so all of it is explained
		out = append(out, o)
	}
	return out
}

func podNotStarting(c *Case) []observation { return unstarted(c, true) }

func podNotNetwork(c *Case) []observation { return unstarted(c, false) }

// reasonsBefore are the reasons of kubelet's events about what it waits for before it makes a pod's network.
var reasonsBefore = []string{"FailedMount", "FailedAttachVolume", "FailedMapVolume"}

// waitsElsewhere reports whether a pod waits for something else than its network.
func (c *Case) waitsElsewhere(p *evidence.KubePod) bool {
	reason, _, _ := strings.Cut(c.lastWarning(p.Pod), " ")
	return slices.Contains(reasonsBefore, reason)
}

// lastRefusal returns the last error of the last ten minutes that the daemon reports, empty if there is none.
func (c *Case) lastRefusal() string {
	var last message
	for _, source := range daemonSays {
		for _, l := range c.logSource(source).lines {
			failed := strings.HasPrefix(l.level, "err") || l.level == "fatal" || source != "log.ipamd"
			if failed && l.since(c.recent()) > 0 && !l.at.Before(last.at) {
				last = l
			}
		}
	}
	if last.text == "" {
		return ""
	}
	return "the daemon reports: " + last.text
}

// lastWarning returns what the last warning about a pod says, empty if there is none.
func (c *Case) lastWarning(pod evidence.Pod) string {
	if c.warnings == nil {
		c.warnings = map[string]evidence.KubeEvent{}
		for _, e := range c.R.Events.Content {
			if e.Kind == "Pod" && e.Type != "Normal" && !e.At.Before(c.warnings[e.Name].At) {
				c.warnings[e.Name] = e
			}
		}
	}
	last := c.warnings[string(pod)]
	return strings.TrimSpace(last.Reason + " " + last.Message)
}

// sandboxGone are kubelet's and the runtime's words for a sandbox that cannot be removed.
var sandboxGone = []string{"FailedKillPod", "failed to stop sandbox", "failed to destroy network for sandbox"}

// killRetried is within what time kubelet, which gives up no sandbox, tries again.
const killRetried = 2 * time.Minute

// ended tells whether a pod of which an event was reported last at a time is gone for good.
func (c *Case) ended(pod string, at time.Time) bool {
	return c.R.Pods.OK() && c.Now.Sub(at) > killRetried &&
		!slices.ContainsFunc(c.R.Pods.Content, func(p evidence.KubePod) bool { return string(p.Pod) == pod })
}

func podNotEnding(c *Case) (out []observation) {
	for _, e := range c.R.Events.Content {
		said := e.Reason + " " + e.Message
		if e.Kind == "Pod" && !c.ended(e.Name, e.At) && c.concerns(e) && e.At.After(c.recent()) && matchesAny(said, sandboxGone) &&
			!slices.ContainsFunc(out, func(o observation) bool { return o.subject == e.Name }) {
			o := ofPod(evidence.Pod(e.Name), clip(said), "ended", catalogue.Warning)
			o.since, o.said = e.First, said
			out = append(out, o)
		}
	}
	return out
}

// textsNetwork are the scheduler's words for what the CNI or its node provides.
var textsNetwork = []string{
	"Too many pods", "vpc.amazonaws.com/", "node.kubernetes.io/not-ready", "node.kubernetes.io/network-unavailable", "OutOfpods",
	"node.cilium.io/agent-not-ready",
}

// schedulingTime is how long a pod may wait for a node that is about to come.
const schedulingTime = 5 * time.Minute

func podUnschedulable(c *Case) (out []observation) {
	for p := range c.pods() {
		if p.Phase != "Pending" || p.On() != "" || p.CreatedAt.IsZero() {
			continue
		}
		why := or(strings.Join(strings.Fields(p.Message), " "), c.lastWarning(p.Pod))
		network := matchesAny(why, textsNetwork)
		if wait := c.Now.Sub(p.CreatedAt); wait <= attachTime || !network && wait <= schedulingTime {
			continue
		}
		// For want of CPU, memory or a matching node it is not the network's.
		o := ofPod(p.Pod, or(clip(why), "no node has been found for it"), "scheduled", catalogue.Info)
		if o.since, o.said = p.CreatedAt, why; network {
			o.severity = catalogue.Error
		}
		out = append(out, o)
	}
	return out
}

// varying matches what differs between messages of the same kind: ids, addresses, numbers, quoted
// texts, names of pods.
var varying = lazy.Regexp(`"[^"]*"|\b[0-9a-f]{12,64}\b|\b[a-z]+-[0-9a-f]{8,17}\b|\b\d+(\.\d+){3}(:\d+)?(/\d+)?\b|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\d+`)

// template returns a message without what varies.
func template(text string) string {
	const most = 160
	text = strings.Join(strings.Fields(varying().ReplaceAllString(text, "*")), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// repeated is a group of messages of the last ten minutes.
type repeated struct {
	last  message
	count int
}

// groups returns the messages of a log source of the last ten minutes that match, by template.
func (c *Case) groups(source string, wants func(message) bool) map[string]repeated {
	out := map[string]repeated{}
	for _, l := range c.logSource(source).lines {
		n := l.since(c.recent())
		if n == 0 || !wants(l) {
			continue
		}
		key := template(l.text)
		g := out[key]
		out[key] = repeated{last: l, count: g.count + n}
	}
	return out
}

// startReasons are the reasons of events about a pod that cannot start yet.
var startReasons = []string{"FailedCreatePodSandBox", "NetworkNotReady", "BranchAllocationFailed", "BranchENIAnnotationFailed",
	"FailedMount"}

// networkReasons are the reasons of events about a pod's network or the CNI's own objects.
var networkReasons = append([]string{"FailedKillPod", "MissingIAMPermissions", "UnableToReachAPIServer"}, startReasons...)

func eventsRepeat(c *Case) (out []observation) {
	warnings := c.groups("k8s.evt", func(m message) bool { return m.level != "Normal" })
	current := c.groups("k8s.evt", func(m message) bool { return m.level != "Normal" && !c.passed(m) })
	for _, key := range slices.Sorted(maps.Keys(warnings)) {
		g := warnings[key]
		o := observation{subject: key, is: times(clip(g.last.text), g.count), should: "not reported", severity: catalogue.Info, since: g.last.at,
			said: g.last.text, names: podNames(string(g.last.pod))}
		if current[key].count > 2 {
			switch text := g.last.text; {
			case strings.Contains(text, "FailedCreatePodSandBox"), strings.Contains(text, "NetworkNotReady"):
				o.severity = catalogue.Error
			case strings.Contains(text, "aws-node"), matchesAny(text, networkReasons):
				o.severity = catalogue.Warning
			case strings.Contains(text, notCreated): // no network was asked for
				o.severity, o.wide = catalogue.Warning, true
			case !c.R.Pods.OK() && strings.Contains(text, " FailedScheduling ") && matchesAny(text, textsNetwork):
				o.severity = catalogue.Error // see podUnschedulable
			}
		}
		out = append(out, o)
	}
	return out
}

// notCreated is the reason of events about a workload whose pods the API server refuses.
const notCreated = " FailedCreate "

// runReasons are the reasons of events about a container that does not run well.
var runReasons = []string{"Unhealthy", "BackOff", "Failed "}

// passed tells whether an event certainly lies in the past: the pod is gone; the pod that could not
// start runs, or has its branch ENI; the pod whose container did not run well is ready.
func (c *Case) passed(m message) bool {
	starts := matchesAny(m.text, startReasons)
	if m.pod != "" && c.ended(string(m.pod), m.at) {
		return true
	}
	if m.pod == "" || !c.R.Pods.OK() || !starts && !matchesAny(m.text, runReasons) {
		return false
	}
	for p := range c.pods() {
		if p.Pod == m.pod {
			if !starts {
				return p.Ready != nil && *p.Ready
			}
			branch := strings.Contains(m.text, "Branch") && (p.Annotations[limitPodENI] != "" || p.Phase == "Running")
			return branch || p.Phase == "Running" && len(p.IPs) > 0 || p.Phase == "Succeeded"
		}
	}
	return false
}

// cniLogs are the logs of the CNI's own programs.
var cniLogs = []string{"log.ipamd", "log.plugin", "log.np", "log.awsnode"}

// textsADD are what lines of the runtime and the plugin have about a pod that gets no network.
var textsADD = []string{"failed (add)", "add cmd", "AddNetwork", "failed to setup network for sandbox"}

func errorsRepeat(c *Case) (out []observation) {
	sources := cniLogs
	if c.unseen() {
		sources = append(slices.Clone(cniLogs), "log.kubelet")
	}
	for _, source := range sources {
		groups := c.groups(source, func(m message) bool { return m.failed() && (source != "log.kubelet" || matchesAny(m.text, textsADD)) })
		for _, key := range slices.Sorted(maps.Keys(groups)) {
			g := groups[key]
			o := observation{subject: source + ": " + key, is: times(clip(g.last.text), g.count), should: "no errors", severity: catalogue.Info,
				since: g.last.at, source: source, said: g.last.text}
			switch {
			case c.unseen() && g.count >= seldomLogged && c.goesOn(g.last.at):
				if o.severity = meant(g.last.text); o.severity > catalogue.Info && matchesAny(g.last.text, textsADD) {
					o.severity = catalogue.Error
				}
			case c.failing().State == Yes, c.endless(g):
				o.severity = catalogue.Warning
			}
			out = append(out, o)
		}
	}
	return out
}

// hungry reports whether the pool lacked warm addresses at each reading: pods that come next find none.
func (c *Case) hungry() bool {
	return c.short().State == Yes && (c.Earlier == nil || c.Earlier.short().State == Yes) && c.growable().State != No
}

// unseen reports whether no ENIs, pods or events were read, so that only logs and metrics show whether pods start.
func (c *Case) unseen() bool { return !c.R.ENIs.OK() && !c.R.Pods.OK() && !c.R.Events.OK() }

// seldomLogged is how often an error is logged in ten minutes that is no accident.
const seldomLogged = 3

// meant returns how bad an error is by what it means, if nothing shows what it does to pods.
func meant(text string) catalogue.Severity {
	known := catalogue.Explain(text)
	switch {
	case len(known) == 0:
		return catalogue.Warning
	case known[0].Normal():
		return catalogue.Info
	case known[0].Entry != nil:
		return min(known[0].Entry.Severity, catalogue.Error)
	}
	return catalogue.Warning
}

// oftenLogged is how often an error is logged in ten minutes that does not pass by itself.
const oftenLogged = 60

// goesOn reports whether something was logged so recently that it goes on; between the readings there is time too.
func (c *Case) goesOn(last time.Time) bool { return !last.IsZero() && c.Now.Sub(last) < fresh/2 }

// endless reports whether an error is logged again and again until now, and is none that is normal: nothing is
// known to fail, and something is wrong.
func (c *Case) endless(g repeated) bool {
	if g.count < oftenLogged || !c.goesOn(g.last.at) {
		return false
	}
	known := catalogue.Explain(g.last.text)
	return len(known) == 0 || !known[0].Normal()
}

func ec2Errors(c *Case) (out []observation) {
	if c.Earlier == nil || !c.R.Metrics.OK() || !c.Earlier.R.Metrics.OK() {
		return nil
	}
	codes := map[string]bool{}
	for series := range c.R.Metrics.Content.Samples {
		if strings.HasPrefix(series, "awscni_aws_api_error_count{") {
			if s, err := promtext.ParseSeries(series); err == nil {
				codes[s.Labels["error"]] = true
			}
		}
	}
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		if f := c.series("awscni_aws_api_error_count", `error="`+code+`"`); f.State == Yes {
			severity := catalogue.Info
			if c.failing().State == Yes || c.hungry() {
				severity = catalogue.Warning
			}
			out = append(out, observation{subject: code, is: "EC2 answers with it: " + f.Value + " times", should: "no errors", severity: severity,
				source: "metrics", said: code})
		}
	}
	return out
}

func addsFail(c *Case) (out []observation) {
	type failed struct {
		count int
		text  string
	}
	by := map[string]failed{}
	for _, item := range c.R.Failures.Content.Items {
		if !item.At.After(c.recent()) {
			continue
		}
		code := catalogue.Named(item.Cause)
		f := by[code]
		f.count, f.text = f.count+1, clip(code+": "+item.Detail)
		by[code] = f
	}
	for _, code := range slices.Sorted(maps.Keys(by)) {
		severity := catalogue.Info // it may have passed
		if c.stuck(attachTime).State == Yes {
			severity = catalogue.Error
		}
		out = append(out, observation{subject: code, is: fmt.Sprintf("%s (%d times in 10 minutes)", by[code].text, by[code].count),
			should: "none", severity: severity, said: by[code].text})
	}
	return out
}

func addsWait(c *Case) []observation {
	s := c.R.Summary.Content
	if s.WaitingADDs == nil || *s.WaitingADDs == 0 {
		return nil
	}
	o := observation{subject: "ADDs", is: fmt.Sprintf("%d wait for an address", *s.WaitingADDs), should: "none", severity: catalogue.Error}
	if s.WaitingSince != nil {
		o.since = *s.WaitingSince
		if c.Now.Sub(o.since) < sandboxTime {
			o.severity = catalogue.Info // an interface is being attached
		}
	}
	return []observation{o}
}

func backsOff(c *Case) (out []observation) {
	for _, b := range c.R.Summary.Content.Backoffs {
		if b.Until.After(c.Now) {
			out = append(out, observation{subject: b.Object(),
				is:     fmt.Sprintf("the daemon waits until %s: %s", b.Until.Format(time.TimeOnly), catalogue.Named(b.Cause)),
				should: "no wait", severity: catalogue.Info})
		}
	}
	return out
}

// hostPort splits HOST:PORT. The port is empty if there is none.
func hostPort(target string) (host, port string) {
	if at, err := netip.ParseAddrPort(target); err == nil {
		return at.Addr().String(), strconv.Itoa(int(at.Port()))
	}
	if _, err := netip.ParseAddr(target); err == nil {
		return target, ""
	}
	host, port, _ = strings.Cut(target, ":")
	return host, port
}

func probesFail(c *Case) (out []observation) {
	for _, p := range c.R.Probes.Content {
		if p.Result == "ok" {
			continue
		}
		o := observation{subject: fmt.Sprintf("%s %s from %s", p.Kind, p.Target, p.From),
			is: strings.TrimSpace(p.Result + " " + p.Detail), should: "ok",
			severity: catalogue.Warning, since: p.At, names: map[string]string{"TARGET": p.Target}, fixes: []int{3, 4}}
		address, port := hostPort(p.Target)
		if p.Kind == "dns" || port == "53" {
			o.names["ADDRESS"], o.fixes = address, []int{2, 4}
			if p.From != "host" {
				maps.Copy(o.names, podNames(p.From))
				o.fixes = []int{6, 2, 4}
			}
		}
		if p.From != "host" && slices.ContainsFunc(c.R.Probes.Content, func(q evidence.Probe) bool {
			return q.From == "host" && q.Kind == p.Kind && q.Target == p.Target && q.Result == "ok"
		}) {
			maps.Copy(o.names, podNames(p.From))
			o.fixes = append([]int{1}, o.fixes...)
		}
		if e, only := c.failsAlone(p); only {
			o.is += "; of the pods tried, only those of " + e.ID + " fail"
			o.names["ENI"], o.names["TABLE"] = e.ID, strconv.Itoa(tableOf(e))
			o.fixes = append([]int{5}, o.fixes...)
		}
		out = append(out, o)
	}
	return out
}

// failsAlone returns the interface of the pod that tried to connect, and whether pods of other interfaces reach the
// target and none of its own does.
func (c *Case) failsAlone(failed evidence.Probe) (own evidence.ENI, only bool) {
	own, _ = c.eniOf(failed.From)
	if own.ID == "" {
		return own, false
	}
	for _, p := range c.R.Probes.Content {
		if p.From == "host" || p.Kind != failed.Kind || p.Target != failed.Target {
			continue
		}
		e, known := c.eniOf(p.From)
		if !known || (p.Result == "ok") == (e.ID == own.ID) {
			return own, false
		}
		only = only || p.Result == "ok"
	}
	return own, only
}

// eniOf returns the interface that has a pod's address.
func (c *Case) eniOf(pod string) (evidence.ENI, bool) {
	return find(c.enis(), func(e evidence.ENI) bool {
		for a := range e.Records() {
			if a.Pod != nil && string(*a.Pod) == pod {
				return true
			}
		}
		return false
	})
}
