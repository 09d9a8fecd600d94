package root

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/testenv/text/golden"
)

const recorded = "../../../../daemon/api/introspect/testdata/recorded"

// world serves one node of every kind and returns its --targets.
type world struct {
	targets map[string]string
	dir     string // of files passed to commands; DIR in golden files
}

func newWorld(t *testing.T) world {
	t.Helper()
	dir := t.TempDir()
	clock := time.Date(2026, 11, 21, 3, 0, 50, 0, time.UTC)
	return world{targets: map[string]string{
		"large":    fleettest.Serve(t, dir, "large", fleettest.Secondary()),
		"starved":  fleettest.Serve(t, dir, "starved", fleettest.Starved()),
		"prefixes": fleettest.Serve(t, dir, "prefixes", fleettest.Prefixes()),
		"original": fleettest.ServeRecorded(t, dir, "original", filepath.Join(recorded, "two-enis"), "one-deleted", clock),
		"down":     "unix:" + filepath.Join(dir, "down.sock"),
		"garbage":  fleettest.ServeBody(t, dir, "garbage", "<html>\x1b[2J</html>"),
		"evil":     fleettest.ServeHandler(t, dir, "evil", evil),
		"negative": fleettest.ServeBody(t, dir, "negative", `{"kind":"NodeSummary","cards":[{"total":9,"assigned":-9999999999}]}`),
		"timeless": fleettest.ServeHandler(t, dir, "timeless", timeless),
	}}
}

var places = regexp.MustCompile(`(unix:|--replay=)/[^ ,)]*/`)

// placeless replaces the test's directories in the hints of an output.
func placeless(got string) string { return places.ReplaceAllString(got, "${1}DIR/") }

// timeless is a node that omits or distorts its times, and has old events.
func timeless(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", fleettest.Now().Format(http.TimeFormat))
	body := map[string]string{
		"/v1/summary": `{"kind":"NodeSummary","startedAt":"0001-01-01T00:00:00Z","cards":[{"total":9,"free":9}],
			"backoffs":[{"scope":"attach","cause":"ec2-throttled"},{"scope":"release","cause":"ec2-throttled","until":"9999-01-01T00:00:00Z"}],
			"subnets":[{"id":"subnet-1","cidr":"10.0.0.0/24","available":9,"asOf":"0001-01-01T00:00:00Z"},
				{"id":"subnet-2","cidr":"10.0.1.0/24","available":100,"asOf":"2026-11-21T13:57:10Z"},{"id":"subnet-3","cidr":"10.0.2.0/24","available":9,"asOf":"2026-11-21T13:57:11Z"}],
			"lastErrors":[{"operation":"ADD","cause":"internal","message":"it failed","count":1}]}`,
		"/v1/enis": `{}`,
	}[r.URL.Path]
	// The error is ignored: the test checks what it received.
	_, _ = w.Write([]byte(body))
}

// evil is a node that answers with terminal escapes.
func evil(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", fleettest.Now().Format(http.TimeFormat))
	body := map[string]string{
		"/v1/summary": `{"kind":"NodeSummary","version":"\u001b[31mv1","instanceType":"m5\u202elarge","cards":[{"mode":"\u001b]0;x\u0007"}],
			"backoffs":[{"scope":"\u001b[2J","id":"\r\n","until":"2030-01-01T00:00:00Z","cause":"\u009b2J"}],
			"lastErrors":[{"at":"2026-11-21T14:02:10Z","operation":"ADD\nfake","cause":"x","message":"\u2066\u001b[1A","count":1}]}`,
		"/v1/enis":   `{"0":{"ENIs":{"eni-\u001b[2J":{"SubnetID":"\u202e","AvailableIPv4Cidrs":{"10.0.0.1/32":{"IPAddresses":{"10.0.0.1":{"IPAMKey":{"networkName":"x"},"IPAMMetadata":{"k8sPodName":"\u001b[5m","k8sPodNamespace":"\u200f"}}}}}}}}}`,
		"/v1/config": `{"kind":"NodeConfig","items":[{"name":"\u001b[2J","declared":"a\tb","effective":"\u0085","source":"\u2028","problem":"\u0000"}]}`,
	}[r.URL.Path]
	// The error is ignored: the test checks what it received.
	_, _ = w.Write([]byte(body))
}

