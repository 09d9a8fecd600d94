package causes

import (
	"fmt"
	"slices"
	"strings"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/config"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

var configRules = []Rule{
	{Code: "config/min-ip-only", Node: minimumOnly},
	{Code: "config/warm-waste", All: warmWaste},
	{Code: "config/invalid", Node: settingsInvalid},
}

func minimumOnly(c *Case) []Result {
	alone := c.Setting("MINIMUM_IP_TARGET", "not set without WARM_IP_TARGET",
		func(s config.Config) bool { return s.MinIP > 0 && s.WarmIP == 0 })
	return []Result{{
		Summary: fmt.Sprintf("MINIMUM_IP_TARGET is %d without WARM_IP_TARGET, so the pool does not grow: %s", c.Settings.MinIP,
			poolText(c.pool())),
		Decisive: []Fact{alone, c.onPool("assigned addresses", "fewer than there are",
			func(p *pool) (any, State) { return p.assigned, stateOf(p.assigned == p.total) })},
		required: []Fact{c.onPool("addresses", "below MINIMUM_IP_TARGET",
			func(p *pool) (any, State) { return p.total, stateOf(p.total >= c.Settings.MinIP) }), c.upstream()},
		unless:  []Fact{Not(c.growable()), c.growthStopped(), c.ec2Refuses()},
		Context: []Fact{alone, c.failing(), c.upstream()},
	}}
}

// ec2Refuses states that some EC2 call fails now, for whatever reason.
func (c *Case) ec2Refuses() Fact {
	logged := c.active(pattern{sources: daemonSays,
		texts: []string{"api error ", "RequestLimitExceeded", "UnauthorizedOperation", "Insufficient", "Failed to CreateNetworkInterface",
			"LimitExceeded"}})
	return orElse(logged, c.series("awscni_aws_api_error_count"))
}

// warmWaste adds up the addresses of each subnet that nodes hold and pods do not use.
func warmWaste(cs []*Case) []Result {
	idle, nodes := map[string]int{}, map[string][]string{}
	for _, c := range cs {
		if c.pool() == nil || c.Settings.IPv6 {
			continue
		}
		for i := range c.R.ENIs.Content {
			e := &c.R.ENIs.Content[i]
			p := pool{pd: c.pool().pd, either: c.pool().either}
			if p.count(c, e); p.total > p.assigned {
				if idle[e.Subnet] += p.total - p.assigned; !slices.Contains(nodes[e.Subnet], c.Name) {
					nodes[e.Subnet] = append(nodes[e.Subnet], c.Name)
				}
			}
		}
	}
	var worst Result
	share := -1
	for _, c := range cs {
		for _, s := range c.R.Subnets.Content {
			size := usableSize(s.CIDR)
			if s.Available == nil || size == 0 || share >= 100*idle[s.ID]/size {
				continue
			}
			share = 100 * idle[s.ID] / size
			held := c.Known("intro.enis", "addresses of "+s.ID+" that nodes hold for no pod", "30 % or less",
				fmt.Sprintf("%d of %d", idle[s.ID], size), 10*idle[s.ID] > 3*size)
			if len(nodes[s.ID]) == 0 && slices.ContainsFunc(cs, func(c *Case) bool { return c.pool() == nil }) {
				held = c.Unread("intro.enis", held.Path, held.Expected, "no node that could be read is in it")
			}
			worst = Result{
				Scope: document.FindingScope{Cluster: true, Subnet: s.ID}, Nodes: nodes[s.ID],
				Summary: fmt.Sprintf("%s of the %s usable addresses of %s are held, but not used by pods, on the %s nodes that could be read; %s are free",
					grouped(idle[s.ID]), grouped(size), s.ID, grouped(len(nodes[s.ID])), grouped(*s.Available)),
				Decisive: []Fact{held, c.Known("ec2.subnet", "free addresses of "+s.ID, "10 % or more", *s.Available, 10**s.Available < size)},
			}
		}
	}
	if share < 0 {
		return []Result{{Decisive: []Fact{cs[0].Unread("ec2.subnet", "free addresses", "10 % or more",
			or(cs[0].R.Subnets.Missing, "no subnet is known"))}}}
	}
	return []Result{worst}
}

// grouped prints a number with commas between thousands.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// settingsInvalid checks the settings themselves, and the errors of a daemon that stopped because
// of them.
func settingsInvalid(c *Case) []Result {
	fatal, ignored := c.faults()
	at := or(c.settingsAt, "k8s.ds")
	judged := func(problems []config.Problem) Fact {
		if c.env == nil {
			return c.Unread(at, "env", "values that the daemon accepts", or(c.R.DaemonSet.Missing, "the settings were not read"))
		}
		if len(problems) == 0 {
			return c.Known(at, "env", "values that the daemon accepts", "accepted", false)
		}
		p := problems[0]
		value := p.Value
		if value == "" && p.Label == "" { // of several variables, or of one that another makes wrong
			var values []string
			for name := range strings.SplitSeq(p.Variable, ", ") {
				values = append(values, or(c.env[name], "not set"))
			}
			value = strings.Join(values, ", ")
		}
		path := "env." + p.Variable
		if p.Label != "" {
			path = "label " + p.Label
		}
		return c.Known(at, path, or(p.Accepted, "another value"), value, true)
	}
	stops := c.dies(pattern{sources: []string{"log.ipamd", "log.awsnode"}, texts: signatures("config/invalid")})
	refuses := Either(
		c.active(pattern{sources: []string{"log.ipamd"},
			texts: []string{"enable multi-nic feature on CNI for creating multi-nic-attachment pods",
				"PD is not enabled. V6 is only supported in PD mode"}}),
		c.failures(nil, cause.MultiNICDisabled),
	)
	notAsWritten := Result{Summary: "settings are not used as written: " + problemText(ignored), Decisive: []Fact{judged(ignored)},
		names: settingNames(ignored)}.WithFixes(1, 2)
	if len(ignored) > 0 && ignored[0].Label != "" {
		notAsWritten.names = map[string]string{"LABEL": ignored[0].Label}
		notAsWritten = notAsWritten.WithFixes(3)
	}
	candidates := []Result{
		Result{Summary: "the daemon does not start with these settings: " + problemText(fatal), Decisive: []Fact{judged(fatal)},
			names: settingNames(fatal)}.WithFixes(1, 2),
		Result{Summary: "the daemon exits with an error: " + stops.Value, Decisive: []Fact{stops},
			unless: []Fact{Not(c.podNotReady())}}.WithFixes(1, 2),
		notAsWritten.As(catalogue.Warning),
	}
	if refuses.State != No {
		candidates = append(candidates, Result{Summary: "pods ask for what the settings do not allow: " + refuses.Value,
			Decisive: []Fact{refuses}}.As(catalogue.Error).WithFixes(1, 2))
	}
	return candidates
}

// faults returns the settings that keep the daemon from starting, and those that it silently
// replaces with a default.
func (c *Case) faults() (fatal, ignored []config.Problem) {
	if c.env == nil {
		return nil, nil
	}
	return c.FaultsOf(c.Settings, c.problems)
}

// FaultsOf returns the faults of settings that were loaded with problems.
func (c *Case) FaultsOf(s config.Config, problems []config.Problem) (fatal, ignored []config.Problem) {
	single := c.older(evidence.Version{1, 10}) // supports no IPv6
	for _, p := range slices.Concat(problems, config.ValidateEntrypoint(s), config.Validate(s, config.Facts{})) {
		switch {
		case p.Fatal && !(single && strings.HasPrefix(p.Variable, "ENABLE_IPv4")):
			fatal = append(fatal, p)
		case !p.Fatal && (p.Value != "" || p.Label != "") && p.Fault == "" && p.Text == "":
			ignored = append(ignored, p)
		}
	}
	return fatal, ignored
}

// settingNames fills in the setting that a problem is about, if it is about one.
func settingNames(problems []config.Problem) map[string]string {
	if len(problems) == 0 || strings.Contains(problems[0].Variable, ",") {
		return nil
	}
	return map[string]string{"NAME": problems[0].Variable}
}

func problemText(problems []config.Problem) string {
	if len(problems) == 0 {
		return "none"
	}
	return problems[0].String()
}

// podNotReady states that a container of the node's aws-node pod is not ready, or restarted within
// the hour.
func (c *Case) podNotReady() Fact {
	return On(c, c.R.DaemonPods, "k8s.ds.pods", "containers", "ready, without restarts", func(pods []evidence.DaemonPod) (any, State) {
		for _, p := range pods {
			for _, k := range p.Containers {
				if p.Node == c.own && (k.Ready != nil && !*k.Ready || k.RestartsLastHour != nil && *k.RestartsLastHour > 0) {
					return k.Name + " is not ready or restarted", Yes
				}
			}
		}
		return "ready", No
	})
}

// signatures returns the texts that suffice to identify a cause.
func signatures(code string) []string {
	entry, _ := catalogue.Lookup(code)
	return each(where(entry.Signatures, func(s catalogue.Signature) bool { return s.Note == "" }),
		func(s catalogue.Signature) string { return s.Text })
}
