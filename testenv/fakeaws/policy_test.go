package fakeaws

import (
	"path"
	"slices"
	"strings"
	"testing"
)

func TestParsePolicy_Refuses(t *testing.T) {
	t.Parallel()
	statement := func(s string) string { return `{"Version":"2012-10-17","Statement":[` + s + `]}` }
	condition := func(c string) string {
		return statement(`{"Effect":"Allow","Action":"ec2:*","Resource":"*","Condition":{` + c + `}}`)
	}
	for _, row := range []struct{ name, document, says string }{
		{"empty", ``, "it is empty"},
		{"no version", `{"Statement":[{"Effect":"Allow","Action":"ec2:*","Resource":"*"}]}`, `version ""`},
		{"no statement", statement(``), "there is no statement"},
		{"condition", statement(`{"Effect":"Allow","Action":"ec2:*","Resource":"*","Condition":{"StringEquals":{"a":"b"}}}`), "StringEquals of a: the key is not understood"},
		{"condition on all", statement(`{"Effect":"Allow","Action":["s3:*","*"],"Resource":"*","Condition":{"StringEquals":{"s3:prefix":"b"}}}`), "the key is not understood"},
		{"condition of any value", condition(`"ForAnyValue:StringEquals":{"aws:TagKeys":"b"}`), `operator "ForAnyValue:StringEquals"`},
		{"condition of all values of a key with one", condition(`"ForAllValues:StringEquals":{"ec2:Vpc":"b"}`), "ForAllValues is accepted for aws:TagKeys"},
		{"condition of one value of a key with many", condition(`"StringEquals":{"aws:TagKeys":"b"}`), "ForAllValues is accepted for aws:TagKeys"},
		{"absence of all values", condition(`"ForAllValues:Null":{"aws:TagKeys":"true"}`), `operator "ForAllValues:Null"`},
		{"condition on an attribute without a name", condition(`"StringEquals":{"ec2:Attribute/":"b"}`), "the key is not understood"},
		{"condition on an address", condition(`"IpAddress":{"aws:SourceIp":"10.0.0.0/8"}`), `operator "IpAddress"`},
		{"condition on a tag without a name", condition(`"StringEquals":{"aws:ResourceTag/":"b"}`), "the key is not understood"},
		{"condition without a value", condition(`"StringEquals":{"ec2:Vpc":[]}`), "there is no value"},
		{"condition with a number", condition(`"StringEquals":{"ec2:Vpc":1}`), "a list of texts"},
		{"condition with a variable", condition(`"StringEquals":{"aws:ResourceTag/a":"${aws:PrincipalTag/a}"}`), "policy variables"},
		{"absence of a value", condition(`"Null":{"ec2:Vpc":"no"}`), "true or false"},
		{"absence if it exists", condition(`"NullIfExists":{"ec2:Vpc":"true"}`), `operator "NullIfExists"`},
		{"wildcard service", statement(`{"Effect":"Allow","Action":"ec?:*","Resource":"*"}`), "service:Name"},
		{"not action", statement(`{"Effect":"Allow","NotAction":"ec2:CreateTags","Resource":"*"}`), "NotAction"},
		{"not resource", statement(`{"Effect":"Allow","Action":"ec2:*","NotResource":"*"}`), "NotResource"},
		{"principal", statement(`{"Effect":"Allow","Action":"ec2:*","Resource":"*","Principal":"*"}`), "Principal"},
		{"effect", statement(`{"Effect":"allow","Action":"ec2:*","Resource":"*"}`), `effect "allow"`},
		{"no action", statement(`{"Effect":"Allow","Resource":"*"}`), "there is no Action"},
		{"no resource", statement(`{"Effect":"Allow","Action":"ec2:*"}`), "there is no Resource"},
		{"misspelt", statement(`{"Effect":"Allow","Action":["ec2:DescribeSubnets","ec2:DescribeSubnet"],"Resource":"*"}`), `"ec2:DescribeSubnet": no such action`},
		{"no service", statement(`{"Effect":"Allow","Action":"DescribeSubnets","Resource":"*"}`), "service:Name"},
		{"resource", statement(`{"Effect":"Allow","Action":"ec2:*","Resource":"eni-1"}`), `resource "eni-1"`},
		{"number", statement(`{"Effect":"Allow","Action":1,"Resource":"*"}`), "a list of texts"},
		{"too long", strings.Repeat(" ", maxPolicy+1), "bytes"},
	} {
		if _, err := parsePolicy([]byte(row.document)); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want it to say %q", row.name, err, row.says)
		}
	}
}

// The world ignores other services' statements, except for listing their actions.
func TestParsePolicy_OtherServices(t *testing.T) {
	t.Parallel()
	got, err := PolicyActions([]byte(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"cloudwatch:PutMetricData","Resource":"*","Condition":{"StringEquals":{"cloudwatch:namespace":"Kubernetes"}}},
		{"Effect":"Allow","Action":"ec2:DescribeTags","Resource":"*"}]}`))
	if want := []string{"cloudwatch:PutMetricData", "ec2:DescribeTags"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

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

// The matcher agrees with path.Match on texts and patterns without characters that only one
// of the two treats specially.
func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{{"*", ""}, {"", ""}, {"", "a"}, {"ec2:Describe*", "ec2:DescribeTags"}, {"a*b*c", "axxbxxc"}, {"a?c", "abc"}, {"*a", "ba"}, {"**", "x"}, {"a*a", "a"}, {"?", ""}, {"*?", "ab"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if strings.ContainsAny(pattern, `[]\/`) || strings.Contains(s, "/") || len(pattern)+len(s) > 60 || strings.Count(pattern, "*") > 6 {
			t.Skip()
		}
		for _, text := range []string{pattern, s} { // path.Match's ? matches several bytes
			if strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 }) {
				t.Skip()
			}
		}
		want, err := path.Match(pattern, s)
		if err != nil {
			t.Skip()
		}
		if got := match(pattern, s); got != want {
			t.Errorf("match(%q, %q) = %v", pattern, s, got)
		}
	})
}

// An accepted policy allows what it lists and nothing else.
func FuzzParsePolicy(f *testing.F) {
	f.Add(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ec2:CreateTags","Resource":"*"}]}`)
	f.Add(`{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":["*"],"Resource":["arn:aws:ec2:*"]},{"Effect":"Allow","Action":"ec2:*","Resource":"*"}]}`)
	f.Add(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ec2:*","Resource":"*","Condition":{}}]}`)
	f.Add(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ec2:*","Resource":"*","Condition":{"StringLikeIfExists":{"aws:ResourceTag/a":["b*"]},"Null":{"ec2:Vpc":"true"}}}]}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, document string) {
		p, err := parsePolicy([]byte(document))
		listed, err2 := PolicyActions([]byte(document))
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%v and %v", err, err2)
		}
		if err != nil {
			return
		}
		for action := range actions {
			v := p.judge(need{action: "ec2:" + action, resource: "*"})
			named := slices.ContainsFunc(listed, func(a string) bool { return match(strings.ToLower(a), strings.ToLower("ec2:"+action)) })
			if v == allowed && !named {
				t.Errorf("allows %s, lists %q", action, listed)
			}
		}
		if p.judge(need{action: "s3:GetObject", resource: "*"}) == allowed && !slices.ContainsFunc(listed, func(a string) bool { return match(strings.ToLower(a), "s3:getobject") }) {
			t.Errorf("allows another service's action, lists %q", listed)
		}
	})
}
