package e2e_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node/agent"
)

// TestSummary_FiguresAndErrors reads /v1/summary of a node after a failure, and compares its
// figures with EC2.
func TestSummary_FiguresAndErrors(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	env := map[string]string{"WARM_IP_TARGET": "4", "MINIMUM_IP_TARGET": "6", "MAX_ENI": "2", "CNI_ADD_WAIT": "1s", "IP_COOLDOWN_PERIOD": "45"}
	n := l.boot("m5.large", env)
	pods := l.mustAdd(n, "p", 7, 3)
	l.settled(n)
	c, d := l.introspection(n)
	if a := l.ask(d, introspect.PathSummary, nil); len(a.body) > 5<<9 {
		t.Errorf("%d bytes on a node where nothing is wrong: %s", len(a.body), a.body)
	} else {
		t.Logf("%d bytes while nothing is wrong", len(a.body))
	}
	// From here on EC2 fails, so that there are errors and back-offs to show.
	l.breakEC2(everything("InternalError")...)
	for i := range 12 {
		l.wireAdd(n, sandbox(i))
	}
	testenv.Eventually(l.t, "a back-off and a failed ADD", func() bool {
		s, _, err := c.Summary(t.Context())
		return err == nil && len(s.Backoffs) > 0 && *s.ADDs.Failed > 0
	})
	a := l.ask(d, introspect.PathSummary, nil)
	l.schemas(d).check(t, a.body)
	t.Logf("%d bytes: %s", len(a.body), a.body)
	if len(a.body) < 1<<10 || len(a.body) > 4<<10 {
		t.Errorf("%d bytes", len(a.body))
	}
	var s introspect.Summary
	if err := json.Unmarshal(a.body, &s); err != nil {
		t.Fatal(err)
	}
	if s.Node != n.Name || s.InstanceID != n.InstanceID || s.InstanceType != "m5.large" || s.IPFamily != "ipv4" || s.StartedAt == nil {
		t.Errorf("node: %+v", s)
	}
	if got := fmt.Sprint(*s.Targets.WarmENI, *s.Targets.WarmIP, *s.Targets.MinimumIP, *s.Targets.WarmPrefix, *s.Targets.MaxENI, *s.CooldownSeconds); got != "1 4 6 1 2 45" {
		t.Errorf("targets and cooldown: %s", got)
	}
	l.poolIsTheWorld(n.InstanceID, s)
	if s.MaxPods == nil || *s.MaxPods.Value != 29 || s.MaxPods.Source == "" || len(s.MaxPods.Terms) < 3 || s.MaxPods.Verdict == "" {
		t.Errorf("max-pods: %+v", s.MaxPods)
	}
	if s.Trunk == nil || s.Trunk.Enabled || s.Trunk.Supported == nil || !*s.Trunk.Supported || *s.Trunk.BranchLimit != 9 {
		t.Errorf("trunk: %+v", s.Trunk)
	}
	for _, b := range s.Backoffs {
		if b.Scope == "" || b.Cause != "ec2-error" || b.Until.Before(*s.StartedAt) {
			t.Errorf("back-off: %+v", b)
		}
	}
	if len(s.LastErrors) == 0 || len(s.LastErrors) > introspect.MaxLastErrors {
		t.Fatalf("last errors: %+v", s.LastErrors)
	}
	for _, e := range s.LastErrors {
		if e.At.IsZero() || e.Operation == "" || e.Cause == "" || e.Message == "" || e.Count < 1 {
			t.Errorf("last error: %+v", e)
		}
	}
	subnet, _ := l.world.Subnet(l.subnet.ID)
	if len(s.Subnets) != 1 || s.Subnets[0].ID != subnet.ID || s.Subnets[0].CIDR != subnet.CIDR.String() || s.Subnets[0].AsOf == nil || *s.Subnets[0].Available == 0 {
		t.Errorf("subnets: %+v", s.Subnets)
	}
	counted := map[string]int{}
	for _, e := range s.EC2Calls {
		counted[e.Action] = e.Calls
		if e.LastAt == nil || e.Errors > e.Calls {
			t.Errorf("EC2 calls: %+v", e)
		}
	}
	for _, action := range []string{"DescribeNetworkInterfaces", "DescribeSubnets", "AssignPrivateIpAddresses"} {
		if counted[action] == 0 {
			t.Errorf("no calls of %s are counted: %v", action, counted)
		}
	}
	if s.ADDs.Total < len(pods)+12 || s.DELs.Total != 0 || *s.Terminating || *s.Unplaced != 0 {
		t.Errorf("requests: %+v %+v", s.ADDs, s.DELs)
	}
}

