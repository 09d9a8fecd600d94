package config

import (
	"maps"
	"slices"
	"testing"

	"cnictl/testenv/rules/testindex"
)

// behaviour names, for each supported variable, the tests of its effect: not that its value
// is read, but what the node then does. A test is a directory and a name; a second slash
// introduces the subtest or table row.
//
// TestSettings and TestConfig_* run the built daemon on a simulated node.
var behaviour = map[string][]string{
	"ENABLE_IPv4":                           {e2e + "TestConfig_Refused/no address family", e2e + "TestConfig_Refused/both address families", e2e + "TestRestart"},
	"ENABLE_IPv6":                           {e2e + "TestModes_IPv6", e2e + "TestConfig_Refused/IPv6 without prefixes", e2e + "TestConfig_Refused/IPv6 with custom networking"},
	"ENABLE_PREFIX_DELEGATION":              {e2e + "TestSettings/prefixes", "daemon/config TestFor"},
	"WARM_ENI_TARGET":                       {e2e + "TestSettings/WARM_ENI_TARGET", "daemon/warmpool TestPlan_WorkedExamples"},
	"WARM_IP_TARGET":                        {e2e + "TestSettings/WARM_IP_TARGET", "daemon/warmpool TestPlan_WorkedExamples"},
	"MINIMUM_IP_TARGET":                     {e2e + "TestSettings/MINIMUM_IP_TARGET", "daemon/warmpool TestPlan_WorkedExamples"},
	"WARM_PREFIX_TARGET":                    {e2e + "TestSettings/prefixes", "daemon/warmpool TestPlan_WorkedExamples"},
	"MAX_ENI":                               {e2e + "TestSettings/MAX_ENI", "daemon/warmpool TestPlan_Limits"},
	"CNI_TARGETS_FROM_LABELS":               {e2e + "TestModes_TargetsFromLabels"},
	"IP_COOLDOWN_PERIOD":                    {e2e + "TestSettings/IP_COOLDOWN_PERIOD"},
	"CNI_READY_WITH_ADDRESSES":              {e2e + "TestModes_Readiness"},
	"CNI_ADD_WAIT":                          {e2e + "TestSettings/CNI_ADD_WAIT"},
	"AWS_MANAGE_ENIS_NON_SCHEDULABLE":       {e2e + "TestConfig_APIServer", "daemon/warmpool TestPlan_NodeState/cordoned but managed: targets"},
	"ENABLE_SUBNET_DISCOVERY":               {e2e + "TestSettings/ENABLE_SUBNET_DISCOVERY off", e2e + "TestSettings/subnet discovery", "daemon/resync TestSubnetPolicy"},
	"DISABLE_NETWORK_RESOURCE_PROVISIONING": {e2e + "TestModes_ProvisioningOff"},
	"ENABLE_IMDS_ONLY_MODE":                 {e2e + "TestModes_IMDSOnly"},
	"DISABLE_LEAKED_ENI_CLEANUP":            {e2e + "TestRestart_KeepsOrphansIfSet", e2e + "TestRestart_DeletesOrphans"},
	"MANAGE_UNTAGGED_ENI":                   {e2e + "TestSettings/MANAGE_UNTAGGED_ENI", e2e + "TestSettings/an untagged ENI is managed"},
	"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG":    {e2e + "TestModes_CustomNetworking"},
	"ENI_CONFIG_ANNOTATION_DEF":             {e2e + "TestModes_ENIConfigSelection", "daemon/cluster TestENIConfigName"},
	"ENI_CONFIG_LABEL_DEF":                  {e2e + "TestModes_ENIConfigSelection", "daemon/cluster TestENIConfigName"},
	"ENABLE_POD_ENI":                        {e2e + "TestModes_SecurityGroupsForPods"},
	"POD_SECURITY_GROUP_ENFORCING_MODE":     {e2e + "TestModes_SecurityGroupsForPods", e2e + "TestConfig_Refused/pod security group mode"},
	"ENABLE_MULTI_NIC":                      {e2e + "TestModes_MultiNIC"},
	"ANNOTATE_POD_IP":                       {e2e + "TestModes_AnnotatePodIP"},
	"NETWORK_POLICY_ENFORCING_MODE":         {e2e + "TestPolicy", e2e + "TestPolicy_AgentFails", e2e + "TestPolicy_Off", e2e + "TestConfig_Refused/network policy mode"},
	"AWS_VPC_K8S_CNI_EXTERNALSNAT":          {e2e + "TestSettings/AWS_VPC_K8S_CNI_EXTERNALSNAT", "daemon/hostnet/rules TestNode"},
	"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS":    {e2e + "TestSettings/AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS", "daemon/hostnet/rules TestNode"},
	"AWS_EXTERNAL_SERVICE_CIDRS":            {e2e + "TestSettings/AWS_EXTERNAL_SERVICE_CIDRS", "daemon/hostnet/rules TestNode"},
	"AWS_VPC_K8S_CNI_RANDOMIZESNAT":         {e2e + "TestSettings/AWS_VPC_K8S_CNI_RANDOMIZESNAT", e2e + "TestSettings/SNAT", "daemon/hostnet/rules TestNode"},
	"AWS_VPC_CNI_NODE_PORT_SUPPORT":         {e2e + "TestSettings/AWS_VPC_CNI_NODE_PORT_SUPPORT", "daemon/hostnet/rules TestNode"},
	"AWS_VPC_K8S_CNI_CONNMARK":              {e2e + "TestSettings/AWS_VPC_K8S_CNI_CONNMARK", "daemon/hostnet/rules TestNode"},
	"AWS_VPC_ENI_MTU":                       {e2e + "TestSettings/AWS_VPC_ENI_MTU", e2e + "TestConfig_Refused/MTU, too small"},
	"AWS_VPC_K8S_CNI_VETHPREFIX":            {e2e + "TestSettings/AWS_VPC_K8S_CNI_VETHPREFIX", e2e + "TestConfig_Refused/link prefix, reserved"},
	"POD_MTU":                               {e2e + "TestEntrypoint_Conflist/a user's template", "daemon/launch TestSettings/pod MTU"},
	"AWS_VPC_K8S_PLUGIN_LOG_FILE":           {e2e + "TestEntrypoint_Conflist/settings", "daemon/launch TestCheck"},
	"AWS_VPC_K8S_PLUGIN_LOG_LEVEL":          {e2e + "TestEntrypoint_Conflist/settings"},
	"AWS_VPC_K8S_EGRESS_V4_PLUGIN_LOG_FILE": {e2e + "TestEntrypoint_Conflist/an IPv6 cluster", "daemon/launch TestCheck"},
	"AWS_VPC_K8S_EGRESS_V6_PLUGIN_LOG_FILE": {e2e + "TestEntrypoint_Conflist/settings", "daemon/launch TestCheck"},
	"ENABLE_BANDWIDTH_PLUGIN":               {e2e + "TestEntrypoint_Conflist/a user's template"},
	"CNI_CONFLIST_VERSIONS":                 {e2e + "TestEntrypoint_Conflist/a user's template"},
	"CNI_CONFLIST_KEEP_EGRESS":              {"daemon/launch TestRender_Egress/off, kept"},
	"DISABLE_POD_V6":                        {e2e + "TestEntrypoint_Conflist/a user's template"},
	"HOST_CNI_BIN_PATH":                     {e2e + "TestEntrypoint_Life", e2e + "TestInit"},
	"HOST_CNI_CONFDIR_PATH":                 {e2e + "TestEntrypoint_Life"},
	"CNI_START_LIMIT":                       {e2e + "TestEntrypoint_Ends/the daemon never serves"},
	"DISABLE_TCP_EARLY_DEMUX":               {e2e + "TestInit/early demux off"},
	"ENABLE_V4_EGRESS":                      {e2e + "TestEntrypoint_Conflist/an IPv6 cluster without egress", "daemon/launch TestSettings/IPv6, other log"},
	"ENABLE_V6_EGRESS":                      {e2e + "TestInit/IPv6 egress", "daemon/launch TestCheck", "daemon/hostnet/rules TestNode"},
	"AWS_VPC_K8S_CNI_BACKING_STORE":         {e2e + "TestSettings/AWS_VPC_K8S_CNI_BACKING_STORE"},
	"CLUSTER_NAME":                          {e2e + "TestSettings/tags", "daemon/resync TestSubnetPolicy", "daemon/resync TestLeaked"},
	"ADDITIONAL_ENI_TAGS":                   {e2e + "TestSettings/tags"},
	"CLUSTER_ENDPOINT":                      {e2e + "TestConfig_APIServer", "daemon/internal/kube TestEndpointReplacesTheServer"},
	"KUBECONFIG":                            {e2e + "TestConfig_APIServer", "daemon/internal/kube TestNew_Errors"},
	"MY_POD_NAME":                           {e2e + "TestEvents"},
	"MY_NODE_NAME":                          {e2e + "TestConfig_APIServer", "daemon/internal/kube TestNode_WithoutName"},
	"VPC_CNI_VERSION":                       {e2e + "TestConfig_APIServer", e2e + "TestConfig_EC2Endpoint"},
	"HTTP_TIMEOUT":                          {"daemon/ipamd TestHTTPTimeout", "daemon/internal/vpcapi TestTimeout", "daemon/internal/imds TestTimeout"},
	"AWS_EC2_ENDPOINT":                      {e2e + "TestConfig_EC2Endpoint", e2e + "TestSettings/AWS_EC2_ENDPOINT alone", "daemon/internal/vpcapi TestEndpointAndCredentials"},
	"DISABLE_METRICS":                       {e2e + "TestSettings/DISABLE_METRICS"},
	"DISABLE_INTROSPECTION":                 {e2e + "TestSettings/DISABLE_INTROSPECTION"},
	"INTROSPECTION_BIND_ADDRESS":            {e2e + "TestSettings/INTROSPECTION_BIND_ADDRESS", "daemon/internal/introspectserver TestServe_UnixReplacesStaleSocket"},
	"AWS_VPC_K8S_CNI_LOG_FILE":              {e2e + "TestSettings/AWS_VPC_K8S_CNI_LOG_FILE", "daemon/internal/logging TestOpen_Streams"},
	"AWS_VPC_K8S_CNI_LOGLEVEL":              {e2e + "TestSettings/AWS_VPC_K8S_CNI_LOGLEVEL", "daemon/internal/logging TestHandler_Levels"},
	"USE_CLOUDWATCH":                        {helper + "TestSettings_Switches", helper + "TestHelper_Environment/CloudWatch alone", helper + "TestHelper_Environment/Prometheus alone"},
	"USE_PROMETHEUS":                        {helper + "TestSettings_Switches", helper + "TestHelper_Environment/Prometheus alone"},
	"METRIC_UPDATE_INTERVAL":                {helper + "TestHelper", helper + "TestSettings_Problems", helper + "TestHelper_Environment/no interval"},
	"AWS_REGION":                            {helper + "TestHelper_Environment/CloudWatch alone", helper + "TestHelper_Environment/no metadata", "cmd/cni-metrics-helper/internal/publish TestRegion"},
	"AWS_CLUSTER_ID":                        {helper + "TestHelper_Environment/CloudWatch alone", "cmd/cni-metrics-helper/internal/publish TestCluster"},
}

const (
	e2e    = "testenv/node/e2e "
	helper = "cmd/cni-metrics-helper "
)

// TestBehaviour fails if a supported variable has no test of its effect, or if a listed test
// is gone.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	unknown := maps.Clone(behaviour)
	for _, r := range table() {
		delete(unknown, r.Name)
		if wanted := r.Support == Acts; wanted != (len(behaviour[r.Name]) > 0) {
			t.Errorf("%s: support %q, %d tests of its behaviour", r.Name, r.Support, len(behaviour[r.Name]))
		}
	}
	for name := range unknown {
		t.Errorf("%s is not in the table", name)
	}
	tests := testindex.New("../..")
	for _, name := range slices.Sorted(maps.Keys(behaviour)) {
		for _, test := range behaviour[name] {
			if err := tests.Find(test); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
