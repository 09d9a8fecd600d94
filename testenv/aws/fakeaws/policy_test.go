package fakeaws

import (
	"testing"
)

func TestPolicy_Judge(t *testing.T) {
	t.Parallel()
	p, err := parsePolicy([]byte(`{"Version":"2012-10-17","Id":"x","Statement":[
		{"Sid":"a","Effect":"Allow","Action":["ec2:Describe*","ec2:createnetworkinterface"],"Resource":"*"},
		{"Sid":"b","Effect":"Allow","Action":"ec2:CreateTags","Resource":["arn:aws:ec2:*:*:network-interface/*"]},
		{"Sid":"c","Effect":"Deny","Action":"ec2:DescribeTag?","Resource":"*"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	const arn = "arn:aws:ec2:us-west-2:111122223333:"
	for _, row := range []struct {
		action, resource string
		want             verdict
	}{
		{"ec2:DescribeSubnets", "*", allowed},
		{"ec2:DescribeTags", "*", denied},
		{"ec2:CreateNetworkInterface", arn + "subnet/subnet-1", allowed},
		{"ec2:CreateTags", arn + "network-interface/eni-1", allowed},
		{"ec2:CreateTags", arn + "instance/i-1", notAllowed},
		{"ec2:DeleteNetworkInterface", arn + "network-interface/eni-1", notAllowed},
		{"cloudwatch:PutMetricData", "*", notAllowed},
	} {
		if got := p.judge(need{action: row.action, resource: row.resource}); got != row.want {
			t.Errorf("%s on %s: %d, want %d", row.action, row.resource, got, row.want)
		}
	}
}

// TestCondition_Holds: as IAM's user guide describes operators, absent keys and several values.
func TestCondition_Holds(t *testing.T) {
	t.Parallel()
	const (
		vpc  = "arn:aws:ec2:us-west-2:111122223333:vpc/vpc-1"
		none = ""
	)
	for _, row := range []struct {
		condition string // operator, key, values
		value     string // of the key in the request, "" if it lacks it
		want      bool
	}{
		{`"StringEquals":{"aws:ResourceTag/a":"b"}`, "b", true},
		{`"StringEquals":{"aws:ResourceTag/a":"b"}`, "B", false},
		{`"StringEquals":{"aws:ResourceTag/a":"*"}`, "b", false},
		{`"StringEquals":{"aws:ResourceTag/a":"b"}`, none, false},
		{`"StringEquals":{"AWS:resourcetag/A":["c","b"]}`, "b", true},
		{`"StringEqualsIfExists":{"aws:ResourceTag/a":"b"}`, none, true},
		{`"StringEqualsIfExists":{"aws:ResourceTag/a":"b"}`, "c", false},
		{`"StringNotEquals":{"aws:ResourceTag/a":["b","c"]}`, "c", false},
		{`"StringNotEquals":{"aws:ResourceTag/a":"b"}`, none, true},
		{`"StringLike":{"aws:ResourceTag/a":"prod-*"}`, "prod-1", true},
		{`"StringNotLike":{"aws:ResourceTag/a":"prod-*"}`, "prod-1", false},
		{`"ArnEquals":{"aws:ResourceTag/a":"` + vpc + `"}`, vpc, true},
		{`"ArnEquals":{"aws:ResourceTag/a":"` + vpc + `"}`, vpc + "2", false},
		{`"ArnLike":{"aws:ResourceTag/a":"arn:aws:ec2:*:*:vpc/*"}`, vpc, true},
		{`"ArnLike":{"aws:ResourceTag/a":"arn:aws:*:vpc/*"}`, vpc, false}, // a part for a part
		{`"ArnLike":{"aws:ResourceTag/a":"*"}`, "no ARN", false},
		{`"ArnNotEquals":{"aws:ResourceTag/a":"` + vpc + `"}`, vpc, false},
		{`"ArnNotLikeIfExists":{"aws:ResourceTag/a":"` + vpc + `"}`, none, true},
		{`"Null":{"aws:ResourceTag/a":"true"}`, none, true},
		{`"Null":{"aws:ResourceTag/a":"true"}`, "b", false},
		{`"Null":{"aws:ResourceTag/a":"false"}`, "b", true},
		{`"ForAllValues:StringLike":{"aws:TagKeys":["team","k8s/*"]}`, "any", true},
		{`"ForAllValues:StringLike":{"aws:TagKeys":"k8s/*"}`, "any", false},
		{`"ForAllValues:StringNotLike":{"aws:TagKeys":"k8s/*"}`, "any", false},
		{`"ForAllValues:StringNotLike":{"aws:TagKeys":["other","k9s/*"]}`, "any", true},
		{`"ForAllValues:StringEquals":{"aws:TagKeys":"team"}`, none, true}, // of no tags
		{`"StringEquals":{"ec2:Attribute/SourceDestCheck":"false"}`, "any", true},
		{`"Null":{"ec2:Attribute/SourceDestCheck":"true"}`, "any", false},
		{`"StringEquals":{"aws:ResourceTag/a":"b","ec2:Region":"us-west-2"},"Null":{"ec2:CreateAction":"true"}`, "b", true},
		{`"StringEquals":{"aws:ResourceTag/a":"b","ec2:Region":"us-east-1"}`, "b", false},
		{`"StringEquals":{"aws:ResourceTag/a":"b"},"Null":{"ec2:CreateAction":"false"}`, "b", false},
	} {
		p, err := parsePolicy([]byte(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ec2:*","Resource":"*","Condition":{` + row.condition + `}}]}`))
		if err != nil {
			t.Errorf("%s: %v", row.condition, err)
			continue
		}
		n := need{action: "ec2:CreateTags", resource: "*", keys: contextKeys{"ec2:region": {"us-west-2"}}}
		if row.value != none {
			n.keys.set("aws:resourcetag/a", row.value)
			n.keys.set("ec2:attribute/sourcedestcheck", "false")
			n.keys["aws:tagkeys"] = []string{"k8s/a", "team"}
		}
		if got := p.judge(n) == allowed; got != row.want {
			t.Errorf("%s of %q: %v", row.condition, row.value, got)
		}
	}
}
