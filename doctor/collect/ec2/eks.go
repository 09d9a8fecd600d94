package ec2

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"
)

// emptyHash is the SHA-256 of an empty body.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// eksClient makes the four GETs of EKS's REST API that a check needs. The SDK's package for EKS
// would slow every start of cnictl by a tenth. Refusals are a [smithy.APIError].
type eksClient struct {
	r      *Reader
	region string
}

const associationsPath = "pod-identity-associations"

// DescribeCluster decodes an EKS cluster.
func (c eksClient) DescribeCluster(ctx context.Context, cluster string, into any) error {
	return c.get(ctx, nil, into, cluster)
}

// DescribeAddon decodes a managed add-on.
func (c eksClient) DescribeAddon(ctx context.Context, cluster, name string, into any) error {
	return c.get(ctx, nil, into, cluster, "addons", name)
}

// ListPodIdentityAssociations decodes the associations of a service account.
func (c eksClient) ListPodIdentityAssociations(ctx context.Context, cluster, namespace, account string, into any) error {
	return c.get(ctx, url.Values{"namespace": {namespace}, "serviceAccount": {account}}, into, cluster, associationsPath)
}

// DescribePodIdentityAssociation decodes one association.
func (c eksClient) DescribePodIdentityAssociation(ctx context.Context, cluster, id string, into any) error {
	return c.get(ctx, nil, into, cluster, associationsPath, id)
}

// get signs a request and decodes the answer.
func (c eksClient) get(ctx context.Context, query url.Values, into any, path ...string) error {
	r, region := c.r, c.region
	base, err := r.endpointEKS(ctx, region)
	if err != nil {
		return err
	}
	u, err := url.Parse(base)
	if err != nil {
		return fmt.Errorf("endpoint of EKS: %w", err)
	}
	u = u.JoinPath(append([]string{"clusters"}, path...)...)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return fmt.Errorf("request to EKS: %w", err)
	}
	if r.opts.UserAgent != "" {
		req.Header.Set("User-Agent", r.opts.UserAgent)
	}
	credentials, err := r.cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return err
	}
	if err := v4.NewSigner().SignHTTP(ctx, credentials, req, emptyHash, "eks", region, time.Now()); err != nil {
		return fmt.Errorf("sign a request to EKS: %w", err)
	}
	resp, err := counted{r.cfg.HTTPClient, &r.requests}.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := json.NewDecoder(resp.Body)
	if resp.StatusCode == http.StatusOK {
		return answer.Decode(into)
	}
	code, _, _ := strings.Cut(resp.Header.Get("X-Amzn-Errortype"), ":")
	var refusal struct{ Message string }
	if answer.Decode(&refusal) != nil || code == "" {
		return fmt.Errorf("EKS: %s", resp.Status)
	}
	return &smithy.GenericAPIError{Code: code, Message: refusal.Message}
}

func (r *Reader) endpointEKS(ctx context.Context, region string) (string, error) {
	if given := cmp.Or(r.opts.Endpoint, aws.ToString(r.cfg.BaseEndpoint)); given != "" {
		return given, nil
	}
	// The SDK knows the domain of each partition. EKS's hosts are named like EC2's.
	found, err := ec2.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, ec2.EndpointParameters{Region: &region})
	if err != nil {
		return "", fmt.Errorf("endpoint of EKS in %s: %w", region, err)
	}
	return strings.Replace(found.URI.String(), "//ec2.", "//eks.", 1), nil
}
