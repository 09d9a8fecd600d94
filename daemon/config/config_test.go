package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func env(pairs ...string) func(string) (string, bool) {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

func defaults() Config {
	return Config{
		WarmENI: 1, TargetsFromLabels: true, Cooldown: 30 * time.Second, AddWait: 10 * time.Second, SubnetDiscovery: true, ManageUntagged: true,
		ENIConfigAnnotation: "k8s.amazonaws.com/eniConfig", ENIConfigLabel: "k8s.amazonaws.com/eniConfig",
		PodSecurityMode: "strict", RandomizeSNAT: SNATPortsPRNG, NodePortSupport: true, Connmark: 0x80,
		ENIMTU: 9001, PodMTU: 9001, VethPrefix: "eni", V4Egress: true,
		CheckpointPath: "/var/run/aws-node/ipam.json", HTTPTimeout: 10 * time.Second, IntrospectionAddr: "127.0.0.1:61679",
		LogFile: "/host/var/log/aws-routed-eni/ipamd.log", LogLevel: "debug",
		PluginLogFile: "/var/log/aws-routed-eni/plugin.log", PluginLogLevel: "Debug",
		EgressV4LogFile: "/var/log/aws-routed-eni/egress-v4-plugin.log", EgressV6LogFile: "/var/log/aws-routed-eni/egress-v6-plugin.log",
		CNIBinDir: "/host/opt/cni/bin", CNIConfDir: "/host/etc/cni/net.d",
		StartLimit: 10 * time.Minute,
		CloudWatch: true, MetricInterval: 30 * time.Second,
	}
}

var ignoreOrigins = cmpopts.IgnoreFields(Config{}, "origins")
var prefixes = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })

