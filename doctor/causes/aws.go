package causes

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/lazy"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
)

var awsRules = []Rule{
	{Code: "aws/iam", Node: iamDenied},
	{Code: "aws/credentials", Node: credentialsMissing},
	{Code: "aws/clock", Node: clockWrong},
	{Code: "aws/throttled", Node: throttled},
	{Code: "aws/ec2-unreachable", Node: ec2Unreachable},
	{Code: "aws/imds-unreachable", Node: imdsUnreachable},
	{Code: "aws/instance-type", Node: typeUnknown},
}

const textDenied = "UnauthorizedOperation"

// EC2 actions that the daemon needs: those that grow the pool, and the others.
var (
	growing = []string{"AssignPrivateIpAddresses", "AttachNetworkInterface", "CreateNetworkInterface", "CreateTags", "AssignIpv6Addresses"}
	others  = []string{
		"DeleteNetworkInterface", "DescribeInstances", "DescribeInstanceTypes", "DescribeNetworkInterfaces", "DescribeSecurityGroups",
		"DescribeSubnets",
		"DescribeTags", "DetachNetworkInterface", "ModifyNetworkInterfaceAttribute", "UnassignPrivateIpAddresses",
	}
)

// givingBack are the actions by which the daemon only gives back what it has: no pod fails without them.
var givingBack = []string{"ec2:DeleteNetworkInterface", "ec2:DetachNetworkInterface", "ec2:UnassignPrivateIpAddresses"}

func iamDenied(c *Case) []Result {
	var denied []string
	decisive := c.counted(Either(
		c.active(pattern{sources: daemonSays, texts: []string{textDenied, "You are not authorized to perform this operation"}, cured: grown}),
		c.failures(grown, cause.EC2Unauthorized),
		c.active(pattern{sources: []string{"k8s.evt"}, texts: []string{"MissingIAMPermissions"}}),
	), []string{textDenied})
	for _, action := range slices.Concat(growing, others) {
		m := pattern{sources: slices.Concat(daemonSays, []string{"k8s.evt"}),
			texts:  []string{action + "…" + textDenied, textDenied + "…" + action, "MissingIAMPermissions…" + action},
			except: controllerReasons} // those are of the cluster's role
		if slices.Contains(growing, action) {
			m.cured = grown // a pool that grows is no longer denied
		}
		if f := orElse(c.active(m), c.series("awscni_aws_api_error_count", `api="`+action+`"`, `error="`+textDenied+`"`)); f.State == Yes {
			denied, decisive = append(denied, "ec2:"+action), Either(decisive, f)
		}
	}
	summary := "EC2 denies the role of aws-node " + or(strings.Join(denied, ", "), "an action: "+quoted(decisive))
	if slices.Contains(denied, "ec2:DescribeSecurityGroups") && c.Release == (evidence.Version{1, 22, 1}) {
		summary += ", which v1.22.1 needs to start"
	}
	if decisive.State == Yes && len(denied) == 0 { // an action that is not among those
		if m := deniedAction().FindStringSubmatch(decisive.Value); m != nil {
			denied = []string{m[1]}
		}
	}
	role := roleName(or(c.R.IAM.Content.Role, c.R.ServiceAccount.Content.Annotations["eks.amazonaws.com/role-arn"]))
	harmless := len(denied) > 0 && !slices.ContainsFunc(denied, func(action string) bool { return !slices.Contains(givingBack, action) })
	cd := Result{Summary: summary, Decisive: []Fact{decisive}, Context: []Fact{c.simulated()}, names: map[string]string{"ROLE": role}}
	cd.names["ACTION"], cd.names["INSTANCE"] = strings.Join(denied, separator), c.instance()
	switch node := role == "" && c.R.ServiceAccount.OK() && c.instance() != ""; {
	case c.Settings.IPv6:
		cd.fixes = []int{2, 5}
	case len(denied) == 0:
		cd.fixes = []int{1, 5}
	case node:
		cd.fixes = []int{4, 5}
	default:
		cd.fixes = []int{3, 5}
	}
	if harmless && c.serves().State == Yes {
		cd.title = "the role of aws-node may not give back what it no longer needs"
		cd = cd.As(catalogue.Warning)
	}
	return []Result{cd}
}

// controllerReasons are the reasons of events in which the resource controller reports what EC2 refuses it.
var controllerReasons = []string{"BranchAllocationFailed", "BranchENIAnnotationFailed", "TrunkENICreationFailed", "NodeTrunkFailedInit"}

