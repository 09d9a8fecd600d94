package iam

import "slices"

// Feature is a reason for which a program calls an action.
type Feature string

// Features of the daemon, and the other programs. With ENABLE_IMDS_ONLY_MODE the daemon
// calls no action.
const (
	Start      Feature = "start"      // any start of the daemon
	IPv4       Feature = "ipv4"       // secondary addresses and /28 prefixes
	IPv6       Feature = "ipv6"       // /80 prefixes
	Excluded   Feature = "excluded"   // /80 prefixes are released, if the tags of an interface's subnet exclude it
	Interfaces Feature = "interfaces" // attaching and detaching interfaces
	Groups     Feature = "groups"     // security groups follow those of the node
	Sweep      Feature = "sweep"      // leaked interfaces are deleted
	Upstream   Feature = "upstream"   // upstream's daemon attaches interfaces: ours finds free device indexes without EC2
	Helper     Feature = "helper"     // the metrics helper publishes
	HelperName Feature = "helperName" // the helper reads the cluster's name, unless AWS_CLUSTER_ID is set
	Doctor     Feature = "doctor"     // cnictl with --aws
	PolicyLogs Feature = "policyLogs" // AWS's network policy agent sends its log to CloudWatch
	Migrate    Feature = "migrate"    // cnictl migrate check with --aws, besides Doctor
)

// Action is an AWS action.
type Action struct {
	Name     string // ec2:NAME
	Features []Feature
}

// Table lists every action that our programs and AWS's network policy agent call, by
// service and name.
func Table() []Action { return slices.Clone(table) }

var table = []Action{
	{"cloudwatch:PutMetricData", []Feature{Helper}},
	{"ec2:AssignIpv6Addresses", []Feature{IPv6}},
	{"ec2:AssignPrivateIpAddresses", []Feature{IPv4}},
	{"ec2:AttachNetworkInterface", []Feature{Interfaces}},
	{"ec2:CreateNetworkInterface", []Feature{Interfaces}},
	{"ec2:CreateTags", []Feature{Start, Interfaces, Sweep}},
	{"ec2:DeleteNetworkInterface", []Feature{Interfaces, Sweep}},
	{"ec2:DescribeInstanceTypes", []Feature{Start, Doctor}}, // the daemon: for types outside its table
	{"ec2:DescribeInstances", []Feature{Doctor, Upstream}},
	{"ec2:DescribeNetworkInterfaces", []Feature{Start, Sweep, Doctor}},
	{"ec2:DescribeRouteTables", []Feature{Doctor}},
	{"ec2:DescribeSecurityGroups", []Feature{Doctor}},
	{"ec2:DescribeSubnets", []Feature{Start, Interfaces, Doctor}},
	{"ec2:DescribeTags", []Feature{HelperName}},
	{"ec2:DetachNetworkInterface", []Feature{Interfaces}},
	{"ec2:GetSubnetCidrReservations", []Feature{Doctor}},
	{"ec2:ModifyNetworkInterfaceAttribute", []Feature{Interfaces, Groups}},
	{"ec2:UnassignIpv6Addresses", []Feature{Excluded}},
	{"ec2:UnassignPrivateIpAddresses", []Feature{IPv4}},
	{"eks:DescribeAddon", []Feature{Migrate}},
	{"eks:DescribeCluster", []Feature{Migrate}},
	{"eks:DescribePodIdentityAssociation", []Feature{Migrate}},
	{"eks:ListPodIdentityAssociations", []Feature{Migrate}},
	{"iam:GetInstanceProfile", []Feature{Migrate}},
	{"iam:GetRole", []Feature{Migrate}},
	{"iam:SimulatePrincipalPolicy", []Feature{Migrate}},
	{"logs:CreateLogGroup", []Feature{PolicyLogs}},
	{"logs:CreateLogStream", []Feature{PolicyLogs}},
	{"logs:DescribeLogGroups", []Feature{PolicyLogs}},
	{"logs:PutLogEvents", []Feature{PolicyLogs}},
}

// Needed returns the names of the actions that any of these features calls.
func Needed(features ...Feature) (names []string) {
	for _, a := range table {
		if slices.ContainsFunc(a.Features, func(f Feature) bool { return slices.Contains(features, f) }) {
			names = append(names, a.Name)
		}
	}
	return names
}