func (w world) list(names ...string) string {
	var items []string
	for _, n := range names {
		items = append(items, n+"="+w.targets[n])
	}
	return strings.Join(items, ",")
}

// call is one run of the command line.
type call struct {
	args  string // @a,b becomes --targets of those nodes
	env   map[string]string
	local string // the target of this host; "" if it is no node
	in    string // standard input
}

// lookup looks up a variable of the call's environment. The locale is UTF-8 by default.
func (c call) lookup(name string) (string, bool) {
	v, ok := c.env[name]
	if !ok && name == "LANG" {
		return "C.UTF-8", true
	}
	return v, ok
}

// run runs a command line with a fixed clock.
func (w world) run(t *testing.T, c call) (stdout, stderr string, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	f := &cli.Factory{
		Streams: &cli.Streams{In: strings.NewReader(c.in), Out: &out, Err: &errOut, Size: func() (int, int) { return 80, 24 }},
		Env:     c.lookup,
		Now:     fleettest.Now, Clock: fleettest.Now, Name: "cnictl", Version: "v1.2.3",
		Tick: func(time.Duration) (<-chan time.Time, func()) {
			t.Fatal("a one-shot command waits")
			return nil, nil
		},
		LocalTarget: func(context.Context) (fleet.Target, bool) {
			if c.local == "" {
				return fleet.Target{Name: "this-host", Address: "127.0.0.1:61679"}, false
			}
			return fleet.Target{Name: "this-host", Address: w.targets[c.local]}, true
		},
	}
	args := strings.Fields(c.args)
	if strings.HasPrefix(c.args, "__complete") {
		args = append(args, "") // the word to complete
	}
	for i, a := range args {
		if names, ok := strings.CutPrefix(a, "@"); ok {
			args[i] = "--targets=" + w.list(strings.Split(names, ",")...)
		}
	}
	code = Main(t.Context(), f, args)
	return out.String(), errOut.String(), code
}

