package root

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence/file"
	"cnictl/testenv/situation"
	"cnictl/testenv/text/golden"
)

// TestGolden_Doctor: the catalogue as a list, a single cause, and the causes that match a text.
func TestGolden_Doctor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	log := "Serving RPC Handler version v1.23.1\n" +
		`{"level":"error","msg":"Failed to CreateNetworkInterface api error \"InsufficientFreeAddressesInSubnet\": \u003cnone\u003e"}` + "\n" +
		"DataStore has no available IP/Prefix addresses\n"
	full := evidenceOf(t, `schemaVersion: 1
at: 2026-11-21T14:02:11Z
base: healthy
report: ["nothing starts: failed to assign an IP address to container"]
world:
  subnets: [{id: subnet-a, cidr: 10.0.0.0/26, available: 0}]
  enis: [{id: eni-a, ips: 9, assigned: 9}, {id: eni-b, ips: 9, assigned: 9}]
sources:
  k8s.kp: {missing: forbidden}
  log.ipamd: {lines: [{at: -40s, level: error, msg: "Failed to CreateNetworkInterface InsufficientFreeAddressesInSubnet"}]}
`)
	blind := evidenceOf(t, "schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\nsources: {intro: {missing: disabled}, metrics: {missing: disabled}}\n")
	// Nothing in it says how many addresses a c5.9xlarge can have: it is not taken for another type.
	part := `schemaVersion: 2
at: 2026-11-21T14:02:11Z
once: true
sources:
  k8s.node: {name: ip-10-0-0-9.ec2.internal, instanceType: c5.9xlarge, capacity: {pods: 234}, allocatable: {pods: 234}}
  k8s.ds: {containers: [aws-node], env: {aws-node: {WARM_ENI_TARGET: "1", ENABLE_IPv4: "true"}}}
`
	tests := map[string]call{
		"examine":               {args: "doctor --evidence - --only ip/subnet-exhausted -o wide", in: full},
		"examine-tty-80":        {args: "doctor --evidence - --only ip/subnet-exhausted", in: full, env: size("80")},
		"examine-json":          {args: "doctor --evidence - --only ip/subnet-exhausted -o json", in: full},
		"examine-jsonpath":      {args: "doctor --evidence - --only ip/subnet-exhausted -o jsonpath={.findings[*].code}", in: full},
		"examine-markdown":      {args: "doctor --evidence - --only ip/subnet-exhausted -o markdown", in: full},
		"examine-junit":         {args: "doctor --evidence - --only ip/subnet-exhausted -o junit", in: full},
		"examine-sarif":         {args: "doctor --evidence - --only ip/subnet-exhausted -o sarif", in: full},
		"examine-fix":           {args: "doctor --evidence - --only ip/subnet-exhausted --fix", in: full},
		"examine-exit-zero":     {args: "doctor --evidence - --only ip/subnet-exhausted --exit-zero -o junit", in: full},
		"examine-suppress":      {args: "doctor --evidence - --only ip/subnet-exhausted --suppress ip/*=subnet-a", in: full},
		"examine-suppress-over": {args: "doctor --evidence - --only ip/subnet-exhausted --suppress ip/*=node-1@2020-01-01", in: full},
		"examine-suppress-idle": {args: "doctor --evidence - --only ip/subnet-exhausted --suppress eni/leaked=*", in: full},
		"examine-undecided":     {args: "doctor --evidence - --only ip/subnet-exhausted", in: blind},
		"examine-garbage":       {args: "doctor --evidence -", in: "schemaVersion: 2\nat: yesterday\n"},
		"examine-situation":     {args: "doctor --evidence -", in: sound},
		"examine-part":          {args: "doctor --evidence - --only cap/max-pods", in: part},
		"examine-no-file":       {args: "doctor --evidence does-not-exist.yaml"},
		"examine-csv":           {args: "doctor --evidence - -o csv", in: full},
		"examine-fail-on":       {args: "doctor --evidence - --fail-on fatal", in: full},
		"examine-only-unknown":  {args: "doctor --evidence - --only ip/subnet-exhaustd", in: full},
		"examine-suppress-bad":  {args: "doctor --evidence - --suppress eni/leaked", in: full},
		"doctor":                {args: "doctor --help"},
		"list":                  {args: "doctor list"},
		"list-tty-80":           {args: "doctor list ip", env: size("80")},
		"list-wide":             {args: "doctor list cap/* config -o wide"},
		"list-csv":              {args: "doctor list np -o csv"},
		"list-name":             {args: "doctor list --filter severity=critical --sort-by code -o name"},
		"list-json":             {args: "doctor list np/* -o json"},
		"list-yaml":             {args: "doctor list cap/eni-limit -o yaml"},
		"list-not-found":        {args: "doctor list ip/subnet-exhaustd"},
		"explain-code":          {args: "doctor explain ip/subnet-exhausted"},
		"explain-code-tty-80":   {args: "doctor explain boot/socket-skew", env: size("80")},
		"explain-code-json":     {args: "doctor explain ip/alloc-backoff -o json"},
		"explain-code-name":     {args: "doctor explain cause.cnictl/eni/leaked -o name"},
		"explain-code-unknown":  {args: "doctor explain sgp/no-trunk-slt"},
		"explain-code-half":     {args: "doctor explain subnet-exhausted"},
		"explain-code-csv":      {args: "doctor explain eni/leaked -o csv"},
		"explain-code-missing":  {args: "doctor explain"},
		"explain":               {args: "explain wrong client version"},
		"explain-symptom":       {args: "explain failed to assign an IP address to container"},
		"explain-input":         {args: "explain", in: log},
		"explain-input-tty-80":  {args: "explain -", in: log, env: size("80")},
		"explain-input-json":    {args: "explain -o json", in: log},
		"explain-cut":           {args: "explain …ntFreeAddressesInSubnet"},
		"explain-unknown":       {args: "explain hello world"},
		"explain-unknown-json":  {args: "explain hello world -o json"},
		"explain-printer":       {args: "explain 0/5 nodes are available: 5 Insufficient cpu."},
		"explain-printer-json":  {args: "explain 0/5 nodes are available: 5 Insufficient cpu. -o json"},
		"explain-wrapped":       {args: "explain", in: "0/1 nodes are avail\nable: 1 Too many po\nds.\n"},
		"explain-several":       {args: "explain Failed to retrieve the device-number of eni 02:4f:aa:10:33:01"},
		"explain-normal":        {args: "explain Device number of primary ENI is 1! Forcing it to be 0 as expected"},
		"explain-own-json":      {args: "explain EC2 operations aborted: they took longer than the shutdown allows -o json"},
		"explain-names":         {args: "explain", in: `ENIConfig.crd.k8s.amazonaws.com "eu-west-1c" not found` + "\n"},
		"explain-names-json":    {args: "explain -o json", in: `pods is forbidden: User "system:serviceaccount:kube-system:aws-node" cannot watch resource "pods" in API group "" at the cluster scope` + "\n"},
		"explain-empty":         {args: "explain"},
		"explain-name":          {args: "explain Throttling -o name"},
		"explain-hostile":       {args: "explain", in: "\x1b[2J\x00 UnauthorizedOperation \u202e"},
		"complete-explain-code": {args: "__complete doctor explain"},
	}
	checkGoldens(t, w, tests)
}

