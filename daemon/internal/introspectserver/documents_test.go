package introspectserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
	"cnictl/daemon/subnethistory"
	"cnictl/daemon/warmpool"
)

var testNow = time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)

// examplePool is an m5.large whose subnet is exhausted while a pod waits.
func examplePool() Pool {
	eni := ipam.ENIState{ENI: ipam.ENI{
		ID: "eni-0a1b2c3d4e5f60718", Primary: true, RouteTable: 254, SubnetID: "subnet-0123456789abcdef0", AttachedAt: testNow.Add(-time.Hour),
	}}
	for i := range 3 {
		addr := netip.AddrFrom4([4]byte{10, 0, 3, byte(41 + i)})
		eni.CIDRs = append(eni.CIDRs, ipam.CIDRState{Prefix: netip.PrefixFrom(addr, 32), Assigned: 1, Records: []ipam.AddressState{{
			Address: addr, Sandbox: ipam.Sandbox{Network: "aws-cni", ContainerID: "secret-id", IfName: "eth0"},
			Pod: ipam.Pod{Namespace: "shop", Name: fmt.Sprintf("cart-7d9f-%d", i)}, AssignedAt: testNow.Add(-time.Minute),
		}}})
	}
	return Pool{
		Now: testNow,
		Snapshot: warmpool.Snapshot{
			Book: ipam.Snapshot{ENIs: []ipam.ENIState{eni}}, Limits: warmpool.Limits{IPv4PerENI: 10, ENIsByCard: []int{3}},
			Subnets: []warmpool.Subnet{{ID: "subnet-0123456789abcdef0", AvailableIPs: 1801}}, OtherENIs: []int{0}, Waiting: []int{1},
		},
		Policy: warmpool.Policy{WarmENI: 1, WarmIP: 5, MinIP: 10, MaxPods: 29, Cooldown: 30 * time.Second, ScaleDownInterval: 30 * time.Second, ENIMinAge: time.Minute},
	}
}

// fullOptions serve every path, with fixed data.
func fullOptions() Options {
	p := examplePool()
	view := View{
		Now: testNow, Cooldown: 30 * time.Second, Book: p.Snapshot.Book, NetworkEnv: introspect.NetworkEnv{VethPrefix: "eni"},
		Summary: introspect.Summary{Cards: []introspect.CardSummary{{Mode: introspect.ModeSecondaryIP}}},
	}
	feed, failures := NewFeed(testNow.Add(-time.Hour)), NewFailureLog()
	ms, card, device := int64(1840), 0, 1
	feed.Append(introspect.Event{At: testNow.Add(-time.Hour), Kind: introspect.EventStarted, Message: "v1.0.0"})
	feed.Append(introspect.Event{
		At: testNow.Add(-3 * time.Minute), Kind: introspect.EventActionDone, ENIID: "eni-0b2c3d4e5f6071829", Card: &card, Device: &device,
		SubnetID: "subnet-0123456789abcdef0", Reason: string(warmpool.WarmIP), Message: "attach an ENI with 9 secondary IPs", DurationMS: &ms,
	})
	feed.Append(introspect.Event{
		At: testNow.Add(-time.Minute), Kind: introspect.EventAddressAssigned, Pod: &introspect.PodRef{Namespace: "shop", Name: "cart-7d9f-0"},
		Address: netip.MustParseAddr("10.0.3.41"), ENIID: "eni-0a1b2c3d4e5f60718",
	})
	failures.Append(introspect.Failure{
		At: testNow.Add(-time.Minute), Pod: introspect.PodRef{Namespace: "shop", Name: "cart-7d9f-3"}, Cause: string(cause.SubnetExhausted),
		Detail: "subnet-0123456789abcdef0 has no free addresses, next attempt in 30s", WaitedMS: 3000, Transient: true,
	})
	return Options{
		Addr: "127.0.0.1:0", Source: source(view), Log: discard(), Events: feed, Failures: failures,
		Pool: func(context.Context) (Pool, error) { return p, nil },
		ObservePod: func(_ context.Context, addr netip.Addr, link string) (introspect.PodKernel, error) {
			host := netip.PrefixFrom(addr, addr.BitLen())
			return introspect.PodKernel{
				Link:   &introspect.PodLink{Name: link, Index: 1180711, Kind: "veth", MAC: "9a:1f:5e:02:17:c3", MTU: 9001, Up: true, Running: true},
				Rules:  []introspect.PodRule{{Priority: 512, To: host, Table: 254}, {Priority: 1536, From: host, Table: 2}},
				Routes: []introspect.PodRoute{{Table: 254, To: host, Link: link}}, Tables: []introspect.PodRoute{}, Neighbours: []introspect.PodNeighbour{},
			}, nil
		},
		SubnetHistory: func() introspect.NodeSubnetHistory {
			var h subnethistory.History
			for i, free := range []int{4019, 4003, 3980} {
				h.Note(testNow.Add(time.Duration(20*i-40)*time.Minute), "subnet-0123456789abcdef0", free)
			}
			return h.Document()
		},
		ReadLog: func(_ context.Context, q introspect.LogQuery) (introspect.NodeLogs, error) {
			if q.Match == "none" {
				return introspect.NodeLogs{}, fmt.Errorf("%w: AWS_VPC_K8S_CNI_LOG_FILE is stdout; use kubectl logs", introspect.ErrNoLogFile)
			}
			if q.Match == "broken" {
				return introspect.NodeLogs{}, errors.New("read log: input/output error")
			}
			return introspect.NodeLogs{Path: "/host/var/log/aws-routed-eni/ipamd.log", Lines: []string{
				`{"level":"warn","ts":"2026-11-21T14:01:11.000Z","caller":"ipamd/requests.go:91","msg":"ADD failed","cause":"subnet-exhausted","sandbox_id":"<sandbox-id>"}`,
			}, Truncated: true}, nil
		},
	}
}