func TestGolden(t *testing.T) {
	t.Parallel()
	const all = "@large,starved,prefixes,original,down,garbage"
	tests := map[string]call{
		"status":                  {args: "status " + all},
		"status-wide":             {args: "status -o wide " + all},
		"status-json":             {args: "status -o json @large,starved,down"},
		"status-yaml":             {args: "status -o yaml @prefixes"},
		"status-tty-80x24":        {args: "status " + all, env: map[string]string{"CNICTL_FORCE_TTY": "80x24", "NO_COLOR": "1"}},
		"status-tty-120x40":       {args: "status " + all, env: map[string]string{"CNICTL_FORCE_TTY": "120x40", "NO_COLOR": "1"}},
		"status-tty-60x15":        {args: "status " + all, env: map[string]string{"CNICTL_FORCE_TTY": "60x15", "NO_COLOR": "1"}},
		"status-tty-colour":       {args: "status @large,down", env: map[string]string{"CNICTL_FORCE_TTY": "100x30", "TERM": "xterm"}},
		"status-ascii":            {args: "status " + all, env: map[string]string{"LC_ALL": "C"}},
		"status-healthy":          {args: "status @large"},
		"status-original":         {args: "status @original"},
		"status-none-reachable":   {args: "status @down,garbage"},
		"status-no-targets":       {args: "status"},
		"nodes":                   {args: "nodes " + all},
		"nodes-named":             {args: "nodes prefixes large " + all},
		"nodes-unknown":           {args: "nodes nope " + all},
		"nodes-wide":              {args: "nodes -o wide " + all},
		"nodes-no-headers":        {args: "nodes --no-headers " + all},
		"nodes-json":              {args: "nodes -o json @large,original,down"},
		"nodes-yaml":              {args: "nodes -o yaml @down"},
		"nodes-allow-partial":     {args: "nodes --allow-partial @large,down"},
		"nodes-tty-60":            {args: "nodes " + all, env: map[string]string{"CNICTL_FORCE_TTY": "60", "NO_COLOR": "1"}},
		"node-show":               {args: "node show starved " + all},
		"node-show-implied":       {args: "node large " + all},
		"node-show-prefixes":      {args: "node prefixes " + all},
		"node-show-original":      {args: "node original " + all},
		"node-show-json":          {args: "node large -o json " + all},
		"node-show-down":          {args: "node down " + all},
		"node-show-unknown":       {args: "node nope " + all},
		"node-enis":               {args: "node enis large " + all},
		"node-enis-wide":          {args: "node enis prefixes -o wide " + all},
		"node-enis-json":          {args: "node enis prefixes -o json " + all},
		"node-enis-original":      {args: "node enis original " + all},
		"node-ips":                {args: "node ips prefixes " + all},
		"node-ips-wide":           {args: "node ips large -o wide " + all},
		"node-ips-json":           {args: "node ips prefixes -o json " + all},
		"node-ips-yaml":           {args: "node ips original -o yaml " + all},
		"node-config":             {args: "node config large " + all},
		"node-config-json":        {args: "node config large -o json " + all},
		"node-config-original":    {args: "node config original " + all},
		"node-without-name":       {args: "node " + all},
		"local":                   {args: "local", local: "starved"},
		"local-show":              {args: "local show", local: "large"},
		"local-enis":              {args: "local enis", local: "original"},
		"local-ips-json":          {args: "local ips -o json", local: "original"},
		"local-config":            {args: "local config", local: "large"},
		"local-unreachable":       {args: "local show", local: "down"},
		"evil-status":             {args: "status @evil"},
		"evil-nodes-wide":         {args: "nodes -o wide @evil"},
		"evil-show":               {args: "node evil @evil"},
		"evil-enis":               {args: "node enis evil @evil"},
		"evil-ips":                {args: "node ips evil @evil"},
		"evil-ips-json":           {args: "node ips evil -o json @evil"},
		"evil-config-yaml":        {args: "node config evil -o yaml @evil"},
		"evil-config":             {args: "node config evil @evil"},
		"negative-status":         {args: "status @negative,large"},
		"negative-show":           {args: "node negative @negative"},
		"timeless-status":         {args: "status @timeless"},
		"timeless-colour":         {args: "status @timeless", env: map[string]string{"CNICTL_FORCE_TTY": "100x30", "TERM": "xterm"}},
		"timeless-show":           {args: "node timeless @timeless"},
		"timeless-json":           {args: "nodes -o json @timeless"},
		"usage-command":           {args: "statsu"},
		"usage-subcommand":        {args: "local stat"},
		"usage-flag":              {args: "nodes --nope"},
		"usage-argument":          {args: "status now"},
		"usage-output":            {args: "nodes -o xml"},
		"usage-interval":          {args: "status -w --interval 1s"},
		"usage-targets":           {args: "nodes --targets n=https://x"},
		"usage-env":               {args: "nodes", env: map[string]string{"CNICTL_CONCURRENCY": "many"}},
		"usage-concurrency":       {args: "nodes", env: map[string]string{"CNICTL_CONCURRENCY": "257"}},
		"help":                    {args: "help"},
		"help-status":             {args: "status --help"},
		"options":                 {args: "options"},
		"help-exit-codes":         {args: "help exit-codes"},
		"help-output":             {args: "help output"},
		"completion-of-nodes":     {args: "__complete node enis --targets=a=unix:/a,b=unix:/b"},
		"completion-of-forms":     {args: "__complete nodes -o"},
		"flag-before-environment": {args: "nodes -o table @large", env: map[string]string{"CNICTL_OUTPUT": "json", "CNICTL_NO_HEADERS": "true"}},
	}
	w := newWorld(t)
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := w.run(t, c)
			got := fmt.Sprintf("exit %d\n--- stdout\n%s--- stderr\n%s", code, stdout, stderr)
			checkNoControls(t, got, c.env["TERM"] == "xterm")
			golden.Check(t, "output.txt", []byte(placeless(got)))
		})
	}
}

// checkNoControls: no text of a node controls the terminal.
func checkNoControls(t *testing.T, s string, colours bool) {
	t.Helper()
	for _, r := range s {
		bad := r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || strings.ContainsRune("\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", r)
		if bad && !(colours && r == 0x1b) {
			t.Errorf("output holds %U", r)
		}
	}
}
