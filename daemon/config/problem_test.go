package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProblem_Sentences: users read one sentence for each kind of mistake, after the text
// that guides search for, if any.
func TestProblem_Sentences(t *testing.T) {
	t.Parallel()
	nftables, _ := lookup("ENABLE_NFTABLES")
	for name, tc := range map[string]struct {
		env  []string
		want []string
	}{
		"number": {[]string{"WARM_IP_TARGET", "many"}, []string{`WARM_IP_TARGET="many" cannot be used, it must be an integer ≥ 0; the default 0 is used`}},
		"empty":  {[]string{"ENABLE_SUBNET_DISCOVERY", ""}, []string{`ENABLE_SUBNET_DISCOVERY must be true or false (1, t, T, TRUE, true, True, 0, f, F, FALSE, false, False); the default true is used`}},
		"word":   {[]string{"AWS_VPC_K8S_CNI_RANDOMIZESNAT", "random"}, []string{`AWS_VPC_K8S_CNI_RANDOMIZESNAT="random" cannot be used, it must be prng, hashrandom or none; the default prng is used`}},
		"list":   {[]string{"AWS_EXTERNAL_SERVICE_CIDRS", "10.0.0.0/8,fd00::/8"}, []string{`AWS_EXTERNAL_SERVICE_CIDRS="fd00::/8" is not an IPv4 CIDR; this entry is skipped`}},
		"tag": {
			[]string{"ADDITIONAL_ENI_TAGS", `{"node.k8s.amazonaws.com/x":"b"}`},
			[]string{`ADDITIONAL_ENI_TAGS="node.k8s.amazonaws.com/x" has a key reserved for the CNI, containing "k8s.amazonaws.com"; this tag is not written`},
		},
		"no-op": {[]string{"ENABLE_NFTABLES", "true"}, []string{`ENABLE_NFTABLES="true" is not read; ` + nftables.Deprecated}},
		"open to the network": {
			[]string{"INTROSPECTION_BIND_ADDRESS", "0.0.0.0:61679"},
			[]string{`INTROSPECTION_BIND_ADDRESS="0.0.0.0:61679" lets anyone who can reach the node read its pods, settings, events and logs; use 127.0.0.1:61679 or unix:/path`},
		},
		"relative path": {
			[]string{"INTROSPECTION_BIND_ADDRESS", "unix:run/i.sock"},
			[]string{`INTROSPECTION_BIND_ADDRESS="unix:run/i.sock" cannot be used, it must be host:port, or unix: and an absolute path of up to 107 bytes; the default 127.0.0.1:61679 is used`},
		},
		"limit": {[]string{"MAX_ENI", "9"}, []string{`MAX_ENI="9" exceeds what a network card of m5.large supports; the limit of the instance type, 3, applies`}},
		"families": {
			[]string{"ENABLE_IPv6", "true", "ENABLE_PREFIX_DELEGATION", "true"},
			[]string{
				`ipamd: failed to validate configuration: ENABLE_IPv4 and ENABLE_IPv6 are both true, but exactly one must be; the daemon does not start`,
			},
		},
		"searched for": {
			[]string{"AWS_VPC_ENI_MTU", "big"},
			[]string{`AWS_VPC_ENI_MTU MUST be a valid integer. big is invalid: AWS_VPC_ENI_MTU="big" cannot be used, it must be 576–9001 (IPv4), 1280–9001 (IPv6); the daemon does not start`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, problems := Load(env(append([]string{"ENABLE_IPv4", "true"}, tc.env...)...))
			problems = append(problems, Validate(c, Facts{InstanceType: "m5.large", PrefixDelegation: true, MaxENIs: 3})...)
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("sentences (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDescribe_WithoutEffect: an unsupported setting is a problem only if it asks the daemon
// for something. Settings that match the default behaviour or configure another binary are
// not.
func TestDescribe_WithoutEffect(t *testing.T) {
	t.Parallel()
	c, problems := Load(env(
		"ENABLE_BANDWIDTH_PLUGIN", "F",
		"AWS_VPC_K8S_PLUGIN_LOG_LEVEL", "DEBUG",
		"DISABLE_POD_V6", "maybe",
		"MY_POD_NAME", "aws-node-x",
		"USE_CLOUDWATCH", "false",
		"AWS_REGION", "eu-central-1",
		"HOST_CNI_BIN_PATH", "/opt/bin",
	))
	got := map[string]string{}
	for _, s := range c.Describe(problems) {
		if len(s.Problems) > 1 {
			t.Errorf("%s: %q", s.Name, s.Problems)
		}
		if len(s.Problems) > 0 {
			got[s.Name] = s.Problems[0]
		}
	}
	want := map[string]string{
		"DISABLE_POD_V6": `DISABLE_POD_V6="maybe" cannot be used, it must be true or false (1, t, T, TRUE, true, True, 0, f, F, FALSE, false, False); the default false is used`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
