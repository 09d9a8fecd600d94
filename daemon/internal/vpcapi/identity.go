package vpcapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
)

// Identity is whose credentials sign the client's requests.
type Identity struct {
	Provider string // as the SDK names it: EC2RoleProvider, WebIdentityCredentials (IRSA), CredentialsEndpointProvider (Pod Identity)
	Role     string // ARN, for IRSA only
	Account  string // 12 digits, empty if unknown
}

// Identity returns whose credentials sign the requests. After a request that succeeded it makes
// none.
func (c *Client) Identity(ctx context.Context) (Identity, error) {
	creds, err := c.credentials.Retrieve(ctx)
	if err != nil {
		return Identity{}, fmt.Errorf("get AWS credentials: %w", c.nameAgent(err))
	}
	id := Identity{Provider: creds.Source, Account: creds.AccountID}
	if id.Provider == stscreds.WebIdentityProviderName {
		id.Role = c.env.RoleARN
		if role, err := arn.Parse(id.Role); err == nil && id.Account == "" {
			id.Account = role.AccountID
		}
	}
	return id, nil
}

// nameAgent names the EKS Pod Identity Agent in a failure to connect to it: the SDK's error has
// only its URL.
func (c *Client) nameAgent(err error) error {
	var conn *net.OpError
	if agent := c.env.ContainerCredentialsEndpoint; agent != "" && errors.As(err, &conn) && strings.Contains(err.Error(), agent) {
		return fmt.Errorf("EKS Pod Identity Agent not reachable at %s (does DaemonSet eks-pod-identity-agent run on this node?): %w", agent, err)
	}
	return err
}