// poolIsTheWorld compares the counts of a summary with EC2.
func (l *lab) poolIsTheWorld(instanceID string, s introspect.Summary) {
	l.t.Helper()
	enis := l.world.ENIsOf(instanceID)
	if len(s.Cards) != 1 || *s.Cards[0].ENIs != len(enis) || len(s.ENIs) != len(enis) {
		l.t.Fatalf("%d cards and %d ENIs, EC2 has %d: %+v", len(s.Cards), len(s.ENIs), len(enis), s.Cards)
	}
	total := 0
	for i, e := range enis {
		total += len(e.SecondaryIPs) + 16*len(e.Prefixes)
		if got := s.ENIs[i]; got.ID != e.ID || got.Device != e.Attachment.Device || got.Total != len(e.SecondaryIPs)+16*len(e.Prefixes) {
			l.t.Errorf("ENI %+v, EC2 has %s with %d", got, e.ID, len(e.SecondaryIPs)+16*len(e.Prefixes))
		}
		if got := slices.Contains(s.ENIs[i].Flags, introspect.ENIFlagPrimary); got != e.Primary() {
			l.t.Errorf("flags of %s: %v", e.ID, s.ENIs[i].Flags)
		}
	}
	card := s.Cards[0]
	if card.Total != total || card.Assigned+*card.Cooling+card.Free != total {
		l.t.Errorf("counts %+v, EC2 has %d addresses", card, total)
	}
}

// TestPod_EqualsTheKernel requests pods on both ENIs, breaks their kernel state by hand, and
// expects a message about each fault.
func TestPod_EqualsTheKernel(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	pods := l.mustAdd(n, "p", 12, 4)
	c, d := l.introspection(n)
	all := l.schemas(d)
	onSecond := -1
	for i, p := range pods {
		doc, _, err := c.Pod(t.Context(), introspect.PodRef{Namespace: "default", Name: p.Name})
		if err != nil {
			t.Fatal(err)
		}
		all.check(t, l.ask(d, introspect.PathPod+"?namespace=default&name="+p.Name, nil).body)
		owner, _ := l.world.OwnerOf(p.IP)
		if len(doc.Interfaces) != 1 {
			t.Fatalf("%+v", doc)
		}
		f := doc.Interfaces[0]
		if f.Address != p.IP || f.ENIID != owner.ID || *f.Device != owner.Attachment.Device || f.SubnetID != owner.SubnetID || len(f.Differences) > 0 || f.Problem != "" {
			t.Errorf("%s at %s of %s: %+v", p.Name, p.IP, owner.ID, f)
		}
		if f.Observed == nil || f.Observed.Link == nil || !strings.Contains(l.ip(n, "-o", "link"), f.Observed.Link.Name+"@") {
			t.Errorf("%s: observed %+v", p.Name, f.Observed)
		}
		if !owner.Primary() {
			onSecond = i
		}
	}
	if onSecond < 0 {
		t.Fatal("no pod is on the second ENI")
	}
	broken := pods[onSecond]
	ip := broken.IP.String()
	differences := func() string {
		doc, _, err := c.Pod(t.Context(), introspect.PodRef{Namespace: "default", Name: broken.Name})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(doc.Interfaces[0].Differences, "\n")
	}
	link := ""
	for _, step := range []struct {
		break_ []string
		says   string
	}{
		{[]string{"rule", "del", "prio", "512", "to", ip}, `The rule "512: from all to ` + ip + ` lookup main" is missing.`},
		{[]string{"rule", "del", "prio", "1536", "from", ip}, "leaves by the primary network interface"},
		{[]string{"rule", "add", "prio", "1536", "from", ip, "lookup", "77"}, "is not one of the pod's"},
		{[]string{"route", "del", ip}, "The route to " + ip},
		{nil, "is down"},
	} {
		if step.break_ == nil {
			doc, _, err := c.Pod(t.Context(), introspect.PodRef{Namespace: "default", Name: broken.Name})
			if err != nil {
				t.Fatal(err)
			}
			link = doc.Interfaces[0].HostLink
			step.break_ = []string{"link", "set", link, "down"}
		}
		testenv.Eventually(l.t, fmt.Sprintf("after ip %v: %s", step.break_, step.says), func() bool {
			// The daemon may or may not have repaired the last fault already.
			if _, err := n.Exec(agent.Cmd{Argv: append([]string{"/usr/sbin/ip"}, step.break_...)}); err != nil {
				t.Fatal(err)
			}
			return strings.Contains(differences(), step.says)
		})
	}
	l.ip(n, "link", "del", link)
	if got := differences(); !strings.Contains(got, "The host link "+link+" is missing") {
		t.Errorf("without link: %q", got)
	}
	if a := l.ask(d, introspect.PathPod+"?namespace=default&name=unknown", nil); a.status != http.StatusNotFound {
		t.Errorf("a pod that is not there: %d %s", a.status, a.body)
	} else {
		all.check(t, a.body)
	}
}