func ask(t *testing.T, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
	return w
}

func read[T any](t *testing.T, w *httptest.ResponseRecorder) T {
	t.Helper()
	var doc T
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return doc
}

// TestOptional_Paths: an optional path without its source answers 404 with a fault and is
// not listed.
func TestOptional_Paths(t *testing.T) {
	t.Parallel()
	bare := newHandler(Options{Source: source{}, Log: discard()}, "", nil)
	full := newHandler(fullOptions(), "", nil)
	listed := read[introspect.Commands](t, ask(t, full, "/"))
	if got, want := strings.Join(listed.AvailableCommands[4:], " "), "/v1/summary /v1/config /v1/plan /v1/failures /v1/events /v1/pod /v1/logs /v1/subnet-history /v1/schemas"; got != want {
		t.Errorf("listed %s, want %s", got, want)
	}
	for _, path := range []string{"/v1/plan", "/v1/failures", "/v1/events", "/v1/pod?namespace=shop&name=cart-7d9f-1", "/v1/logs", "/v1/subnet-history"} {
		w := ask(t, bare, path)
		if f := read[introspect.Fault](t, w); w.Code != http.StatusNotFound || f.Kind != introspect.KindFault || f.Code != introspect.FaultNotServed {
			t.Errorf("%s: %d %+v", path, w.Code, f)
		}
		if w := ask(t, full, path); w.Code != http.StatusOK || w.Header().Get("ETag") == "" || strings.Contains(w.Body.String(), "secret-id") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	h := newHandler(fullOptions(), "", nil)
	for target, want := range map[string]string{
		"/v1/plan?warmIp=-1":                         `400 bad-parameter warmIp="-1": an integer from 0 to 2147483647 is accepted`,
		"/v1/plan?warmIp=2147483648":                 `400 bad-parameter warmIp="2147483648": an integer from 0 to 2147483647 is accepted`,
		"/v1/plan?warmIp=1&warmIp=2":                 `400 bad-parameter warmIp is given 2 times`,
		"/v1/plan?warmIP=1":                          `400 bad-parameter unknown parameter "warmIP"; the parameters are warmEni, warmIp, minimumIp, warmPrefix, maxEni, maxPods`,
		"/v1/plan?warmIp=%zz":                        `400 bad-parameter the query cannot be read: "invalid URL escape \"%zz\""`,
		"/v1/plan?x=" + strings.Repeat("y", 3000):    `400 bad-parameter the query has 3002 bytes; at most 2048 are accepted`,
		"/v1/failures?x=1":                           `400 bad-parameter unknown parameter "x"; the parameters are `,
		"/v1/events?wait=31":                         `400 bad-parameter wait="31": an integer from 0 to 30 is accepted`,
		"/v1/events?since=-1":                        `400 bad-parameter since="-1": must be the "next" value of an earlier response`,
		"/v1/events?since=9&epoch=" + epochOf(h):     `400 bad-parameter since is 9, but the newest event is 3`,
		"/v1/pod?namespace=shop":                     `400 bad-parameter namespace and name of the pod are required`,
		"/v1/pod?namespace=shop&name=nobody":         `404 not-found no address of this node is assigned to pod shop/nobody; pods in the host's network and with branch ENIs have none`,
		"/v1/logs?level=loud":                        `400 bad-parameter level="loud": debug, info, warn, error and fatal are accepted`,
		"/v1/logs?since=yesterday":                   `400 bad-parameter since="yesterday": must be a time such as 2026-11-21T14:02:11Z`,
		"/v1/logs?lines=1001":                        `400 bad-parameter lines="1001": an integer from 1 to 1000 is accepted`,
		"/v1/logs?match=none":                        `404 not-found there is no log file to read: AWS_VPC_K8S_CNI_LOG_FILE is stdout; use kubectl logs`,
		"/v1/logs?match=broken":                      `503 unavailable read the log: read log: input/output error; the daemon's log may say more`,
		"/v1/schemas/Pod":                            `404 not-found no schema for kind "Pod"; /v1/schemas lists them`,
		"/v1/schemas/":                               `404 not-found no schema for kind ""; /v1/schemas lists them`,
		"/v1/logs?match=" + strings.Repeat("y", 257): `400 bad-parameter match has 257 bytes; at most 256 are accepted`,
	} {
		w := ask(t, h, target)
		f := read[introspect.Fault](t, w)
		if got := fmt.Sprintf("%d %s %s", w.Code, f.Code, f.Message); got != want || f.Kind != introspect.KindFault || f.APIVersion != introspect.APIVersion {
			t.Errorf("%.60s:\n got %s\nwant %s", target, got, want)
		}
	}
}

func epochOf(h *handler) string { return h.opts.Events.epoch }

func TestMethods(t *testing.T) {
	t.Parallel()
	h := newHandler(fullOptions(), "", nil)
	for method, want := range map[string]int{http.MethodGet: 200, http.MethodHead: 200, http.MethodPost: 405, http.MethodDelete: 405, "X": 405} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, introspect.PathPlan, nil))
		if w.Code != want || want == 405 && w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d", method, w.Code)
		}
		// Upstream answers any method.
		w = httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, introspect.PathENIs, nil))
		if w.Code != 200 {
			t.Errorf("%s of upstream's: %d", method, w.Code)
		}
	}
}

