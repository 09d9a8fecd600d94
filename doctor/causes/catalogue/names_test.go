package catalogue

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNamesIn: what a line names fills commands, and nothing that is there under two names.
func TestNamesIn(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]map[string]string{
		`policyendpoints.networking.k8s.aws is forbidden: User "system:serviceaccount:kube-system:aws-node" cannot list resource "policyendpoints" in API group "networking.k8s.aws" at the cluster scope`: {"VERB": "list", "RESOURCE": "policyendpoints", "GROUP": "networking.k8s.aws"},
		`{"msg":"pods is forbidden: cannot watch resource \"pods\" in API group \"\" at the cluster scope"}`:                                                                                               {"VERB": "watch", "RESOURCE": "pods", "GROUP": ""},
		`"Error syncing pod, skipping" err="network is not ready" pod="shop/cart-1"`:                                                                                                                       {"NAMESPACE": "shop", "POD": "cart-1"},
		`level=error msg="RunPodSandbox for &PodSandboxMetadata{Name:web-1,Uid:0,Namespace:shop,Attempt:0,} failed, error"`:                                                                                {"NAMESPACE": "shop", "POD": "web-1"},
		`Back-off restarting failed container aws-node in pod aws-node-7hx2p_kube-system(31f0c4de)`:                                                                                                        {"NAMESPACE": "kube-system", "POD": "aws-node-7hx2p"},
		`ENIConfig.crd.k8s.amazonaws.com "eu-west-1c" not found`:                                                                                                                                           {"NAME": "eu-west-1c"},
		`failed calling webhook "mpod.vpc.k8s.aws": failed to call webhook`:                                                                                                                                {"WEBHOOK": "mpod.vpc.k8s.aws"},
		`User: arn:aws:sts::111122223333:assumed-role/node-role/i-0abc1234 is not authorized to perform: ec2:AssignPrivateIpAddresses on resource: arn:aws:ec2:eu-west-1:111122223333:network-interface/eni-0abc`: {
			"ROLE": "node-role", "INSTANCE": "i-0abc1234", "ACTION": "ec2:AssignPrivateIpAddresses", "ENI": "eni-0abc"},
		`assumed-role/cluster-role/1 is not authorized to perform: sts:AssumeRole on resource: arn:aws:iam::111122223333:role/path/other`: {},
		`failed to attach ENI eni-0aaa1111 to i-0bbb2222: eni-0cccc333`:                                                                   {"INSTANCE": "i-0bbb2222"},
		`not enough free addresses (subnet-0beef, 10.4.0.0/22)`:                                                                           {"SUBNET": "subnet-0beef"},
		`dial tcp 172.20.0.1:443: i/o timeout`:                                                                                            {"CLUSTER_IP": "172.20.0.1", "ADDRESS": "172.20.0.1"},
		`vlan.eth.3: failed to add vlan link: file exists`:                                                                                {"LINK": "vlan.eth.3"},
		`device eni0123456789a: Get "http://169.254.169.254/latest"`:                                                                      {"VETH": "eni0123456789a"},
		`node "ip-10-0-1-2.eu-west-1.compute.internal" not found`:                                                                         {"NODE": "ip-10-0-1-2.eu-west-1.compute.internal"},
		`modprobe: FATAL: Module ip_tables not found in directory /lib/modules/5.10`:                                                      {"MODULE": "ip_tables"},
		`nothing is named here`: {},
	} {
		if diff := cmp.Diff(want, NamesIn(line)); diff != "" {
			t.Errorf("%s:\n-want +got:\n%s", line, diff)
		}
	}
}
