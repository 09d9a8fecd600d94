package root

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"cnictl/daemon/fleet/fleettest"
	"cnictl/tui/pages"
	"cnictl/tui/pages/doctor"
	"cnictl/tui/pages/lists"
	"cnictl/tui/pages/logs"
	"cnictl/tui/pages/node"
	"cnictl/tui/pages/overview"
	"cnictl/tui/pages/subnets"
)

// TestColumns_ByTheirHeaders: a column's header can be used as its name in --columns,
// --sort-by and --filter, in every table.
func TestColumns_ByTheirHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.targets["rich"] = rich(t, t.TempDir(), fleettest.Secondary())
	var commands []string
	everyCommand(tree("cnictl"), func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "cnictl ")
		if cmd.Flags().Lookup("columns") != nil && !strings.HasPrefix(path, "local ") {
			commands = append(commands, path)
		}
	})
	if len(commands) < 7 {
		t.Fatalf("only %v have columns", commands)
	}
	for _, command := range commands {
		if strings.HasPrefix(command, "node ") {
			command += " rich"
		}
		command += map[string]string{"capacity type": " m5.large", "capacity compare": " m5.large --pods 1", "capacity subnet": " 10.0.0.0/24 --type m5.large --pods 1", "capacity forecast": " " + days(t, t.TempDir(), "days.cnirec", fleettest.Now().Add(-24*time.Hour), 24), "capacity whatif": " --type m5.large --pods 1 --for 1h", "capacity recommend": " --type c6g.medium --pods 1 --for 1m", "capacity refresh": " --reset"}[command]
		stdout, stderr, code := w.runNoun(t, call{args: command + " @rich --columns"})
		head, rows, _ := strings.Cut(stdout, "\n")
		at, end := strings.Index(head, "HEADER"), strings.Index(head, "SHOWN")
		if code != 0 || at < 0 || end < 0 {
			t.Fatalf("%s: exit %d\n%s%s", command, code, stdout, stderr)
		}
		seen := map[string]string{}
		for line := range strings.Lines(rows) {
			name, _, _ := strings.Cut(line, " ")
			header := strings.TrimSpace(line[at:end])
			if other := seen[header]; other != "" {
				t.Errorf("%s: %s is the header of both %s and %s", command, header, other, name)
			}
			seen[header] = name
			as := strings.ReplaceAll(header, " ", "-")
			_, stderr, code := w.runNoun(t, call{args: command + " @rich -o csv --filter " + as + "=nothing --sort-by -" + as + " --columns node," + as})
			if code == 2 && strings.Contains(stderr, `no column "node"`) {
				_, stderr, code = w.runNoun(t, call{args: command + " @rich -o csv --filter " + as + "=nothing --sort-by -" + as + " --columns " + as})
			}
			if code == 2 {
				t.Errorf("%s: %s of %s is not accepted: %s", command, as, name, stderr)
			}
		}
	}
}

// TestColumns_OfTheScreens: a column of a screen has the same name and header as in the
// commands. Columns that no command has are listed here.
func TestColumns_OfTheScreens(t *testing.T) {
	t.Parallel()
	alone := map[string]bool{
		"SLOTS": true, "TREND": true, // drawn
		"CONFIDENCE": true, "WHERE": true, // findings, which doctor lists in sections
		"SEVERITY": true, "CAUSE": true, "ADDS": true, "MEANING": true, // causes, which status lists in sections
	}
	w := newWorld(t)
	w.targets["rich"] = rich(t, t.TempDir(), fleettest.Secondary())
	commands := map[string]bool{}
	everyCommand(tree("cnictl"), func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "cnictl ")
		if cmd.Flags().Lookup("columns") == nil || strings.HasPrefix(path, "local ") {
			return
		}
		if strings.HasPrefix(path, "node ") {
			path += " rich"
		}
		stdout, stderr, code := w.runNoun(t, call{args: path + " @rich --columns"})
		head, rows, _ := strings.Cut(stdout, "\n")
		at, end := strings.Index(head, "HEADER"), strings.Index(head, "SHOWN")
		if code != 0 || at < 0 || end < 0 {
			t.Fatalf("%s: exit %d\n%s%s", path, code, stdout, stderr)
		}
		for line := range strings.Lines(rows) {
			commands[strings.TrimSpace(line[at:end])] = true
		}
	})
	for name, page := range map[string]pages.Page{
		"overview": overview.New(pages.Open{}), "pods": lists.NewPods(pages.Open{}), "enis": lists.NewENIs(pages.Open{}), "subnets": subnets.New(pages.Open{}),
		"trunks": lists.NewTrunks(pages.Open{}), "doctor": doctor.New(pages.Open{}), "node": node.New(pages.Open{}), "eni": lists.NewENI(pages.Open{}),
	} {
		listed, ok := page.(pages.Listed)
		if !ok {
			t.Fatalf("%s has no table", name)
		}
		listed.List().SetWide(true)
		headers, _ := listed.List().Cells()
		for _, header := range headers {
			if header != "" && !commands[header] && !alone[header] {
				t.Errorf("screen %s: no command has a column %s", name, header)
			}
		}
		if len(headers) < 4 {
			t.Errorf("screen %s: columns %q", name, headers)
		}
	}
}

