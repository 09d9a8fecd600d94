package netconf

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cnictl/testenv/text/golden"
)

//go:generate go test -run ^TestSettings_Documentation$ -count=1 . -update

// settings are the keys by which a conflist configures aws-cni, what applies when a key is
// absent, and the entrypoint variables that set it.
var settings = []struct {
	key, absent, accepted, other, from, meaning string
}{
	{"vethPrefix", "`eni`", "at most 4 characters", "ADD fails", "`AWS_VPC_K8S_CNI_VETHPREFIX`", "prefix of the pods' host interface names"},
	{"mtu", "`9001`", "a number as a string, 576–9001", "9001", "`POD_MTU`, else `AWS_VPC_ENI_MTU`", "MTU of pod interfaces"},
	{"podSGEnforcingMode", "`strict`", "strict, standard", "strict; affects only pods with a branch ENI", "`POD_SECURITY_GROUP_ENFORCING_MODE`", "path of traffic of pods with security groups"},
	{"pluginLogFile", "standard error", "a path or stderr", "stdout means standard error, as the result goes to stdout", "`AWS_VPC_K8S_PLUGIN_LOG_FILE`", "log file of the plugin"},
	{"pluginLogLevel", "`debug`", "debug, info, warn, error, fatal in any case", "debug", "`AWS_VPC_K8S_PLUGIN_LOG_LEVEL`", "minimum log level"},
}

const (
	settingsStart = "<!-- generated from plugin/netconf: start -->\n"
	settingsEnd   = "<!-- generated from plugin/netconf: end -->"
)

func settingsTable() string {
	var b strings.Builder
	b.WriteString("\n| key | default | accepted | any other value | written from | meaning |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, s := range settings {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", s.key, s.absent, s.accepted, s.other, s.from, s.meaning)
	}
	return b.String() + "\n"
}

func TestSettings_Documentation(t *testing.T) {
	const page = "../../docs/configuration.md"
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(have), settingsStart)
	_, after, end := strings.Cut(rest, settingsEnd)
	if !ok || !end {
		t.Fatalf("%s has no markers for the keys of the conflist", page)
	}
	want := before + settingsStart + settingsTable() + settingsEnd + after
	golden.File(t, page, []byte(want))
}

// TestSettings_AreTheKeys: each key of NetConf that a user sets is documented, with
// its default.
func TestSettings_AreTheKeys(t *testing.T) {
	t.Parallel()
	const others = "cniVersion name type capabilities runtimeConfig prevResult" // CNI's keys, not ours
	conf, err := Parse([]byte(`{"name":"aws-cni"}`))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for f, v := range reflect.ValueOf(conf).Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if slices.Contains(strings.Fields(others), key) {
			continue
		}
		keys = append(keys, key)
		i := slices.IndexFunc(settings, func(row struct{ key, absent, accepted, other, from, meaning string }) bool { return row.key == key })
		if i < 0 {
			t.Errorf("%s is not documented", key)
			continue
		}
		if absent := v.String(); absent != "" && settings[i].absent != "`"+absent+"`" {
			t.Errorf("%s: absent means %q, documented %s", key, absent, settings[i].absent)
		}
	}
	if len(keys) != len(settings) {
		t.Errorf("%d keys, %d documented", len(keys), len(settings))
	}
}
