package reading

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/daemon/api/introspect"
	"cnictl/doctor/evidence"
)

var comparers = cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})}

const shapes = "../../../daemon/api/introspect/testdata/shapes"

func TestENIs(t *testing.T) {
	t.Parallel()
	pod := evidence.Pod("default/web-1")
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	const record = `"IPAMMetadata": {"k8sPodNamespace": "default", "k8sPodName": "web-1"}, "AssignedTime": "2026-11-21T14:00:00Z"`
	blanked := `{"0": {"TotalIPs": 17, "AssignedIPs": -1, "ENIs": {"eni-a": {"ID": "eni-a", "IsPrimary": true, "SubnetID": "subnet-a", "RouteTableID": 254, "IsExcludedForPodIPs": false,
		"AvailableIPv4Cidrs": {
			"10.0.0.5/32": {"Cidr": {"IP": "10.0.0.5", "Mask": "/////w=="}, "IPAddresses": {"10.0.0.5": {"Address": "10.0.0.5", "IPAMKey": {"networkName": "aws-cni", "containerID": "", "ifName": ""}, ` + record + `}}},
			"10.0.1.0/28": {"Cidr": {"IP": "10.0.1.0", "Mask": "////8A=="}, "IPAddresses": {}, "IsPrefix": true}}, "IPv6Cidrs": {}}}},
		"1": {"TotalIPs": 0, "AssignedIPs": 0, "ENIs": {}}}`
	enis, counters, err := ENIs([]byte(blanked))
	if err != nil {
		t.Fatal(err)
	}
	wantENIs := []evidence.ENI{{
		ID: "eni-a", Primary: true, Subnet: "subnet-a", RouteTable: new(254),
		IPs:      []evidence.Address{{Address: netip.MustParseAddr("10.0.0.5"), Pod: &pod, AssignedAt: at}},
		Prefixes: []evidence.Prefix{{CIDR: netip.MustParsePrefix("10.0.1.0/28"), IPs: []evidence.Address{}}},
	}}
	wantCounters := map[string]evidence.Counters{"0": {TotalIPs: 17, AssignedIPs: -1}, "1": {}}
	if diff := cmp.Diff(wantENIs, enis, comparers); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(wantCounters, counters); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestENIs_Shapes: the document of every release yields its assigned addresses.
func TestENIs_Shapes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(shapes + "/*.json")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pool, err := introspect.Decode(body)
		if err != nil {
			t.Fatal(name, err)
		}
		want, got := 0, 0
		for _, e := range pool.ENIs {
			want += e.Assigned
		}
		enis, _, err := ENIs(body)
		for _, e := range enis {
			all := e.IPs
			for _, p := range e.Prefixes {
				all = append(all, p.IPs...)
			}
			for _, a := range all {
				if a.Pod != nil {
					got++
				}
			}
		}
		if err != nil || got != want || want == 0 {
			t.Errorf("%s: %d addresses of pods, want %d (%v)", name, got, want, err)
		}
	}
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	const commands = `{"AvailableCommands":["/v1/enis"]}`
	answer := func(body string) Answer { return Answer{Status: 200, Body: []byte(body)} }
	var r evidence.Reading
	Documents(&r, map[string]Answer{
		introspect.PathENIs:                           {Missing: evidence.MissingTimeout},
		introspect.PathIPAMEnv:                        answer(`{"WARM_IP_TARGET": 3}`),
		introspect.PathNetworkEnv:                     answer(`{"AWS_VPC_ENI_MTU": 9001}`),
		introspect.PathENIConfigs:                     answer(`"eu-west-1a"`),
		introspect.PathSummary:                        answer(commands),
		introspect.PathConfig:                         answer(`{"kind": "NodePlan"}`),
		introspect.PathPlan:                           {Status: 403},
		introspect.PathFailures:                       {Status: 500, Body: []byte("out of order")},
		introspect.PathPod + "?namespace=a&name=gone": {Status: 404},
		introspect.PathPod + "?namespace=a&name=b":    answer(`{"kind": "NodePod", "name": "b"}`),
	})
	for id, row := range map[string]struct{ got, want string }{
		"enis":     {r.ENIs.Missing + r.Counters.Missing, "timeouttimeout"},
		"env":      {r.Env.Missing, ""},
		"summary":  {r.Summary.Missing, evidence.MissingAbsent},
		"config":   {r.Config.Missing, `the document is a "NodePlan", expected a NodeConfig`},
		"plan":     {r.Plan.Missing, evidence.MissingForbidden},
		"failures": {r.Failures.Missing, `the daemon answered with HTTP status 500: "out of order"`},
		"events":   {r.Journal.Missing, evidence.MissingNotAsked},
		"pods":     {r.PodViews.Missing, ""},
	} {
		if row.got != row.want {
			t.Errorf("%s is missing because of %q, want %q", id, row.got, row.want)
		}
	}
	if e := r.Env.Content; e.IPAMD.WarmIPTarget != 3 || e.NetworkUtils.MTU != 9001 || r.ENIConfig.Content == nil || *r.ENIConfig.Content != "eu-west-1a" || len(r.PodViews.Content) != 1 {
		t.Errorf("%+v", r)
	}
	for body, want := range map[string]string{"null": "not a JSON object", "": "not a JSON object", "[]": "not a JSON object", "{": "unexpected end", `{"WARM_IP_TARGET": "x"}`: "cannot unmarshal"} {
		Documents(&r, map[string]Answer{introspect.PathIPAMEnv: answer(body), introspect.PathNetworkEnv: answer("{}")})
		if !strings.Contains(r.Env.Missing, want) {
			t.Errorf("%s: %q, want %q", body, r.Env.Missing, want)
		}
	}
}

