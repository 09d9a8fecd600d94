package fleettest

import (
	"slices"
	"strings"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/config"
)

// settings returns a few settings of a node: one left alone, one in effect, one with a problem,
// and one that is set but ignored by this version.
func settings() []introspect.ConfigRow {
	env := map[string]string{"WARM_IP_TARGET": "5", "WARM_ENI_TARGET": "-3", "POD_SECURITY_GROUP_ENFORCING_MODE": "standard"}
	shown := []string{"ENABLE_PREFIX_DELEGATION", "WARM_IP_TARGET", "WARM_ENI_TARGET", "POD_SECURITY_GROUP_ENFORCING_MODE"}
	c, problems := config.Load(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	var rows []introspect.ConfigRow
	for _, s := range c.Describe(problems) {
		if !slices.Contains(shown, s.Name) {
			continue
		}
		row := introspect.ConfigRow{
			Name: s.Name, Effective: s.Effective, Source: string(s.Source), Problem: strings.Join(s.Problems, "; "), Support: string(s.Support),
		}
		if s.Set {
			row.Declared = &s.Declared
		}
		rows = append(rows, row)
	}
	return rows
}
