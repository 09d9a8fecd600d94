package logging

import (
	"strings"
	"testing"

	"cnictl/daemon/scrub"
)

var (
	aSandbox = strings.Repeat("0123456789abcdef", 4)
	anAccess = "ASIA" + "IOSFODNN7EXAMPLE"
	aToken   = "AQAEAK3b1vXq9cI7_P-token=="
)

func TestScrub(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"": "",
		`{"level":"info","msg":"address assigned","ip":"10.0.0.1","eni_id":"eni-0a1b2c3d4e5f60718"}`: `{"level":"info","msg":"address assigned","ip":"10.0.0.1","eni_id":"eni-0a1b2c3d4e5f60718"}`,
		`{"sandbox_id":"` + aSandbox + `"}`:                 `{"sandbox_id":"<sandbox-id>"}`,
		aSandbox + " " + aSandbox + "/" + aSandbox:          "<sandbox-id> <sandbox-id>/<sandbox-id>",
		"UnassignPodIPAddress: sandbox aws-cni/" + aSandbox: "UnassignPodIPAddress: sandbox aws-cni/<sandbox-id>",
		aSandbox + "0":                                          aSandbox + "0",
		strings.ToUpper(aSandbox):                               "<sandbox-id>",
		"key " + anAccess + " used":                             "key <access-key> used",
		"AKIA" + "IOSFODNN7EXAMPLE":                             "<access-key>",
		"X-aws-ec2-metadata-token: " + aToken:                   "X-aws-ec2-metadata-token: <secret>",
		`{"X-Aws-Ec2-Metadata-Token":["` + aToken + `"]}`:       `{"X-Aws-Ec2-Metadata-Token":["<secret>"]}`,
		"Authorization: Bearer abc.def.ghi":                     "Authorization: <secret>",
		"Authorization: Basic dXNlcjpwYXNz":                     "Authorization: <secret>",
		`"msg":"{\"SecretAccessKey\":\"wJalrXUt/nFEMI+K7\"}"`:   `"msg":"{\"SecretAccessKey\":\"<secret>\"}"`,
		"aws_session_token=IQoJb3JpZ2luX2VjE&x=1":               "aws_session_token=<secret>&x=1",
		"https://h/?X-Amz-Security-Token=FwoGZ&X-Amz-Date=1":    "https://h/?X-Amz-Security-Token=<secret>&X-Amz-Date=1",
		"https://user:pa55@example.com/x":                       "https://<secret>@example.com/x",
		`"url":"https:\/\/user:pa55@example.com"`:               `"url":"https:\/\/<secret>@example.com"`,
		"https://10.100.0.1:443/api/v1/pods?a@b":                "https://10.100.0.1:443/api/v1/pods?a@b",
		"got eyJhbGciOiJSUzI1.eyJpc3MiOiJr.c2lnbmF0 back":       "got <secret> back",
		"AWS4-HMAC-SHA256 Credential=x/20261121/us/ec2, s":      "AWS4-HMAC-SHA256 <secret>, s",
		"the password of a pod":                                 "the password of a pod",
		"session token expired":                                 "session token expired",
		"subnet-0123456789abcdef0 has 10.0.0.0/16, basic needs": "subnet-0123456789abcdef0 has 10.0.0.0/16, basic needs",
	} {
		if got := scrub.Line(line); got != want {
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
		}
	}
}

func FuzzScrub(f *testing.F) {
	for _, s := range []string{
		"", aSandbox, "x" + aSandbox + " " + aSandbox, anAccess, "X-aws-ec2-metadata-token: " + aToken, "Authorization: Bearer a", "Authorization: Bearer", "basic", "password:",
		"https://u:p@h/", `{"level":"info","ts":"2026-08-21T09:14:03.123Z","msg":"x"}`, "\xff\x00", "eyJhbGciOiJSUzI1.eyJpc3MiOiJr.c2ln",
	} {
		f.Add(s)
	}
	for _, log := range recordedLogs(f) {
		callers := map[string]bool{} // those with a line
		for line := range strings.Lines(string(log)) {
			caller, _, _ := strings.Cut(line, `","msg":"`)
			_, caller, _ = strings.Cut(caller, `"caller":"`)
			if !callers[caller] {
				callers[caller] = true
				f.Add(strings.TrimSpace(line))
			}
		}
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, secret := range []string{aSandbox, anAccess, "X-aws-ec2-metadata-token: " + aToken, "https://u:" + aToken + "@h"} {
			line := s + "\n" + secret + "\n" + s
			if got := scrub.Line(line); strings.Contains(got, aSandbox) && !strings.Contains(s, aSandbox) ||
				strings.Contains(got, anAccess) && !strings.Contains(s, anAccess) || strings.Contains(got, aToken) && !strings.Contains(s, aToken) {
				t.Fatalf("%q reveals %q: %q", line, secret, got)
			}
		}
	})
}
