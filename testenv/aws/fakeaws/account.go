package fakeaws

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Cluster is the world's EKS cluster.
type Cluster struct {
	Name         string
	Issuer       string // of service account tokens
	AddOns       map[string]AddOn
	Associations []PodIdentity
}

// AddOn is a managed add-on.
type AddOn struct{ Version, Status, ConfigurationValues string }

// PodIdentity is a Pod Identity association.
type PodIdentity struct{ ID, Namespace, ServiceAccount, RoleARN string }

// Role is an IAM role with one policy and an instance profile of the same name.
type Role struct{ Name, Trust, Policy string }

// SetCluster replaces the only cluster that EKS shows.
func (w *World) SetCluster(c Cluster) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cluster = &c
}

// SetRole adds a role to IAM and returns its ARN. Its policy only decides simulations: which
// calls are allowed, SetPolicy decides.
func (w *World) SetRole(r Role) (arn string, err error) {
	p, err := parsePolicy([]byte(r.Policy))
	if err != nil {
		return "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roles[r.Name] = role{r, p}
	return w.iamARN("role", r.Name), nil
}

type role struct {
	Role
	policy policy
}

func (w *World) iamARN(kind, name string) string {
	return "arn:aws:iam::" + w.opts.AccountID + ":" + kind + "/" + name
}

// scopeOf returns the service that a request was signed for.
func scopeOf(r *http.Request) string {
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	credential, _, _ = strings.Cut(credential, ",")
	if parts := strings.Split(credential, "/"); len(parts) == 5 {
		return parts[3]
	}
	return ""
}

// serveEKS answers read-only EKS calls, in EKS's REST protocol.
func (s *ec2Server) serveEKS(rw http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // clusters/NAME[/KIND[/NAME]]
	name, asked := "", len(parts) > 1 && parts[0] == "clusters" && r.Method == http.MethodGet
	switch {
	case asked && len(parts) == 2:
		name = "DescribeCluster"
	case asked && len(parts) == 4 && parts[2] == "addons":
		name = "DescribeAddon"
	case asked && len(parts) == 3 && parts[2] == "pod-identity-associations":
		name = "ListPodIdentityAssociations"
	case asked && len(parts) == 4 && parts[2] == "pod-identity-associations":
		name = "DescribePodIdentityAssociation"
	}
	var answer any
	err := s.account("eks", name, r, func(w *World) (e error) {
		answer, e = w.eks(name, parts[1:], r.URL.Query())
		return e
	})
	rw.Header().Set("Content-Type", "application/json")
	if err != nil {
		e := asError(err)
		rw.Header().Set("X-Amzn-Errortype", e.Code)
		rw.WriteHeader(e.status())
		answer = map[string]string{"message": e.Message}
	}
	_ = json.NewEncoder(rw).Encode(answer) // a client that hung up needs no answer
}

func (w *World) eks(action string, path []string, query url.Values) (any, error) {
	none := func(what string) error {
		return &Error{Code: "ResourceNotFoundException", Message: "No " + what + " found", Status: http.StatusNotFound}
	}
	c := w.cluster
	if c == nil || c.Name != path[0] {
		return nil, none("cluster " + path[0])
	}
	association := func(a PodIdentity) map[string]string {
		return map[string]string{"associationId": a.ID, "namespace": a.Namespace, "serviceAccount": a.ServiceAccount, "clusterName": c.Name}
	}
	switch action {
	case "DescribeAddon":
		a, ok := c.AddOns[path[2]]
		if !ok {
			return nil, none("addon " + path[2])
		}
		return map[string]any{"addon": map[string]string{"addonName": path[2], "addonVersion": a.Version, "status": a.Status, "configurationValues": a.ConfigurationValues}}, nil
	case "ListPodIdentityAssociations":
		list := []map[string]string{}
		for _, a := range c.Associations {
			if a.Namespace == query.Get("namespace") && a.ServiceAccount == query.Get("serviceAccount") {
				list = append(list, association(a))
			}
		}
		return map[string]any{"associations": list}, nil
	case "DescribePodIdentityAssociation":
		at := slices.IndexFunc(c.Associations, func(a PodIdentity) bool { return a.ID == path[2] })
		if at < 0 {
			return nil, none("association " + path[2])
		}
		one := association(c.Associations[at])
		one["roleArn"] = c.Associations[at].RoleARN
		return map[string]any{"association": one}, nil
	}
	return map[string]any{"cluster": map[string]any{"name": c.Name, "identity": map[string]any{"oidc": map[string]string{"issuer": c.Issuer}}}}, nil
}

// serveIAM answers read-only IAM calls, in IAM's Query protocol.
func (s *ec2Server) serveIAM(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxForm)) // a truncated body has no action and is refused
	form, _ := url.ParseQuery(string(body))
	name := form.Get("Action")
	if !slices.Contains([]string{"GetRole", "GetInstanceProfile", "SimulatePrincipalPolicy"}, name) || form.Get("Version") != "2010-05-08" {
		name = ""
	}
	var answer any
	err := s.account("iam", name, r, func(w *World) (e error) {
		answer, e = w.iam(name, form)
		return e
	})
	rw.Header().Set("Content-Type", "text/xml")
	if err != nil {
		e := asError(err)
		rw.WriteHeader(e.status())
		answer = xmlRefusal{Code: e.Code, Message: e.Message}
	}
	_ = xml.NewEncoder(rw).Encode(answer) // a client that hung up needs no answer
}

