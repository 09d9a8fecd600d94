package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"
	"go.yaml.in/yaml/v3"

	daemoniam "cnictl/daemon/iam"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// Installation reads what EKS and IAM say about an installation of aws-node: the managed add-on
// and, for each instance, the role whose credentials the next pods get. role is that of the
// service account's annotation. An instance's reading has only these sources.
func (r *Reader) Installation(ctx context.Context, region string, instances []evidence.Instance, role string) map[string]*evidence.Reading {
	region = r.ResolveRegion(region)
	q := installation{r: r, region: region, annotated: role,
		eks: eksClient{r, region},
		iam: iam.NewFromConfig(r.cfg, func(o *iam.Options) {
			o.Region, o.HTTPClient, o.BaseEndpoint, o.APIOptions = region, counted{o.HTTPClient,
				&r.requests}, r.endpoint(o.BaseEndpoint), append(o.APIOptions, r.userAgent()...)
		}),
	}
	for _, i := range instances {
		q.cluster = cmp.Or(q.cluster, i.Cluster)
	}
	addOn := evidence.Lacking[*evidence.AddOn]("the instances have no tag with the name of the cluster")
	if q.cluster != "" { // a cluster outside EKS has neither add-ons nor associations
		var wait sync.WaitGroup
		wait.Go(func() { addOn = timed(ctx, r, q.addOn) })
		wait.Go(func() { q.association = timed(ctx, r, q.associations) })
		wait.Go(func() { q.issuer = timed(ctx, r, q.oidcIssuer).Content }) // without it, providers are not compared
		wait.Wait()
	}
	out, roles := map[string]*evidence.Reading{}, map[string]*evidence.Reading{}
	for _, i := range instances {
		of := roles[i.Profile]
		if of == nil {
			of = &evidence.Reading{}
			of.AddOn, of.Role = addOn, timed(ctx, r, func(ctx context.Context) (evidence.Role, error) { return q.role(ctx, i.Profile) })
			of.IAM = evidence.Lacking[evidence.IAM](of.Role.Missing)
			if of.Role.OK() {
				of.IAM = timed(ctx, r, func(ctx context.Context) (evidence.IAM, error) { return q.simulate(ctx, of.Role.Content.ARN) })
			}
			roles[i.Profile] = of
		}
		out[i.ID] = of
	}
	return out
}

func (r *Reader) endpoint(found *string) *string {
	if r.opts.Endpoint != "" {
		return &r.opts.Endpoint
	}
	return found
}

// installation reads EKS and IAM about one cluster.
type installation struct {
	r         *Reader
	eks       eksClient
	iam       *iam.Client
	region    string
	cluster   string // empty if not one of EKS, as far as its instances show
	annotated string // role of the service account

	association evidence.Source[string] // ARN of its role; empty if there is none
	issuer      string
}

func (q *installation) addOn(ctx context.Context) (*evidence.AddOn, error) {
	var out struct {
		Addon struct {
			AddonVersion, Status, ConfigurationValues string
			Health                                    struct {
				Issues []struct{ Code, Message string }
			}
		}
	}
	err := q.eks.DescribeAddon(ctx, q.cluster, "vpc-cni", &out)
	var refused smithy.APIError
	if errors.As(err, &refused) && refused.ErrorCode() == "ResourceNotFoundException" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var values struct {
		Env map[string]any `yaml:"env"`
	}
	// JSON or YAML, as it was given. EKS refuses anything else.
	if err := yaml.Unmarshal([]byte(out.Addon.ConfigurationValues), &values); err != nil {
		return nil, fmt.Errorf("configurationValues of the add-on: %w", err)
	}
	addOn := &evidence.AddOn{Version: out.Addon.AddonVersion, Status: out.Addon.Status, Env: map[string]string{}}
	for _, issue := range out.Addon.Health.Issues {
		addOn.Issues = append(addOn.Issues, issue.Code+": "+issue.Message)
	}
	for name, value := range values.Env {
		addOn.Env[name] = fmt.Sprint(value)
	}
	return addOn, nil
}

// associations returns the ARN of the role that a Pod Identity association gives aws-node, empty
// if there is none.
func (q *installation) associations(ctx context.Context) (string, error) {
	var list struct {
		Associations []struct{ AssociationID string }
	}
	if err := q.eks.ListPodIdentityAssociations(ctx, q.cluster, "kube-system", "aws-node", &list); err != nil || len(list.Associations) == 0 {
		return "", err
	}
	var out struct{ Association struct{ RoleARN string } }
	err := q.eks.DescribePodIdentityAssociation(ctx, q.cluster, list.Associations[0].AssociationID, &out)
	return out.Association.RoleARN, err
}

