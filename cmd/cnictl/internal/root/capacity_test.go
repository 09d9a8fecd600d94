package root

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/daemon/fleet/record"
)

// days records the given number of hours of a node with three subnets: one drains by day, one
// is steady, one is full.
func days(t *testing.T, dir, name string, from time.Time, hours int) string {
	t.Helper()
	file := filepath.Join(dir, name)
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := writeDays(out, from, hours); err != nil {
		t.Fatal(err)
	}
	return file
}

func writeDays(out io.Writer, from time.Time, hours int) error {
	w, err := record.NewWriter(out, record.Header{Tool: "v1.2.3", StartedAt: from})
	if err != nil {
		return err
	}
	for h := range hours + 1 {
		at := from.Add(time.Duration(h) * time.Hour)
		since := int(at.Sub(fleettest.Now().Add(-7 * 24 * time.Hour)).Hours())
		busy := (since%24 - 12) * (since%24 - 12) / 2 // fewest at noon
		n := document.NodeIPAM{Metadata: document.ObjectMeta{Name: "ip-10-0-1-17"}, SampledAt: &at, Summary: &introspect.Summary{Subnets: []introspect.Subnet{
			{ID: "subnet-drains", CIDR: "10.0.0.0/22", Available: new(900 - 4*since + busy + since*37%53), AsOf: &at},
			{ID: "subnet-steady", CIDR: "10.0.4.0/22", Available: new(500 + since%7), AsOf: &at},
			{ID: "subnet-full", CIDR: "10.0.8.0/24", Available: new(0), AsOf: &at},
		}}}
		if err := w.WriteSample(n, at); err != nil {
			return err
		}
	}
	return w.Close()
}

// TestCapacityType_All: every flag reaches the rules. capacity/maxpods compares the rules
// with independent formulas.
func TestCapacityType_All(t *testing.T) {
	t.Parallel()
	one, hosts := 1, 5
	for args, plan := range map[string]maxpods.Planned{
		"--all": {},
		"m5.large m5.24xlarge m5.metal c6g.medium t3.medium p5.48xlarge cr1.8xlarge --prefix-delegation --custom-networking --pod-eni --max-eni 1 --reserved-enis 2 --efa-only 1 --pods-per-core 4 --host-pods 5 --vcpus 31 --cni-version v1.10.2": {
			Input:       maxpods.Input{PrefixDelegation: true, CustomNetworking: true, PodENI: true, MaxENI: 1, UnmanagedENIs: 1, HostPods: &hosts, VCPUs: 31, CNI: maxpods.Version{Major: 1, Minor: 10}},
			MaxENIGiven: &one, ReservedENIs: 2, PodsPerCore: 4,
		},
	} {
		stdout, stderr, code := world{}.run(t, call{args: "capacity type -o json " + args})
		var doc document.CapacityTypeList
		if err := json.Unmarshal([]byte(stdout), &doc); code != 0 || err != nil || len(doc.Items) < 7 || plan.CNI == (maxpods.Version{}) && len(doc.Items) < 1442 {
			t.Fatalf("%s: exit %d, %v, %d types\n%s", args, code, err, len(doc.Items), stderr)
		}
		for _, item := range doc.Items {
			plan.InstanceType = item.InstanceType
			for i, want := range maxpods.Rules(plan) {
				if diff := cmp.Diff(want.MaxPods, item.Rules[i].MaxPods); diff != "" || item.Rules[i].Name != want.Name {
					t.Errorf("%s %s, %s:\n%s", item.InstanceType, args, want.Name, diff)
				}
			}
		}
	}
}