// Situations of healthy clusters with each daemon.
const (
	sound = "schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\nmode: laptop\nonce: true\n"
	ours  = sound + "world: {daemon: ours, env: {CNI_ADD_WAIT: 20s}}\n"
)

// evidenceOf returns the evidence file of a situation.
func evidenceOf(t *testing.T, text string) string {
	t.Helper()
	ev, err := situation.Load([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	data, err := file.Save(ev)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestGolden_Migrate: the obstacles to a migration, in each form, with the exit status.
func TestGolden_Migrate(t *testing.T) {
	t.Parallel()
	blocked := evidenceOf(t, sound+"world: {agentVersion: v1.4.0}\nsources:\n  k8s.objects: {with: [{name: DaemonSet/aws-node, managers: [{name: kubectl-set, env: [WARM_IP_TARGET]}]}]}\n")
	blind := evidenceOf(t, sound+"sources: {k8s.objects: {missing: forbidden}}\n")
	pulled := evidenceOf(t, sound+"sources: {k8s.node: {images: [registry.example/aws-vpc-cni:v1]}}\n")
	sound, ours := evidenceOf(t, sound), evidenceOf(t, ours)
	checkGoldens(t, newWorld(t), map[string]call{
		"migrate":           {args: "migrate"},
		"help":              {args: "migrate check --help"},
		"sound":             {args: "migrate check --evidence -", in: sound},
		"blocked":           {args: "migrate check --evidence -", in: blocked},
		"blocked-tty-80":    {args: "migrate check --evidence -", in: blocked, env: size("80")},
		"blocked-fix":       {args: "migrate check --evidence - --fix", in: blocked},
		"blocked-json":      {args: "migrate check --evidence - -o json", in: blocked},
		"blocked-jsonpath":  {args: `migrate check --evidence - -o jsonpath={.checks[?(@.result=="block")].code}`, in: blocked},
		"accepted":          {args: "migrate check --evidence - --suppress migrate/image-mix=cluster", in: blocked},
		"back":              {args: "migrate check --from ours --to v1.22.4 --evidence -", in: ours},
		"blind":             {args: "migrate check --evidence -", in: blind},
		"require-all":       {args: "migrate check --evidence - --require-all", in: sound},
		"images":            {args: "migrate check --evidence - --images registry.example:5000/cni/aws-vpc-cni:v1 --images registry.example/aws-vpc-cni-init@sha256:" + strings.Repeat("0a", 32), in: sound},
		"images-account":    {args: "migrate check --evidence - --images 602401143452.dkr.ecr.us-west-2.amazonaws.com/aws-vpc-cni:v1,registry.example/aws-vpc-cni-init:v1", in: sound},
		"images-pulled":     {args: "migrate check --evidence - --images registry.example/aws-vpc-cni:v1", in: pulled},
		"images-invalid":    {args: "migrate check --evidence - --images registry.example/AWS-VPC-CNI:v1", in: sound},
		"other-daemon":      {args: "migrate check --from ours --evidence -", in: sound},
		"no-daemon":         {args: "migrate check --from theirs --evidence -", in: sound},
		"no-release":        {args: "migrate check --to soon --evidence -", in: sound},
		"csv":               {args: "migrate check --evidence - -o csv", in: sound},
		"doctor-leaves-out": {args: "doctor --evidence - --only migrate", in: blocked},
		"explain":           {args: "doctor explain migrate/selector"},
		"complete-from":     {args: "__complete migrate check --from "},
		"complete-suppress": {args: "__complete migrate check --suppress"},
		"complete-doctor":   {args: "__complete doctor --only"},
	})
}

// TestGolden_Values: values of the chart and of the add-on, each converted in both directions.
func TestGolden_Values(t *testing.T) {
	t.Parallel()
	const (
		addon = `{"env": {"WARM_ENI_TARGET": "2", "ENABLE_POD_ENI": "true"}, "enableNetworkPolicy": "true", "affinity": null, "tolerations": [{"operator": "Exists"}]}`
		chart = "env: {WARM_ENI_TARGET: 2, CLUSTER_NAME: c, ADDITIONAL_ENI_TAGS: {a: b}, WARM_PREFIX_TARGET: null}\ninit: {env: {DISABLE_TCP_EARLY_DEMUX: true}}\n" +
			"enableNetworkPolicy: true\nimage: {tag: v1}\nupdateStrategy: {type: OnDelete}\nlivenessProbe: {initialDelaySeconds: 90}\n" +
			"livenessProbeTimeoutSeconds: 20\nnodeAgent: {enabled: true, metricsBindAddr: 8172, image: {tag: v2}}\neniConfig: {create: true, subnets: {a: {id: subnet-1}}}\n"
		misspelt = "evn: {WARM_ENI_TARGET: \"1\"}\nnodeAgent: {enabeld: false}\nWARM_IP_TARGET: 2\ncrd: {create: true}\nVpcCni: {}\n"
		variable = "env: {WARM_ENI_TRAGET: \"1\", DISABLE_TCP_EARLY_DEMUX: \"true\", MINE: x}\n"
	)
	checkGoldens(t, newWorld(t), map[string]call{
		"help":               {args: "migrate values --help"},
		"to-chart":           {args: "migrate values --to chart -", in: addon},
		"to-chart-json":      {args: "migrate values --to chart - -o json", in: addon},
		"to-chart-chart":     {args: "migrate values --to chart -", in: chart},
		"to-chart-misspelt":  {args: "migrate values --to chart -", in: misspelt},
		"to-chart-variable":  {args: "migrate values --to chart -", in: variable},
		"to-chart-none":      {args: "migrate values --to chart -", in: "null"},
		"to-chart-text":      {args: "migrate values --to chart -", in: "None\n"},
		"to-chart-broken":    {args: "migrate values --to chart -", in: "env: {a: b, a: c}\n"},
		"to-chart-schema":    {args: "migrate values --to chart - --schema ../../../../deploy/chart/addon.schema.json", in: addon},
		"to-addon":           {args: "migrate values --to addon -", in: chart},
		"to-addon-yaml":      {args: "migrate values --to addon - -o yaml", in: chart},
		"to-addon-jsonpath":  {args: "migrate values --to addon - -o jsonpath={.env.WARM_ENI_TARGET}", in: addon},
		"to-addon-addon":     {args: "migrate values --to addon -", in: addon},
		"to-addon-misspelt":  {args: "migrate values --to addon -", in: misspelt},
		"to-addon-schema":    {args: "migrate values --to addon - --schema ../../../../deploy/chart/addon.schema.json", in: addon},
		"to-addon-no-schema": {args: "migrate values --to addon - --schema ../../../../deploy/chart/testdata/addon.json", in: addon},
		"to-nowhere":         {args: "migrate values -", in: addon},
		"no-file":            {args: "migrate values --to chart none.yaml"},
		"directory":          {args: "migrate values --to chart testdata"},
		"complete-file":      {args: "__complete migrate values --to addon"},
		"csv":                {args: "migrate values --to chart - -o csv", in: addon},
		"complete-to":        {args: "__complete migrate values --to "},
	})
}

// TestMigrateDocs: the commands in docs/migrate.md work as shown.
func TestMigrateDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/migrate.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(page)) {
		if _, quoted, ok := strings.Cut(line, "| `cnictl "); ok {
			line = "cnictl " + quoted[:strings.IndexByte(quoted, '`')]
		}
		line, _, _ = strings.Cut(line, " > ") // of the shell
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "cnictl ") {
			checkExample(t, "cnictl", line)
			seen++
		}
	}
	if seen < 10 {
		t.Errorf("only %d commands", seen)
	}
}

