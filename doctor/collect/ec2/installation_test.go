package ec2

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/google/go-cmp/cmp"

	daemoniam "cnictl/daemon/iam"
	"cnictl/deploy"
	"cnictl/doctor/evidence"
	"cnictl/testenv/aws/fakeaws"
)

// installed is a bed whose EKS cluster has roles of all kinds.
func installed(t *testing.T) (b *bed, cluster fakeaws.Cluster, irsa string) {
	t.Helper()
	b = newBed(t)
	allow := func(actions, resource string) string {
		return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":[` + actions + `],"Resource":"` + resource + `"}]}`
	}
	set := func(name, trust, policy string) string {
		arn, err := b.SetRole(fakeaws.Role{Name: name, Trust: trust, Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		return arn
	}
	set("node-role", `{"Statement":{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}}`, allow(`"ec2:Describe*"`, "*"))
	irsa = set("cni", `{"Statement":[{"Effect":"Allow","Principal":{"Federated":"arn:aws:iam::1:oidc-provider/oidc.test/id/A"},"Action":["sts:AssumeRoleWithWebIdentity"],
		"Condition":{"StringEquals":{"oidc.test/id/A:sub":"system:serviceaccount:kube-system:aws-node","oidc.test/id/A:aud":["sts.amazonaws.com"]}}}]}`,
		allow(`"ec2:CreateTags"`, "arn:aws:ec2:*:*:network-interface/*"))
	identity := set("pods", `{"Statement":[{"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"},"Action":["sts:AssumeRole","sts:TagSession"]}]}`, allow(`"ec2:*"`, "*"))
	cluster = fakeaws.Cluster{
		Name: "shop", Issuer: "https://oidc.test/id/A", Associations: []fakeaws.PodIdentity{{ID: "a-1", Namespace: "kube-system", ServiceAccount: "aws-node", RoleARN: identity}, {ID: "a-2", Namespace: "kube-system", ServiceAccount: "other", RoleARN: irsa}},
		AddOns: map[string]fakeaws.AddOn{"vpc-cni": {Version: "v1.22.4-eksbuild.1", Status: "ACTIVE", ConfigurationValues: "env:\n  WARM_IP_TARGET: 4\n  ENABLE_POD_ENI: \"true\"\n"}},
	}
	b.SetCluster(cluster)
	policy, err := deploy.IAM("cnictl-doctor")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetPolicy("", string(policy)); err != nil {
		t.Fatal(err)
	}
	return b, cluster, irsa
}

// ask reads the installation for the bed's instance.
func (b *bed) ask(t *testing.T, role string) *evidence.Reading {
	t.Helper()
	r, _ := b.Read(t.Context(), b.Region(), []string{b.instance.ID})
	out := b.Installation(t.Context(), b.Region(), r.Instances.Content, role)[b.instance.ID]
	if out == nil {
		t.Fatalf("nothing of %s: %s", b.instance.ID, r.Instances.Missing)
	}
	return out
}

// TestInstallation: the association takes precedence over the annotation, and that over the instance
// profile. Each has its own trust policy and actions.
func TestInstallation(t *testing.T) {
	t.Parallel()
	b, cluster, irsa := installed(t)
	every := daemoniam.Needed(daemoniam.Start, daemoniam.IPv4, daemoniam.IPv6, daemoniam.Excluded, daemoniam.Interfaces, daemoniam.Groups, daemoniam.Sweep, daemoniam.Upstream)
	allowed := func(r *evidence.Reading) (names []string) {
		if len(r.IAM.Content.Actions) != len(every) || r.IAM.Content.Role != r.Role.Content.ARN {
			t.Errorf("simulated %+v %s", r.IAM.Content, r.IAM.Missing)
		}
		for _, name := range slices.Sorted(maps.Keys(r.IAM.Content.Actions)) {
			if r.IAM.Content.Actions[name] == "allowed" {
				names = append(names, name)
			}
		}
		return names
	}
	same := func(want, got any) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	r := b.ask(t, irsa)
	same(&evidence.AddOn{Version: "v1.22.4-eksbuild.1", Status: "ACTIVE", Env: map[string]string{"WARM_IP_TARGET": "4", "ENABLE_POD_ENI": "true"}}, r.AddOn.Content)
	same(evidence.Role{ARN: cluster.Associations[0].RoleARN, Via: evidence.ViaPodIdentity, Issuer: cluster.Issuer, Trust: []evidence.Trust{
		{Principals: []string{"pods.eks.amazonaws.com"}, Actions: []string{"sts:AssumeRole", "sts:TagSession"}, Subjects: []string{}, Audiences: []string{}},
	}}, r.Role.Content)
	same(every, allowed(r))

	cluster.Associations, cluster.AddOns = cluster.Associations[1:], nil
	b.SetCluster(cluster)
	r = b.ask(t, irsa)
	if r.AddOn.Content != nil || !r.AddOn.OK() {
		t.Errorf("an add-on: %+v", r.AddOn)
	}
	same(evidence.Role{ARN: irsa, Via: evidence.ViaIRSA, Issuer: cluster.Issuer, Trust: []evidence.Trust{{
		Principals: []string{"arn:aws:iam::1:oidc-provider/oidc.test/id/A"}, Actions: []string{"sts:AssumeRoleWithWebIdentity"},
		Subjects: []string{"system:serviceaccount:kube-system:aws-node"}, Audiences: []string{"sts.amazonaws.com"},
	}}}, r.Role.Content)
	same([]string{"ec2:CreateTags"}, allowed(r))

	r = b.ask(t, "")
	same(evidence.ViaNode, r.Role.Content.Via)
	same([]string{"ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"}, allowed(r))
}

// TestInstallation_Scoped: IAM simulates no tags, so what a scoped policy allows under a condition is
// neither allowed nor denied.
func TestInstallation_Scoped(t *testing.T) {
	t.Parallel()
	b, cluster, irsa := installed(t)
	document, err := deploy.IAM("aws-node-ipv4-scoped")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.SetRole(fakeaws.Role{Name: "cni", Trust: `{"Statement":[]}`, Policy: b.Filled(document, cluster.Name, b.instance.VPCID)}); err != nil {
		t.Fatal(err)
	}
	cluster.Associations = nil
	b.SetCluster(cluster)
	want := map[string]string{ // IPv6 is not in the policy, nor what only upstream's daemon calls
		"ec2:AssignIpv6Addresses": "denied", "ec2:UnassignIpv6Addresses": "denied", "ec2:DescribeInstances": "denied",
		"ec2:DescribeInstanceTypes": "allowed", "ec2:DescribeNetworkInterfaces": "allowed", "ec2:DescribeSubnets": "allowed",
	}
	if d := cmp.Diff(want, b.ask(t, irsa).IAM.Content.Actions); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestInstallation_Refused: if any one right is missing, its source and those that depend on it are
// forbidden; the others are read.
func TestInstallation_Refused(t *testing.T) {
	t.Parallel()
	for action, sources := range map[string]string{
		"eks:DescribeAddon": "addon", "eks:ListPodIdentityAssociations": "role iam", "eks:DescribePodIdentityAssociation": "role iam", "eks:DescribeCluster": "",
		"iam:GetRole": "role iam", "iam:SimulatePrincipalPolicy": "iam", "iam:GetInstanceProfile": "node",
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			b, cluster, _ := installed(t)
			if sources == "node" {
				cluster.Associations, sources = nil, "role iam"
				b.SetCluster(cluster)
			}
			names := slices.DeleteFunc(daemoniam.Needed(daemoniam.Doctor, daemoniam.Migrate), func(name string) bool { return name == action })
			if err := b.SetPolicy("", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["`+strings.Join(names, `","`)+`"],"Resource":"*"}]}`); err != nil {
				t.Fatal(err)
			}
			r := b.ask(t, "")
			for source, missing := range map[string]string{"addon": r.AddOn.Missing, "role": r.Role.Missing, "iam": r.IAM.Missing} {
				if lacks := slices.Contains(strings.Fields(sources), source); lacks != strings.HasSuffix(missing, evidence.MissingForbidden) || !lacks && missing != "" {
					t.Errorf("%s is missing because of %q", source, missing)
				}
			}
			if known := r.Role.Content.Issuer != ""; known == (action == "eks:DescribeCluster") && r.Role.OK() {
				t.Errorf("issuer %q", r.Role.Content.Issuer)
			}
		})
	}
}

// TestInstallation_NoCluster: a cluster outside EKS has the annotation and profiles.
func TestInstallation_NoCluster(t *testing.T) {
	t.Parallel()
	b, _, irsa := installed(t)
	i := []evidence.Instance{{ID: "i-1"}, {ID: "i-2"}}
	if r := b.Installation(t.Context(), b.Region(), i, irsa)["i-2"]; r.AddOn.OK() || r.Role.Content.Via != evidence.ViaIRSA || !r.IAM.OK() {
		t.Errorf("%+v, %+v, %+v", r.AddOn, r.Role, r.IAM)
	}
	if r := b.Installation(t.Context(), b.Region(), i, "")["i-1"]; !strings.Contains(r.Role.Missing, "no instance profile") || r.IAM.Missing != r.Role.Missing {
		t.Errorf("%+v, %+v", r.Role, r.IAM)
	}
	for _, role := range []string{"cni", "arn:aws:iam::1:role/none"} {
		if r := b.Installation(t.Context(), b.Region(), i, role)["i-1"]; r.Role.OK() == (role != "cni") || r.IAM.OK() {
			t.Errorf("%s: %+v, %+v", role, r.Role, r.IAM)
		}
	}
	if tags := clusterOf(map[string]string{"eks:cluster-name": "a", "kubernetes.io/cluster/b": "owned"}); tags != "a" {
		t.Errorf("cluster %q", tags)
	}
}

// TestEndpointEKS: each partition has its own domain.
func TestEndpointEKS(t *testing.T) {
	t.Parallel()
	for region, want := range map[string]string{
		"eu-west-1": "https://eks.eu-west-1.amazonaws.com", "cn-north-1": "https://eks.cn-north-1.amazonaws.com.cn", "us-gov-west-1": "https://eks.us-gov-west-1.amazonaws.com",
	} {
		if have, err := new(Reader).endpointEKS(t.Context(), region); err != nil || have != want {
			t.Errorf("%s, %v, want %s", have, err, want)
		}
	}
}

// TestDecide: an action is not denied if it depends on a condition unknown to the simulation.
func TestDecide(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	decide(got, []iamtypes.EvaluationResult{
		{EvalActionName: aws.String("a"), EvalDecision: iamtypes.PolicyEvaluationDecisionTypeAllowed, MissingContextValues: []string{"aws:tag"}},
		{EvalActionName: aws.String("b"), EvalDecision: iamtypes.PolicyEvaluationDecisionTypeImplicitDeny},
		{EvalActionName: aws.String("c"), EvalDecision: iamtypes.PolicyEvaluationDecisionTypeExplicitDeny},
		{EvalActionName: aws.String("d"), EvalDecision: iamtypes.PolicyEvaluationDecisionTypeImplicitDeny, MissingContextValues: []string{"aws:tag"}},
	})
	if want := map[string]string{"a": "allowed", "b": "denied", "c": "denied"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