// deniedAction matches the action in a refusal of EC2.
var deniedAction = lazy.Regexp(`\b(ec2:[A-Z][A-Za-z0-9]+)`)

// simulated states that a simulation of the role's policies denies an action.
func (c *Case) simulated() Fact {
	return On(c, c.R.IAM, "iam.sim", "actions", "all allowed", func(sim evidence.IAM) (any, State) {
		for _, action := range slices.Concat(growing, others) {
			if sim.Actions["ec2:"+action] == "denied" {
				return "ec2:" + action + " denied", Yes
			}
		}
		return "allowed", No
	})
}

// daemonLogs are the logs of the daemon and of what starts it.
var daemonLogs = []string{"log.ipamd", "log.awsnode", "intro.summary"}

// answering are log lines of a daemon that works again.
var answering = slices.Concat(grown, []string{"Serving RPC Handler"})

// textsIMDS are the errors of an unresponsive metadata service.
var textsIMDS = []string{"instance metadata: failed to retrieve", "Failed to get primary MAC from IMDS",
	"failed to retrieve local-ipv4 address in imds metadata", "read metadata …ec2imds", "169.254.169.254…timeout",
	"169.254.169.254…deadline exceeded", "169.254.169.254…connection refused", "ec2imds…deadline exceeded", "ec2imds…i/o timeout",
	"EC2MetadataError: failed to make EC2Metadata request", textThroughProxy}

// textsNoToken are the errors of a program that asks for instance metadata as it was before tokens.
var textsNoToken = []string{"EC2MetadataError…status code: 401", "StatusCode: 401…ec2imds", "ec2imds…StatusCode: 401",
	"169.254.169.254…401 Unauthorized"}

// textThroughProxy is what a program says whose proxy takes requests for instance metadata.
const textThroughProxy = "169.254.169.254…proxyconnect"

// imdsAnswers states that the metadata service answers or, if it was not asked, that the daemon has no trouble with it.
func (c *Case) imdsAnswers() Fact {
	f := On(c, c.R.IMDS, "imds", "token", "ok", func(i evidence.IMDS) (any, State) { return i.Token, stateOf(i.Token == "ok") })
	if f.State == Unread {
		return Not(c.active(pattern{sources: daemonLogs, texts: textsIMDS, cured: answering}))
	}
	return f
}

// roleName returns the name of a role that is given by name or ARN.
func roleName(role string) string { return role[strings.LastIndexByte(role, '/')+1:] }

func credentialsMissing(c *Case) []Result {
	logged := c.active(pattern{sources: daemonLogs, texts: signatures("aws/credentials"), cured: answering})
	annotation := c.R.ServiceAccount.Content.Annotations["eks.amazonaws.com/role-arn"]
	summary := "the daemon has no usable AWS credentials: " + logged.Value
	if annotation != "" {
		summary += fmt.Sprintf(" (the service account names %s)", annotation)
	}
	cd := Result{Summary: summary, Decisive: []Fact{logged}, unless: []Fact{Not(c.imdsAnswers())},
		names: map[string]string{"INSTANCE": c.instance(), "ROLE": roleName(annotation)}}
	last, _, _ := c.lastMessage(pattern{sources: daemonLogs, texts: signatures("aws/credentials"), cured: answering})
	if fixes := fitting(last.text, credentialFixes); len(fixes) > 0 {
		return []Result{cd.WithFixes(fixes...)}
	}
	if i, there := c.ownInstance(); there && annotation == "" && i.Profile == "" {
		cd.Summary += "; the instance has no profile, and the service account names no role"
		return []Result{cd.WithFixes(6, 3)}
	}
	return []Result{cd.WithFixes(4, 1, 3)}
}

// credentialFixes are the fixes of aws/credentials that fit an error.
var credentialFixes = []wayOut{
	{[]string{"169.254.170.23", "[fd00:ec2::23]"}, []int{5, 3}},
	{[]string{"sts.…i/o timeout", "sts.…deadline exceeded", "sts.…no such host", "sts.…connection refused"}, []int{2}},
	{[]string{"ExpiredToken"}, []int{3}},
	{[]string{"InvalidIdentityToken"}, []int{1, 4}},
	{[]string{"AssumeRoleWithWebIdentity"}, []int{4, 1}},
	{[]string{"no EC2 IMDS role found"}, []int{6, 3}},
}

