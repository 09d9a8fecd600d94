package iam

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Policy is an IAM policy document.
type Policy struct {
	Version   string
	Statement []Statement
}

// Statement allows actions on resources.
type Statement struct {
	Sid       string
	Effect    string
	Action    []string
	Resource  []string
	Condition map[string]map[string]string `json:",omitempty"`
}

// Features by address family. A node has one family. In IPv6 nothing looks for leaked interfaces.
var (
	ofIPv4 = []Feature{Start, IPv4, Interfaces, Groups, Sweep}
	ofIPv6 = []Feature{Start, IPv6, Excluded, Interfaces, Groups}
)

// Policies returns the policies of deploy/iam by name. Words in capitals must be replaced.
// The scoped ones affect only interfaces of one cluster: set CLUSTER_NAME before nodes are
// created.
func Policies() map[string]Policy {
	return map[string]Policy{
		"aws-node-ipv4":        node(ofIPv4),
		"aws-node-ipv6":        node(ofIPv6),
		"aws-node-ipv4-scoped": scoped(ofIPv4),
		"aws-node-ipv6-scoped": scoped(ofIPv6),
		"cni-metrics-helper": document(
			allow("PublishMetrics", Needed(Helper), "*").when("StringEquals", "cloudwatch:namespace", "Kubernetes"),
			allow("ReadClusterName", Needed(HelperName), "*"),
		),
		"cnictl-doctor": document(
			allow("ReadNetwork", Needed(Doctor), "*"),
			allow("ReadInstallation", Needed(Migrate), "*"),
		),
		"network-policy-agent-logs": document(
			allow("WriteLogs", without(Needed(PolicyLogs), describeLogs), logGroup, logGroup+":*"),
			allow("FindLogGroup", []string{describeLogs}, "*"),
		),
	}
}

const (
	interfaces = "arn:aws:ec2:*:*:network-interface/*"
	groups     = "arn:aws:ec2:*:*:security-group/*"
	createTags = "ec2:CreateTags"
	create     = "ec2:CreateNetworkInterface"

	describeLogs = "logs:DescribeLogGroups"
	logGroup     = "arn:aws:logs:*:*:log-group:/aws/eks/CLUSTER_NAME/cluster"
)

func node(features []Feature) Policy {
	actions := Needed(features...)
	return document(
		allow("ManageInterfaces", without(actions, createTags), "*"),
		allow("TagInterfaces", []string{createTags}, interfaces),
	)
}

// scoped confines node's policy to interfaces of one cluster. The cluster's tag is worth no more
// than the right to set it: on interfaces that are being created, and on those of the VPC that have
// none, as the primary ones of new nodes. Trunk and branch ENIs have none either, but another owner.
// The VPC resource controller finds them by tags of its own, which nothing here may write.
func scoped(features []Feature) Policy {
	const (
		cluster = "CLUSTER_NAME"
		tag     = "cluster.k8s.amazonaws.com/name"
		owner   = "eks:eni:owner"
		daemon  = "amazon-vpc-cni" // as owner
	)
	actions := Needed(features...)
	describe := func(name string) bool { return strings.HasPrefix(name, "ec2:Describe") }
	attach := []string{"ec2:AttachNetworkInterface", "ec2:DetachNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute"}
	inVPC := func(s Statement) Statement {
		return s.when("ArnEquals", "ec2:Vpc", "arn:aws:ec2:REGION:ACCOUNT:vpc/VPC_ID")
	}
	tags := func(s Statement) Statement {
		return s.when("StringEqualsIfExists", "aws:RequestTag/"+owner, daemon).
			when("ForAllValues:StringNotLike", "aws:TagKeys", "vpcresources.k8s.aws/*")
	}
	return document(
		allow("DescribeNetwork", slices.DeleteFunc(slices.Clone(actions), func(name string) bool { return !describe(name) }), "*"),
		// CreateInterfacesOfCluster decides on the tags.
		tags(allow("TagNewInterfaces", []string{createTags}, interfaces)).when("StringEquals", "ec2:CreateAction", "CreateNetworkInterface"),
		tags(inVPC(allow("TagInterfaces", []string{createTags}, interfaces))).
			when("StringEqualsIfExists", "aws:ResourceTag/"+owner, daemon).
			when("StringEqualsIfExists", "aws:ResourceTag/"+tag, cluster).
			when("StringEqualsIfExists", "aws:RequestTag/"+tag, cluster),
		allow("CreateInterfacesOfCluster", []string{create}, interfaces).when("StringEquals", "aws:RequestTag/"+tag, cluster),
		inVPC(allow("CreateInterfacesInNetwork", []string{create}, "arn:aws:ec2:*:*:subnet/*", groups)),
		inVPC(allow("ChangeInterfacesOfCluster", slices.DeleteFunc(without(actions, createTags, create), describe), interfaces)).
			when("StringEquals", "aws:ResourceTag/"+tag, cluster).
			when("Null", "ec2:Attribute/SourceDestCheck", "true"),
		allow("ChangeInterfacesOfNodes", attach, "arn:aws:ec2:*:*:instance/*").when("StringEquals", "aws:ResourceTag/kubernetes.io/cluster/"+cluster, "owned"),
		inVPC(allow("SetSecurityGroups", []string{"ec2:ModifyNetworkInterfaceAttribute"}, groups)),
	)
}

func without(names []string, less ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(less, name) })
}

func document(statements ...Statement) Policy {
	return Policy{Version: "2012-10-17", Statement: statements}
}

func allow(sid string, actions []string, resources ...string) Statement {
	return Statement{Sid: sid, Effect: "Allow", Action: actions, Resource: resources}
}

// when adds a condition to those that must hold.
func (s Statement) when(operator, key, value string) Statement {
	all := map[string]map[string]string{operator: {}}
	for o, keys := range s.Condition {
		all[o] = maps.Clone(keys)
	}
	all[operator][key] = value
	s.Condition = all
	return s
}

// JSON returns the document in the form stored in deploy/iam.
func (p Policy) JSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(p); err != nil {
		return nil, fmt.Errorf("encode policy: %w", err)
	}
	return b.Bytes(), nil
}
