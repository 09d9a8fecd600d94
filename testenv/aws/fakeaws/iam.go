package fakeaws

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// iam holds the permissions of a world's callers. It is part of wire and guarded by its
// mutex.
type iam struct {
	keys     map[string]string          // access key → instance id
	policies map[string]policy          // by instance id; "" for callers without a policy of their own
	used     map[string]map[string]bool // by instance id: actions called; true if ever refused for a missing permission
}

func newIAM() iam {
	return iam{keys: make(map[string]string), policies: make(map[string]policy), used: make(map[string]map[string]bool)}
}

// SetPolicy restricts an instance's role to an IAM policy document or, for instance "", callers
// without a policy of their own. An empty document removes the restriction. Calls that the
// policy does not allow get UnauthorizedOperation and appear in ActionsDenied.
//
// The access key that the metadata service gives an instance identifies the caller. Calls with
// other keys count as those of the instance that the server serves, if any.
func (w *World) SetPolicy(instanceID, document string) error {
	if document == "" {
		w.wire.do(func() { delete(w.wire.iam.policies, instanceID) })
		return nil
	}
	p, err := parsePolicy([]byte(document))
	if err != nil {
		return err
	}
	w.wire.do(func() { w.wire.iam.policies[instanceID] = p })
	return nil
}

// Filled returns a policy of deploy/iam for a cluster in a VPC of this world: it replaces the words
// in capitals, as docs/install.md says.
func (w *World) Filled(document []byte, cluster, vpcID string) string {
	return strings.NewReplacer("CLUSTER_NAME", cluster, "REGION", w.opts.Region, "ACCOUNT", w.opts.AccountID, "VPC_ID", vpcID).Replace(string(document))
}

// ActionsUsed lists the actions for which an instance's calls needed permission, granted or
// not, as IAM spells them (ec2:CreateTags). Creating an ENI with tags needs two.
func (w *World) ActionsUsed(instanceID string) []string {
	return locked(&w.wire, func() []string { return slices.Sorted(maps.Keys(w.wire.iam.used[instanceID])) })
}

// ActionsDenied lists the actions of ActionsUsed that were refused at least once.
func (w *World) ActionsDenied(instanceID string) []string {
	return locked(&w.wire, func() []string {
		var out []string
		for _, a := range slices.Sorted(maps.Keys(w.wire.iam.used[instanceID])) {
			if w.wire.iam.used[instanceID][a] {
				out = append(out, a)
			}
		}
		return out
	})
}

// accessKeyOf returns the access key of an instance's role session.
func accessKeyOf(instanceID string) string {
	sum := sha256.Sum256([]byte(instanceID))
	return "ASIA" + base32.StdEncoding.EncodeToString(sum[:])[:16]
}

// caller returns the instance that signed a request, "" if unknown.
func (s *ec2Server) caller(r *http.Request) string {
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	key, _, _ := strings.Cut(credential, "/")
	if id := locked(&s.world.wire, func() string { return s.world.wire.iam.keys[key] }); id != "" {
		return id
	}
	if s.identify != nil {
		return s.identify(r)
	}
	return ""
}

// need is one permission that a call requires, with the condition keys of the request.
type need struct {
	action, resource string
	keys             contextKeys
}

// authorise records the permissions that a call requires and refuses the call if one is missing.
func (w *World) authorise(caller, action string, f *form) error {
	needs := w.needs(action, f)
	return locked(&w.wire, func() error {
		for _, n := range needs {
			if err := w.permit(caller, n); err != nil {
				return err
			}
		}
		if w.wire.allow != nil && !slices.Contains(w.wire.allow, action) {
			n := need{action: "ec2:" + action, resource: "*"}
			w.wire.iam.note(caller, n, true)
			return w.unauthorised(caller, n, notAllowed)
		}
		return nil
	})
}

// permit records a permission that a caller needs and returns an error if the caller lacks it.
// The caller of permit holds the wire's lock.
func (w *World) permit(caller string, n need) error {
	p, limited := w.wire.iam.policies[caller]
	if !limited {
		p, limited = w.wire.iam.policies[""]
	}
	v := allowed
	if limited {
		v = p.judge(n)
	}
	if w.wire.iam.note(caller, n, v != allowed); v != allowed {
		return w.unauthorised(caller, n, v)
	}
	return nil
}