func TestForeignHost(t *testing.T) {
	t.Parallel()
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 61679}
	for _, row := range []struct {
		local   net.Addr
		host    string
		bound   string
		foreign bool
	}{
		{loopback, "127.0.0.1:61679", "", false},
		{loopback, "[::1]:61679", "", false},
		{loopback, "localhost:61679", "", false},
		{loopback, "LOCALHOST.", "", false},
		{loopback, "a.localhost:1", "", false},
		{loopback, "node", "", false},
		{loopback, "", "", false},
		{loopback, "attacker.example", "", true},
		{loopback, "attacker.example:61679", "", true},
		{loopback, "127.0.0.1.attacker.example", "", true},
		{loopback, "node.internal:61679", "node.internal", false},
		{&net.TCPAddr{IP: net.IPv4(10, 0, 3, 17)}, "ip-10-0-3-17.ec2.internal:61679", "", false},
		{&net.UnixAddr{Name: "/run/x.sock"}, "any.example", "", false},
		{nil, "any.example", "", false},
	} {
		ctx := context.WithValue(t.Context(), http.LocalAddrContextKey, row.local)
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, introspect.PathSummary, nil)
		r.Host = row.host
		if got := foreignHost(r, row.bound); got != row.foreign {
			t.Errorf("%+v: %t", row, got)
		}
		for _, path := range append([]string{introspect.PathSummary, "/", introspect.PathSchemas}, introspect.UpstreamPaths...) {
			r.URL.Path = path
			w := httptest.NewRecorder()
			newHandler(fullOptions(), row.bound, nil).ServeHTTP(w, r)
			if (w.Code == http.StatusForbidden) != row.foreign {
				t.Errorf("%s: %+v: %d", path, row, w.Code)
			}
		}
	}
}

