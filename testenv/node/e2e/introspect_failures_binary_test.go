package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// failureRow provokes one cause of a failed ADD.
type failureRow struct {
	instance string // default t3.small
	env      map[string]string
	world    func(l *lab, i *fakeaws.Instance) // before the daemon starts
	rules    []fakeaws.Rule                    // before the daemon starts
	before   func(l *lab, n *node.Node)        // before the ADD that fails
	add      func(r *cniwire.AddRequest)       // changes the request, which is then sent without the plugin
	during   func(l *lab, n *node.Node)        // while the ADD waits
	want     cause.Code
	line     string // beginning of the log line; default: the line of an exhausted pool
	says     string // in the detail, in addition to the title
	lasting  bool   // kubelet's retry cannot succeed on its own
	gone     bool   // no daemon is left
}

// fill gives addresses to pods, once the pool has those that it keeps ready: the row's ADDs hardly
// wait for more.
func fill(pods int) func(l *lab, n *node.Node) {
	return func(l *lab, n *node.Node) {
		l.settled(n)
		for i := range pods {
			if r := l.wireAdd(n, sandbox(100+i)); !r.Success {
				l.t.Fatalf("ADD %d: %+v", i, r)
			}
		}
	}
}

// refusedOnce waits until EC2 has refused a change of the pool for good: the SDK retries some
// errors.
func refusedOnce(l *lab, n *node.Node) {
	testenv.Eventually(l.t, "a failed change of the pool", func() bool {
		var doc introspect.NodeEvents
		l.get(n, introspect.PathEvents, &doc)
		return count(doc.Items, introspect.EventActionFailed) > 0
	})
}

// everything returns rules that refuse all calls that make the pool larger.
func everything(code string) []fakeaws.Rule {
	var rules []fakeaws.Rule
	for _, action := range []string{"CreateNetworkInterface", "AssignPrivateIpAddresses"} {
		rules = append(rules, fakeaws.Rule{Action: action, Fault: fakeaws.Fault{Code: code, Message: "as the test wants it"}})
	}
	return rules
}

