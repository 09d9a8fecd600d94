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

// emptyHash is the SHA-256 of no body.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// askEKS makes a GET of EKS's REST API and decodes the answer. Refusals are a [smithy.APIError].
// The SDK's package for EKS would make every start of cnictl a tenth slower, for four GETs.
func (r *Reader) askEKS(ctx context.Context, region string, query url.Values, into any, path ...string) error {
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
	// The SDK knows the domain of each partition. EKS's hosts are named as EC2's.
	found, err := ec2.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, ec2.EndpointParameters{Region: &region})
	if err != nil {
		return "", fmt.Errorf("endpoint of EKS in %s: %w", region, err)
	}
	return strings.Replace(found.URI.String(), "//ec2.", "//eks.", 1), nil
}