func TestSchemas_Served(t *testing.T) {
	t.Parallel()
	h := newHandler(fullOptions(), "", nil)
	list := read[introspect.SchemaList](t, ask(t, h, introspect.PathSchemas))
	for _, ref := range list.Items {
		w := ask(t, h, ref.Path)
		if s := read[struct{ Title string }](t, w); w.Code != http.StatusOK || s.Title != ref.Kind {
			t.Errorf("%s: %d %+v", ref.Path, w.Code, s)
		}
	}
	if len(list.Items) < 9 {
		t.Errorf("%d schemas", len(list.Items))
	}
}

func TestPlan_Document(t *testing.T) {
	t.Parallel()
	h := newHandler(fullOptions(), "", nil)
	plan := func(query string) string {
		w := ask(t, h, introspect.PathPlan+query)
		doc := read[introspect.NodePlan](t, w)
		out := fmt.Sprintf("what-if %t, max-pods %d", doc.WhatIf, doc.MaxPods)
		for _, a := range doc.Actions {
			where := "-"
			if a.Card != nil {
				where = fmt.Sprintf("%d/%d", *a.Card, *a.Device)
			}
			if a.Title == "" || a.Text == "" {
				t.Errorf("%+v", a)
			}
			out += fmt.Sprintf("; %s %s %s %s %d %s", a.Kind, a.ENIID, where, a.SubnetID, a.Count, a.Reason)
		}
		for _, b := range doc.Blocked {
			out += fmt.Sprintf("; card %d blocked %s: %s", b.Card, b.Cause, b.Message)
		}
		return out
	}
	for query, want := range map[string]string{
		"":                      "what-if false, max-pods 29; assign-addresses eni-0a1b2c3d4e5f60718 0/0 subnet-0123456789abcdef0 6 waiting-pods; attach-eni  0/1 subnet-0123456789abcdef0 1 waiting-pods",
		"?warmIp=5":             "what-if false, max-pods 29; assign-addresses eni-0a1b2c3d4e5f60718 0/0 subnet-0123456789abcdef0 6 waiting-pods; attach-eni  0/1 subnet-0123456789abcdef0 1 waiting-pods",
		"?maxPods=3":            "what-if true, max-pods 3; card 0 blocked pool-full: the pool holds 3 addresses, max-pods is 3",
		"?warmIp=1&maxEni=1":    "what-if true, max-pods 29; assign-addresses eni-0a1b2c3d4e5f60718 0/0 subnet-0123456789abcdef0 6 waiting-pods",
		"?minimumIp=0&warmIp=1": "what-if true, max-pods 29; assign-addresses eni-0a1b2c3d4e5f60718 0/0 subnet-0123456789abcdef0 2 waiting-pods",
	} {
		if got := plan(query); got != want {
			t.Errorf("%s:\n got %s\nwant %s", query, got, want)
		}
	}
}

