package access

import (
	"errors"
	"strings"
	"testing"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

func targetsOf(names ...string) []fleet.Target {
	var out []fleet.Target
	for _, name := range names {
		out = append(out, fleet.Target{Name: name})
	}
	return out
}

func TestMeant(t *testing.T) {
	t.Parallel()
	known := targetsOf("ip-10-0-3-1.eu", "ip-10-0-3-17.eu", "ip-10-0-3-17.us", "a", "a.b", "db-1", "node/odd")
	known[1].Object = &document.NodeObject{InstanceID: "i-0123456789abcdef0", InternalIP: "10.0.3.17"}
	known[3].Object = &document.NodeObject{InternalIP: "fd00::17"}
	known[4].Object = &document.NodeObject{} // Kubernetes reports neither type nor address
	for name, want := range map[string]string{
		"ip-10-0-3-1":         "ip-10-0-3-1.eu", // although it is a prefix of others
		"ip-10-0-3-17":        "ip-10-0-3-17.eu ip-10-0-3-17.us",
		"ip-10-0-3-17.u":      "ip-10-0-3-17.us",
		"ip-10-0-3":           "ip-10-0-3-1.eu ip-10-0-3-17.eu ip-10-0-3-17.us",
		"a":                   "a",
		"d":                   "db-1",
		"i-0123456789abcdef0": "ip-10-0-3-17.eu",
		"i-0123456789abcdef":  "", // IDs must be complete
		"10.0.3.17":           "ip-10-0-3-17.eu",
		"10.0.3.1":            "",
		"fd00:0::17":          "a",
		"":                    "",
		"nope":                "",
	} {
		if got := strings.Join(Meant(name, known), " "); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestSelectTargets(t *testing.T) {
	t.Parallel()
	known := targetsOf("ip-10-0-3-1.eu", "ip-10-0-3-17.eu", "ip-10-0-4-1.eu")
	for _, row := range []struct {
		asked, scope, want string
		code               int
	}{
		{want: "ip-10-0-3-1.eu ip-10-0-3-17.eu ip-10-0-4-1.eu"},
		{asked: "ip-10-0-4", want: "ip-10-0-4-1.eu"},
		{asked: "nodeipam.cnictl/ip-10-0-4-1.eu node/ip-10-0-3-1", want: "ip-10-0-3-1.eu ip-10-0-4-1.eu"},
		{asked: "pod/ip-10-0-4-1.eu", code: cli.ExitNotFound},
		{asked: "ip-10-0-3", code: cli.ExitUsage},
		{asked: "nope", code: cli.ExitNotFound},
		{asked: "ip-10-0-4-1.eu", scope: "node/ip-10-0-4 ip-10-0-3-1", want: "ip-10-0-4-1.eu"},
		{asked: "ip-10-0-4-1.eu", scope: "ip-10-0-3-1", code: cli.ExitUsage},
		{asked: "ip-10-0-4-1.eu", scope: "nope", code: cli.ExitNotFound},
	} {
		got, err := selectTargets(&cli.Factory{Name: "cnictl"}, known, strings.Fields(row.asked), strings.Fields(row.scope))
		var e *cli.Error
		if errors.As(err, &e); (err == nil) != (row.code == 0) || err != nil && e.Code != row.code || strings.Join(namesOf(got), " ") != row.want {
			t.Errorf("%q of %q: %v, %v", row.asked, row.scope, namesOf(got), err)
		}
	}
}
