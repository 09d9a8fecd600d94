package iam

import (
	"bytes"
	"encoding/json"
	"fmt"
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

func scoped(features []Feature) Policy {
	const cluster = "CLUSTER_NAME"
	actions := Needed(features...)
	describe := func(name string) bool { return strings.HasPrefix(name, "ec2:Describe") }
	attach := []string{"ec2:AttachNetworkInterface", "ec2:DetachNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute"}
	return document(
		allow("DescribeNetwork", slices.DeleteFunc(slices.Clone(actions), func(name string) bool { return !describe(name) }), "*"),
		allow("TagInterfaces", []string{createTags}, interfaces),
		allow("CreateInterfacesOfCluster", []string{create}, interfaces).when("StringEquals", "aws:RequestTag/cluster.k8s.amazonaws.com/name", cluster),
		allow("CreateInterfacesInVPC", []string{create}, "arn:aws:ec2:*:*:subnet/*", "arn:aws:ec2:*:*:security-group/*").when("ArnEquals", "ec2:Vpc", "arn:aws:ec2:REGION:ACCOUNT:vpc/VPC"),
		allow("ChangeInterfacesOfCluster", slices.DeleteFunc(without(actions, createTags, create), describe), interfaces).when("StringEquals", "aws:ResourceTag/cluster.k8s.amazonaws.com/name", cluster),
		allow("ChangeInterfacesOfNodes", attach, "arn:aws:ec2:*:*:instance/*").when("StringEquals", "aws:ResourceTag/kubernetes.io/cluster/"+cluster, "owned"),
		allow("SetSecurityGroups", []string{"ec2:ModifyNetworkInterfaceAttribute"}, "arn:aws:ec2:*:*:security-group/*"),
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

func (s Statement) when(operator, key, value string) Statement {
	s.Condition = map[string]map[string]string{operator: {key: value}}
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