// checkGoldens compares the output and exit codes of runs with golden files.
func checkGoldens(t *testing.T, w world, tests map[string]call) {
	t.Helper()
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := w.run(t, c)
			got := fmt.Sprintf("exit %d\n--- stdout\n%s--- stderr\n%s", code, stdout, stderr)
			if w.dir != "" {
				got = strings.ReplaceAll(got, w.dir, "DIR")
			}
			if !strings.HasPrefix(c.args, "__complete") { // it has tabs
				checkNoControls(t, got, false)
			}
			if strings.HasSuffix(c.args, "-o json") && !json.Valid([]byte(stdout)) {
				t.Error("not JSON")
			}
			golden.Check(t, "output.txt", []byte(got))
		})
	}
}

// TestDoctor_EveryCause: each cause is listed and has a page and a document.
func TestDoctor_EveryCause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stdout, _, code := w.run(t, call{args: "doctor list -o json"})
	var list struct {
		Items []struct{ Code, Title string }
	}
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || code != 0 || len(list.Items) != len(catalogue.Codes()) {
		t.Fatalf("exit %d, %d causes, %v", code, len(list.Items), err)
	}
	for _, item := range list.Items {
		stdout, stderr, code := w.run(t, call{args: "doctor explain " + item.Code, env: size("80")})
		if code != 0 || stderr != "" || !strings.HasPrefix(stdout, item.Code+"  ") || !strings.Contains(stdout, "\nfix 1 ") || !strings.Contains(stdout, "\nlinks ") {
			t.Errorf("%s: exit %d\n%s%s", item.Code, code, stdout, stderr)
		}
		checkNoControls(t, stdout, false)
	}
}