// TestPlannedAction: every kind of action has all its members.
func TestPlannedAction(t *testing.T) {
	t.Parallel()
	book := ipam.Snapshot{ENIs: []ipam.ENIState{{ENI: ipam.ENI{ID: "eni-1", Card: 1, Device: 2, SubnetID: "subnet-1"}}}}
	cidr := netip.MustParsePrefix("10.0.0.16/28")
	on := `"card":1,"device":2,"subnetId":"subnet-1"`
	for want, a := range map[string]warmpool.Action{
		`{"kind":"attach-eni","eniId":"","card":1,"device":3,"subnetId":"subnet-9","count":4,"prefixes":false,"cidrs":[],"reason":"warm-eni-target"`: warmpool.AttachENI{Card: 1, Device: 3, SubnetID: "subnet-9", IPs: 4, Reason: warmpool.WarmENI},
		`{"kind":"attach-eni","eniId":"","card":0,"device":3,"subnetId":"","count":2,"prefixes":true,"cidrs":[],"reason":"warm-eni-target"`:          warmpool.AttachENI{Device: 3, Prefixes: 2, Reason: warmpool.WarmENI},
		`{"kind":"assign-addresses","eniId":"eni-1",` + on + `,"count":3,"prefixes":false,"cidrs":[],"reason":"pool-empty"`:                          warmpool.AssignAddresses{ENI: "eni-1", Count: 3, Reason: warmpool.PoolEmpty},
		`{"kind":"assign-prefixes","eniId":"eni-1",` + on + `,"count":3,"prefixes":true,"cidrs":[],"reason":"pool-empty"`:                            warmpool.AssignPrefixes{ENI: "eni-1", Count: 3, Reason: warmpool.PoolEmpty},
		`{"kind":"unassign-addresses","eniId":"eni-1",` + on + `,"count":1,"prefixes":false,"cidrs":["10.0.0.16/28"],"reason":"surplus-ips"`:         warmpool.UnassignAddresses{ENI: "eni-1", CIDRs: []netip.Prefix{cidr}, Reason: warmpool.SurplusIPs},
		`{"kind":"unassign-prefixes","eniId":"eni-1",` + on + `,"count":1,"prefixes":true,"cidrs":["10.0.0.16/28"],"reason":"surplus-prefixes"`:      warmpool.UnassignPrefixes{ENI: "eni-1", CIDRs: []netip.Prefix{cidr}, Reason: warmpool.SurplusPrefixes},
		`{"kind":"detach-eni","eniId":"eni-1",` + on + `,"count":0,"prefixes":false,"cidrs":[],"reason":"surplus-eni"`:                               warmpool.DetachENI{ENI: "eni-1", Reason: warmpool.SurplusENI},
		`{"kind":"wait","eniId":"","card":null,"device":null,"subnetId":"","count":0,"prefixes":false,"cidrs":[],"reason":"eni-too-young"`:           warmpool.Wait{Until: testNow, Reason: warmpool.ENITooYoung},
		`{"kind":"detach-eni","eniId":"eni-9","card":null,"device":null,"subnetId":"","count":0,"prefixes":false,"cidrs":[],"reason":"surplus-eni"`:  warmpool.DetachENI{ENI: "eni-9", Reason: warmpool.SurplusENI},
	} {
		got, err := json.Marshal(plannedAction(a, book))
		if err != nil || !strings.HasPrefix(string(got), want) {
			t.Errorf("\n got %s, %v\nwant %s", got, err, want)
		}
	}
}