func TestLoad_Defaults(t *testing.T) {
	t.Parallel()
	c, problems := Load(env())
	if len(problems) > 0 {
		t.Errorf("problems with an empty environment: %v", problems)
	}
	if diff := cmp.Diff(defaults(), c, ignoreOrigins, prefixes); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// TestLoad_Values pins, per variable, what each value does, upstream's as upstream reads
// them.
func TestLoad_Values(t *testing.T) {
	t.Parallel()
	cidr := netip.MustParsePrefix
	for _, tc := range []struct {
		variable, value string
		want            func(*Config) // nil if the default stays
		problems        int
		fatal           bool
		text            string
	}{
		{variable: "ENABLE_IPv4", value: "true", want: func(c *Config) { c.IPv4 = true }},
		{variable: "ENABLE_IPv4", value: "T", want: func(c *Config) { c.IPv4 = true }},
		{variable: "ENABLE_IPv4", value: "yes", problems: 1},
		{variable: "ENABLE_IPv4", value: "", problems: 1},
		{variable: "ENABLE_IPv4", value: " true", problems: 1},
		{variable: "ENABLE_SUBNET_DISCOVERY", value: "0", want: func(c *Config) { c.SubnetDiscovery = false }},
		{variable: "ENABLE_SUBNET_DISCOVERY", value: "nope", problems: 1},
		{variable: "AWS_VPC_K8S_CNI_EXTERNALSNAT", value: ""}, // parser B: empty means the default
		{variable: "AWS_VPC_K8S_CNI_EXTERNALSNAT", value: "1", want: func(c *Config) { c.ExternalSNAT = true }},
		{variable: "AWS_VPC_CNI_NODE_PORT_SUPPORT", value: "false", want: func(c *Config) { c.NodePortSupport = false }},

		{variable: "WARM_ENI_TARGET", value: "0", want: func(c *Config) { c.WarmENI = 0 }},
		{variable: "WARM_ENI_TARGET", value: "-1", problems: 1},
		{variable: "WARM_ENI_TARGET", value: "2.5", problems: 1},
		{variable: "WARM_IP_TARGET", value: "5", want: func(c *Config) { c.WarmIP = 5 }},
		{variable: "WARM_IP_TARGET", value: "x", problems: 1},
		{variable: "MINIMUM_IP_TARGET", value: "10", want: func(c *Config) { c.MinIP = 10 }},
		{variable: "WARM_PREFIX_TARGET", value: "-3", problems: 1},
		{variable: "WARM_PREFIX_TARGET", value: "1", want: func(c *Config) { c.WarmPrefix = 1 }},
		{variable: "MAX_ENI", value: "3", want: func(c *Config) { c.MaxENI = 3 }},
		{variable: "MAX_ENI", value: "0", problems: 1},
		{variable: "MAX_ENI", value: ""},
		{variable: "IP_COOLDOWN_PERIOD", value: "0", want: func(c *Config) { c.Cooldown = 0 }},
		{variable: "IP_COOLDOWN_PERIOD", value: "60", want: func(c *Config) { c.Cooldown = time.Minute }},
		{variable: "IP_COOLDOWN_PERIOD", value: "30s", problems: 1},
		{variable: "IP_COOLDOWN_PERIOD", value: "9223372036854775807", problems: 1},

		{variable: "CNI_ADD_WAIT", value: "0", want: func(c *Config) { c.AddWait = 0 }},
		{variable: "CNI_ADD_WAIT", value: "25", want: func(c *Config) { c.AddWait = 25 * time.Second }},
		{variable: "CNI_ADD_WAIT", value: "1m", want: func(c *Config) { c.AddWait = time.Minute }},
		{variable: "CNI_ADD_WAIT", value: "2.5s", want: func(c *Config) { c.AddWait = 2500 * time.Millisecond }},
		{variable: "CNI_ADD_WAIT", value: "61s", problems: 1},
		{variable: "CNI_ADD_WAIT", value: "-1s", problems: 1},
		{variable: "CNI_ADD_WAIT", value: "", problems: 1},

		{variable: "NETWORK_POLICY_ENFORCING_MODE", value: "Standard", want: func(c *Config) { c.NetworkPolicyMode = "Standard" }},
		{variable: "NETWORK_POLICY_ENFORCING_MODE", value: "", problems: 1, fatal: true, text: "invalid Network policy mode, supported modes: none, strict, standard"},
		{variable: "NETWORK_POLICY_ENFORCING_MODE", value: "loose", problems: 1, fatal: true, text: "invalid Network policy mode, supported modes: none, strict, standard"},
		{variable: "POD_SECURITY_GROUP_ENFORCING_MODE", value: "standard", want: func(c *Config) { c.PodSecurityMode = "standard" }},
		{variable: "POD_SECURITY_GROUP_ENFORCING_MODE", value: "lax", problems: 1},
		{variable: "ENI_CONFIG_LABEL_DEF", value: ""},
		{variable: "ENI_CONFIG_LABEL_DEF", value: "zone", want: func(c *Config) { c.ENIConfigLabel = "zone" }},

		{variable: "AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS", value: "10.9.3.4/16, 192.168.0.0/24",
			want: func(c *Config) {
				c.ExcludeSNATCIDRs = []netip.Prefix{cidr("10.9.0.0/16"), cidr("192.168.0.0/24")}
			}},
		{variable: "AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS", value: "10.9.0.0/16,fd00::/8,junk", problems: 2,
			want: func(c *Config) { c.ExcludeSNATCIDRs = []netip.Prefix{cidr("10.9.0.0/16")} }},
		{variable: "AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS", value: ""},
		{variable: "AWS_EXTERNAL_SERVICE_CIDRS", value: "10.0.0.0", problems: 1},
		{variable: "AWS_VPC_K8S_CNI_RANDOMIZESNAT", value: "hashrandom", want: func(c *Config) { c.RandomizeSNAT = SNATPortsHash }},
		{variable: "AWS_VPC_K8S_CNI_RANDOMIZESNAT", value: "random", problems: 1},
		{variable: "AWS_VPC_K8S_CNI_CONNMARK", value: "0x100", want: func(c *Config) { c.Connmark = 0x100 }},
		{variable: "AWS_VPC_K8S_CNI_CONNMARK", value: "4294967295", want: func(c *Config) { c.Connmark = 1<<32 - 1 }},
		{variable: "AWS_VPC_K8S_CNI_CONNMARK", value: "0", problems: 1},
		{variable: "AWS_VPC_K8S_CNI_CONNMARK", value: "4294967296", problems: 1},
		{variable: "AWS_VPC_ENI_MTU", value: "1500", want: func(c *Config) { c.ENIMTU, c.PodMTU = 1500, 1500 }},
		{variable: "AWS_VPC_ENI_MTU", value: "big", problems: 1, fatal: true, text: "AWS_VPC_ENI_MTU MUST be a valid integer. big is invalid"},
		{variable: "POD_MTU", value: "1400", want: func(c *Config) { c.PodMTU = 1400 }},
		{variable: "AWS_VPC_K8S_CNI_VETHPREFIX", value: "pod", want: func(c *Config) { c.VethPrefix = "pod" }},
		{variable: "AWS_VPC_K8S_CNI_VETHPREFIX", value: "", problems: 1, fatal: true},
		{variable: "AWS_VPC_K8S_CNI_VETHPREFIX", value: "a+", problems: 1, fatal: true},
		{variable: "AWS_VPC_K8S_CNI_VETHPREFIX", value: "toolong", problems: 1, fatal: true, text: "AWS_VPC_K8S_CNI_VETHPREFIX cannot be longer than 4 characters"},
		{variable: "AWS_VPC_K8S_CNI_VETHPREFIX", value: "vlan", problems: 1, fatal: true, text: "AWS_VPC_K8S_CNI_VETHPREFIX cannot be set to reserved values 'eth', 'vlan', or 'lo'"},

		{variable: "ADDITIONAL_ENI_TAGS", value: "{}", want: func(c *Config) { c.AdditionalTags = map[string]string{} }},
		{variable: "ADDITIONAL_ENI_TAGS", value: `{"team":"a","node.k8s.amazonaws.com/x":"b"}`, problems: 1,
			want: func(c *Config) { c.AdditionalTags = map[string]string{"team": "a"} }},
		{variable: "ADDITIONAL_ENI_TAGS", value: `{"team":1}`, problems: 1},
		{variable: "ADDITIONAL_ENI_TAGS", value: `{`, problems: 1},
		{variable: "CLUSTER_ENDPOINT", value: "https://k", want: func(c *Config) { c.ClusterEndpoint = "https://k" }},
		{variable: "HTTP_TIMEOUT", value: "9", problems: 1},
		{variable: "HTTP_TIMEOUT", value: "20", want: func(c *Config) { c.HTTPTimeout = 20 * time.Second }},

		{variable: "INTROSPECTION_BIND_ADDRESS", value: "unix:/run/i.sock", want: func(c *Config) { c.IntrospectionAddr = "unix:/run/i.sock" }},
		{variable: "INTROSPECTION_BIND_ADDRESS", value: "[::1]:80", want: func(c *Config) { c.IntrospectionAddr = "[::1]:80" }},
		{variable: "INTROSPECTION_BIND_ADDRESS", value: "127.0.0.2:1", want: func(c *Config) { c.IntrospectionAddr = "127.0.0.2:1" }},
		{variable: "INTROSPECTION_BIND_ADDRESS", value: "localhost:1", want: func(c *Config) { c.IntrospectionAddr = "localhost:1" }},
		// Open to the network: accepted, and reported.
		{variable: "INTROSPECTION_BIND_ADDRESS", value: "0.0.0.0:1", problems: 1, want: func(c *Config) { c.IntrospectionAddr = "0.0.0.0:1" }},
		{variable: "INTROSPECTION_BIND_ADDRESS", value: ":1", problems: 1, want: func(c *Config) { c.IntrospectionAddr = ":1" }},
		{variable: "INTROSPECTION_BIND_ADDRESS", value: "[::]:1", problems: 1, want: func(c *Config) { c.IntrospectionAddr = "[::]:1" }},
		{variable: "INTROSPECTION_BIND_ADDRESS", value: "10.0.0.9:1", problems: 1, want: func(c *Config) { c.IntrospectionAddr = "10.0.0.9:1" }},
		{variable: "INTROSPECTION_BIND_ADDRESS", value: "unix:run/i.sock", problems: 1},
		{variable: "INTROSPECTION_BIND_ADDRESS", value: "", problems: 1},
		{variable: "INTROSPECTION_BIND_ADDRESS", value: "unix:", problems: 1},
		{variable: "INTROSPECTION_BIND_ADDRESS", value: "unix:/" + strings.Repeat("x", 107), problems: 1},
		{variable: "INTROSPECTION_BIND_ADDRESS", value: "localhost", problems: 1},
		{variable: "INTROSPECTION_BIND_ADDRESS", value: "localhost:70000", problems: 1},
		{variable: "AWS_VPC_K8S_CNI_LOG_FILE", value: "StdErr", want: func(c *Config) { c.LogFile = "stderr" }},
		{variable: "AWS_VPC_K8S_CNI_LOG_FILE", value: ""},
		{variable: "AWS_VPC_K8S_CNI_LOGLEVEL", value: "WARN", want: func(c *Config) { c.LogLevel = "warn" }},
		{variable: "AWS_VPC_K8S_CNI_LOGLEVEL", value: "loud", problems: 1},
		{variable: "AWS_VPC_K8S_PLUGIN_LOG_LEVEL", value: "WARN", want: func(c *Config) { c.PluginLogLevel = "WARN" }}, // written to the conflist as typed
		{variable: "AWS_VPC_K8S_PLUGIN_LOG_LEVEL", value: "loud", problems: 1},
		{variable: "AWS_VPC_K8S_PLUGIN_LOG_FILE", value: "STDOUT", problems: 1, fatal: true, text: "AWS_VPC_K8S_PLUGIN_LOG_FILE cannot be set to stdout"},
		{variable: "AWS_VPC_K8S_PLUGIN_LOG_FILE", value: "", want: func(c *Config) { c.PluginLogFile = "" }},
		{variable: "USE_CLOUDWATCH", value: "No", want: func(c *Config) { c.CloudWatch = false }},
		{variable: "USE_CLOUDWATCH", value: "0", problems: 1},
		{variable: "METRIC_UPDATE_INTERVAL", value: "0", problems: 1},
		{variable: "ENABLE_NFTABLES", value: "true", problems: 1},
		{variable: "AWS_MAX_ATTEMPTS", value: "7"},
	} {
		t.Run(tc.variable+"="+tc.value, func(t *testing.T) {
			t.Parallel()
			want := defaults()
			if tc.want != nil {
				tc.want(&want)
			}
			got, problems := Load(env(tc.variable, tc.value))
			if diff := cmp.Diff(want, got, ignoreOrigins, prefixes); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
			if len(problems) != tc.problems {
				t.Fatalf("%d problems, want %d: %v", len(problems), tc.problems, problems)
			}
			if fatal := len(Fatal(problems)) > 0; fatal != tc.fatal {
				t.Errorf("fatal = %v, want %v: %v", fatal, tc.fatal, problems)
			}
			for _, p := range problems {
				if p.Variable != tc.variable || p.Effect == "" || (p.Accepted == "" && p.Variable != "ENABLE_NFTABLES") {
					t.Errorf("problem does not say enough: %+v", p)
				}
				if p.Text != tc.text {
					t.Errorf("text %q, want %q", p.Text, tc.text)
				}
			}
		})
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	nitro := Facts{InstanceType: "m5.large", PrefixDelegation: true, MaxENIs: 3}
	xen := Facts{InstanceType: "t2.medium", MaxENIs: 3}
	v4 := func(more ...string) []string { return append([]string{"ENABLE_IPv4", "true"}, more...) }
	for name, tc := range map[string]struct {
		env   []string
		facts Facts
		want  []string // variable of each problem, "!" before fatal ones
	}{
		"as shipped":                {env: v4("WARM_PREFIX_TARGET", "1", "NETWORK_POLICY_ENFORCING_MODE", "standard"), facts: nitro},
		"as shipped, no policy":     {env: v4("WARM_PREFIX_TARGET", "1"), facts: nitro},
		"no family":                 {facts: nitro, want: []string{"!ENABLE_IPv4, ENABLE_IPv6"}},
		"both families":             {env: v4("ENABLE_IPv6", "true"), facts: nitro, want: []string{"!ENABLE_IPv4, ENABLE_IPv6"}},
		"IPv6":                      {env: []string{"ENABLE_IPv6", "true", "ENABLE_PREFIX_DELEGATION", "true"}, facts: nitro},
		"IPv6 without prefixes":     {env: []string{"ENABLE_IPv6", "true"}, facts: nitro, want: []string{"!ENABLE_PREFIX_DELEGATION"}},
		"IPv6, custom networking":   {env: []string{"ENABLE_IPv6", "true", "ENABLE_PREFIX_DELEGATION", "true", "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "true"}, facts: nitro, want: []string{"!AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"}},
		"IPv6 on Xen":               {env: []string{"ENABLE_IPv6", "true", "ENABLE_PREFIX_DELEGATION", "true"}, facts: xen, want: []string{"!ENABLE_IPv6"}},
		"prefixes on Xen":           {env: v4("ENABLE_PREFIX_DELEGATION", "true", "WARM_PREFIX_TARGET", "1"), facts: xen, want: []string{"ENABLE_PREFIX_DELEGATION"}},
		"prefixes, type unknown":    {env: v4("ENABLE_PREFIX_DELEGATION", "true", "WARM_PREFIX_TARGET", "1")},
		"prefixes without a target": {env: v4("ENABLE_PREFIX_DELEGATION", "true"), facts: nitro, want: []string{"WARM_PREFIX_TARGET"}},
		"custom networking":         {env: v4("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "true"), facts: nitro},
		"pod ENI":                   {env: v4("ENABLE_POD_ENI", "true"), facts: nitro},
		"pod ENI, bad mode":         {env: v4("ENABLE_POD_ENI", "true", "POD_SECURITY_GROUP_ENFORCING_MODE", "lax"), facts: nitro, want: []string{"!POD_SECURITY_GROUP_ENFORCING_MODE"}},
		"multi-NIC":                 {env: v4("ENABLE_MULTI_NIC", "true"), facts: nitro},
		"pod annotation":            {env: v4("ANNOTATE_POD_IP", "true"), facts: nitro},
		"metadata only":             {env: v4("ENABLE_IMDS_ONLY_MODE", "true"), facts: nitro},
		"no provisioning":           {env: v4("DISABLE_NETWORK_RESOURCE_PROVISIONING", "true"), facts: nitro},
		"IPv6 egress":               {env: v4("ENABLE_V6_EGRESS", "true"), facts: nitro},
		"MTU 576":                   {env: v4("AWS_VPC_ENI_MTU", "576"), facts: nitro},
		"MTU 575":                   {env: v4("AWS_VPC_ENI_MTU", "575"), facts: nitro, want: []string{"!AWS_VPC_ENI_MTU"}},
		"pod MTU 9002":              {env: v4("POD_MTU", "9002"), facts: nitro, want: []string{"!POD_MTU"}},
		"pod MTU 0":                 {env: v4("POD_MTU", "0"), facts: nitro, want: []string{"!POD_MTU"}},
		"MAX_ENI above the type's":  {env: v4("MAX_ENI", "4"), facts: nitro, want: []string{"MAX_ENI"}},
		"MAX_ENI is the type's":     {env: v4("MAX_ENI", "3"), facts: nitro},
		"MAX_ENI below the type's":  {env: v4("MAX_ENI", "2"), facts: nitro},
		"MAX_ENI, type unknown":     {env: v4("MAX_ENI", "9")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := Load(env(tc.env...))
			var got []string
			for _, p := range Validate(c, tc.facts) {
				v := p.Variable
				if p.Fatal {
					v = "!" + v
				}
				if p.Accepted == "" || p.Effect == "" {
					t.Errorf("problem does not say enough: %+v", p)
				}
				got = append(got, v)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestValidate_V6Egress: the problem says what is missing, and what to do.
func TestValidate_V6Egress(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		env    map[string]string
		noIPv6 bool
		want   string
	}{
		{"without an address", map[string]string{"ENABLE_IPv4": "true", "ENABLE_V6_EGRESS": "true"}, true,
			`To support IPv6 egress, node primary ENI must have a global IPv6 address: ENABLE_V6_EGRESS="true" cannot be used, it must be false on a node whose primary ENI has no global IPv6 address; ` +
				`pods run without IPv6 egress; give the subnet an IPv6 CIDR block and the primary ENI an IPv6 address, then restart aws-node`},
		{"with an address", map[string]string{"ENABLE_IPv4": "true", "ENABLE_V6_EGRESS": "true"}, false, ""},
		{"off", map[string]string{"ENABLE_IPv4": "true"}, true, ""},
		{"not read in an IPv6 cluster", map[string]string{"ENABLE_IPv6": "true", "ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": "1", "ENABLE_V6_EGRESS": "true"}, true, ""},
	} {
		c, _ := Load(func(name string) (string, bool) { v, ok := row.env[name]; return v, ok })
		got := ""
		for _, p := range Validate(c, Facts{NoIPv6: row.noIPv6}) {
			got += p.String()
			if p.Fatal {
				t.Errorf("%s: fatal", row.name)
			}
		}
		if got != row.want {
			t.Errorf("%s:\n%s\nwant\n%s", row.name, got, row.want)
		}
	}
}

func TestFor(t *testing.T) {
	t.Parallel()
	c, _ := Load(env("ENABLE_IPv4", "true", "ENABLE_PREFIX_DELEGATION", "true"))
	for _, tc := range []struct {
		facts Facts
		want  bool
	}{
		{Facts{}, true},
		{Facts{InstanceType: "t2.small"}, false},
		{Facts{InstanceType: "m5.large", PrefixDelegation: true}, true},
	} {
		if got := c.For(tc.facts).PrefixDelegation; got != tc.want {
			t.Errorf("%+v: prefix delegation %v, want %v", tc.facts, got, tc.want)
		}
	}
	for declared, want := range map[string]int{"": 0, "2": 2, "3": 3, "9": 3} {
		c, _ := Load(env("MAX_ENI", declared))
		if got := c.For(Facts{MaxENIs: 3}).MaxENI; got != want {
			t.Errorf("MAX_ENI=%s: %d where 3 are possible, want %d", declared, got, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	c, problems := Load(env(
		"ENABLE_IPv4", "true",
		"WARM_IP_TARGET", "x",
		"AWS_VPC_ENI_MTU", "1500",
		"ENABLE_PREFIX_DELEGATION", "true",
		"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS", "10.0.0.0/8,bad",
		"MAX_ENI", "",
		"AWS_SECRET_ACCESS_KEY", "hunter2",
		"CLUSTER_ENDPOINT", "https://user:hunter2@k:6443",
		"AWS_ENDPOINT_URL_EC2", "http://e",
		"ENABLE_NFTABLES", "true",
	))
	facts := Facts{InstanceType: "t2.small"}
	problems = append(problems, Validate(c, facts)...)
	c = c.For(facts)
	type line struct {
		Declared, Effective string
		Source              Source
		Problems            int
	}
	got := map[string]line{}
	for _, s := range c.Describe(problems) {
		got[s.Name] = line{s.Declared, s.Effective, s.Source, len(s.Problems)}
		if strings.Contains(fmt.Sprint(s), "hunter2") {
			t.Error("a secret is shown")
		}
	}
	for name, want := range map[string]line{
		"ENABLE_IPv4":                        {"true", "true", FromEnvironment, 0},
		"ENABLE_IPv6":                        {"", "false", FromDefault, 0},
		"WARM_IP_TARGET":                     {"x", "0", FromDefault, 1},
		"WARM_ENI_TARGET":                    {"", "1", FromDefault, 0},
		"AWS_VPC_ENI_MTU":                    {"1500", "1500", FromEnvironment, 0},
		"POD_MTU":                            {"", "1500", FromOther, 0},
		"ENABLE_PREFIX_DELEGATION":           {"true", "false", FromOther, 1},
		"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS": {"10.0.0.0/8,bad", "10.0.0.0/8", FromEnvironment, 1},
		"MAX_ENI":                            {"", "", FromDefault, 0},
		"AWS_SECRET_ACCESS_KEY":              {Hidden, Hidden, FromEnvironment, 0},
		"AWS_SESSION_TOKEN":                  {"", "", FromDefault, 0},
		"CLUSTER_ENDPOINT":                   {"https://(hidden)@k:6443", "https://(hidden)@k:6443", FromEnvironment, 0},
		"AWS_ENDPOINT_URL_EC2":               {"http://e", "http://e", FromEnvironment, 0},
		"ENABLE_NFTABLES":                    {"true", "", FromDefault, 1},
	} {
		if got[name] != want {
			t.Errorf("%s: got %+v, want %+v", name, got[name], want)
		}
	}
	if len(got) != len(table()) {
		t.Errorf("%d settings, want %d", len(got), len(table()))
	}
}

func TestWithProblems(t *testing.T) {
	t.Parallel()
	c, problems := Load(env("ENABLE_IPv4", "true", "WARM_IP_TARGET", "x", "AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS", "a,b"))
	if got := WithProblems(c.Describe(problems)); len(problems) != 3 || got != 2 {
		t.Errorf("%d settings with a problem of %v, want 2 of 3", got, problems)
	}
}

func TestPublic(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ variable, value, want string }{
		{"AWS_SECRET_ACCESS_KEY", "s", Hidden},
		{"AWS_SECRET_ACCESS_KEY", "", ""},
		{"AWS_ENDPOINT_URL_EC2", "https://ec2.example/x", "https://ec2.example/x"},
		{"AWS_ENDPOINT_URL_EC2", "https://me:pw@ec2.example/x", "https://(hidden)@ec2.example/x"},
		{"AWS_EC2_ENDPOINT", "https://me@ec2.example", "https://(hidden)@ec2.example"},
		{"HTTPS_PROXY", "me:p@ss/w?rd#1@proxy:3128", "(hidden)@proxy:3128"}, // not escaped, no scheme
		{"HTTPS_PROXY", "http://me:p://x@proxy:3128", "http://(hidden)@proxy:3128"},
		{"HTTP_PROXY", "@", "(hidden)@"},
		{"CLUSTER_NAME", "a@b", "a@b"},
	} {
		r, ok := lookup(tc.variable)
		if got := r.public(tc.value); !ok || got != tc.want {
			t.Errorf("%s=%s: shown as %q, want %q", tc.variable, tc.value, got, tc.want)
		}
	}
	for _, r := range table() {
		if credential := regexp.MustCompile(`SECRET|TOKEN|ACCESS_KEY|PASSWORD`).MatchString(r.Name); credential != r.Secret && r.Kind() != Path {
			t.Errorf("%s: is a secret by its name: %v; in the table: %v", r.Name, credential, r.Secret)
		}
	}
}

// TestValidate_AsTheOriginalRefuses has a row for each combination that upstream's ipamd
// refuses at its start, and for the one that it accepts.
func TestValidate_AsTheOriginalRefuses(t *testing.T) {
	t.Parallel()
	nitro, metal := Facts{InstanceType: "m5.large", PrefixDelegation: true}, Facts{InstanceType: "m5.metal", PrefixDelegation: true}
	xen := Facts{InstanceType: "t2.medium"}
	v6 := []string{"ENABLE_IPv6", "true", "ENABLE_PREFIX_DELEGATION", "true"}
	for name, tc := range map[string]struct {
		env   []string
		facts Facts
		want  string // what is refused, "" if the daemon starts
	}{
		"IPv4 and IPv6 on":                   {append([]string{"ENABLE_IPv4", "true"}, v6...), nitro, "exactly one of them true"},
		"IPv4 and IPv6 off":                  {nil, nitro, "exactly one of them true"},
		"IPv6 with custom networking":        {append([]string{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "true"}, v6...), nitro, "false while ENABLE_IPv6 is true"},
		"IPv6 without prefix delegation":     {v6[:2], nitro, "true while ENABLE_IPv6 is true"},
		"IPv6 on a type of neither kind":     {v6, xen, "false on t2.medium, which is neither Nitro nor bare metal"},
		"IPv6 on Nitro":                      {v6, nitro, ""},
		"IPv6 on bare metal":                 {v6, metal, ""},
		"IPv4 prefixes on a type of neither": {[]string{"ENABLE_IPv4", "true", "ENABLE_PREFIX_DELEGATION", "true"}, xen, ""},
		"IPv4":                               {[]string{"ENABLE_IPv4", "true"}, xen, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, problems := Load(env(tc.env...))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			var got []string
			for _, p := range Fatal(Validate(c, tc.facts)) {
				if p.Text != "" {
					got = append(got, p.Accepted)
				}
				if p.Text != "" && p.Text != "ipamd: failed to validate configuration" {
					t.Errorf("text %q", p.Text)
				}
			}
			if strings.Join(got, "|") != tc.want {
				t.Errorf("refused: %q, want %q", got, tc.want)
			}
		})
	}
}

// TestValidateEntrypoint has a row for each check of upstream's entrypoint. Load covers
// stdout, prefixes and numbers.
func TestValidateEntrypoint(t *testing.T) {
	t.Parallel()
	const noTarget = "Setting WARM_PREFIX_TARGET = 0 is not supported while WARM_IP_TARGET/MINIMUM_IP_TARGET is not set. Please configure either one of the WARM_{PREFIX/IP}_TARGET or MINIMUM_IP_TARGET env variables"
	for _, tc := range []struct {
		env  string
		want string
	}{
		{"", ""},
		{"AWS_VPC_K8S_PLUGIN_LOG_FILE=stdout", "AWS_VPC_K8S_PLUGIN_LOG_FILE cannot be set to stdout"},
		{"AWS_VPC_K8S_CNI_VETHPREFIX=abcde", "AWS_VPC_K8S_CNI_VETHPREFIX cannot be longer than 4 characters"},
		{"AWS_VPC_K8S_CNI_VETHPREFIX=lo", "AWS_VPC_K8S_CNI_VETHPREFIX cannot be set to reserved values 'eth', 'vlan', or 'lo'"},
		{"POD_SECURITY_GROUP_ENFORCING_MODE=lax", ""},
		{"POD_SECURITY_GROUP_ENFORCING_MODE=lax ENABLE_POD_ENI=true", "POD_SECURITY_GROUP_ENFORCING_MODE must be set to either 'strict' or 'standard'"},
		{"POD_SECURITY_GROUP_ENFORCING_MODE=standard ENABLE_POD_ENI=true", ""},
		{"IP_COOLDOWN_PERIOD=0", ""},
		{"IP_COOLDOWN_PERIOD=-1", "IP_COOLDOWN_PERIOD MUST be a valid positive integer. -1 is invalid"},
		{"IP_COOLDOWN_PERIOD=30s", "IP_COOLDOWN_PERIOD MUST be a valid positive integer. 30s is invalid"},
		{"AWS_VPC_ENI_MTU=x", "AWS_VPC_ENI_MTU MUST be a valid integer. x is invalid"},
		{"POD_MTU=", "POD_MTU MUST be a valid integer.  is invalid"},
		{"AWS_VPC_ENI_MTU=575", "AWS_VPC_ENI_MTU cannot be less than 576 or greater than 9001 in IPv4. 575 is invalid"},
		{"AWS_VPC_ENI_MTU=9002", "AWS_VPC_ENI_MTU cannot be less than 576 or greater than 9001 in IPv4. 9002 is invalid"},
		{"POD_MTU=1279 ENABLE_IPv6=true", "POD_MTU cannot be less than 1280 or greater than 9001 in IPv6. 1279 is invalid"},
		{"ENABLE_PREFIX_DELEGATION=true", noTarget},
		{"ENABLE_PREFIX_DELEGATION=true ENABLE_IPv6=true", noTarget},
		{"ENABLE_PREFIX_DELEGATION=true WARM_PREFIX_TARGET=0 WARM_IP_TARGET=0 MINIMUM_IP_TARGET=0", noTarget},
		{"ENABLE_PREFIX_DELEGATION=true WARM_PREFIX_TARGET=1", ""},
		{"ENABLE_PREFIX_DELEGATION=true WARM_IP_TARGET=1", ""},
		{"ENABLE_PREFIX_DELEGATION=true MINIMUM_IP_TARGET=1", ""},
		{"ENABLE_PREFIX_DELEGATION=true WARM_PREFIX_TARGET=-1", ""}, // compared as text
	} {
		t.Run(tc.env, func(t *testing.T) {
			t.Parallel()
			var pairs []string
			for _, pair := range strings.Fields(tc.env) {
				name, value, _ := strings.Cut(pair, "=")
				pairs = append(pairs, name, value)
			}
			c, problems := Load(env(pairs...))
			var got []string
			for _, p := range slices.Concat(Fatal(problems), ValidateEntrypoint(c)) {
				if !p.Fatal || p.Accepted == "" || p.Effect == "" {
					t.Errorf("problem does not say enough: %+v", p)
				}
				got = append(got, p.Text)
			}
			if strings.Join(got, "|") != tc.want {
				t.Errorf("refused: %q, want %q", got, tc.want)
			}
		})
	}
}

// TestTable checks what every row must have.
func TestTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range Table() {
		if seen[r.Name] {
			t.Errorf("%s: twice in the table", r.Name)
		}
		seen[r.Name] = true
		if r.Name == "" || r.Group == "" || r.Kind() == "" || r.Accepts() == "" || r.Meaning == "" || r.Support == "" {
			t.Errorf("%s: incomplete row", r.Name)
		}
		if (len(r.Readers) == 0) != (r.Support == NoOp) || (r.Deprecated != "") != (r.Support == NoOp) {
			t.Errorf("%s: readers, support and deprecation contradict each other", r.Name)
		}
		if loads := r.bind.load != nil; loads != (r.Support != NoOp && r.Support != Passed) {
			t.Errorf("%s: support %s but loads a value: %v", r.Name, r.Support, loads)
		}
		if r.Label != "" && (r.bind.number == nil || !strings.HasPrefix(r.Label, LabelDomain+"/")) {
			t.Errorf("%s: label %s of a setting that is no number, or in another domain", r.Name, r.Label)
		}
		if r.bind.load != nil && r.Default != "" {
			var c Config
			if problems := r.bind.load(&c, r.Default); len(problems) > 0 {
				t.Errorf("%s: default is refused: %v", r.Name, problems)
			} else if got := r.bind.show(&c); got != r.Default {
				t.Errorf("%s: default %q is shown as %q", r.Name, r.Default, got)
			}
		}
	}
}

// TestEveryFieldHasARow finds fields that no setting sets: it loads non-default values into
// each row, and expects every field to change.
func TestEveryFieldHasARow(t *testing.T) {
	t.Parallel()
	probe := []string{"true", "false", "7", "13", "0x40", "standard", "hashrandom", "info", "10.0.0.0/8", `{"a":"b"}`, "1.2.3.4:5", "x", "/x", "https://x", "no", "yes"}
	var def Config
	touched := map[string]bool{}
	for _, r := range table() {
		if r.bind.load == nil {
			continue
		}
		for _, v := range probe {
			c := def
			r.bind.load(&c, v)
			for i := range reflect.TypeOf(c).NumField() {
				if f := reflect.TypeOf(c).Field(i); f.IsExported() &&
					!reflect.DeepEqual(reflect.ValueOf(c).Field(i).Interface(), reflect.ValueOf(def).Field(i).Interface()) {
					touched[f.Name] = true
				}
			}
		}
	}
	for i := range reflect.TypeOf(def).NumField() {
		if f := reflect.TypeOf(def).Field(i); f.IsExported() && !touched[f.Name] {
			t.Errorf("no row sets Config.%s", f.Name)
		}
	}
}

func TestTableIsACopy(t *testing.T) {
	t.Parallel()
	Table()[0].Name = "changed"
	if slices.ContainsFunc(Table(), func(r Row) bool { return r.Name == "changed" }) {
		t.Error("Table hands out its own slice")
	}
}

func FuzzLoad(f *testing.F) {
	for _, r := range table() {
		f.Add(r.Name, r.Default)
	}
	f.Add("AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS", "10.0.0.0/8,,fe80::/10,1.2.3.4/33")
	f.Add("ADDITIONAL_ENI_TAGS", `{"a":"b","x.k8s.amazonaws.com":"c"}`)
	f.Add("INTROSPECTION_BIND_ADDRESS", "unix:/x")
	f.Add("CNI_ADD_WAIT", "1h0.5s")
	f.Fuzz(func(t *testing.T, name, value string) {
		c, first := Load(env(name, value))
		for _, p := range first {
			if p.Variable != name || p.Effect == "" {
				t.Errorf("problem names the wrong variable or no effect: %+v", p)
			}
		}
		// Any input leaves the config within its bounds.
		if c.WarmENI < 0 || c.WarmIP < 0 || c.MinIP < 0 || c.WarmPrefix < 0 || c.MaxENI < 0 || c.Cooldown < 0 ||
			c.AddWait < 0 || c.AddWait > time.Minute || c.HTTPTimeout < 10*time.Second || c.Connmark == 0 ||
			len(c.VethPrefix) < 1 || len(c.VethPrefix) > 4 || c.CheckpointPath == "" || c.IntrospectionAddr == "" {
			t.Errorf("out of bounds: %+v", c)
		}
		for _, p := range append(c.ExcludeSNATCIDRs, c.ExternalServiceCIDRs...) {
			if !p.Addr().Is4() || p != p.Masked() {
				t.Errorf("not an IPv4 network: %v", p)
			}
		}
		c.Describe(append(slices.Clone(first), Validate(c, Facts{})...))
		// Loading the shown value of an accepted variable gives the same value.
		r, ok := lookup(name)
		if !ok || r.bind.load == nil || !c.origins[name].taken {
			return
		}
		again, more := Load(env(name, r.bind.show(&c)))
		// An accepted value may cause a warning, which the second load repeats.
		if len(more) > len(first) || r.bind.show(&again) != r.bind.show(&c) {
			t.Errorf("%s=%q: shown as %q, which loads as %q with %v", name, value, r.bind.show(&c), r.bind.show(&again), more)
		}
	})
}