// TestFailures_Classified provokes each cause of a failed ADD on a running node, and looks
// for its code in the plugin's answer, the log line, /v1/failures, the events, the summary
// and the metric.
func TestFailures_Classified(t *testing.T) {
	t.Parallel()
	one := map[string]string{"MAX_ENI": "1", "CNI_ADD_WAIT": "1s"}
	short := map[string]string{"CNI_ADD_WAIT": "2s"}
	prefixes := map[string]string{"ENABLE_PREFIX_DELEGATION": "true", "CNI_ADD_WAIT": "2s"}
	rowsAtOnce(t, map[string]failureRow{
		"all ENIs full":    {env: one, before: fill(3), want: cause.PoolFull, says: "hold all 3 addresses", lasting: true},
		"max-pods reached": {env: map[string]string{"WARM_IP_TARGET": "1"}, before: fill(9), want: cause.PoolFull, says: "network interfaces", lasting: true},
		"no free address in the subnet": {env: short, want: cause.SubnetExhausted, says: "has no free addresses", world: func(l *lab, _ *fakeaws.Instance) {
			if _, err := l.world.Occupy(l.subnet.ID, 1<<20); err != nil {
				l.t.Fatal(err)
			}
		}},
		"no free block in the subnet": {instance: "m5.large", env: prefixes, want: cause.SubnetFragmented, says: "/28", world: func(l *lab, _ *fakeaws.Instance) {
			if err := l.world.Fragment(l.subnet.ID); err != nil {
				l.t.Fatal(err)
			}
		}},
		"subnet excluded by its tag": {env: short, want: cause.NoUsableSubnet, lasting: true, world: func(l *lab, _ *fakeaws.Instance) {
			if err := l.world.SetTags(map[string]string{"kubernetes.io/role/cni": "0"}, l.subnet.ID); err != nil {
				l.t.Fatal(err)
			}
		}},
		"EC2 throttles": {env: short, rules: everything("RequestLimitExceeded"), before: refusedOnce, want: cause.EC2Throttled},
		"EC2 refuses": {env: short, want: cause.EC2Unauthorized, says: "UnauthorizedOperation", lasting: true, world: func(l *lab, _ *fakeaws.Instance) {
			l.allowOnly("DescribeNetworkInterfaces", "DescribeSubnets")
		}},
		"EC2 fails": {env: short, rules: everything("InternalError"), before: refusedOnce, want: cause.EC2Error},
		"too many ENIs": {env: map[string]string{"CNI_ADD_WAIT": "2s", "WARM_ENI_TARGET": "0"}, before: fill(3), want: cause.ENIAttachLimit,
			rules: []fakeaws.Rule{{Action: "AttachNetworkInterface", Fault: fakeaws.Fault{Code: "AttachmentLimitExceeded", Message: "as the test wants it"}}}},
		"the link of an ENI does not appear": {env: map[string]string{"CNI_ADD_WAIT": "7s", "WARM_ENI_TARGET": "0"}, before: fill(3), want: cause.ENILinkMissing, says: "link",
			rules: []fakeaws.Rule{{Action: "AttachNetworkInterface", Fault: fakeaws.Fault{Hold: fakeaws.HoldLink}}}},
		"EC2 is slow": {env: map[string]string{"CNI_ADD_WAIT": "1s", "WARM_ENI_TARGET": "0"}, before: fill(3), want: cause.PoolDry, world: func(l *lab, _ *fakeaws.Instance) {
			l.world.SetLatency("CreateNetworkInterface", 5*time.Second)
		}},
		"the last address is cooling": {env: map[string]string{"MAX_ENI": "1", "CNI_ADD_WAIT": "1s", "IP_COOLDOWN_PERIOD": "300"}, want: cause.AddressesCooling, says: "cooling",
			before: func(l *lab, n *node.Node) {
				fill(3)(l, n)
				if r := l.wireDel(n, sandbox(100)); !r.Success {
					l.t.Fatalf("DEL: %+v", r)
				}
			}},
		"the checkpoint cannot be written": {want: cause.CheckpointUnwritable, line: logline.TextStoreFailed, says: checkpointPath, before: func(l *lab, n *node.Node) {
			l.settled(n)
			l.run(n, "/bin/rm", "-f", checkpointPath)
			l.run(n, "/bin/mkdir", "-p", checkpointPath+"/in-the-way")
		}},
		"no container":       {want: cause.InvalidRequest, line: logline.TextNoKey, lasting: true, add: func(r *cniwire.AddRequest) { r.IfName = "" }},
		"several interfaces": {want: cause.MultiNICDisabled, line: logline.TextMultiNICOff, lasting: true, add: func(r *cniwire.AddRequest) { r.RequiresMultiNIC = true }},
		"the daemon ends": {env: map[string]string{"CNI_ADD_WAIT": "60s", "WARM_ENI_TARGET": "0"}, before: fill(3), want: cause.DaemonTerminating, line: "no address assigned: ", gone: true,
			world: func(l *lab, _ *fakeaws.Instance) { l.world.SetLatency("CreateNetworkInterface", 20*time.Second) },
			during: func(l *lab, n *node.Node) {
				testenv.Eventually(l.t, "an ADD that waits", func() bool {
					var s introspect.Summary
					l.get(n, introspect.PathSummary, &s)
					return s.WaitingADDs != nil && *s.WaitingADDs == 1
				})
				l.kill(n, syscall.SIGTERM)
			}},
	}, func(t *testing.T, row failureRow) { row.check(t) })
}

func (row failureRow) check(t *testing.T) {
	if row.instance == "" {
		row.instance = "t3.small"
	}
	l := newLab(t, fakeaws.Options{})
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: row.instance, SubnetID: l.subnet.ID})
	if err != nil {
		t.Fatal(err)
	}
	if row.world != nil {
		row.world(l, i)
	}
	n := l.node(i.ID)
	l.breakEC2(row.rules...)
	l.start(n, row.env)
	c, d := l.introspection(n)
	if row.before != nil {
		row.before(l, n)
	}
	request := sandbox(7)
	details := make(chan string, 1)
	go func() { details <- row.fail(l, n, request) }()
	if row.during != nil {
		row.during(l, n)
	}
	detail := <-details
	if !strings.Contains(detail, string(row.want)) || !strings.Contains(detail, row.says) {
		t.Errorf("the ADD says %q, want the cause %s and %q", detail, row.want, row.says)
	}
	l.logged(n, row.want, row.line)
	if row.gone {
		return
	}
	all := l.schemas(d)
	doc, _, err := c.Failures(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all.check(t, l.ask(d, introspect.PathFailures, nil).body)
	if len(doc.Items) == 0 {
		t.Fatal("no failure is reported")
	}
	f := doc.Items[0]
	if f.Cause != string(row.want) || f.Title != row.want.Title() || !strings.Contains(f.Detail, row.says) || f.Transient == row.lasting || f.Pod.Name == "" {
		t.Errorf("the newest failure is %+v, want the cause %s, lasting: %v", f, row.want, row.lasting)
	}
	s, _, err := c.Summary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if *s.ADDs.Failed != len(doc.Items) || s.ADDs.Causes[string(row.want)] == 0 {
		t.Errorf("the summary counts %+v, %d failures are reported", s.ADDs, len(doc.Items))
	}
	if value(l.scrape(n), fmt.Sprintf("awscni_failed_add_count{cause=%q}", row.want)) != fmt.Sprint(s.ADDs.Causes[string(row.want)]) {
		t.Errorf("the metric of %s is not %d:\n%s", row.want, s.ADDs.Causes[string(row.want)], grep(l.scrape(n), "failed_add"))
	}
	for _, path := range []string{introspect.PathFailures, introspect.PathEvents, introspect.PathSummary, introspect.PathLogs + "?lines=1000"} {
		body := string(l.ask(d, path, nil).body)
		if containsAny(body, request.ContainerID, sandbox(100).ContainerID) {
			t.Errorf("%s holds a sandbox id: %s", path, body)
		}
		if path != introspect.PathLogs+"?lines=1000" && !strings.Contains(body, string(row.want)) {
			t.Errorf("%s does not name %s: %s", path, row.want, body)
		}
	}
}