func TestPod_Differences(t *testing.T) {
	t.Parallel()
	p, a := netip.MustParsePrefix, netip.MustParseAddr
	table := 2
	want := introspect.PodInterface{Address: a("10.0.0.21"), ENIID: "eni-1", RouteTable: &table, HostLink: "eni0761ccbeace"}
	good := func() introspect.PodKernel {
		return introspect.PodKernel{
			Link:   &introspect.PodLink{Name: "eni0761ccbeace", Up: true, Running: true},
			Rules:  []introspect.PodRule{{Priority: 512, To: p("10.0.0.21/32"), Table: 254}, {Priority: 1536, From: p("10.0.0.21/32"), Table: 2}},
			Routes: []introspect.PodRoute{{Table: 254, To: p("10.0.0.21/32"), Link: "eni0761ccbeace"}},
			Tables: []introspect.PodRoute{{Table: 2, To: p("0.0.0.0/0"), Gateway: a("10.0.0.1"), Link: "eth1"}},
		}
	}
	for name, row := range map[string]struct {
		change func(*introspect.PodInterface, *introspect.PodKernel)
		want   []string
	}{
		"as wanted": {func(*introspect.PodInterface, *introspect.PodKernel) {}, nil},
		"no link":   {func(_ *introspect.PodInterface, k *introspect.PodKernel) { k.Link = nil }, []string{"The host link eni0761ccbeace is missing: the pod is cut off, or was never set up."}},
		"down":      {func(_ *introspect.PodInterface, k *introspect.PodKernel) { k.Link.Up = false }, []string{"The host link eni0761ccbeace is down."}},
		"pod's end": {func(_ *introspect.PodInterface, k *introspect.PodKernel) { k.Link.Running = false }, []string{"The host link eni0761ccbeace is up, but the pod's end of it is not."}},
		"no route":  {func(_ *introspect.PodInterface, k *introspect.PodKernel) { k.Routes = nil }, []string{"The route to 10.0.0.21 through eni0761ccbeace is missing from the main table."}},
		"other route": {func(_ *introspect.PodInterface, k *introspect.PodKernel) {
			k.Routes = append(k.Routes, introspect.PodRoute{Link: "cali1", Gateway: a("10.0.0.9")})
		}, []string{"A route to 10.0.0.21 leads via 10.0.0.9 to cali1 and not to the pod's link eni0761ccbeace."}},
		"no rules": {func(_ *introspect.PodInterface, k *introspect.PodKernel) { k.Rules = nil }, []string{
			`The rule "512: from all to 10.0.0.21 lookup main" is missing.`,
			`The rule "1536: from 10.0.0.21 lookup 2" is missing: the pod's traffic leaves by the primary network interface.`,
		}},
		"rule to another table": {func(_ *introspect.PodInterface, k *introspect.PodKernel) { k.Rules[1].Table = 3 }, []string{
			`The rule "1536: from 10.0.0.21 lookup 3" is not one of the pod's: it sends the pod's traffic elsewhere.`,
			`The rule "1536: from 10.0.0.21 lookup 2" is missing: the pod's traffic leaves by the primary network interface.`,
		}},
		"on the primary": {func(i *introspect.PodInterface, _ *introspect.PodKernel) { main := 254; i.RouteTable = &main }, []string{
			`The rule "1536: from 10.0.0.21 lookup 2" is not one of the pod's: it sends the pod's traffic elsewhere.`,
		}},
		"old release": {func(_ *introspect.PodInterface, k *introspect.PodKernel) {
			k.Rules = append(k.Rules, introspect.PodRule{Priority: 1536, From: p("10.0.0.21/32"), To: p("10.0.0.0/16"), Table: 2})
		}, []string{`The rule "1536: from 10.0.0.21 to 10.0.0.0/16 lookup 2" is not one of the pod's: it sends the pod's traffic elsewhere.`}},
		"no default route": {func(_ *introspect.PodInterface, k *introspect.PodKernel) { k.Tables = nil }, []string{
			"Table 2 of eni-1 has no default route: the pod reaches nothing outside of its node.",
		}},
		"table not known": {func(i *introspect.PodInterface, k *introspect.PodKernel) { i.RouteTable = nil }, nil},
		"silent": {func(_ *introspect.PodInterface, k *introspect.PodKernel) {
			k.Neighbours = []introspect.PodNeighbour{{Address: a("10.0.0.21"), Link: "eni0761ccbeace", State: "failed"}, {State: "stale"}}
		}, []string{"The pod does not answer for 10.0.0.21 on eni0761ccbeace (neighbour entry failed)."}},
	} {
		i, k := want, good()
		row.change(&i, &k)
		if got := podDifferences(i, k); strings.Join(got, "\n") != strings.Join(row.want, "\n") || got == nil {
			t.Errorf("%s:\n got %q\nwant %q", name, got, row.want)
		}
	}
}