// TestGolden_Capacity: max-pods by every rule, for one type with its terms and for
// several types.
func TestGolden_Capacity(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), fleettest.Now()
	monday, later := days(t, dir, "monday.cnirec", now.Add(-7*24*time.Hour), 48), days(t, dir, "later.cnirec", now.Add(-5*24*time.Hour), 5*24)
	short := days(t, dir, "short.cnirec", now.Add(-time.Hour), 1)
	broken := filepath.Join(dir, "broken.cnirec")
	if err := os.WriteFile(broken, []byte("\x1f\x8bnot what it seems"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.dir = dir
	checkGoldens(t, w, map[string]call{
		"help":           {args: "capacity --help"},
		"type":           {args: "capacity type m5.large"},
		"type-tty-80":    {args: "capacity type p5.48xlarge --pod-eni --custom-networking --explain", env: size("80")},
		"type-ipv6":      {args: "capacity type m5.large --ipv6"},
		"type-unlisted":  {args: "capacity type i3.metal --explain --rule eni-max-pods,nodeadm,karpenter,cnictl"},
		"type-vcpus":     {args: "capacity type cr1.8xlarge"},
		"type-given":     {args: "capacity type cr1.8xlarge --vcpus 32 --rule calculator,cnictl"},
		"type-json":      {args: "capacity type m5.metal --prefix-delegation --max-eni 0 -o json"},
		"types":          {args: "capacity type m5.large c6g.medium m5.24xlarge --sort-by cnictl"},
		"types-csv":      {args: "capacity type m5.large m5.24xlarge -o csv"},
		"types-name":     {args: "capacity type --all --filter type=m7g.* -o name"},
		"expression":     {args: "capacity type t3.medium --rule nodeadm --max-pods-expression max_pods<10?10:default_enis"},
		"expression-bad": {args: "capacity type m5.large --max-pods-expression max_pod"},
		"expression-nil": {args: "capacity type m5.large --rule nodeadm --max-pods-expression max_pods/0"},
		"unknown":        {args: "capacity type m5.larg"},
		"rule-unknown":   {args: "capacity type m5.large --rule bottlerocket"},
		"ipv6-custom":    {args: "capacity type m5.large --ipv6 --custom-networking"},
		"negative":       {args: "capacity type m5.large --max-eni -1"},
		"version-bad":    {args: "capacity type m5.large --cni-version 1"},
		"compare":        {args: "capacity compare --pods 500"},
		"compare-price":  {args: "capacity compare m7g.* cr1.8xlarge --pods 500 --pod-cpu 250m --pod-memory 512Mi --price testdata/prices.csv --region eu-west-1", env: size("140")},
		"compare-json":   {args: "capacity compare m5.large m4.large --pods 40 --prefix-delegation -o json"},
		"compare-csv":    {args: "capacity compare m5.large --pods 40 -o csv"},
		"compare-bad":    {args: "capacity compare m5.large --pods 40 --price testdata/prices-bad.csv"},
		"compare-region": {args: "capacity compare m5.large --pods 40 --price testdata/prices.csv"},
		"compare-none":   {args: "capacity compare z9.* --pods 40"},
		"compare-near":   {args: "capacity compare m7g.larg --pods 40"},
		"compare-pods":   {args: "capacity compare m5.large"},
		"compare-cpu":    {args: "capacity compare m5.large --pods 2 --pod-cpu -1"},
		"subnet":         {args: "capacity subnet 10.0.0.0/22 --type m5.large --pods 20"},
		"subnet-prefix":  {args: "capacity subnet 10.0.0.0/20 10.0.16.0/20 --type m5.4xlarge --pods 50 --prefix-delegation --used 120"},
		"subnet-custom":  {args: "capacity subnet 100.64.0.0/18 --node-subnet 10.0.0.0/24 --type c5.xlarge --pods 40 --custom-networking -o json"},
		"subnet-csv":     {args: "capacity subnet 10.0.0.0/20 --type m5.large --pods 8 --prefix-delegation -o csv"},
		"subnet-tiny":    {args: "capacity subnet 10.0.0.0/30 --type m5.large --pods 2"},
		"subnet-bits":    {args: "capacity subnet 10.0.0.1/24 --type m5.large --pods 2"},
		"subnet-twice":   {args: "capacity subnet 10.0.0.0/24 10.0.0.0/24 --type m5.large --pods 2"},
		"subnet-overlap": {args: "capacity subnet 10.0.0.0/24 10.0.0.128/25 --type m5.large --pods 2"},
		"subnet-used":    {args: "capacity subnet 10.0.0.0/24 --used 300 --type m5.large --pods 2"},
		"type-corrected": {args: "capacity type i7ie.48xlarge --rule nodeadm,cnictl --explain"},
		"types-rule":     {args: "capacity type m5.large m5.24xlarge --rule cnictl"},
		"type-no-eni":    {args: "capacity type m5.large --max-eni 0 --custom-networking --rule calculator"},
		"type-cores":     {args: "capacity type m5.large --pods-per-core 9223372036854775807"},
		"subnet-many":    {args: "capacity subnet 10.0.0.0/24 --type m5.large --pods 200"},
		"subnet-stops":   {args: "capacity subnet 10.0.0.0/24 --type m5.large --pods 20 --max-pods 10"},
		"subnet-xen":     {args: "capacity subnet 10.0.0.0/24 --type m4.large --pods 5 --prefix-delegation --pod-eni"},
		"subnet-no-type": {args: "capacity subnet 10.0.0.0/24 --pods 2"},
		"subnet-minus":   {args: "capacity subnet 10.0.0.0/24 --type m5.large --pods 2 --warm-ip-target -1"},
		"subnet-live":    {args: "capacity subnet --all --type m5.large --pods 20 @large"},
		"subnet-ids":     {args: "capacity subnet subnet-0123456789abcdef0 10.9.0.0/24 --type m5.large --pods 20 @large -o csv"},
		"subnet-all":     {args: "capacity subnet --all 10.0.0.0/24 --type m5.large --pods 20"},
		"subnet-all-eni": {args: "capacity subnet --all --custom-networking --node-subnet 10.0.0.0/24 --type m5.large --pods 9"},
		"subnet-nothing": {args: "capacity subnet --type m5.large --pods 2"},
		"nothing":        {args: "capacity type"},
		"forecast-help":  {args: "capacity forecast --help"},
		"forecast":       {args: "capacity forecast " + later + " " + monday, env: size("140")},
		"forecast-json":  {args: "capacity forecast --replay " + monday + " -o json"},
		"forecast-csv":   {args: "capacity forecast " + monday + " -o csv --filter chance>50"},
		"forecast-short": {args: "capacity forecast " + short},
		"forecast-none":  {args: "capacity forecast"},
		"whatif-help":    {args: "capacity whatif --help"},
		"whatif":         {args: "capacity whatif --type m5.large --pods 20 --count 50 --warm-ip-target 2 --rate 5", env: size("140")},
		"whatif-theirs":  {args: "capacity whatif --type m5.large --pods 20 --set WARM_IP_TARGET=1 --for 2h --model original -o csv"},
		"whatif-json":    {args: "capacity whatif --type m5.large --pods 8 --today WARM_ENI_TARGET=0 --set MINIMUM_IP_TARGET=12 --for 1h -o json"},
		"whatif-dry":     {args: "capacity whatif --type m5.large --pods 8 --count 2 --arrivals testdata/arrivals.jsonl --subnet-free 10"},
		"whatif-tour":    {args: "capacity whatif --all --arrivals ../../../../docs/tour.cnirec --replay ../../../../docs/tour.cnirec --at +0m -o csv --columns settings,held,adds"},
		"whatif-type":    {args: "capacity whatif --type m5.large --pods 10 --count 40 --arrivals ../../../../docs/tour.cnirec -o csv --columns settings,held,adds"},
		"whatif-others":  {args: "capacity whatif --all --arrivals " + monday + " --replay ../../../../docs/tour.cnirec"},
		"whatif-broken":  {args: "capacity whatif --type m5.large --pods 8 --arrivals " + broken},
		"whatif-line":    {args: "capacity whatif --type m5.large --pods 8 --arrivals testdata/arrivals-bad.jsonl"},
		"whatif-no-file": {args: "capacity whatif --type m5.large --pods 8 --arrivals testdata/none.jsonl"},
		"whatif-set":     {args: "capacity whatif --type m5.large --pods 8 --set WARM_IP_TARGETS=2"},
		"whatif-value":   {args: "capacity whatif --type m5.large --pods 8 --set ENABLE_POD_ENI=perhaps"},
		"whatif-room":    {args: "capacity whatif --type m5.large --pods 28"},
		"whatif-nothing": {args: "capacity whatif"},
		"best":           {args: "capacity recommend --type m5.large --pods 20 --for 1h", env: size("80")},
		"best-json":      {args: "capacity recommend --type m5.large --pods 20 --for 1h --today WARM_IP_TARGET=1 -o json"},
		"best-still":     {args: "capacity recommend --type m5.4xlarge --pods 20 --today ENABLE_PREFIX_DELEGATION=true --custom-networking --rate 0"},
		"best-node":      {args: "capacity recommend ip-10-0-5-67 --for 30m --replay ../../../../docs/tour.cnirec"},
		"best-nodes":     {args: "capacity recommend ip-10-0-5-67 ip-10-0-4-53 --rate 30 --for 10m --replay ../../../../docs/tour.cnirec"},
		"best-near":      {args: "capacity recommend --type m5.large --pods 20 --goal burst --burst-pods 5 --burst-seconds 10"},
		"best-addresses": {args: "capacity recommend --type m5.large --pods 20 --goal fewest-addresses --for 1h"},
		"best-karpenter": {args: "capacity recommend --type m5.large --pods 20 --for 1h -o karpenter"},
		"best-nodeadm":   {args: "capacity recommend --type m5.large --pods 20 --for 1h -o nodeadm"},
		"type-karpenter": {args: "capacity type m5.large m6i.large m5.xlarge --prefix-delegation -o karpenter"},
		"type-nodeadm":   {args: "capacity type m5.large m5.xlarge --rule nodeadm -o nodeadm"},
		"type-rules":     {args: "capacity type m5.large --rule nodeadm,cnictl -o nodeadm"},
		"best-help":      {args: "capacity recommend --help"},
		"best-calls":     {args: "capacity recommend --type c6g.medium --pods 3 --goal fewest-calls --for 30m -o json"},
		"best-burst":     {args: "capacity recommend --type c6g.medium --pods 1 --goal burst --burst-pods 4 --burst-seconds 3"},
		"best-room":      {args: "capacity recommend --type c6g.medium --pods 3 --goal burst --burst-pods 40 --burst-seconds 3"},
		"best-goal":      {args: "capacity recommend --type c6g.medium --pods 3 --goal cheap"},
		"best-no-burst":  {args: "capacity recommend --type c6g.medium --pods 3 --goal burst"},
		"whatif-both":    {args: "capacity whatif --all --type m5.large --pods 2"},
	})
}
