package fakeaws_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/testenv/fakeaws"
)

// ask sends a request to a world's control API.
func ask(t *testing.T, w *fakeaws.World, method, path, body string) (status int, answer string) {
	t.Helper()
	rec := httptest.NewRecorder()
	fakeaws.ControlHandler(w).ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return rec.Code, rec.Body.String()
}

// For one request of each kind: the status and part of the answer, and its effect on the world.
func TestControl(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	subnet, primary := b.subnet.ID, b.instance.PrimaryENI
	for _, row := range []struct {
		request, body string
		status        int
		says          string
		holds         func() bool // may be nil
	}{
		{"GET /", "", 200, "/faults", nil},
		{"GET /world", "", 200, `"primaryEni": "` + primary + `"`, nil},
		{"POST /faults", `{"action":"DescribeSubnets","first":2,"probability":0.5,"seed":9,"code":"InternalError"}`, 200, `"id": "fault-1"`, func() bool { return len(b.Faults()) == 1 }},
		{"GET /faults", "", 200, `"probability": 0.5`, nil},
		{"POST /faults", `{"action":"DescribeSubnets"}`, 400, "does nothing", nil},
		{"POST /faults", `{"action":"DescribeSubnets","colour":"red"}`, 400, "colour", nil},
		{"POST /faults", `{} {}`, 400, "follows", nil},
		{"POST /faults", `[{"action":"*","reply":"hang"}]`, 400, `"read the body: an object is wanted, not a list"`, nil},
		{"POST /faults", "", 400, `"read the body: it is empty: an object is wanted"`, nil},
		{"POST /faults", `{"action":"*"`, 400, "it is cut off", nil},
		{"POST /faults", `{"action":*}`, 400, "invalid JSON: invalid character '*'", nil},
		{"POST /faults", `{"action":"*","first":"2"}`, 400, `member \"first\": an integer is wanted, not a string`, nil},
		{"POST /faults", `{"action":"*","params":[]}`, 400, `member \"params\": an object is wanted, not a list`, nil},
		{"DELETE /faults/nothing", "", 404, "nothing", nil},
		{"DELETE /faults/fault-1", "", 200, "{}", func() bool { return len(b.Faults()) == 0 }},
		{"DELETE /faults", "", 200, "{}", nil},
		{"POST /subnets/" + subnet + "/occupy", `{"count":10}`, 200, `"taken": 10`, func() bool { n, _ := b.Subnet(subnet); return n.Free == 251-1-10 }},
		{"POST /subnets/" + subnet + "/occupy", `{"count":-1}`, 400, "count=-1: a number from 0 is accepted", nil},
		{"POST /subnets/" + subnet + "/occupy", `{"count":1.5}`, 400, "an integer is wanted, not number 1.5", nil},
		{"POST /subnets/" + subnet + "/vacate", "", 200, "{}", func() bool { n, _ := b.Subnet(subnet); return n.Free == 251-1 }},
		{"POST /subnets/" + subnet + "/fragment", "", 200, "{}", func() bool { n, _ := b.Subnet(subnet); return n.Free < 251-1 }},
		{"POST /subnets/" + subnet + "/mow", "", 404, "mow", nil},
		{"POST /subnets/subnet-0/vacate", "", 409, "InvalidSubnetID.NotFound", nil},
		{"POST /enis", `{"subnetId":"` + subnet + `","ips":2,"tags":{"a":"b"},"attach":{"instanceId":"` + b.instance.ID + `","device":1}}`, 200, `"status": "attached"`, nil},
		{"POST /enis", `{"subnetId":"` + subnet + `","attach":{"instanceId":"` + b.instance.ID + `","device":1}}`, 409, "already", func() bool { return len(b.ENIs()) == 2 }},
		{"DELETE /enis/eni-0fa4e000000000002", "", 409, "in use", nil},
		{"POST /enis/eni-0fa4e000000000002/assign", `{"count":1}`, 200, "/32", func() bool { e, _ := b.ENI("eni-0fa4e000000000002"); return len(e.SecondaryIPs) == 3 }},
		{"POST /enis/eni-0fa4e000000000002/unassign", `{"cidrs":["10.0.0.6/32"]}`, 200, "{}", func() bool { _, ok := b.OwnerOf(netip.MustParseAddr("10.0.0.6")); return !ok }},
		{"POST /enis/eni-0fa4e000000000002/detach", "", 200, "{}", func() bool { e, _ := b.ENI("eni-0fa4e000000000002"); return e.Attachment.ID == "" }},
		{"POST /enis/eni-0fa4e000000000002/attach", `{"instanceId":"` + b.instance.ID + `","device":2,"hold":"attaching"}`, 200, `"status": "attaching"`, nil},
		{"POST /enis/eni-0fa4e000000000002/attach", `{"hold":"detaching"}`, 400, "hold", nil},
		{"POST /enis/eni-0fa4e000000000002/settle", "", 200, "{}", func() bool { e, _ := b.ENI("eni-0fa4e000000000002"); return e.Attached() }},
		{"POST /enis/eni-0/settle", "", 409, "InvalidNetworkInterfaceID.NotFound", nil},
		{"PATCH /tags/eni-0fa4e000000000002", `{"a":null,"c":"d"}`, 200, "{}", func() bool {
			tags, _ := b.Tags("eni-0fa4e000000000002")
			return cmp.Equal(tags, map[string]string{"c": "d"})
		}},
		{"PATCH /tags/vpc-1", `{}`, 404, "vpc-1", nil},
		{"PATCH /settings", `{"metadataLag":"1m","describeLag":"2s","latency":{"IMDS":"5ms"},"throttle":"account","allow":["DescribeSubnets"],"exhaustedAsValue":true}`, 200, `"perSecond": 20`, nil},
		{"GET /settings", "", 200, `"metadataLag": "1m0s"`, nil},
		{"PATCH /settings", `{"throttle":"none","allow":["*"]}`, 200, `"throttle": "none"`, nil},
		{"PATCH /settings", `{"throttle":{"describe":{"size":1,"perSecond":1},"unfiltered":{"size":1,"perSecond":1},"mutating":{"size":0.5,"perSecond":1}}}`, 400, "mutating", nil},
		{"PATCH /settings", `{"throttle":{"describe":{"size":1,"perSec":1}}}`, 400, `throttle: unknown field \"perSec\"`, nil},
		{"PATCH /settings", `{"throttle":{"describe":3}}`, 400, `throttle: member \"describe\": an object is wanted, not a number`, nil},
		{"PATCH /settings", `{"throttle":"lots"}`, 400, "none or account", nil},
		{"PATCH /settings", `{"latency":{"DescribeVpcs":"1s"}}`, 400, "DescribeVpcs", nil},
		{"PATCH /settings", `{"allow":["DescribeVpcs"]}`, 400, "DescribeVpcs", nil},
		{"PATCH /settings", `{"metadataLag":"soon"}`, 400, "soon", nil},
		{"POST /tokens/revoke", "", 200, "{}", nil},
		{"GET /calls", "", 200, `"calls": []`, nil},
		{"GET /calls?from=-1", "", 400, "from", nil},
		{"GET /imds-calls", "", 200, `"next": 0`, nil},
		{"GET /violations", "", 200, "[]", nil},
		{"POST /enis", `{"subnetId":"` + subnet + `","ips":-2}`, 400, "ips=-2", nil},
		{"POST /enis/eni-0fa4e000000000002/assign", `{"prefixes":-1}`, 400, "prefixes=-1", nil},
		{"POST /enis/eni-0fa4e000000000002/unassign", `{"cidrs":["10.0.0.9"]}`, 400, "one like 10.0.0.9/32", nil},
		{"GET /elsewhere", "", 404, `"error": "there is no path \"/elsewhere\"; GET / lists what is served"`, nil},
		{"PUT /faults", "", 405, `"error": "PUT is not accepted by \"/faults\", DELETE, GET, HEAD, POST is; GET / lists what is served"`, nil},
	} {
		method, path, _ := strings.Cut(row.request, " ")
		status, answer := ask(t, b.World, method, path, row.body)
		if status != row.status || !strings.Contains(answer, row.says) {
			t.Errorf("%s %s: %d %s, want %d and %q", row.request, row.body, status, answer, row.status, row.says)
		}
		if row.holds != nil && !row.holds() {
			t.Errorf("%s %s: the world does not show it: %s", row.request, row.body, answer)
		}
	}
	b.noViolations()
}

