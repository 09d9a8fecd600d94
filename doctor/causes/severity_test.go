package causes

import (
	"strings"
	"testing"

	"cnictl/testenv/situation"
)

// TestSeverity_StopsGrowth: what only keeps the pool from growing is a warning while addresses are free and nothing waits;
// else it is as bad as its effect.
func TestSeverity_StopsGrowth(t *testing.T) {
	t.Parallel()
	const (
		free     = "{enis: [{id: eni-a, ips: 9, assigned: 9}, {id: eni-b, ips: 9, assigned: 3}]}"
		full     = "{enis: [{id: eni-a, ips: 9, assigned: 9}]}"
		stuck    = "{enis: [{id: eni-a, ips: 9, assigned: 3}], pods: [{pod: shop/w, phase: Pending, reason: ContainerCreating, createdAt: -9m}]}"
		log      = "log.ipamd: {lines: [{at: -20s, count: 20, every: 25s, level: error, msg: '"
		restarts = "k8s.ds.pods: {with: [{pod: kube-system/aws-node-1, containers: {with: [{name: aws-node, restarts: 2, restartsLastHour: 2}]}}]}\n  "
		denied   = log + "Failed to create eni: operation error EC2: CreateNetworkInterface, https response error StatusCode: 403, api error " +
			"UnauthorizedOperation: You are not authorized to perform this operation.'}]}"
		unreachable = log + `operation error EC2: DescribeSubnets, request send failed, Post "https://ec2.eu-west-1.amazonaws.com/": ` +
			"dial tcp 52.95.0.1:443: i/o timeout'}]}"
		simulated = "iam.sim: {actions: {ec2:CreateNetworkInterface: denied}}\n  "
		custom    = "{env: {AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG: 'true', ENI_CONFIG_LABEL_DEF: topology.kubernetes.io/zone}, maxPods: 20, " +
			"subnets: [{id: subnet-a}, {id: subnet-p, cidr: 100.64.0.0/18}], " +
			"enis: [{id: eni-a}, {id: eni-b, subnet: subnet-p, ips: 9, assigned: 3}]}"
		customFull = "{env: {AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG: 'true', ENI_CONFIG_LABEL_DEF: topology.kubernetes.io/zone}, maxPods: 20, " +
			"subnets: [{id: subnet-a}, {id: subnet-p, cidr: 100.64.0.0/18}], " +
			"enis: [{id: eni-a}, {id: eni-b, subnet: subnet-p, ips: 9, assigned: 9}]}"
		other = "k8s.eniconfig: [{name: other, subnet: subnet-p, securityGroups: [sg-a], valid: true}]"
	)
	for name, x := range map[string]struct{ world, sources, want string }{
		"denied":              {free, denied, "warning aws/iam"},
		"denied, simulated":   {free, simulated + denied, "warning aws/iam"},
		"denied, full":        {full, denied, "critical aws/iam"},
		"denied, a pod waits": {stuck, denied, "critical aws/iam"},
		"denied, restarts":    {free, restarts + denied, "critical aws/iam"},
		"unreachable":         {free, unreachable, "warning aws/ec2-unreachable"},
		"unreachable, full":   {full, unreachable, "critical aws/ec2-unreachable"},
		"unreachable, unread": {free, "intro: {missing: refused}\n  " + unreachable, "critical aws/ec2-unreachable"},
		"no ENIConfig":        {custom, other, "warning cfgnet/eniconfig-missing"},
		"no ENIConfig, full":  {customFull, other, "critical cfgnet/eniconfig-missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const head = "schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\n"
			ev, err := situation.Load([]byte(head + "world: " + x.world + "\nsources:\n  " + x.sources + "\n"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range Diagnose(ev, Options{}).Findings {
				got = append(got, f.Severity+" "+f.Code)
			}
			if !strings.Contains(strings.Join(got, "\n"), x.want) {
				t.Errorf("got %v, want %s", got, x.want)
			}
		})
	}
}