// TestLogs_BoundedAndScrubbed reads the daemon's log over HTTP.
func TestLogs_BoundedAndScrubbed(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	pods := l.mustAdd(n, "p", 6, 3)
	// A pod that was deleted while no daemon ran: upstream's log line names its sandbox.
	l.kill(n, 9)
	l.age(n)
	if err := n.RemoveSandbox(pods[5]); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(l.t, "the link of a pod that is gone is gone", func() bool { return strings.Count(l.ip(n, "-o", "link"), "eni") == 5 })
	l.start(n, nil)
	c, d := l.introspection(n)
	all := l.schemas(d)
	file, err := os.ReadFile(n.DaemonEnv()["AWS_VPC_K8S_CNI_LOG_FILE"])
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(file), pods[5].ContainerID) {
		t.Fatal("the log file itself names no sandbox: the test shows nothing")
	}
	for _, q := range []introspect.LogQuery{{}, {Lines: introspect.MaxLogLines}, {Lines: 3}, {Level: "warn", Lines: 1000}, {Match: "stale", Lines: 1000}} {
		doc, err := c.Logs(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(doc.Lines, "\n")
		most := q.Lines
		if most == 0 {
			most = introspect.DefaultLogLines
		}
		if len(doc.Lines) == 0 || len(doc.Lines) > most || len(text) > introspect.MaxLogBytes {
			t.Errorf("%+v: %d lines, %d bytes", q, len(doc.Lines), len(text))
		}
		for _, p := range pods {
			if strings.Contains(text, p.ContainerID) {
				t.Errorf("%+v: the log holds the sandbox id of %s", q, p.Name)
			}
		}
		if strings.Contains(text, "container_id") || q.Level == "warn" && strings.Contains(text, `"level":"info"`) {
			t.Errorf("%+v: %s", q, text)
		}
	}
	for query, want := range map[string]int{
		"": 200, "?lines=1000": 200, "?lines=1001": 400, "?lines=0": 400, "?level=loud": 400, "?since=yesterday": 400, "?match=" + strings.Repeat("x", 300): 400, "?file=/etc/passwd": 400,
	} {
		a := l.ask(d, introspect.PathLogs+query, nil)
		if a.status != want {
			t.Errorf("%s: status %d, want %d", query, a.status, want)
		}
		all.check(t, a.body)
	}
}

