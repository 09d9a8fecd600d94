package causes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/config"
	"cnictl/daemon/lazy"
	"cnictl/doctor/causes/catalogue"
)

func (c *Case) readSettings() {
	load := func(env map[string]string, source string) {
		c.env, c.settingsAt = env, source
		c.Settings, c.problems = config.Load(lookup(env))
	}
	switch {
	case c.R.Config.OK():
		env := map[string]string{}
		for _, row := range c.R.Config.Content.Items {
			if row.Declared != nil {
				env[row.Name] = *row.Declared
			}
		}
		load(env, "intro.config")
		c.labelled()
	case c.R.ContainerEnv.OK() && c.R.ContainerEnv.Content[containerNode] != nil:
		load(c.R.ContainerEnv.Content[containerNode], "host.env")
		c.labelled()
	case c.R.DaemonSet.OK() && c.R.DaemonSet.Content != nil:
		load(c.R.DaemonSet.Content.Env[containerNode], "k8s.ds")
		c.labelled()
	default:
		if partly, source := c.inEffect(); source != "" {
			load(partly, source)
			c.partly = partly
		} else {
			load(nil, "")
		}
		c.env, c.problems = nil, nil // their original text is unknown
	}
}

func lookup(env map[string]string) func(name string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// labelled applies the labels of the Node that the daemon reports: they override its environment.
func (c *Case) labelled() {
	written, inUse := map[string]string{}, map[string]string{}
	if c.R.Config.OK() {
		for _, row := range c.R.Config.Content.Items {
			label := config.LabelOf(row.Name)
			if row.Label != nil && label != "" {
				written[label] = *row.Label
			}
			if row.Source == string(config.FromLabel) && label != "" {
				inUse[label] = or(row.Effective, "0")
			}
		}
	} else if c.R.Summary.OK() {
		now, _ := c.inEffect()
		for _, name := range c.R.Summary.Content.Targets.FromLabels {
			if label := config.LabelOf(name); label != "" {
				written[label] = or(now[name], "0")
			}
		}
	}
	if len(written) == 0 {
		return
	}
	before, _ := c.Settings.WithLabels(inUse, c.Settings) // an unusable label keeps what was there
	var problems []config.Problem
	c.Settings, problems = c.Settings.WithLabels(written, before)
	c.problems = append(c.problems, problems...)
	c.byLabel = map[string]string{}
	for _, s := range c.Settings.Describe(nil) {
		if s.Source == config.FromLabel {
			c.byLabel[s.Name] = or(s.Effective, "0")
		}
	}
}

// inEffect returns the settings that a daemon reports as effective, and their source.
func (c *Case) inEffect() (settings map[string]string, source string) {
	settings = map[string]string{}
	number := func(name string, v *int) {
		if v != nil && (*v > 0 || name != "MAX_ENI") {
			settings[name] = strconv.Itoa(*v)
		}
	}
	yes := func(name string, v *bool) {
		if v != nil {
			settings[name] = strconv.FormatBool(*v)
		}
	}
	const custom = "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"
	switch s, e := c.R.Summary.Content, c.R.Env.Content.IPAMD; {
	case c.R.Summary.OK():
		number("WARM_ENI_TARGET", s.Targets.WarmENI)
		number("WARM_IP_TARGET", s.Targets.WarmIP)
		number("MINIMUM_IP_TARGET", s.Targets.MinimumIP)
		number("WARM_PREFIX_TARGET", s.Targets.WarmPrefix)
		number("MAX_ENI", s.Targets.MaxENI)
		yes(custom, s.CustomNetworking)
		if s.Trunk != nil {
			yes("ENABLE_POD_ENI", &s.Trunk.Enabled)
		}
		if s.IPFamily != "" {
			yes("ENABLE_IPv6", new(s.IPFamily == "ipv6"))
			yes("ENABLE_IPv4", new(s.IPFamily != "ipv6"))
		}
		if s.CooldownSeconds != nil {
			number("IP_COOLDOWN_PERIOD", new(int(*s.CooldownSeconds)))
		}
		if len(s.Cards) > 0 {
			yes("ENABLE_PREFIX_DELEGATION", new(s.Cards[0].Mode == introspect.ModePrefix))
		}
		return settings, "intro.summary"
	case c.R.Env.OK():
		number("WARM_ENI_TARGET", &e.WarmENITarget)
		number("WARM_IP_TARGET", &e.WarmIPTarget)
		yes(custom, &e.CustomNetworking)
		yes("AWS_MANAGE_ENIS_NON_SCHEDULABLE", &e.ManageUnschedulable)
		yes("ENABLE_SUBNET_DISCOVERY", &e.SubnetDiscovery)
		return settings, "intro.env"
	}
	return nil, ""
}

// Knows reports whether all these settings were read.
func (c *Case) Knows(names ...string) bool {
	if c.settingsAt == "" {
		return false
	}
	return c.partly == nil || !slices.ContainsFunc(names, func(name string) bool { return !has(c.partly, name) })
}

// Setting states something about the effective value of a setting.
func (c *Case) Setting(name, expected string, holds func(config.Config) bool) Fact {
	if !c.Knows(name) {
		return c.Unread("k8s.ds", "env."+name, expected, or(c.R.DaemonSet.Missing, "the settings were not read"))
	}
	if value, ok := c.byLabel[name]; ok {
		return c.Known(c.settingsAt, "label "+config.LabelOf(name), expected, value, holds(c.Settings))
	}
	value, ok := c.env[name]
	if !ok {
		value = or(c.partly[name], "not set")
	}
	return c.Known(c.settingsAt, "env."+name, expected, value, holds(c.Settings))
}

// podOfOther matches the pods of a second DaemonSet, such as aws-node-gpu, with settings for some nodes.
var podOfOther = lazy.Regexp(`^kube-system/aws-node-.+-[a-z0-9]{5}$`)

// injected are the variables that the downward API and EKS's webhooks put into pods.
var injected = []string{"MY_NODE_NAME", "MY_POD_NAME", "AWS_REGION"}

// settingsNotInEffect compares the settings that the DaemonSet gives its pods with those that the
// node's daemon was started with, or reports as effective. A pod keeps those it was made with.
func settingsNotInEffect(c *Case) []observation {
	ds := c.R.DaemonSet.Content
	if ds == nil || len(ds.Env[containerNode]) == 0 { // every manifest has some
		return nil
	}
	if podOfOther().MatchString(string(c.daemonPod().Pod)) {
		return nil
	}
	given := ds.Env[containerNode]
	var differ []string
	note := func(name, given, has string) {
		if !strings.EqualFold(strings.TrimSpace(given), strings.TrimSpace(has)) {
			differ = append(differ, fmt.Sprintf("%s is %s, and %s in the DaemonSet", name, or(has, "not set"), or(given, "not set")))
		}
	}
	source := ""
	switch {
	case c.R.Config.OK():
		source = "intro.config"
		for _, row := range c.R.Config.Content.Items {
			has := ""
			if row.Declared != nil {
				has = *row.Declared
			}
			if !slices.Contains(injected, row.Name) && !slices.Contains(ds.EnvFrom, row.Name) {
				note(row.Name, given[row.Name], has)
			}
		}
	case c.R.ContainerEnv.OK() && c.R.ContainerEnv.Content[containerNode] != nil:
		source = "host.env"
		has := c.R.ContainerEnv.Content[containerNode]
		names := slices.Collect(maps.Keys(given))
		for _, s := range (config.Config{}).Describe(nil) { // the container has other variables too
			if _, set := given[s.Name]; !set && len(ds.EnvFrom) == 0 && !slices.Contains(injected, s.Name) {
				names = append(names, s.Name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			if !slices.Contains(ds.EnvFrom, name) {
				note(name, given[name], has[name])
			}
		}
	}
	if differ == nil && c.R.Env.OK() && len(ds.EnvFrom) == 0 {
		source = "intro.env"
		intended, _ := config.Load(lookup(given))
		has := documents(c.R.Env.Content.IPAMD, c.R.Env.Content.NetworkUtils)
		for _, s := range intended.Describe(nil) {
			if is, there := has[s.Name]; there {
				note(s.Name, s.Effective, is)
			}
		}
	}
	if differ == nil {
		return nil
	}
	o := observation{
		subject: "settings of the daemon", is: Some(differ), should: "as in the DaemonSet", severity: catalogue.Warning, source: source,
		names: podNames(string(c.daemonPod().Pod)),
	}
	if p := ds.Pods; p.Desired != nil && p.Updated != nil && *p.Updated < *p.Desired && !ds.ByHand() {
		o.severity = catalogue.Info // the rollout has not come to the node yet; obs/rollout says if it does not get on
	}
	return []observation{o}
}

// documents returns the settings in upstream's two documents as the texts of their variables.
func documents(of introspect.IPAMEnv, network introspect.NetworkEnv) map[string]string {
	out := map[string]string{}
	for _, document := range []any{of, network} {
		text, err := json.Marshal(document)
		if err != nil {
			panic(err) // of numbers, booleans and texts
		}
		var values map[string]any
		if err := json.Unmarshal(text, &values); err != nil {
			panic(err)
		}
		for name, value := range values {
			switch v := value.(type) {
			case nil:
				out[name] = ""
			case []any:
				out[name] = strings.ReplaceAll(strings.Trim(fmt.Sprint(v), "[]"), " ", ",")
			default:
				out[name] = fmt.Sprint(v)
			}
		}
	}
	out["AWS_VPC_K8S_CNI_CONNMARK"] = fmt.Sprintf("%#x", network.Connmark)
	const ports = "AWS_VPC_K8S_CNI_RANDOMIZESNAT"
	out[ports] = map[string]string{"0": "none", "1": "hashrandom", "2": "prng"}[out[ports]]
	return out
}
