package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"cnictl/cmd/cni-metrics-helper/internal/aggregate"
	"cnictl/daemon/config"
	"cnictl/testenv/kube/kubeapi"
)

//testlayers:uses=cmd/cni-metrics-helper
func TestMain(m *testing.M) { kubeapi.Main(m) }

func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "|")
}

func getenv(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// TestSettings_Switches: flags, the flag with a space in its name, and the environment,
// which takes precedence if it says yes or no.
func TestSettings_Switches(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args                   string // separated by |
		cloudwatch, prometheus string // environment variables
		wantCW, wantProm       bool
	}{
		{"", "", "", true, false},
		{"--cloudwatch=false", "", "", false, false},
		{"-cloudwatch=false", "", "", false, false},
		{"--cloudwatch", "", "", true, false},
		{"--cloudwatch=false", "YES", "", true, false},
		{"--cloudwatch=true", "No", "", false, false},
		{"--cloudwatch=false", "perhaps", "", false, false},
		{"", "perhaps", "", true, false},
		{"--prometheus", "", "", true, true},
		{"--prometheus metrics", "", "", true, true},
		{"--prometheus metrics=true", "", "", true, true},
		{"--prometheus metrics=false", "", "", true, false},
		{"--prometheus|metrics", "", "", true, true},
		{"--prometheus|metrics=false", "", "", true, false},
		{"--prometheus|metrics|--cloudwatch=false", "", "", false, true},
		{"--prometheus", "", "false", true, false},
		{"", "", "TRUE", true, true},
		{"", "", "1", true, false},
	} {
		f, err := parseFlags(words(row.args))
		if err != nil {
			t.Errorf("%q: %v", row.args, err)
			continue
		}
		c, _ := settings(getenv(map[string]string{"USE_CLOUDWATCH": row.cloudwatch, "USE_PROMETHEUS": row.prometheus}), f)
		if c.CloudWatch != row.wantCW || c.Prometheus != row.wantProm {
			t.Errorf("%+v: CloudWatch %v, Prometheus %v", row, c.CloudWatch, c.Prometheus)
		}
	}
}

func TestParseFlags_Refuses(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"metrics", "--prometheus|other", "--cloudwatch=perhaps", "--bogus", "--cloudwatch|false", "-"} {
		if _, err := parseFlags(words(args)); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	if _, err := parseFlags([]string{"--help"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}

// TestSettings_Problems: only the helper's own variables are reported, and an invalid
// interval stops the start.
func TestSettings_Problems(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, value string
		problems    int
		fatal       bool
	}{
		{"METRIC_UPDATE_INTERVAL", "60", 0, false},
		{"METRIC_UPDATE_INTERVAL", "30s", 1, true},
		{"METRIC_UPDATE_INTERVAL", "0", 1, true},
		{"METRIC_UPDATE_INTERVAL", "", 1, true},
		{"USE_PROMETHEUS", "1", 1, false},
		{"HTTP_TIMEOUT", "3", 1, false},
		{"WARM_ENI_TARGET", "x", 0, false},
		{"AWS_VPC_ENI_MTU", "x", 0, false}, // fatal for ipamd
	} {
		_, problems := settings(getenv(map[string]string{row.name: row.value}), flags{})
		if len(problems) != row.problems || len(config.Fatal(problems)) > 0 != row.fatal {
			t.Errorf("%s=%q: %v", row.name, row.value, problems)
		}
	}
}

// TestDocumentation: the documented tables of metrics, reasons and variables match the code.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/metrics-helper.md")
	if err != nil {
		t.Fatal(err)
	}
	figures := map[aggregate.Kind]string{aggregate.Gauge: "sum", aggregate.Counter: "increase", aggregate.Latency: "latency"}
	for _, m := range aggregate.Metrics() {
		if row := fmt.Sprintf("| `%s` | `%s` | %s |\n", m.Source, m.Published, figures[m.Kind]); !strings.Contains(string(text), row) {
			t.Errorf("no row %s", row)
		}
	}
	for _, r := range reasons() {
		if !strings.Contains(string(text), "\n| `"+r+"` | ") {
			t.Errorf("no row of reason %s", r)
		}
	}
	for _, r := range config.Table() {
		if r.ReadBy(config.Helper) && !strings.Contains(string(text), "\n| `"+r.Name+"` | ") {
			t.Errorf("no row of variable %s", r.Name)
		}
	}
}