// A world starts with the faults and limits of its description.
func TestDescription_Faults(t *testing.T) {
	t.Parallel()
	d, err := fakeaws.ParseDescription([]byte(`{"describeLag":"3s","buckets":{"describe":{"size":4,"perSecond":1},"unfiltered":{"size":4,"perSecond":1},"mutating":{"size":4,"perSecond":1}},
"faults":[{"action":"AttachNetworkInterface","last":1,"hold":"attaching"},{"id":"slow","action":"IMDS","path":"meta-data/*","reply":"stall"}],"vpcs":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	w, err := d.Build()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	want := []fakeaws.Rule{{ID: "fault-1", Action: "AttachNetworkInterface", Last: 1, Fault: fakeaws.Fault{Hold: fakeaws.HoldAttaching}},
		{ID: "slow", Action: "IMDS", Path: "meta-data/*", Fault: fakeaws.Fault{Reply: fakeaws.ReplyStall}}}
	if diff := cmp.Diff(want, w.Faults()); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	_, body := ask(t, w, "GET", "/settings", "")
	var s fakeaws.Settings
	if err := json.Unmarshal([]byte(body), &s); err != nil || time.Duration(*s.DescribeLag) != 3*time.Second || s.Throttle.Throttle.Mutating.Size != 4 {
		t.Errorf("settings %s (%v)", body, err)
	}
	for _, bad := range []string{`{"faults":[{"action":"*"}]}`, `{"buckets":{"describe":{"size":0}}}`, `{"faults":[{"action":"*","code":"x","when":"now"}]}`} {
		d, err := fakeaws.ParseDescription([]byte(bad))
		if err == nil {
			_, err = d.Build()
		}
		if err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// Only this machine can reach the control API.
func TestControl_Loopback(t *testing.T) {
	t.Parallel()
	w, _ := newWorld(t, fakeaws.Options{})
	for _, addr := range []string{"0.0.0.0:0", ":0", "10.0.0.1:0", "localhost:0"} {
		if s, err := fakeaws.Listen(w, fakeaws.ServerOptions{ControlAddr: addr}); err == nil || !strings.Contains(err.Error(), "loopback") {
			t.Errorf("%s: %v", addr, err)
			_ = s.Close()
		}
	}
	s, err := fakeaws.Listen(w, fakeaws.ServerOptions{ControlAddr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	resp, err := http.Get(s.ControlURL + "/world")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
}

// For any request, the answer is JSON and the world stays consistent.
func FuzzControl(f *testing.F) {
	for _, seed := range []string{"POST /faults\n{\"action\":\"*\",\"reply\":\"hang\"}", "PATCH /settings\n{\"throttle\":{}}", "POST /enis\n{\"subnetId\":\"subnet-0fa4e000000000001\",\"ips\":-1}",
		"PATCH /tags/i-0fa4e000000000001\n{\"a\":null}", "POST /subnets/subnet-0fa4e000000000001/occupy\n{\"count\":-5}", "POST /enis/eni-0fa4e000000000001/unassign\n{\"cidrs\":[\"10.0.0.4/33\"]}",
		"POST /enis/eni-0fa4e000000000001/assign\n{\"count\":100000000,\"prefixes\":-3}", "POST /enis/eni-0fa4e000000000001/detach\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, request string) {
		line, body, _ := strings.Cut(request, "\n")
		method, path, _ := strings.Cut(line, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, "http://fakeaws"+path, strings.NewReader(body))
		if err != nil || !strings.HasPrefix(path, "/") {
			return
		}
		w, v := newWorld(t, fakeaws.Options{})
		addInstance(t, w, "m5.large", addSubnet(t, w, fakeaws.SubnetSpec{VPCID: v.ID}, "10.0.0.0/24").ID)
		rec := httptest.NewRecorder()
		fakeaws.ControlHandler(w).ServeHTTP(rec, r)
		plain := rec.Code/100 == 3 || r.URL.Path == "/" // net/http's redirects, and the help
		if !plain && (rec.Header().Get("Content-Type") != "application/json" || !json.Valid(rec.Body.Bytes())) {
			t.Errorf("%q: %s", request, rec.Body)
		}
	})
}