func (i *iam) note(caller string, n need, refused bool) {
	if i.used[caller] == nil {
		i.used[caller] = make(map[string]bool)
	}
	i.used[caller][n.action] = i.used[caller][n.action] || refused
}

// unauthorised returns EC2's answer. The encoded message is readable here, unlike EC2's.
func (w *World) unauthorised(caller string, n need, v verdict) error {
	if caller == "" {
		caller = "unknown"
	}
	user := fmt.Sprintf("arn:aws:sts::%s:assumed-role/node-role/%s", w.opts.AccountID, caller)
	what := n.action
	if n.resource != "*" {
		what += " on resource: " + n.resource
	}
	why := fmt.Sprintf("because no identity-based policy allows the %s action", n.action)
	if v == denied {
		why = "with an explicit deny in an identity-based policy"
	}
	encoded, err := json.Marshal(map[string]any{"allowed": false, "explicitDeny": v == denied, "context": map[string]any{
		"principal": map[string]string{"arn": user}, "action": n.action, "resource": n.resource}})
	if err != nil {
		return err // text always encodes
	}
	return fail(codeUnauthorized, "You are not authorized to perform this operation. User: %s is not authorized to perform: %s %s. Encoded authorization failure message: %s",
		user, what, why, base64.RawURLEncoding.EncodeToString(encoded))
}

// needs lists the permissions that a call requires: its action on each resource that
// IAM checks for it (Service Authorization Reference, "Amazon EC2"). Read-only actions
// have no resources.
func (w *World) needs(action string, f *form) []need {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []need
	add := func(kind string, ids ...string) {
		for _, id := range ids {
			out = append(out, need{"ec2:" + action, w.arn(kind, id), w.keysOf(kind, id)})
		}
	}
	// tagged adds the tags of the request to its last resource.
	tagged := func(tags map[string]string) {
		keys := out[len(out)-1].keys
		keys.setTags(keyRequestTag, tags)
		keys[keyTagKeys] = slices.Sorted(maps.Keys(tags))
	}
	values := f.shared.values
	switch eni := values["NetworkInterfaceId"]; action {
	case "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses", "AssignIpv6Addresses", "UnassignIpv6Addresses", "DeleteNetworkInterface":
		add("network-interface", eni)
	case "ModifyNetworkInterfaceAttribute":
		add("network-interface", eni)
		if f.group("SourceDestCheck").has("Value") { // the reference names no attributes; none of the others is asked for
			out[0].keys.set(keyAttribute+"sourcedestcheck", f.group("SourceDestCheck").text("Value"))
		}
		add("security-group", f.list("SecurityGroupId")...)
	case "CreateNetworkInterface":
		tags := readTagSpecifications(f)
		add("subnet", values["SubnetId"])
		add("security-group", f.list("SecurityGroupId")...)
		add("network-interface", "*")
		tagged(tags)
		if len(f.indexes("TagSpecification")) > 0 {
			action = "CreateTags"
			add("network-interface", "*")
			tagged(tags)
			out[len(out)-1].keys.set(keyCreateAction, "CreateNetworkInterface")
		}
	case "AttachNetworkInterface":
		add("instance", values["InstanceId"])
		add("network-interface", eni)
	case "DetachNetworkInterface":
		eni, instance := w.attached(values["AttachmentId"])
		add("instance", instance)
		add("network-interface", eni)
	case "CreateTags":
		for _, id := range f.list("ResourceId") {
			add(kindOf(id), id)
			tagged(f.tags())
		}
	default:
		out = []need{{"ec2:" + action, "*", contextKeys{keyRegion: {w.opts.Region}}}}
	}
	return out
}

func (w *World) arn(kind, id string) string {
	return fmt.Sprintf("arn:aws:ec2:%s:%s:%s/%s", w.opts.Region, w.opts.AccountID, kind, id)
}

// attached returns the ENI and the instance of an attachment, "*" if it does not exist. The
// caller holds mu.
func (w *World) attached(attachmentID string) (eniID, instanceID string) {
	if e := w.byAttachment(attachmentID); e != nil {
		return e.ID, e.Attachment.InstanceID
	}
	return "*", "*"
}

// kindOf returns a resource's kind as ARNs spell it.
func kindOf(id string) string {
	switch kind, _, _ := strings.Cut(id, "-"); kind {
	case "eni":
		return "network-interface"
	case "i":
		return "instance"
	case "sg":
		return "security-group"
	default:
		return kind
	}
}