// fail makes the ADD that fails and returns the details of its error. It uses the plugin
// unless the row changes the request.
func (row failureRow) fail(l *lab, n *node.Node, r *cniwire.AddRequest) string {
	if row.add == nil {
		_, err := n.AddPod(node.PodSpec{Namespace: "default", Name: r.PodName, ContainerID: r.ContainerID})
		if p := pluginError(err); p != nil {
			return p.Details
		}
		l.t.Errorf("ADD: %v, want an error of the plugin", err)
		return ""
	}
	row.add(r)
	frame, err := exchange(l.t, n, cniwire.AppendAddRequest(nil, r))
	if err != nil {
		l.t.Error(err)
		return ""
	}
	reply, err := cniwire.DecodeAddReply(frame)
	if err != nil || reply.Success {
		l.t.Errorf("ADD: %+v, %v, want a refusal", reply, err)
		return ""
	}
	return reply.Cause + ": " + reply.Detail
}

// logged waits for the line of a failed ADD in the daemon's log.
func (l *lab) logged(n *node.Node, want cause.Code, begins string) {
	l.t.Helper()
	testenv.Eventually(l.t, "a log line with the cause "+string(want), func() bool {
		for line := range strings.Lines(n.Logs()["ipamd.log"]) {
			var entry struct{ Msg, Cause, Detail string }
			if json.Unmarshal([]byte(line), &entry) != nil {
				continue
			}
			exhausted := strings.HasPrefix(entry.Msg, logline.TextNoAddress)
			if exhausted && begins != "" {
				l.t.Fatalf("an ADD that failed as %s is logged as an exhausted pool: %s", want, line)
			}
			if entry.Cause == string(want) && entry.Detail != "" && (exhausted || begins != "" && strings.HasPrefix(entry.Msg, begins)) {
				return true
			}
		}
		return false
	})
}

func grep(text, part string) (out string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			out += line
		}
	}
	return out
}

// run runs a program in the node.
func (l *lab) run(n *node.Node, argv ...string) {
	l.t.Helper()
	if r, err := n.Exec(agent.Cmd{Argv: argv}); err != nil || r.Code != 0 {
		l.t.Fatalf("%v: %v: %s", argv, err, r.Stderr)
	}
}

// TestFailures_Bounded: the last hundred failures are reported, newest first, and no successes.
func TestFailures_Bounded(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("t3.small", map[string]string{"MAX_ENI": "1", "CNI_ADD_WAIT": "1s"})
	c, _ := l.introspection(n)
	fill(3)(l, n)
	doc, _, err := c.Failures(t.Context())
	if err != nil || len(doc.Items) > 0 {
		t.Fatalf("failures after successes only: %+v, %v", doc.Items, err)
	}
	const failed = introspect.MaxFailures + 5
	for i := range failed {
		if r := l.wireAdd(n, sandbox(200+i)); r.Success || r.Cause != string(cause.PoolFull) {
			t.Fatalf("ADD %d: %+v", i, r)
		}
	}
	if doc, _, err = c.Failures(t.Context()); err != nil || len(doc.Items) != introspect.MaxFailures {
		t.Fatalf("%d failures are reported, want %d: %v", len(doc.Items), introspect.MaxFailures, err)
	}
	for i, f := range doc.Items {
		if want := sandbox(200 + failed - 1 - i).PodName; f.Pod.Name != want || f.Pod.Namespace != "default" {
			t.Errorf("failure %d is of %+v, want %s", i, f.Pod, want)
		}
	}
	s, _, err := c.Summary(t.Context())
	if err != nil || *s.ADDs.Failed != failed || s.ADDs.Total != failed+3 {
		t.Errorf("the summary counts %+v, %v", s.ADDs, err)
	}
}