func throttled(c *Case) []Result {
	codes := []string{"RequestLimitExceeded", "Throttling"}
	m := pattern{sources: daemonSays, texts: codes}
	logged := c.active(m)
	if last, _, count := c.lastMessage(m); logged.State == Yes && count < 3 {
		logged.State, logged.Value = No, fmt.Sprintf("%d times in 10 minutes: %s", count, clip(last.text))
	}
	logged = c.counted(Either(logged, c.failures(grown, cause.EC2Throttled)),
		[]string{"RequestLimitExceeded", "Throttling", "ThrottlingException"})
	for _, b := range c.R.Summary.Content.Backoffs {
		if b.Cause == string(cause.EC2Throttled) && b.Until.After(c.Now) {
			logged = c.Known("intro.summary", "backoffs", "none", b.Object()+" until "+b.Until.Format(time.TimeOnly), true)
		}
	}
	order := []int{5, 3, 2} // few and large requests: others use up the account's rate
	// A small target without enough addresses from the start is a call for each pod.
	if s, p := c.Settings, c.pool(); s.WarmIP > 0 && (s.MinIP <= s.WarmIP || p != nil && s.MinIP < p.assigned) {
		order = []int{1, 2, 3, 4}
	}
	return []Result{{
		fixes:    order,
		Summary:  fmt.Sprintf("EC2 throttles the daemon's calls while the pool is short: %s; %s", quoted(logged), poolText(c.pool())),
		Decisive: []Fact{logged},
		unless:   []Fact{Not(c.short())},
	}}
}

func ec2Unreachable(c *Case) []Result {
	var texts []string
	for _, host := range []string{"https://ec2.…", "lookup ec2.…", "operation error EC2…", or(c.Settings.EC2Endpoint, "https://ec2.") + "…"} {
		for _, failure := range []string{"i/o timeout", "dial tcp", "no such host", "deadline exceeded", "connection refused"} {
			texts = append(texts, host+failure)
		}
	}
	m := pattern{sources: daemonLogs, texts: texts, except: append(signatures("aws/credentials"), "169.254."), cured: answering}
	logged := c.active(m)
	last, _, _ := c.lastMessage(m)
	fails := last.text
	tried := ""
	probed := On(c, c.R.Probes, "probe", "https://ec2.REGION", "ok", func(probes []evidence.Probe) (any, State) {
		for _, p := range probes {
			if p.From == "host" && c.IsEC2(p.Target) && p.Result != "ok" {
				tried = p.Result + ", " + p.Detail
				return p.Target + ": " + p.Result, Yes
			}
		}
		return nil, Unread
	})
	if logged.State != Yes && probed.State == Yes {
		logged, fails = probed, tried
	}
	order := fitting(fails, endpointFixes)
	if noName := 5; c.Settings.EC2Endpoint != "" && order[0] == noName {
		order = append([]int{6}, order...)
	}
	return []Result{{Summary: "the EC2 endpoint cannot be reached: " + logged.Value, Decisive: []Fact{logged},
		unless: []Fact{Not(c.imdsAnswers())}, fixes: order}}
}

// endpointFixes are the fixes of an EC2 endpoint that cannot be reached, by what fails: the name, or connections. A
// gateway or another endpoint helps only where nothing answers.
var endpointFixes = []wayOut{
	{[]string{"proxyconnect"}, []int{2}},
	{[]string{"no such host", "nxdomain"}, []int{5, 4}},
	{[]string{"lookup …i/o timeout", "lookup …connection refused", "lookup …server misbehaving", "name resolution"}, []int{4}},
	{[]string{"connection refused", "refused,"}, []int{3, 2}},
	{[]string{"i/o timeout", "timeout,", "unreachable"}, []int{1, 2, 3}},
	{nil, []int{3, 2, 1}},
}

// IsEC2 reports whether the target of a probe is the endpoint of EC2 that the daemon uses.
func (c *Case) IsEC2(target string) bool {
	target = strings.TrimPrefix(target, "https://")
	if u, err := url.Parse(c.Settings.EC2Endpoint); err == nil && u.Hostname() != "" {
		host, _, _ := strings.Cut(target, ":")
		return host == u.Hostname()
	}
	return strings.HasPrefix(target, "ec2.")
}

