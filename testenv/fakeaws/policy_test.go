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
	for _, row := range []struct{ name, document, says string }{
		{"empty", ``, "it is empty"},
		{"no version", `{"Statement":[{"Effect":"Allow","Action":"ec2:*","Resource":"*"}]}`, `version ""`},
		{"no statement", statement(``), "there is no statement"},
		{"condition", statement(`{"Effect":"Allow","Action":"ec2:*","Resource":"*","Condition":{"StringEquals":{"a":"b"}}}`), "conditions on EC2's actions"},
		{"condition on all", statement(`{"Effect":"Allow","Action":["s3:*","*"],"Resource":"*","Condition":{}}`), "conditions on EC2's actions"},
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
		if got := p.judge(need{row.action, row.resource}); got != row.want {
			t.Errorf("%s on %s: %d, want %d", row.action, row.resource, got, row.want)
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
			v := p.judge(need{"ec2:" + action, "*"})
			named := slices.ContainsFunc(listed, func(a string) bool { return match(strings.ToLower(a), strings.ToLower("ec2:"+action)) })
			if v == allowed && !named {
				t.Errorf("allows %s, lists %q", action, listed)
			}
		}
		if p.judge(need{"s3:GetObject", "*"}) == allowed && !slices.ContainsFunc(listed, func(a string) bool { return match(strings.ToLower(a), "s3:getobject") }) {
			t.Errorf("allows another service's action, lists %q", listed)
		}
	})
}