// TestDoctor_CommandsExist: the catalogue names only existing commands of this tool.
func TestDoctor_CommandsExist(t *testing.T) {
	t.Parallel()
	seen := 0
	check := func(command string) {
		for _, part := range strings.FieldsFunc(command, func(r rune) bool { return r == ';' || r == '|' || r == '&' }) {
			if part = strings.TrimSpace(part); strings.HasPrefix(part, "cnictl ") {
				checkExample(t, "cnictl", part)
				seen++
			}
		}
	}
	for e := range catalogue.All() {
		check(e.Check.Command)
		for _, fix := range e.Fixes {
			check(fix.Command)
			if code, ok := strings.CutPrefix(fix.Command, "cnictl doctor explain "); ok {
				if _, known := catalogue.Lookup(code); !known {
					t.Errorf("%s leads to %s, which does not exist", e.Code, code)
				}
			}
		}
	}
	for _, s := range catalogue.Symptoms() {
		check(s.Check.Command)
	}
	for _, s := range catalogue.Sentences() {
		check(s.Check.Command)
	}
	if seen < 20 {
		t.Errorf("only %d commands", seen)
	}
}

// TestExplain_LargeInput: input beyond the limit is not read, and the output says so.
func TestExplain_LargeInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stdout, stderr, code := w.run(t, call{args: "explain", in: "UnauthorizedOperation\n" + strings.Repeat("Serving RPC Handler version\n", 50_000)})
	if code != 0 || !strings.HasPrefix(stdout, "aws/iam ") || !strings.Contains(stderr, "only the first 1 MiB") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	_, stderr, code = w.run(t, call{args: "explain", in: strings.Repeat("x", 2<<20)})
	if code != cli.ExitNotFound || !strings.Contains(stderr, "no known cause") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
}