func imdsUnreachable(c *Case) []Result {
	logged := c.active(pattern{sources: []string{"log.ipamd", "log.awsnode"}, texts: textsIMDS, cured: answering})
	failed := pattern{sources: pluginSays,
		texts: []string{"Error received from AddNetwork gRPC call…vpc-ipv4-cidr-blocks", "Error received from AddNetwork gRPC call…IMDS",
			"Error received from AddNetwork gRPC call…ec2imds"}}
	adds := c.active(failed)
	fails := On(c, c.R.IMDS, "imds", "token", "ok",
		func(i evidence.IMDS) (any, State) { return or(i.Failure, i.Token), stateOf(i.Token != "ok") })
	own, _ := c.ownInstance()
	off := On(c, c.R.Instances, "ec2.inst", "httpEndpoint", "enabled", func([]evidence.Instance) (any, State) {
		if own.HTTPEndpoint == "" {
			return nil, Unread
		}
		return own.HTTPEndpoint, stateOf(own.HTTPEndpoint == "disabled")
	})
	if refused := c.active(pattern{sources: daemonLogs, texts: textsNoToken, cured: answering}); refused.State == Yes {
		return []Result{Result{title: "the metadata service refuses requests without a token", Decisive: []Fact{refused},
			Summary: "the daemon asks the metadata service without a token, which it demands: " + refused.Value,
			names:   map[string]string{"INSTANCE": c.instance()}}.WithFixes(5, 6)}
	}
	why := "the metadata service does not answer"
	if off.State == Yes {
		why += ": it is switched off for the instance"
	}
	decisive := orElse(Either(logged, adds), onlyIfTrue(Either(Both(off, c.podNotReady()), Both(off, fails))))
	proxied := matches(decisive.Value, textThroughProxy)
	if proxied {
		why = "aws-node asks a proxy for instance metadata, which only the node itself can reach"
		fails = c.Unread("imds", "token", "ok", "without the proxy it may answer")
	}
	unanswered := Result{Summary: fmt.Sprintf("%s (%s)", why, decisive.Value), Decisive: []Fact{decisive},
		unless: []Fact{Not(orElse(fails, onlyIfTrue(off)))},
		names:  map[string]string{"INSTANCE": c.instance()}, fixes: []int{2, 1}}
	if proxied {
		unanswered.title, unanswered.fixes = "aws-node asks a proxy for instance metadata", []int{4}
	} else if off.State == Yes {
		unanswered.fixes = []int{1}
	} else if off.State == Unread {
		unanswered.fixes = []int{1, 2}
	}
	if logged.State != Yes && adds.State != Yes && c.podNotReady().State != Yes { // it serves until it needs metadata
		unanswered = unanswered.As(catalogue.Error)
	}
	out := []Result{unanswered}
	if _, _, n := c.lastMessage(failed); fails.State == No && (n >= 3 || adds.State == Unread) { // it answers now, but failed repeatedly
		again := Result{Summary: "the metadata service fails intermittently, and ADDs with it: " + adds.Value,
			Decisive: []Fact{adds}}.As(catalogue.Error)
		if grows, _ := c.allowances(); grows.State == Yes { // a separate cause
			again = again.As(catalogue.Info)
		}
		out = append(out, again)
	}
	hops := On(c, c.R.Instances, "ec2.inst", "hopLimit", "2, where pods need metadata", func([]evidence.Instance) (any, State) {
		if own.HopLimit == nil {
			return nil, Unread
		}
		return *own.HopLimit, stateOf(*own.HopLimit == 1)
	})
	if hops.State == Yes {
		limited := Result{
			title: "pods cannot reach the metadata service", Decisive: []Fact{hops}, names: map[string]string{"INSTANCE": c.instance()},
			Summary: "the hop limit of the metadata service is 1, so pods cannot reach it; aws-node, in the host's network, can",
		}
		if own.HTTPTokens == "optional" {
			limited.Summary += "; requests without a token are answered, so a program of a pod may use those after a delay"
		}
		out = append(out, limited.As(catalogue.Info).WithFixes(3))
	}
	return out
}

func typeUnknown(c *Case) []Result {
	unknown := On(c, c.R.InstanceType, "ec2.type", "known", "true", func(t evidence.InstanceType) (any, State) {
		if t.Known {
			return nil, Unread // to this table; the daemon's may be older
		}
		return "false", Yes
	})
	logged := Either(
		c.active(pattern{sources: []string{"log.ipamd", "log.awsnode"}, texts: signatures("aws/instance-type"), cured: answering}),
		c.dies(pattern{sources: []string{"log.awsnode"}, texts: []string{"markUnmanagedNetworkCards"}}),
	)
	return []Result{{
		Summary:  fmt.Sprintf("the daemon does not know the limits of %s", or(c.R.InstanceType.Content.InstanceType, "the instance type")),
		Decisive: []Fact{orElse(logged, onlyIfTrue(Both(unknown, c.podNotReady())))},
		unless:   []Fact{Not(unknown)},
	}}
}