func TestDocuments_ENIConfig(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		answer        Answer
		name, missing string
	}{
		{Answer{Status: 200, Body: []byte(`"default"`)}, "default", ""},
		{Answer{Status: 404, Body: []byte("Not Found\n")}, "", ""},
		{Answer{Body: []byte("Not Found\n")}, "", ""}, // from an archive
		{Answer{Status: 200, Body: []byte(`null`)}, "", "null"},
		{Answer{Status: 200, Body: []byte(`{"ENI": {}}`)}, "", "cannot unmarshal"},
		{Answer{Missing: evidence.MissingRefused}, "", evidence.MissingRefused},
	} {
		var r evidence.Reading
		Documents(&r, map[string]Answer{introspect.PathENIConfigs: row.answer})
		name := ""
		if r.ENIConfig.Content != nil {
			name = *r.ENIConfig.Content
		}
		if name != row.name || (row.missing == "") != r.ENIConfig.OK() || !strings.Contains(r.ENIConfig.Missing, row.missing) {
			t.Errorf("%+v: %q, %q", row, name, r.ENIConfig.Missing)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	got, err := Metrics([]byte("process_start_time_seconds 1.7e+09\ngo_threads 4\nawscni_eni_max 3\nawscni_total_ip_addresses -1\nawscni_x NaN\n" +
		`awscni_aws_api_error_count{error="UnauthorizedOperation",api="AttachNetworkInterface"} 2` + "\n"))
	want := evidence.Metrics{ProcessStart: time.Unix(1.7e9, 0).UTC(), Samples: map[string]float64{
		"awscni_eni_max": 3, "awscni_total_ip_addresses": 0, `awscni_aws_api_error_count{api="AttachNetworkInterface",error="UnauthorizedOperation"}`: 2,
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
	for text, want := range map[string]string{"": "none of them is the daemon's", "awscni_eni_max": "line 1", "<html>": "none", strings.Repeat("#\n", maxMetrics): "more than 8 MiB"} {
		if _, err := Metrics([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
}

func TestCheckpoint(t *testing.T) {
	t.Parallel()
	const path = "/var/run/aws-node/ipam.json"
	whole := `{"version":"vpc-cni-ipam/1","allocations":[{"networkName":"aws-cni","containerID":"c","ifName":"eth0","ipv4":"10.0.0.9","allocationTimestamp":1700000000000000000,"metadata":{"k8sPodNamespace":"a","k8sPodName":"b"}}]}`
	got, err := Checkpoint(path, []byte(whole), nil)
	want := evidence.Checkpoint{Path: path, Bytes: new(len(whole)), Version: "vpc-cni-ipam/1", Allocations: []evidence.Allocation{
		{Pod: "a/b", Address: netip.MustParseAddr("10.0.0.9"), At: time.Unix(1700000000, 0).UTC()},
	}}
	if diff := cmp.Diff(want, got, comparers); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
	for text, want := range map[string]string{
		"": "EOF", whole[:40]: "unexpected EOF", "\x00": `invalid character '\x00' looking for beginning of value`,
		`{"version":"x"}`: `checkpoint has version "x", accepted is "vpc-cni-ipam/1"`, "[]": "is not a checkpoint",
	} {
		got, err := Checkpoint(path, []byte(text), nil)
		if err != nil || got.Error == nil || !strings.Contains(*got.Error, want) || *got.Bytes != len(text) {
			t.Errorf("%q: %+v, %v, want %q", text, got, err, want)
		}
	}
	if got, err := Checkpoint(path, nil, &fs.PathError{Err: fs.ErrNotExist}); err != nil || *got.Error != "no such file" || got.Bytes != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Checkpoint(path, nil, fs.ErrPermission); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
}

// TestAddCard: the damage of any card's file is reported in preference to a missing file of card 0.
func TestAddCard(t *testing.T) {
	t.Parallel()
	const path, further = "/r/ipam.json", "/r/ipam-nic-1.json"
	for name, row := range map[string]struct {
		zero, card, path, damage string
		allocations, bytes       int
	}{
		"both complete":   {holding("10.0.0.9"), holding("10.0.1.9"), path, "", 2, 2 * len(holding("10.0.0.9"))},
		"card 0 absent":   {"", holding("10.0.1.9"), path, "no such file", 1, len(holding("10.0.0.9"))},
		"card 1 damaged":  {holding("10.0.0.9"), "{", further, "unexpected EOF", 1, len(holding("10.0.0.9")) + 1},
		"only a damaged":  {"", "{", further, "unexpected EOF", 0, 1},
		"card 0 damaged":  {"[]", holding("10.0.1.9"), path, "is not a checkpoint", 1, len(holding("10.0.0.9")) + 2},
		"both of another": {`{"version":"x"}`, "{", path, "version", 0, 16},
	} {
		var absent error
		if row.zero == "" {
			absent = fs.ErrNotExist
		}
		c, err := Checkpoint(path, []byte(row.zero), absent)
		card, cardErr := Checkpoint(further, []byte(row.card), nil)
		if err = errors.Join(err, cardErr); err != nil {
			t.Fatal(err)
		}
		AddCard(&c, card)
		damage := ""
		if c.Error != nil {
			damage = *c.Error
		}
		if c.Path != row.path || !strings.Contains(damage, row.damage) || (damage == "") != (row.damage == "") || len(c.Allocations) != row.allocations || *c.Bytes != row.bytes {
			t.Errorf("%s: %+v, damage %q", name, c, damage)
		}
	}
}

// holding is a checkpoint with one allocation.
func holding(address string) string {
	return `{"version":"vpc-cni-ipam/1","allocations":[{"networkName":"aws-cni","containerID":"c","ifName":"eth0","ipv4":"` + address + `"}]}`
}
