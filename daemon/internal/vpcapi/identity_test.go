package vpcapi_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"

	"cnictl/daemon/internal/vpcapi"
)

// TestIdentity: the provider is named with the role and account that it reveals. An agent of Pod
// Identity that does not run is named in the error of the request that needed it.
func TestIdentity(t *testing.T) {
	const account = "123456789012"
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	role := "arn:aws:iam::" + account + ":role/cni"
	t.Setenv("AWS_ROLE_ARN", role)
	irsa := newNode(t, setup{conf: func(c *vpcapi.Config) {
		c.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIA", SecretAccessKey: "secret", Source: stscreds.WebIdentityProviderName}, nil
		})
	}})
	if got, err := irsa.Identity(t.Context()); err != nil || got != (vpcapi.Identity{Provider: "WebIdentityCredentials", Role: role, Account: account}) {
		t.Errorf("IRSA: %+v, %v", got, err)
	}

	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"AccessKeyId": "AKIA", "SecretAccessKey": "secret", "Token": "token", "AccountId": "`+account+`", "Expiration": "2126-01-01T00:00:00Z"}`)
	}))
	defer agent.Close()
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", agent.URL+"/v1/credentials")
	podIdentity := setup{conf: func(c *vpcapi.Config) { c.Credentials = nil }}
	if got, err := newNode(t, podIdentity).Identity(t.Context()); err != nil || got != (vpcapi.Identity{Provider: "CredentialsEndpointProvider", Account: account}) {
		t.Errorf("Pod Identity: %+v, %v", got, err)
	}
	agent.Close()
	_, err := newNode(t, podIdentity).DescribeSubnets(t.Context())
	if err == nil || !strings.Contains(err.Error(), "EKS Pod Identity Agent not reachable at "+agent.URL) {
		t.Errorf("no agent: %v", err)
	}
}