// oidcIssuer returns the issuer of the cluster's service account tokens.
func (q *installation) oidcIssuer(ctx context.Context) (string, error) {
	var out struct {
		Cluster struct {
			Identity struct{ OIDC struct{ Issuer string } }
		}
	}
	err := q.eks.DescribeCluster(ctx, q.cluster, &out)
	return out.Cluster.Identity.OIDC.Issuer, err
}

// role reads the role that the next pods get: from the Pod Identity association, else the service
// account, else the instance profile.
func (q *installation) role(ctx context.Context, profile string) (out evidence.Role, err error) {
	out.Issuer = q.issuer
	switch a := q.association; {
	case !a.OK():
		return out, fmt.Errorf("Pod Identity associations: %s", a.Missing)
	case a.Content != "":
		out.ARN, out.Via = a.Content, evidence.ViaPodIdentity
	case q.annotated != "":
		out.ARN, out.Via = q.annotated, evidence.ViaIRSA
	case profile == "":
		return out, errors.New("the instance has no instance profile")
	default:
		found, err := q.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String(nameOf(profile))})
		if err != nil {
			return out, err
		}
		if len(found.InstanceProfile.Roles) == 0 {
			return out, fmt.Errorf("the instance profile %s has no role", nameOf(profile))
		}
		out.ARN, out.Via = aws.ToString(found.InstanceProfile.Roles[0].Arn), evidence.ViaNode
	}
	found, err := q.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(nameOf(out.ARN))})
	if err != nil {
		return out, err
	}
	document, err := url.PathUnescape(aws.ToString(found.Role.AssumeRolePolicyDocument))
	if err != nil {
		return out, fmt.Errorf("trust policy of %s: %w", out.ARN, err)
	}
	out.Trust, err = reading.Trust(document)
	return out, err
}

// nameOf returns the name at the end of an ARN, after its path.
func nameOf(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

// simulate asks which of the daemon's actions the policies of a role allow on a network interface
// of its account: some policies allow them on nothing else.
func (q *installation) simulate(ctx context.Context, role string) (evidence.IAM, error) {
	out := evidence.IAM{Role: role, Actions: map[string]string{}}
	parts := strings.SplitN(role, ":", 6)
	if len(parts) < 6 {
		return out, fmt.Errorf("%q is no ARN of a role", role)
	}
	in := &iam.SimulatePrincipalPolicyInput{
		PolicySourceArn: &role, MaxItems: aws.Int32(pageSize),
		ActionNames: daemoniam.Needed(daemoniam.Start, daemoniam.IPv4, daemoniam.IPv6, daemoniam.Excluded, daemoniam.Interfaces,
			daemoniam.Groups, daemoniam.Sweep, daemoniam.Upstream),
		ResourceArns: []string{fmt.Sprintf("arn:%s:ec2:%s:%s:network-interface/eni-00000000000000000", parts[1], q.region, parts[4])},
	}
	answer, err := q.iam.SimulatePrincipalPolicy(ctx, in)
	if err != nil {
		return out, err
	}
	decide(out.Actions, answer.EvaluationResults)
	return out, nil
}

// decide adds the actions that are allowed, or denied whatever the conditions.
func decide(actions map[string]string, results []iamtypes.EvaluationResult) {
	for _, r := range results {
		switch {
		case r.EvalDecision == iamtypes.PolicyEvaluationDecisionTypeAllowed:
			actions[aws.ToString(r.EvalActionName)] = "allowed"
		case len(r.MissingContextValues) == 0: // otherwise a condition decides, as in a scoped policy
			actions[aws.ToString(r.EvalActionName)] = "denied"
		}
	}
}

// clusterOf returns the name of the cluster from the tags of an instance, empty if unknown.
func clusterOf(tags map[string]string) string {
	for _, key := range []string{"aws:eks:cluster-name", "eks:cluster-name", "eks:eks-cluster-name"} {
		if tags[key] != "" {
			return tags[key]
		}
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if name, ok := strings.CutPrefix(key, "kubernetes.io/cluster/"); ok {
			return name
		}
	}
	return ""
}