// TestColumns_FiltersOfCommands: a screen's filter accepts whatever --filter of its command
// accepts.
func TestColumns_FiltersOfCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.targets["rich"] = rich(t, t.TempDir(), fleettest.Secondary())
	for name, x := range map[string]struct {
		page    pages.Page
		command string
		without []string // columns that the screen does not read
	}{
		"overview": {overview.New(pages.Open{}), "nodes", nil}, "enis": {lists.NewENIs(pages.Open{}), "enis", nil},
		"subnets": {subnets.New(pages.Open{}), "subnets", nil}, "trunks": {lists.NewTrunks(pages.Open{}), "trunks", []string{"cooling", "pods"}}, "node": {node.New(pages.Open{}), "node enis rich", nil},
		"eni": {lists.NewENI(pages.Open{}), "node ips rich", nil}, "pods": {lists.NewPods(pages.Open{}), "node pods rich", nil}, "logs": {logs.New(pages.Open{}), "events", nil},
	} {
		stdout, stderr, code := w.runNoun(t, call{args: x.command + " @rich --no-headers --columns"})
		if code != 0 || strings.Count(stdout, "\n") < 4 {
			t.Fatalf("%s: exit %d\n%s%s", x.command, code, stdout, stderr)
		}
		for line := range strings.Lines(stdout) {
			column, _, _ := strings.Cut(line, " ")
			if slices.Contains(x.without, column) {
				continue
			}
			if err := x.page.(pages.Listed).List().SetFilter(column + "=nothing"); err != nil {
				t.Errorf("screen %s: %v", name, err)
			}
		}
	}
}

// TestColumns_OneNameEach: STATUS is a synonym of STATE, COOL of COOLING, and WARM means
// the free addresses, as on the screens, not the targets.
func TestColumns_OneNameEach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := func(args string) string {
		stdout, stderr, code := w.run(t, call{args: args + " @large"})
		if code != 0 {
			t.Fatalf("%s: exit %d\n%s", args, code, stderr)
		}
		return stdout
	}
	for _, x := range []struct{ a, b string }{
		{"nodes --columns node,state", "nodes --columns NODE,Status"},
		{"nodes --columns cooling,warm", "nodes --columns cool,WARM"},
		{"nodes --columns targets", "nodes --columns TARGETS"},
		{"nodes --filter state=ok", "nodes --filter STATUS=ok"},
		{"nodes --columns limit", "nodes --columns MAX"},
		{"nodes --filter limit>0 --sort-by limit", "nodes --filter MAX>0 --sort-by max"},
		{"nodes -o custom-columns=node,limit", "nodes -o custom-columns=node,MAX"},
	} {
		if a, b := run(x.a), run(x.b); a != b || strings.Count(a, "\n") != 2 {
			t.Errorf("%s and %s differ:\n%s%s", x.a, x.b, a, b)
		}
	}
	free, warm := run("nodes --columns free --no-headers"), run("nodes --columns warm --no-headers")
	if strings.TrimSpace(free) != strings.TrimSpace(warm) {
		t.Errorf("warm is %q, free %q", warm, free)
	}
}