func TestPod_Interfaces(t *testing.T) {
	t.Parallel()
	pod := ipam.Pod{Namespace: "shop", Name: "cart", Interfaces: 2}
	eni := func(id string, card int, addr string) ipam.ENIState {
		return ipam.ENIState{ENI: ipam.ENI{ID: ipam.ENIID(id), Card: card, Device: 1, RouteTable: 2}, CIDRs: []ipam.CIDRState{{
			Prefix: netip.MustParsePrefix(addr + "/32"), Records: []ipam.AddressState{
				{Address: netip.MustParseAddr(addr), Sandbox: ipam.Sandbox{Network: "aws-cni"}, Pod: pod, AssignedAt: testNow},
			},
		}}}
	}
	rested := eni("eni-3", 0, "10.0.0.3")
	rested.CIDRs[0].Records[0].Sandbox = ipam.Sandbox{}
	v := View{NetworkEnv: introspect.NetworkEnv{VethPrefix: "eni"}, Book: ipam.Snapshot{
		ENIs:     []ipam.ENIState{eni("eni-2", 1, "10.0.0.2"), eni("eni-1", 0, "10.0.0.1"), rested},
		Unplaced: []ipam.Assignment{{Pod: pod, Address: netip.MustParseAddr("10.0.0.9")}, {Address: netip.MustParseAddr("10.0.0.8")}},
	}}
	var got []string
	for _, i := range podInterfaces(v, introspect.PodRef{Namespace: "shop", Name: "cart"}) {
		got = append(got, fmt.Sprint(i.Address, " ", i.ENIID, " ", i.HostLink))
	}
	name := func(index int) string { return netnames.HostVeth("eni", "shop", "cart", index) }
	want := []string{"10.0.0.1 eni-1 " + name(0), "10.0.0.2 eni-2 " + name(1), "10.0.0.9  " + name(2)}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPod_NotObserved(t *testing.T) {
	t.Parallel()
	opts := fullOptions()
	opts.ObservePod = func(context.Context, netip.Addr, string) (introspect.PodKernel, error) {
		return introspect.PodKernel{}, errors.New("open rtnetlink: too many open files")
	}
	w := ask(t, newHandler(opts, "", nil), "/v1/pod?namespace=shop&name=cart-7d9f-1")
	doc := read[introspect.NodePod](t, w)
	if i := doc.Interfaces[0]; i.Observed != nil || i.Differences != nil || i.Problem != "open rtnetlink: too many open files" {
		t.Errorf("%s", w.Body)
	}
}

func TestLogs_TooManyRead(t *testing.T) {
	t.Parallel()
	opts := fullOptions()
	began, end := make(chan struct{}), make(chan struct{})
	opts.ReadLog = func(context.Context, introspect.LogQuery) (introspect.NodeLogs, error) {
		began <- struct{}{}
		<-end
		return introspect.NodeLogs{}, nil
	}
	h := newHandler(opts, "", nil)
	var all sync.WaitGroup
	for range maxReads {
		all.Go(func() { ask(t, h, "/v1/logs") })
		<-began
	}
	for _, path := range []string{"/v1/logs", "/v1/pod?namespace=shop&name=cart-7d9f-1"} {
		w := ask(t, h, path)
		if f := read[introspect.Fault](t, w); w.Code != http.StatusServiceUnavailable || f.Code != introspect.FaultBusy || w.Header().Get("Retry-After") != "1" {
			t.Errorf("%s: %d %+v", path, w.Code, f)
		}
	}
	close(end)
	all.Wait()
}