type xmlRefusal struct {
	XMLName xml.Name `xml:"ErrorResponse"`
	Code    string   `xml:"Error>Code"`
	Message string   `xml:"Error>Message"`
}

type xmlRole struct {
	XMLName xml.Name `xml:"GetRoleResponse"`
	Name    string   `xml:"GetRoleResult>Role>RoleName"`
	ARN     string   `xml:"GetRoleResult>Role>Arn"`
	Trust   string   `xml:"GetRoleResult>Role>AssumeRolePolicyDocument"`
}

type xmlProfile struct {
	XMLName xml.Name `xml:"GetInstanceProfileResponse"`
	Name    string   `xml:"GetInstanceProfileResult>InstanceProfile>InstanceProfileName"`
	ARN     string   `xml:"GetInstanceProfileResult>InstanceProfile>Roles>member>Arn"`
	Role    string   `xml:"GetInstanceProfileResult>InstanceProfile>Roles>member>RoleName"`
}

type xmlDecision struct {
	Action   string `xml:"EvalActionName"`
	Decision string `xml:"EvalDecision"`
	// Lacks are the condition keys that the simulated request does not set.
	Lacks []string `xml:"MissingContextValues>member"`
}

type xmlDecisions struct {
	XMLName xml.Name      `xml:"SimulatePrincipalPolicyResponse"`
	Results []xmlDecision `xml:"SimulatePrincipalPolicyResult>EvaluationResults>member"`
}

func (w *World) iam(action string, form url.Values) (any, error) {
	arn := form.Get("PolicySourceArn")
	name := form.Get("RoleName") + form.Get("InstanceProfileName") + arn[strings.LastIndexByte(arn, '/')+1:]
	r, ok := w.roles[name]
	if !ok {
		return nil, &Error{Code: "NoSuchEntity", Message: "The role with name " + name + " cannot be found.", Status: http.StatusNotFound}
	}
	switch action {
	case "GetRole":
		return xmlRole{Name: name, ARN: w.iamARN("role", name), Trust: url.PathEscape(r.Trust)}, nil
	case "GetInstanceProfile":
		return xmlProfile{Name: name, ARN: w.iamARN("role", name), Role: name}, nil
	}
	out := xmlDecisions{}
	words := map[verdict]string{allowed: "allowed", denied: "explicitDeny", notAllowed: "implicitDeny"}
	for _, key := range slices.Sorted(maps.Keys(form)) {
		if strings.HasPrefix(key, "ActionNames.member.") {
			n := need{action: form.Get(key), resource: form.Get("ResourceArns.member.1")}
			out.Results = append(out.Results, xmlDecision{n.action, words[r.policy.judge(n)], r.policy.lacks(n)})
		}
	}
	return out, nil
}

// account runs a call of EKS or IAM: permission, latency, effect. An empty name is an action
// that is not served.
func (s *ec2Server) account(service, name string, r *http.Request, run func(*World) error) error {
	w, call := s.world, Call{Action: service + ":" + name, Caller: s.caller(r), Start: s.world.opts.Now()}
	began := time.Now()
	err := func() error {
		if name == "" {
			w.violate("%s: %s %s is not served", service, r.Method, r.URL)
			return fail(codeInvalidAction, "%s %s is not served", r.Method, r.URL)
		}
		w.count(call.Action)
		if err := locked(&w.wire, func() error { return w.permit(call.Caller, need{action: call.Action, resource: "*"}) }); err != nil {
			refused := map[string]string{"eks": "AccessDeniedException", "iam": "AccessDenied"}[service]
			return &Error{Code: refused, Message: asError(err).Message, Status: http.StatusForbidden}
		}
		w.pause(call.Action)
		w.mu.Lock()
		defer w.mu.Unlock()
		return run(w)
	}()
	if call.Took = time.Since(began); err != nil {
		call.Code = asError(err).Code
	}
	s.log(call)
	return err
}
