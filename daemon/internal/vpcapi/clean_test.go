package vpcapi_test

import (
	"strings"
	"testing"

	"cnictl/daemon/internal/vpcapi"
	"cnictl/testenv/aws/fakeaws"
)

// TestErrors_NoSecret: parts of the request that EC2 repeats are not passed on, and endless
// messages are cut.
func TestErrors_NoSecret(t *testing.T) {
	t.Parallel()
	const token = "IQoJb3JpZ2luX2VjEXAMPLEtoken"
	for name, message := range map[string]string{
		"signature": "The request signature we calculated does not match. The Canonical String for this request should have been\n'POST\n/\n\n" +
			"host:ec2.us-west-2.amazonaws.com\nx-amz-security-token:" + token + "\n' Credential=ASIAIOSFODNN7EXAMPLE/20261121",
		"long": strings.Repeat("no ", 100_000) + token,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, setup{})
			if _, err := n.world.AddFault(fakeaws.Rule{Action: "DescribeSubnets", Fault: fakeaws.Fault{Code: "SignatureDoesNotMatch", Message: message, Status: 403}}); err != nil {
				t.Fatal(err)
			}
			_, err := n.DescribeSubnets(t.Context())
			if err == nil || vpcapi.Code(err) != "SignatureDoesNotMatch" {
				t.Fatalf("error %v", err)
			}
			for _, text := range []string{err.Error(), vpcapi.Brief(err).Error()} {
				if strings.Contains(text, token) || strings.Contains(text, "ASIAIOSFODNN7EXAMPLE") || len(text) > 5000 {
					t.Errorf("text (%d bytes): %.600s", len(text), text)
				}
			}
		})
	}
}