// TestIntrospection_Transport: each of our documents matches its schema, is compressed on
// request, keeps its ETag while nothing changes, and is the same over TCP and over the Unix
// socket, even if a killed daemon has left its socket behind.
func TestIntrospection_Transport(t *testing.T) {
	t.Parallel()
	const socket = "/var/run/aws-node/introspection.sock"
	for name, where := range map[string]struct{ network, addr, setting string }{
		"tcp":  {"tcp", inNode, ""},
		"unix": {"unix", socket, "unix:" + socket},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, fakeaws.Options{})
			env := map[string]string{}
			if where.setting != "" {
				env["INTROSPECTION_BIND_ADDRESS"] = where.setting
			}
			n := l.boot("m5.large", env)
			l.kill(n, 9)
			l.start(n, env) // over the socket of the killed one
			d := l.door(n, where.network, where.addr)
			c := l.client(d)
			testenv.Eventually(l.t, "introspection", func() bool { _, _, err := c.Summary(t.Context()); return err == nil })
			pod := l.mustAdd(n, "p", 1, 1)[0]
			quiet := ""
			testenv.Eventually(l.t, "a pool at rest", func() bool {
				now := string(l.ask(d, introspect.PathSummary, nil).body)
				still := now == quiet && strings.Contains(now, `"operations":[]`)
				quiet = now
				return still
			})
			all := l.schemas(d)
			var commands introspect.Commands
			if err := json.Unmarshal(l.ask(d, "/", nil).body, &commands); err != nil || len(commands.AvailableCommands) < 12 {
				t.Errorf("commands: %+v, %v", commands, err)
			}
			for _, path := range []string{
				introspect.PathSummary, introspect.PathConfig, introspect.PathPlan, introspect.PathFailures, introspect.PathEvents,
				introspect.PathPod + "?namespace=default&name=" + pod.Name, introspect.PathSubnetHistory, introspect.PathSchemas,
			} {
				plain := l.ask(d, path, nil)
				if plain.status != http.StatusOK {
					t.Errorf("%s: status %d: %s", path, plain.status, plain.body)
					continue
				}
				all.check(t, plain.body)
				packed := l.ask(d, path, map[string]string{"Accept-Encoding": "gzip"})
				if got := unpacked(t, packed); !bytes.Equal(got, plain.body) {
					t.Errorf("%s: compressed\n%s\nplain\n%s", path, got, plain.body)
				}
				if len(plain.body) >= 1024 && packed.header.Get("Content-Encoding") != "gzip" {
					t.Errorf("%s: %d bytes are not compressed", path, len(plain.body))
				}
				tag := plain.header.Get("ETag")
				if tag == "" || packed.header.Get("ETag") != tag {
					t.Errorf("%s: entity tags %q and %q", path, tag, packed.header.Get("ETag"))
				}
				if again := l.ask(d, path, map[string]string{"If-None-Match": tag}); again.status != http.StatusNotModified || len(again.body) > 0 {
					t.Errorf("%s: status %d with %d bytes on an idle node", path, again.status, len(again.body))
				}
			}
			before := l.ask(d, introspect.PathSummary, nil).header.Get("ETag")
			l.del(n, append(l.mustAdd(n, "q", 1, 1), pod), 1)
			if after := l.ask(d, introspect.PathSummary, map[string]string{"If-None-Match": before}); after.status != http.StatusOK {
				t.Errorf("status %d after a change", after.status)
			}
			if a := l.ask(d, introspect.PathENIs, map[string]string{"Accept-Encoding": "gzip"}); a.header.Get("Content-Encoding") != "" || a.header.Get("ETag") != "" {
				t.Errorf("upstream's document has headers that upstream does not send: %v", a.header)
			}
			if where.network == "unix" {
				if _, err := n.Dial("tcp", inNode, time.Second); err == nil { //realtime: nothing answers
					t.Error("it serves on TCP too")
				}
			}
		})
	}
}

func unpacked(t *testing.T, a answer) []byte {
	t.Helper()
	if a.header.Get("Content-Encoding") != "gzip" {
		return a.body
	}
	r, err := gzip.NewReader(bytes.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
